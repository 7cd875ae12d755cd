//! Why a store could not be opened, in one sentence that says what to do next.

use crate::link::{Failure, Trouble};

/// What kind of reason it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// The URL or another option cannot be used, whatever answers there.
    Unusable,
    /// Nobody answers, or not in time.
    Unreachable,
    /// User, password or permission is wrong or missing.
    Authentication,
    /// Nobody we trust vouches for the server's certificate; `Options::authority` names who does.
    Untrusted,
    /// It answers and is not what is needed: too old, a replica, no Cluster, not as durable as was asked for.
    Unsuitable,
    /// It keeps no append-only file; `Options::allow_volatile` allows that.
    Volatile,
    /// It evicts any key when memory is short; `Options::allow_eviction` allows that.
    Evicting,
}

/// Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError {
    kind: OpenErrorKind,
    sentence: String,
}

impl OpenError {
    pub(crate) fn new(kind: OpenErrorKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }

    pub(crate) fn connecting(shown: &str, failure: &Failure) -> Self {
        let (kind, hint) = match failure.trouble {
            Trouble::Refused => (OpenErrorKind::Authentication, "check user, password and permissions"),
            Trouble::Untrusted => (OpenErrorKind::Untrusted, "name the authority that vouches for it"),
            Trouble::Unsuitable => (OpenErrorKind::Unsuitable, "is the address right?"),
            _ => (OpenErrorKind::Unreachable, "is it running?"),
        };
        Self::new(kind, format!("redis at {shown} cannot be used: {failure}; {hint}"))
    }

    /// What kind of reason it is.
    #[must_use]
    pub const fn kind(&self) -> OpenErrorKind {
        self.kind
    }

    /// Whether user, password or permission was wrong or missing.
    #[must_use]
    pub fn is_authentication(&self) -> bool {
        self.kind == OpenErrorKind::Authentication
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for OpenError {}
