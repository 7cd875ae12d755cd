//! The connector: the six operations, for every provider in the same way. Absent: what any provider's requests look
//! like, which its adapter describes, and how a send ends, which [`outcome`] decides.

mod builder;
mod outcome;
mod perform;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use teimoso_http::{Client, Clock, Entropy};

pub use self::builder::{ATTEMPT_TIMEOUT, ConnectorBuilder, InvalidConnector, SEND_TIMEOUT};
pub use self::outcome::{NotSent, SendOutcome, Sent, Unknown};
use self::perform::Act;

use crate::account::{Account, Settings};
use crate::adapter::{Adapter, Call, CallerId, Found, SentAs};
use crate::error::{Error, Operation};
use crate::media::Media;
use crate::message::{MessageId, Text};
use crate::qr::Qr;
use crate::redact::Redactor;
use crate::status::{Connection, Status};

/// How often a message in doubt is looked for, at most: what was sent a moment ago may take one to be listed.
pub const LOOKUPS_MAX: u32 = 3;

/// The wait before each further lookup.
const LOOKUP_WAIT: Duration = Duration::from_secs(1);

/// Whether a write may be tried again. Reads always are, and never ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Repeat {
    /// Never: the first failure is the answer (S3.2).
    #[default]
    Never,
    /// Only after an attempt of which it is proved, or stated by the peer, that it never was sent. Beyond S3.
    Unsent,
    /// As a read is: the caller knows that a repetition does no harm (S3.1).
    Idempotent,
}

/// What a caller says about one send.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SendOptions {
    /// Whether it may be tried again. [`Repeat::Idempotent`] is refused where the provider recognises no id.
    pub repeat: Repeat,
    /// The id that the message is to have, where one is carried; else one is made. A repetition by hand of what ended as
    /// unknown is recognised only under the same id.
    pub id: Option<MessageId>,
    /// Whether the message is to be looked for if the outcome is unknown. Refused where the provider has no lookup.
    pub reconcile: bool,
}

/// A client for one account at one provider. Clones share everything.
#[derive(Clone)]
pub struct Connector {
    adapter: &'static dyn Adapter,
    account: Arc<Account>,
    client: Client,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    attempt_timeout: Option<Duration>,
}

impl Connector {
    /// A builder with the defaults: the machine's trust roots, no proxy, real time and chance.
    pub fn builder<'a>(adapter: &'static dyn Adapter, settings: Settings<'a>) -> ConnectorBuilder<'a> {
        ConnectorBuilder::new(adapter, settings)
    }

