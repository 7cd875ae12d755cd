//! A store's failure: one opaque error with predicates, and one sentence for a person.

use std::fmt;

/// What kind of failure it is, and thereby what the API answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// No room on the disk: 507; it recovers by itself when there is room again.
    Full,
    /// Reading or writing failed: 503 until a restart, because re-reading proves nothing.
    Failed,
    /// More work than it can take now: 503 with Retry-After.
    Busy,
    /// It is being closed: 503.
    Closed,
    /// The cursor is not one that the listing gave out: 422.
    InvalidCursor,
}

/// Why a store could not do what was asked. Nothing was half-done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    kind: StoreErrorKind,
    sentence: String,
}

impl StoreError {
    /// An error of `kind`; `sentence` is lower case, reads after "failed to …:" and says what to do.
    #[must_use]
    pub fn new(kind: StoreErrorKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }

    /// What kind it is.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for StoreError {}
