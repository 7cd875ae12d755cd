//! Spreads a wait so that many senders do not return together; absent: the random source, which is the caller's, and
//! floats.
//!
//! Jitter comes after the cap. What may exceed the cap does so by a bound that [`Jitter::bounds`] states.

use std::time::Duration;

/// A ratio in thousandths, 0 to 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PerMille(u16);

impl PerMille {
    /// The ratio of `thousandths` to 1000, or `None` above 1000.
    pub const fn new(thousandths: u16) -> Option<Self> {
        if thousandths <= 1000 { Some(Self(thousandths)) } else { None }
    }

    /// For figures written in this crate: a larger one does not compile where the call is `const`.
    pub(crate) const fn of(thousandths: u16) -> Self {
        assert!(thousandths <= 1000, "a ratio is at most 1000 thousandths");
        Self(thousandths)
    }

    /// The thousandths.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// This part of a wait, in nanoseconds, rounded down.
    fn part_of(self, nanos: u64) -> u64 {
        let part = u128::from(nanos) * u128::from(self.0) / 1000;
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// How a wait is spread. Each kind draws uniformly, bounds included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// The wait itself.
    None,
    /// Between zero and the wait.
    Full,
    /// Between half of the wait and the wait.
    Equal,
    /// The wait less or plus up to this part of it.
    PlusMinus(PerMille),
    /// The wait plus up to this part of it.
    AddRatio(PerMille),
    /// The wait plus up to this span.
    AddSpan(Duration),
}

impl Jitter {
    /// The stable name: `none`, `full`, `equal`, `plus_minus`, `add_ratio` or `add_span`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Equal => "equal",
            Self::PlusMinus(_) => "plus_minus",
            Self::AddRatio(_) => "add_ratio",
            Self::AddSpan(_) => "add_span",
        }
    }

    /// The least and the most that `wait` becomes. Saturates at `u64::MAX` nanoseconds (584 years).
    pub fn bounds(self, wait: Duration) -> (Duration, Duration) {
        let nanos = nanos_of(wait);
        let (low, high) = match self {
            Self::None => (nanos, nanos),
            Self::Full => (0, nanos),
            Self::Equal => (nanos - nanos / 2, nanos),
            Self::PlusMinus(ratio) => {
                let part = ratio.part_of(nanos);
                (nanos - part, nanos.saturating_add(part))
            }
            Self::AddRatio(ratio) => (nanos, nanos.saturating_add(ratio.part_of(nanos))),
            Self::AddSpan(span) => (nanos, nanos.saturating_add(nanos_of(span))),
        };
        (Duration::from_nanos(low), Duration::from_nanos(high))
    }

    /// `wait` spread by 64 uniformly random bits. Always within [`Jitter::bounds`]; the same bits give the same wait.
    pub fn spread(self, wait: Duration, entropy: u64) -> Duration {
        let (low, high) = self.bounds(wait);
        low.saturating_add(uniform(high.saturating_sub(low), entropy))
    }
}

/// A duration between zero and `most`, both included, chosen by 64 uniformly random bits.
///
/// Multiply-high keeps it exact and free of division; the bias is below one part in 2^64 / span.
pub(crate) fn uniform(most: Duration, entropy: u64) -> Duration {
    let choices = u128::from(nanos_of(most)) + 1;
    let chosen = (u128::from(entropy) * choices) >> 64;
    Duration::from_nanos(u64::try_from(chosen).unwrap_or(u64::MAX))
}

/// Whole nanoseconds, saturating at `u64::MAX` (584 years).
pub(crate) fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ends(jitter: Jitter, wait: Duration) -> (Duration, Duration) {
        (jitter.spread(wait, 0), jitter.spread(wait, u64::MAX))
    }

    #[test]
    fn each_kind_reaches_both_of_its_bounds_and_no_further() {
        let millis = Duration::from_millis;
        let cases = [
            (Jitter::None, 1000, 1000),
            (Jitter::Full, 0, 1000),
            (Jitter::Equal, 500, 1000),
            (Jitter::PlusMinus(PerMille::of(200)), 800, 1200),
            (Jitter::PlusMinus(PerMille::of(1000)), 0, 2000),
            (Jitter::AddRatio(PerMille::of(250)), 1000, 1250),
            (Jitter::AddSpan(SECOND), 1000, 2000),
        ];
        for (jitter, low, high) in cases {
            assert_eq!(jitter.bounds(SECOND), (millis(low), millis(high)), "{}", jitter.name());
            assert_eq!(ends(jitter, SECOND), (millis(low), millis(high)), "{}", jitter.name());
        }
    }

    #[test]
    fn an_odd_nanosecond_is_not_lost() {
        assert_eq!(
            ends(Jitter::Equal, Duration::from_nanos(3)),
            (Duration::from_nanos(2), Duration::from_nanos(3))
        );
        assert_eq!(ends(Jitter::Full, Duration::ZERO), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn the_longest_durations_saturate() {
        let longest = Duration::from_nanos(u64::MAX);
        for jitter in [Jitter::PlusMinus(PerMille::of(1000)), Jitter::AddSpan(Duration::MAX)] {
            assert_eq!(jitter.bounds(Duration::MAX).1, longest);
            assert_eq!(jitter.spread(Duration::MAX, u64::MAX), longest);
        }
    }

    #[test]
    fn draws_are_uniform() {
        // 16 equal steps through the entropy must fall into 16 equal parts of the span.
        let parts: Vec<u64> = (0..16_u64)
            .map(|step| Jitter::Full.spread(Duration::from_nanos(1599), step << 60).as_nanos() as u64 / 100)
            .collect();
        assert_eq!(parts, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn a_ratio_above_one_is_refused() {
        assert_eq!(PerMille::new(1000).map(PerMille::get), Some(1000));
        assert_eq!(PerMille::new(1001), None);
    }
}
