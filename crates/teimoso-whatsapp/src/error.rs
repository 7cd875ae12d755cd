//! Why an operation has no result, as data for whoever must decide what to do next; absent: sentences in any language
//! but the plain English of logs.

use std::fmt;
use std::time::Duration;

use teimoso_http::retry::Fate;

use crate::adapter::Declined;
use crate::message::MessageId;

/// One of the six operations, or the lookup that settles a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `instance.connect`.
    Connect,
    /// `instance.status`.
    Status,
    /// `instance.qr`.
    Qr,
    /// `instance.logout`.
    Logout,
    /// `messages.send_text`.
    SendText,
    /// `messages.send_media`.
    SendMedia,
    /// The lookup of a message by its caller's id.
    Find,
}

impl Operation {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "instance.connect",
            Self::Status => "instance.status",
            Self::Qr => "instance.qr",
            Self::Logout => "instance.logout",
            Self::SendText => "messages.send_text",
            Self::SendMedia => "messages.send_media",
            Self::Find => "messages.find",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The provider declined.
    Declined(Declined),
    /// The provider answered, and the answer does not say whether it was done.
    Unclear,
    /// No answer came, or not all of it.
    NoAnswer,
    /// This provider cannot do what was asked for; nothing was sent.
    Unsupported,
}

impl ErrorKind {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Declined(Declined::Authentication) => "authentication",
            Self::Declined(Declined::NotFound) => "not_found",
            Self::Declined(Declined::Invalid) => "invalid",
            Self::Declined(Declined::NotReady) => "not_ready",
            Self::Declined(Declined::AlreadyConnected) => "already_connected",
            Self::Declined(Declined::RateLimited) => "rate_limited",
            Self::Declined(Declined::Limit) => "limit",
            Self::Declined(Declined::Failed) => "failed",
            Self::Unclear => "unclear",
            Self::NoAnswer => "no_answer",
            Self::Unsupported => "unsupported",
        }
    }
}

/// An operation without a result (S3.4). Tokens, numbers and texts are in no part of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    // One pointer wide: every `Result` carries room for it.
    pub(crate) inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inner {
    pub(crate) provider: &'static str,
    pub(crate) operation: Operation,
    pub(crate) kind: ErrorKind,
    pub(crate) status: Option<u16>,
    pub(crate) message: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) fate: Option<Fate>,
    pub(crate) attempts: u32,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) exhausted: bool,
    pub(crate) may_have_taken_effect: bool,
    pub(crate) lookup: Option<MessageId>,
}

impl Error {
    pub(crate) fn unsupported(provider: &'static str, operation: Operation, reason: &str) -> Self {
        let inner = Inner {
            provider,
            operation,
            kind: ErrorKind::Unsupported,
            status: None,
            message: None,
            reason: Some(reason.to_owned()),
            fate: None,
            attempts: 0,
            retry_after: None,
            exhausted: false,
            may_have_taken_effect: false,
            lookup: None,
        };
        Self { inner: Box::new(inner) }
    }

    /// The provider, by its stable name.
    pub fn provider(&self) -> &'static str {
        self.inner.provider
    }

    /// What was asked for.
    pub fn operation(&self) -> Operation {
        self.inner.operation
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The status of the last answer, if one came.
    pub fn status(&self) -> Option<u16> {
        self.inner.status
    }

    /// The provider's own words, redacted and at most 300 characters long.
    pub fn message(&self) -> Option<&str> {
        self.inner.message.as_deref()
    }

    /// Why no answer came, or why nothing was tried; lower case. What `failed to …` says of a transport.
    pub fn reason(&self) -> Option<&str> {
        self.inner.reason.as_deref()
    }

    /// What is known of the last attempt's request; `None` if there was no attempt.
    pub fn fate(&self) -> Option<Fate> {
        self.inner.fate
    }

    /// How many attempts were made.
    pub fn attempts(&self) -> u32 {
        self.inner.attempts
    }

    /// The wait that the last answer asked for: set only for a 429 or 503 with a number of seconds in its `Retry-After`,
    /// and at most 30 s (S3.4).
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }

    /// The same in milliseconds.
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    }

    /// Whether another attempt would have been made, had there been one left.
    pub fn is_exhausted(&self) -> bool {
        self.inner.exhausted
    }

    /// Whether the operation may have been done all the same. Always `false` for a read, which does nothing.
    pub fn may_have_taken_effect(&self) -> bool {
        self.inner.may_have_taken_effect
    }

    /// How to find out: the id to look the message up by, with [`Connector::find`](crate::Connector::find). `None` where
    /// nothing is in doubt, where no id went along, and where the provider has no lookup.
    pub fn reconcile(&self) -> Option<&MessageId> {
        self.inner.lookup.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { provider, operation, kind, status, message, reason, .. } = &*self.inner;
        write!(f, "{provider} {operation}: {}", kind.name())?;
        if let Some(status) = status {
            write!(f, ", http {status}")?;
        }
        [message, reason].into_iter().flatten().try_for_each(|words| write!(f, ": {words}"))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_who_what_and_why() {
        let error = Error::unsupported("z-api", Operation::SendMedia, "a document carries no caption there");
        let text = "z-api messages.send_media: unsupported: a document carries no caption there";
        assert_eq!(error.to_string(), text);
        let inner = Inner {
            kind: ErrorKind::Declined(Declined::RateLimited),
            status: Some(429),
            message: Some("slow down".to_owned()),
            reason: None,
            retry_after: Some(Duration::from_secs(7)),
            ..*error.inner
        };
        let error = Error { inner: Box::new(inner) };
        assert_eq!(error.to_string(), "z-api messages.send_media: rate_limited, http 429: slow down");
        assert_eq!(error.retry_after_ms(), Some(7_000));
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
