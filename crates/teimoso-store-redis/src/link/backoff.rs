//! How long to wait before the next connection: full jitter, doubling from 50 ms to 1.5 s, for ever.
//!
//! The longest is short, because workers are to be back within two seconds of Redis; a refused connection costs nobody
//! much, and the jitter spreads them.

use std::time::Duration;

use teimoso_delivery::ports::Entropy;

const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(1_500);

/// Failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next wait: uniform between nothing and what doubles with every failure, up to the longest.
    pub(crate) fn next(&mut self, entropy: &dyn Entropy) -> Duration {
        let doubled = SHORTEST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let nanos = u64::try_from(doubled.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(entropy.next_u64() % nanos.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teimoso_delivery::testkit::SeededEntropy;

    #[test]
    fn waits_grow_to_a_bound_and_start_over_after_a_success() {
        let (mut backoff, entropy) = (Backoff::default(), SeededEntropy::new(7));
        let waits: Vec<Duration> = (0..200).map(|_| backoff.next(&entropy)).collect();
        assert!(waits[0] < SHORTEST && waits.iter().all(|wait| *wait < LONGEST));
        assert!(waits.iter().any(|wait| *wait > LONGEST / 2));
        backoff.reset();
        assert!(backoff.next(&entropy) < SHORTEST);
    }
}
