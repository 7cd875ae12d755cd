//! What the engine is given from outside: time, chance, and the wire.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use teimoso_retry::{Fate, Hint};

use crate::model::{AttemptNumber, Destination, ErrorKind, Event, Millis, PhaseTimings, ResponseRecord};

/// A future behind a port.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time as an argument. Due times are wall clock, waits are monotonic (G8).
pub trait Clock: Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> Millis;

    /// Monotonic time since some fixed start.
    fn monotonic(&self) -> Duration;

    /// Completes when the monotonic clock has advanced by `wait`.
    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()>;
}

/// Chance as an argument.
pub trait Entropy: Send + Sync + 'static {
    /// 64 uniformly random bits.
    fn next_u64(&self) -> u64;
}

/// One request to be made.
#[derive(Debug, Clone)]
pub struct Dispatched {
    /// What is sent.
    pub event: Arc<Event>,
    /// Where: the event's URL.
    pub url: Arc<str>,
    /// For the `teimoso-attempt` header.
    pub number: AttemptNumber,
    /// For the `webhook-timestamp` header: the wall clock of this attempt.
    pub at: Millis,
    /// TCP and TLS must be up within this.
    pub connect_timeout: Duration,
    /// The whole exchange, body included, must end within this.
    pub total_timeout: Duration,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Report {
    /// What is known of the request.
    pub fate: Fate,
    /// The response's status, if a head arrived.
    pub status: Option<u16>,
    /// The response's Retry-After, already parsed.
    pub hint: Option<Hint>,
    /// What went wrong, if anything did.
    pub error_kind: Option<ErrorKind>,
    /// The same for a person.
    pub error: Option<Box<str>>,
    /// Whom we talked to.
    pub peer: Option<SocketAddr>,
    /// Phase timings.
    pub timings: PhaseTimings,
    /// The response, kept of failures only.
    pub response: Option<Box<ResponseRecord>>,
}

/// The wire: makes exactly one attempt. Knows no policy.
pub trait Dispatch: Send + Sync + 'static {
    /// Makes the attempt. Dropping the future abandons it and closes its connection.
    fn attempt(&self, request: Dispatched) -> BoxFuture<'static, Report>;
}

/// Judges a URL before anything is accepted for it.
pub trait Destinations: Send + Sync + 'static {
    /// The URL taken apart, or one sentence that says which rule refuses it and what would allow it.
    ///
    /// # Errors
    /// When the URL cannot be used, or is a literal address that the egress rules refuse.
    fn check(&self, url: &str) -> Result<Destination, RefusedDestination>;
}

/// Why a URL is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct RefusedDestination {
    /// `invalid_destination` or `blocked_address`.
    pub code: &'static str,
    /// One sentence: the rule, and the flag that would allow it.
    pub sentence: String,
}

/// Watches the engine. Called on the delivery thread: must not block.
pub trait Observer: Send + Sync + 'static {
    /// An attempt ended and was decided on.
    fn finished(&self, _attempt: &Finished<'_>) {}

    /// The engine has something to say that is no attempt: a lane paused, a store that fails.
    fn note(&self, _note: &Note) {}
}

/// An attempt's end, for an [`Observer`].
#[derive(Debug)]
pub struct Finished<'a> {
    /// What was sent.
    pub attempt: &'a Dispatched,
    /// What came of it.
    pub report: &'a Report,
    /// What follows.
    pub next: &'a crate::store::Next,
    /// The wait before the next attempt, if one follows.
    pub wait: Option<Duration>,
    /// Attempts of this budget, this one included.
    pub budget_used: u32,
    /// The policy's number of attempts.
    pub max_attempts: u32,
    /// From the time it was due to its start.
    pub lag: Duration,
}

/// Something an operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A lane is paused until an instant.
    LanePaused {
        /// The lane's address.
        lane: Arc<str>,
        /// Until when.
        until: Millis,
        /// Why.
        why: crate::model::PauseWhy,
    },
    /// The store refuses work; nothing is lost, deliveries wait.
    StoreFailing {
        /// The store's own sentence.
        sentence: String,
    },
    /// The store works again.
    StoreRecovered,
}

/// Bytes of a failed response's body that are kept.
pub const KEPT_RESPONSE_BYTES: usize = 16 * 1024;

/// Cuts a body down to what is kept, and says whether it was cut. What is cut is copied: a slice would keep the
/// whole body in memory for as long as its settlement waits.
#[must_use]
pub fn kept(body: &Bytes) -> (Bytes, bool) {
    match body.get(..KEPT_RESPONSE_BYTES) {
        Some(start) if body.len() > KEPT_RESPONSE_BYTES => (Bytes::copy_from_slice(start), true),
        _ => (body.clone(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g11_a_body_that_is_cut_is_not_kept_alive_whole() {
        let body = Bytes::from(vec![b'x'; KEPT_RESPONSE_BYTES + 1]);
        let (start, cut) = kept(&body);
        assert!(cut && start == body[..KEPT_RESPONSE_BYTES]);
        assert!(body.is_unique(), "nobody shares the whole");
    }

    #[test]
    fn a_body_that_is_kept_whole_is_shared() {
        let body = Bytes::from(vec![b'x'; KEPT_RESPONSE_BYTES]);
        let (whole, cut) = kept(&body);
        assert!(!cut && whole == body);
        assert!(!body.is_unique());
    }
}
