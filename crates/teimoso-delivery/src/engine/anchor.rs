//! The two clocks held against each other: due times are wall clock, timers monotonic (G8).
//!
//! Deliberately absent: reading them; the shell does.

use std::time::Duration;

use crate::model::Millis;
use crate::ports::Clock;

/// A larger difference between the clocks than this is a step and not drift.
const STEP: Duration = Duration::from_secs(1);

/// Both clocks, read together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) wall: Millis,
    pub(super) mono: Duration,
}

impl Now {
    pub(super) fn read(clock: &dyn Clock) -> Self {
        Self { wall: clock.now(), mono: clock.monotonic() }
    }

    /// The longer of the two times since `earlier`: whichever clock stood still was wrong.
    pub(super) fn most_since(self, earlier: Self) -> Duration {
        self.wall.since(earlier.wall).max(self.mono.saturating_sub(earlier.mono))
    }

    /// When, on the monotonic clock, the wall clock will show `at` if neither steps. Never in the past.
    pub(super) fn mono_of(self, at: Millis) -> Duration {
        self.mono.saturating_add(at.since(self.wall))
    }

    /// Whether the clocks have moved apart since `anchor` by more than drift explains.
    pub(super) fn stepped_from(self, anchor: Self) -> bool {
        let expected = anchor.wall.after(self.mono.saturating_sub(anchor.mono));
        self.wall.since(expected).max(expected.since(self.wall)) > STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(wall: u64, mono: u64) -> Now {
        Now { wall: Millis::new(wall), mono: Duration::from_millis(mono) }
    }

    #[test]
    fn g8_a_second_apart_is_drift_and_more_is_a_step() {
        let anchor = now(100_000, 500);
        assert!(!now(160_000, 60_500).stepped_from(anchor));
        assert!(!now(161_000, 60_500).stepped_from(anchor));
        assert!(now(161_001, 60_500).stepped_from(anchor));
        assert!(!now(159_000, 60_500).stepped_from(anchor));
        assert!(now(158_999, 60_500).stepped_from(anchor));
    }

    #[test]
    fn g8_a_due_time_becomes_a_monotonic_one() {
        assert_eq!(now(100_000, 500).mono_of(Millis::new(102_000)), Duration::from_millis(2_500));
        assert_eq!(now(100_000, 500).mono_of(Millis::new(1)), Duration::from_millis(500));
        assert_eq!(now(103_000, 900).most_since(now(100_000, 500)), Duration::from_secs(3));
    }
}
