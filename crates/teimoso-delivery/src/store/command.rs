//! What a person may order: cancel, retry, replay.

use crate::model::{DeadReason, DeliveryState, Millis, ReplayId};

/// What came of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It is cancelled.
    Cancelled,
    /// It is in flight: no further attempt will follow, a 2xx still wins.
    Requested,
    /// It had ended already.
    AlreadyFinal(DeliveryState),
    /// There is no such delivery.
    NotFound,
}

/// What came of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOutcome {
    /// It is due now.
    Due,
    /// It may not be retried in this state.
    NotAllowed(DeliveryState),
    /// There is no such delivery.
    NotFound,
}

/// Fastest replay, in deliveries per second.
pub const MAX_REPLAY_RATE_PER_SECOND: u32 = 10_000;

/// Which dead letters a replay job takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayFilter {
    /// Only with this reason; `None` is every reason but `ambiguous`, which must be named.
    pub reason: Option<DeadReason>,
    /// Only accepted at or after this instant.
    pub since: Option<Millis>,
    /// Only accepted before this instant.
    pub until: Option<Millis>,
}

impl ReplayFilter {
    /// Whether a dead letter with this reason, accepted at this instant, is taken.
    #[must_use]
    pub fn takes(&self, reason: DeadReason, created_at: Millis) -> bool {
        let reason_fits = self.reason.map_or(reason != DeadReason::Ambiguous, |wanted| wanted == reason);
        reason_fits
            && self.since.is_none_or(|since| created_at >= since)
            && self.until.is_none_or(|until| created_at < until)
    }
}

/// A replay job as it is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewReplay {
    /// Which dead letters.
    pub filter: ReplayFilter,
    /// Deliveries per second, 1 to [`MAX_REPLAY_RATE_PER_SECOND`].
    pub rate: u32,
    /// Only count, change nothing.
    pub dry_run: bool,
}

crate::model::named! {
    /// Where a replay job stands.
    ReplayState {
        /// At work.
        Running = 0 "running",
        /// Done.
        Finished = 1 "finished",
        /// Stopped by a person.
        Cancelled = 2 "cancelled",
    }
}

/// A replay job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// Its id; `None` for a dry run, which leaves nothing behind.
    pub id: Option<ReplayId>,
    /// Where it stands.
    pub state: ReplayState,
    /// What was ordered.
    pub filter: ReplayFilter,
    /// Deliveries per second.
    pub rate: u32,
    /// How many matched when it started.
    pub estimated: u64,
    /// How many were made due.
    pub done: u64,
    /// How many could not be: they were replayed or expunged by someone else first.
    pub failed: u64,
    /// When it was ordered.
    pub created_at: Millis,
    /// When it ended.
    pub finished_at: Option<Millis>,
}
