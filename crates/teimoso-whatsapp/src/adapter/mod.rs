//! What an adapter is: plain descriptions of requests, and of how to read the answers to them. Absent: sending,
//! repeating, waiting and judging what may have happened, which is the connector's, once for all providers.

mod answer;
mod call;
mod multipart;

use std::fmt;

pub use self::answer::{Answer, Declined, Reading};
pub use self::call::{Call, Class, Path};
pub use self::multipart::Multipart;

use crate::account::Account;
use crate::media::Media;
use crate::message::{MessageId, Text};
use crate::qr::Qr;
use crate::status::{Connection, Status};

/// One provider's dialect. Everything here is a description: an adapter neither sends nor decides.
pub trait Adapter: fmt::Debug + Send + Sync {
    /// What is to be known of the provider before anything is asked of it.
    fn facts(&self) -> &'static Facts;

    /// `instance.connect`: begins to link the instance with WhatsApp.
    fn connect(&self, account: &Account) -> Call<Connection>;

    /// `instance.status`.
    fn status(&self, account: &Account) -> Call<Status>;

    /// `instance.qr`.
    fn qr(&self, account: &Account) -> Call<Qr>;

    /// `instance.logout`: unlinks the instance.
    fn logout(&self, account: &Account) -> Call<()>;

    /// `messages.send_text`. `id` is given only where [`Facts::caller_id`] says that one is carried.
    fn send_text(&self, account: &Account, text: &Text, id: Option<&MessageId>) -> Call<SentAs>;

    /// `messages.send_media`, with `id` as above.
    ///
    /// # Errors
    ///
    /// What this provider cannot be given, in lower case; nothing is sent then.
    fn send_media(
        &self,
        account: &Account,
        media: &Media,
        id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str>;

    /// How to find a message by the id that its caller gave it; `None` where the provider has no such lookup.
    fn find(&self, account: &Account, id: &MessageId) -> Option<Call<Option<Found>>> {
        let _ = (account, id);
        None
    }
}

/// What is to be known of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The stable name: lower case, words joined by `-`.
    pub name: &'static str,
    /// The name as its makers write it.
    pub title: &'static str,
    /// Its base URL, where there is one for everybody.
    pub server: Option<&'static str>,
    /// What stands for the instance.
    pub instance: Instance,
    /// The header that every request carries the token in, and what stands before it there, such as `Bearer `; `None`
    /// where the path has it.
    pub token_header: Option<(&'static str, &'static str)>,
    /// What a second token is for, where the provider knows one.
    pub client_token: Option<&'static str>,
    /// Whether a text carries an id of the caller's choice, and what that is good for.
    pub caller_id: CallerId,
    /// Whether media carry it too.
    pub caller_id_on_media: bool,
    /// Whether a message can be found by that id ([`Adapter::find`]).
    pub lookup: bool,
    /// Whether "sent" means queued: the provider keeps messages while it is disconnected, and sends them later.
    pub queues: bool,
}

/// What a provider calls an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instance {
    /// The token says which instance is meant.
    Unused,
    /// It must be named.
    Required,
    /// It may be named; else this one is meant.
    Default(&'static str),
}

/// What an id that the caller chooses is good for at a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerId {
    /// None is carried.
    None,
    /// It is carried always, and becomes the message's own id at WhatsApp, which keeps one of several messages with
    /// the same id: a send may be marked as idempotent.
    Deduplicates,
    /// The same, but only of newer servers, so that it is carried only when it is asked for: by an id of the caller's
    /// own, by the mark, or for a lookup.
    DeduplicatesIfAsked,
    /// It is carried always and is a label: the message can be found by it, and a repetition is another message.
    Labels,
}

impl CallerId {
    /// The stable name: `none`, `deduplicates`, `deduplicates_if_asked` or `labels`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Deduplicates => "deduplicates",
            Self::DeduplicatesIfAsked => "deduplicates_if_asked",
            Self::Labels => "labels",
        }
    }

    /// Whether a repetition under the same id is recognised, so that a send may be marked as idempotent.
    pub fn allows_repeats(self) -> bool {
        matches!(self, Self::Deduplicates | Self::DeduplicatesIfAsked)
    }

    /// Whether an id goes along that nobody asked for.
    pub fn is_always_carried(self) -> bool {
        matches!(self, Self::Deduplicates | Self::Labels)
    }
}

/// The id under which a provider took a message. `None` if it did not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentAs(pub Option<String>);

/// A message that a lookup found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The provider's id of it.
    pub id: Option<String>,
    /// The provider's word for how it stands, if it says.
    pub state: Option<String>,
    /// Whether that word says that the message failed.
    pub failed: bool,
}
