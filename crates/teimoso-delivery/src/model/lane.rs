//! A lane: the queue of one endpoint, the unit of concurrency, pause and fairness.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::{Application, Millis};

/// What names a lane: the application, and the URL without query (or, past
/// [`crate::lanes::MAX_URL_LANES`], the origin).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneKey {
    /// The tenant.
    pub application: Application,
    /// URL without query, or origin.
    pub address: Arc<str>,
}

/// Why a lane waits. Stable names (`next_attempt_why`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PauseWhy {
    /// The receiver asked for it: 429 or 503 with Retry-After.
    RetryAfter,
    /// Ten consecutive failures over 30 s or more: the breaker is open.
    Breaker,
}

impl PauseWhy {
    /// The stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RetryAfter => "retry_after",
            Self::Breaker => "breaker",
        }
    }
}

/// What is shared and kept of a lane: `{not_before, why, allowance}` (G10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneRecord {
    /// Nothing of this lane starts before this instant.
    pub not_before: Option<(Millis, PauseWhy)>,
    /// At most this many in flight; `None` is the engine's own cap. One while probing, then the ramp.
    pub allowance: Option<NonZeroU32>,
    /// How often the breaker opened in a row: the next pause doubles from here.
    pub openings: u8,
}
