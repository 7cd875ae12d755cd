//! What becomes of a delivery that was in flight when its process died or lost the lease (G3, G4, G6).

use crate::model::{DeadReason, Mode, Progress};

/// Deaths a delivery may be in flight at before it is taken for their cause.
pub const MAX_RECOVERIES: u8 = 3;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Due at once, with the recovery counted.
    Due(Progress),
    /// A dead letter.
    Dead(DeadReason, Progress),
}

/// Decides for a delivery whose lease ended without a settlement.
///
/// At-most-once: its claim was the start, so it may have taken effect. At-least-once: again, but a
/// payload that kills us must not loop.
#[must_use]
pub fn recover(progress: Progress) -> Recovery {
    let counted = Progress { recoveries: progress.recoveries.saturating_add(1), ..progress };
    match progress.mode {
        Mode::AtMostOnce => Recovery::Dead(DeadReason::Ambiguous, counted),
        Mode::AtLeastOnce if counted.recoveries >= MAX_RECOVERIES => {
            Recovery::Dead(DeadReason::Poison, counted)
        }
        Mode::AtLeastOnce => Recovery::Due(counted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NextWhy;

    fn progress(mode: Mode, recoveries: u8) -> Progress {
        Progress { recoveries, ..Progress::fresh(mode, NextWhy::First) }
    }

    #[test]
    fn g6_the_third_death_is_poison() {
        let at_least = |n| recover(progress(Mode::AtLeastOnce, n));
        assert_eq!(at_least(0), Recovery::Due(progress(Mode::AtLeastOnce, 1)));
        assert_eq!(at_least(1), Recovery::Due(progress(Mode::AtLeastOnce, 2)));
        assert_eq!(at_least(2), Recovery::Dead(DeadReason::Poison, progress(Mode::AtLeastOnce, 3)));
    }

    #[test]
    fn g4_a_started_at_most_once_delivery_is_never_repeated() {
        let dead = Recovery::Dead(DeadReason::Ambiguous, progress(Mode::AtMostOnce, 1));
        assert_eq!(recover(progress(Mode::AtMostOnce, 0)), dead);
    }
}
