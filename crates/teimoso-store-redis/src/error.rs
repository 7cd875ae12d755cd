//! Why a store could not be opened, in one sentence that says what to do next.

use crate::link::{Failure, Trouble};

/// Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError {
    sentence: String,
    authentication: bool,
}

impl OpenError {
    pub(crate) fn refused(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), authentication: false }
    }

    pub(crate) fn connecting(shown: &str, failure: &Failure) -> Self {
        let authentication = failure.trouble == Trouble::Refused;
        let hint = if authentication { "check user, password and permissions" } else { "is it running?" };
        Self { sentence: format!("redis at {shown} cannot be used: {failure}; {hint}"), authentication }
    }

    /// Whether user, password or permission was wrong or missing.
    #[must_use]
    pub const fn is_authentication(&self) -> bool {
        self.authentication
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for OpenError {}
