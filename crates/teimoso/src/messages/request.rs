//! What is said about requests that are repeated, as data: a line per failed attempt (S1.8), and the last word.
//! Deliberately absent: the words, which are the catalogues'.

use std::time::Duration;

use teimoso_retry::{Fate, GiveUp, WaitSource};

/// An attempt that failed, as a line of S1.8 begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt<'a> {
    /// Who speaks: `request`, `forgejo-api`.
    pub tag: &'a str,
    /// The method.
    pub method: &'a str,
    /// The path, without the query.
    pub path: &'a str,
    /// From 1.
    pub number: u32,
    /// How many attempts there can be.
    pub max: u32,
    /// What is known of the request.
    pub fate: Fate,
    /// The status, if a response head came.
    pub status: Option<u16>,
    /// Why there is no whole response, if there is none; English, reads after "failed to".
    pub reason: Option<&'a str>,
    /// Whether the request may have taken effect; never for a safe method.
    pub may_have_taken_effect: bool,
}

/// What a call without a response comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastWord {
    /// It may have taken effect.
    Unknown,
    /// Nothing took effect, and the attempts or the time ran out.
    RanOut,
    /// Nothing took effect, and nothing is gained by another attempt.
    Failed,
}

/// What was known when a signal ended a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// An attempt was under way.
    During,
    /// The wait before an attempt: nothing was on the wire.
    Before,
}

/// One line about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requesting<'a> {
    /// An attempt failed and another follows (S1.8).
    Retry {
        /// The attempt.
        attempt: FailedAttempt<'a>,
        /// The wait that begins now.
        wait: Duration,
        /// Where it comes from.
        source: WaitSource,
    },
    /// An attempt failed and no other follows.
    GaveUp {
        /// The attempt.
        attempt: FailedAttempt<'a>,
        /// Why no other follows.
        why: GiveUp,
    },
    /// There is no response.
    Ended {
        /// What that means.
        word: LastWord,
        /// How many attempts were made.
        attempts: u32,
        /// The reason of the last, where no line has told it; reads after "failed to".
        reason: Option<&'a str>,
        /// The key under which a repeat is safe, if there is one.
        key: Option<&'a str>,
    },
    /// Redirects were to be followed, and the answer is one that was not.
    NotFollowed {
        /// Its status.
        status: u16,
        /// How many were followed before.
        followed: u32,
    },
    /// A signal came first.
    Interrupted {
        /// When.
        when: Interrupted,
        /// The attempt that was under way or to come.
        number: u32,
        /// Whether the request has an effect to take: its method is not a safe one.
        effective: bool,
        /// Whether an attempt that had ended before may have taken effect.
        tainted: bool,
        /// The key under which a repeat is safe, if there is one.
        key: Option<&'a str>,
    },
}

/// Milliseconds for a line; saturating.
pub(super) fn milliseconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}