    /// The provider's adapter.
    pub fn adapter(&self) -> &'static dyn Adapter {
        self.adapter
    }

    /// A fresh id for a message.
    pub fn fresh_id(&self) -> MessageId {
        MessageId::random(|| self.entropy.bits())
    }

    /// `instance.connect`. To connect what is connected is a success.
    ///
    /// # Errors
    ///
    /// What kept it from being done, or left that open.
    pub async fn connect(&self, repeat: Repeat) -> Result<Connection, Error> {
        let call = self.adapter.connect(&self.account);
        let connection = self.perform(Act::new(Operation::Connect, repeat), call).await?;
        Ok(Connection { status: self.shown(&connection.status), qr: connection.qr })
    }

    /// `instance.status`.
    ///
    /// # Errors
    ///
    /// When nothing could be learnt, after all attempts.
    pub async fn status(&self) -> Result<Status, Error> {
        let call = self.adapter.status(&self.account);
        self.perform(Act::new(Operation::Status, Repeat::Never), call).await.map(|status| self.shown(&status))
    }

    /// `instance.qr`.
    ///
    /// # Errors
    ///
    /// [`Declined::NotReady`](crate::adapter::Declined::NotReady) while there is none yet,
    /// [`Declined::AlreadyConnected`](crate::adapter::Declined::AlreadyConnected) when none is needed; else when nothing
    /// could be learnt.
    pub async fn qr(&self) -> Result<Qr, Error> {
        self.perform(Act::new(Operation::Qr, Repeat::Never), self.adapter.qr(&self.account)).await
    }

    /// `instance.logout`. To log out what is logged out is a success.
    ///
    /// # Errors
    ///
    /// As of [`Connector::connect`].
    pub async fn logout(&self, repeat: Repeat) -> Result<(), Error> {
        self.perform(Act::new(Operation::Logout, repeat), self.adapter.logout(&self.account)).await
    }

    /// `messages.send_text`.
    pub async fn send_text(&self, text: &Text, options: &SendOptions) -> SendOutcome {
        let facts = self.adapter.facts();
        let operation = Operation::SendText;
        let id = match self.carried(operation, facts.caller_id, options) {
            Ok(id) => id,
            Err(error) => return SendOutcome::unsupported(error),
        };
        let call = self.adapter.send_text(&self.account, text, id.as_ref());
        let confidential = vec![text.to().digits(), text.text()];
        self.send(Act { confidential, ..Act::new(operation, options.repeat) }, call, id, options).await
    }

    /// `messages.send_media`.
    pub async fn send_media(&self, media: &Media, options: &SendOptions) -> SendOutcome {
        let facts = self.adapter.facts();
        let operation = Operation::SendMedia;
        let carried = if facts.caller_id_on_media { facts.caller_id } else { CallerId::None };
        let id = match self.carried(operation, carried, options) {
            Ok(id) => id,
            Err(error) => return SendOutcome::unsupported(error),
        };
        let call = match self.adapter.send_media(&self.account, media, id.as_ref()) {
            Ok(call) => call,
            Err(reason) => return SendOutcome::unsupported(self.unsupported(operation, reason)),
        };
        let confidential = [Some(media.to().digits()), media.caption()].into_iter().flatten().collect();
        self.send(Act { confidential, ..Act::new(operation, options.repeat) }, call, id, options).await
    }

    /// Looks a message up by the id that its caller gave it. `None` says that the provider does not list it, which is
    /// no proof that it was not sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where there is no lookup; else when nothing could be learnt.
    pub async fn find(&self, id: &MessageId) -> Result<Option<Found>, Error> {
        let operation = Operation::Find;
        match self.adapter.find(&self.account, id) {
            Some(call) => self.perform(Act::new(operation, Repeat::Never), call).await,
            None => Err(self.unsupported(operation, "there is no lookup by an id of the caller's")),
        }
    }

    /// The id that goes along, if any.
    fn carried(
        &self,
        operation: Operation,
        carries: CallerId,
        options: &SendOptions,
    ) -> Result<Option<MessageId>, Error> {
        let refuse = |reason| Err(self.unsupported(operation, reason));
        if options.repeat == Repeat::Idempotent && !carries.allows_repeats() {
            return refuse("a repeated message is not recognised there, so that a send cannot be idempotent");
        }
        if options.reconcile && (carries == CallerId::None || !self.adapter.facts().lookup) {
            return refuse("there is no lookup by an id of the caller's");
        }
        if options.id.is_some() && carries == CallerId::None {
            return refuse("no id of the caller's is carried there");
        }
        let asked = options.id.is_some() || options.reconcile || options.repeat == Repeat::Idempotent;
        let goes_along = carries.is_always_carried() || (carries != CallerId::None && asked);
        Ok(goes_along.then(|| options.id.clone().unwrap_or_else(|| self.fresh_id())))
    }

    async fn send(
        &self,
        act: Act<'_>,
        call: Call<SentAs>,
        id: Option<MessageId>,
        options: &SendOptions,
    ) -> SendOutcome {
        let lookup = id.clone().filter(|_| self.adapter.facts().lookup);
        let outcome = match self.perform(Act { lookup, ..act }, call).await {
            Ok(SentAs(own)) => return SendOutcome::Sent(Sent { id: own, caller_id: id, reconciled: false }),
            Err(error) => SendOutcome::of(error, id),
        };
        match outcome {
            SendOutcome::Unknown { id: Some(id), why, error } if options.reconcile => {
                self.reconcile(id, why, error).await
            }
            outcome => outcome,
        }
    }

    /// Looks for what may have been sent. Only finding it settles anything.
    async fn reconcile(&self, id: MessageId, why: Unknown, error: Error) -> SendOutcome {
        for lookup in 1..=LOOKUPS_MAX {
            match self.find(&id).await {
                Ok(Some(found)) if !found.failed => {
                    return SendOutcome::Sent(Sent { id: found.id, caller_id: Some(id), reconciled: true });
                }
                // What failed may still be tried by the server itself; what cannot be asked will not be a second later.
                Ok(Some(_)) | Err(_) => break,
                Ok(None) if lookup < LOOKUPS_MAX => self.clock.sleep(LOOKUP_WAIT).await,
                Ok(None) => {}
            }
        }
        SendOutcome::Unknown { id: Some(id), why, error }
    }

    fn unsupported(&self, operation: Operation, reason: &str) -> Error {
        Error::unsupported(self.adapter.facts().name, operation, reason)
    }

    /// A status whose raw value may be shown.
    fn shown(&self, status: &Status) -> Status {
        Status::new(status.state, Redactor::new(&self.account, &[]).clean(&status.raw))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("provider", &self.adapter.facts().name)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}
