//! What is said about a WhatsApp gateway, as data; the words of each language are beside it.
//! Deliberately absent: what the provider itself says, which is passed on as it came.

mod en;
mod pt_br;
#[cfg(test)]
mod tests;

use teimoso_whatsapp::{Error, Facts, MessageId, SendOutcome};

use super::Language;

/// A line about a gateway or a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whatsapp<'a> {
    /// An operation has no result.
    Failed {
        /// Why.
        error: &'a Error,
    },
    /// A send is over.
    Ended {
        /// How.
        outcome: &'a SendOutcome,
        /// At which provider.
        facts: &'a Facts,
    },
    /// A signal came before the answer.
    Interrupted {
        /// The id that went along, if one did.
        id: Option<&'a MessageId>,
    },
    /// A lookup found nothing.
    NotListed {
        /// By this id.
        id: &'a MessageId,
    },
    /// A QR code was shown.
    ToScan,
    /// There is a QR code to be asked for.
    AskForQr,
    /// A picture was written.
    Saved {
        /// Into this file.
        path: &'a str,
    },
    /// The instance is unlinked.
    LoggedOut,
}

impl Whatsapp<'_> {
    /// The line in that language.
    pub(super) fn text(&self, language: Language) -> String {
        match language {
            Language::English => en::text(self),
            Language::Portuguese => pt_br::text(self),
        }
    }
}

/// Whether the answer names another address.
fn is_elsewhere(error: &Error) -> bool {
    error.status().is_some_and(|status| (300..400).contains(&status))
}

/// What the provider or the transport says, in brackets: `HTTP 422: …`.
fn details(error: &Error) -> String {
    let status = error.status().map(|status| format!("HTTP {status}"));
    let message = error.message().or(error.reason()).map(super::printable);
    let parts: Vec<String> = [status, message].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(": ")) }
}
