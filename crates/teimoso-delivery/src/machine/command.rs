//! What a person may order, and how an order that came during an attempt is honoured at its end.

use crate::model::{DeadReason, DeliveryState, Millis, NextWhy, Progress};
use crate::store::Next;

/// Whether `retry` is allowed: on dead, scheduled and cancelled; on delivered only by explicit replay.
#[must_use]
pub const fn may_retry(state: DeliveryState, explicit: bool) -> bool {
    match state {
        DeliveryState::Dead | DeliveryState::Scheduled | DeliveryState::Cancelled => true,
        DeliveryState::Delivered => explicit,
        DeliveryState::Pending | DeliveryState::InFlight => false,
    }
}

/// A delivery after a replay: same id, numbers continue, a fresh attempt budget.
#[must_use]
pub const fn replayed(progress: Progress) -> Progress {
    Progress {
        budget_from: progress.attempts,
        first_attempt_at: None,
        recoveries: 0,
        why: NextWhy::Replay,
        ..progress
    }
}

/// Where a delivery comes to rest after a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resting {
    /// Ended well.
    Delivered,
    /// Due again.
    Due(Millis, NextWhy),
    /// A dead letter.
    Dead(DeadReason),
    /// Ended by the person who asked while it was in flight.
    Cancelled,
}

/// Honours a cancellation wished during the attempt: an end stands, anything else is cancelled.
///
/// `was_due` is where a released delivery goes back to.
#[must_use]
pub const fn resting(next: Next, was_due: Millis, why: NextWhy, cancel_wished: bool) -> Resting {
    match next {
        Next::Delivered => Resting::Delivered,
        Next::Dead(reason) => Resting::Dead(reason),
        Next::Scheduled { .. } | Next::Released if cancel_wished => Resting::Cancelled,
        Next::Scheduled { due, why } => Resting::Due(due, why),
        Next::Released => Resting::Due(was_due, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mode;

    #[test]
    fn retry_is_for_what_ended_badly_or_waits() {
        let allowed: Vec<_> =
            DeliveryState::ALL.iter().filter(|state| may_retry(**state, false)).map(|s| s.name()).collect();
        assert_eq!(allowed, ["scheduled", "dead", "cancelled"]);
        assert!(may_retry(DeliveryState::Delivered, true));
    }

    #[test]
    fn a_replay_keeps_the_numbers_and_renews_the_budget() {
        let spent =
            Progress { attempts: 5, recoveries: 2, ..Progress::fresh(Mode::AtLeastOnce, NextWhy::Retry) };
        let fresh = replayed(spent);
        assert_eq!((fresh.attempts, fresh.budget_from, fresh.recoveries), (5, 5, 0));
    }

    #[test]
    fn a_2xx_wins_over_a_cancellation_in_flight() {
        let (due, why) = (Millis::new(9), NextWhy::Retry);
        assert_eq!(resting(Next::Delivered, due, why, true), Resting::Delivered);
        assert_eq!(resting(Next::Scheduled { due, why }, due, why, true), Resting::Cancelled);
        assert_eq!(resting(Next::Released, due, why, false), Resting::Due(due, why));
    }
}
