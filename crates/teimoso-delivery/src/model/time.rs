//! Wall-clock instants as the stores keep them: whole milliseconds since the Unix epoch.

use std::fmt;
use std::time::Duration;

/// A wall-clock instant in milliseconds since 1970-01-01T00:00:00Z.
///
/// Never before the epoch. Arithmetic saturates, so no header, flag or clock step can make it panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(u64);

impl Millis {
    /// The largest instant a store can keep: 47 bits, the year 6429.
    pub const MAX: Self = Self((1 << 47) - 1);

    /// The instant `millis` after the epoch, clamped to [`Millis::MAX`].
    #[must_use]
    pub const fn new(millis: u64) -> Self {
        if millis > Self::MAX.0 { Self::MAX } else { Self(millis) }
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// This instant plus `wait`, rounded *up* to a millisecond: due times are never early (G8).
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        let millis = wait.as_nanos().div_ceil(1_000_000);
        Self::new(self.0.saturating_add(u64::try_from(millis).unwrap_or(u64::MAX)))
    }

    /// Time from `earlier` to this instant; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_rounds_up_so_that_nothing_is_early() {
        assert_eq!(Millis::new(10).after(Duration::from_nanos(1)), Millis::new(11));
        assert_eq!(Millis::new(10).after(Duration::ZERO), Millis::new(10));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Millis::MAX.after(Duration::MAX), Millis::MAX);
        assert_eq!(Millis::new(1).since(Millis::new(5)), Duration::ZERO);
        assert_eq!(Millis::new(u64::MAX), Millis::MAX);
    }
}
