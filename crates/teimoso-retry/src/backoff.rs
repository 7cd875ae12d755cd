//! From the number of an attempt to the wait after it, before jitter; absent: jitter, and what a peer asks for.
//!
//! Every schedule has a cap, and no arithmetic here can overflow: the multiplication stops at the cap.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::jitter::nanos_of;
use crate::policy::PolicyError;

/// The shortest wait any schedule may hold: 1 ms. Less is a hot loop.
pub const MIN_WAIT: Duration = Duration::from_millis(1);

/// The longest wait any schedule may hold: 30 days.
pub const MAX_WAIT: Duration = Duration::from_secs(30 * 24 * 3600);

/// How much longer each wait is than the one before: exactly 1, or 1.1 to 100, kept in thousandths so that waits stay
/// exact. Between 1 and 1.1 a schedule would take thousands of attempts to reach its cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Factor(u32);

impl Factor {
    /// Twice as long each time.
    pub const TWO: Self = Self(2000);

    /// The factor in thousandths (2000 doubles).
    ///
    /// # Errors
    /// Neither 1000 nor within 1100 to 100 000.
    pub fn per_mille(thousandths: u32) -> Result<Self, PolicyError> {
        if thousandths == 1000 || (1100..=100_000).contains(&thousandths) {
            Ok(Self(thousandths))
        } else {
            Err(PolicyError::new("factor", "must be 1, or lie between 1.1 and 100"))
        }
    }

    /// The factor in thousandths.
    pub const fn get(self) -> u32 {
        self.0
    }

    fn times(self, nanos: u64) -> u128 {
        u128::from(nanos) * u128::from(self.0) / 1000
    }
}

impl TryFrom<f64> for Factor {
    type Error = PolicyError;

    /// The factor a person wrote, rounded to thousandths here, once: waits are never computed in floats.
    fn try_from(factor: f64) -> Result<Self, PolicyError> {
        if !factor.is_finite() {
            return Err(PolicyError::new("factor", "must be a number"));
        }
        // A float cast saturates, and both ends are refused below.
        Self::per_mille((factor * 1000.0).round() as u32)
    }
}

/// The waits between attempts, before jitter. A value of this type is valid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schedule(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Exponential { base: Duration, factor: Factor, cap: Duration },
    List(Cow<'static, [Duration]>),
}

impl Schedule {
    /// `base`, then `factor` times as long after each attempt, never above `cap`.
    ///
    /// # Errors
    /// `base` is below [`MIN_WAIT`], `cap` is below `base` or above [`MAX_WAIT`].
    pub fn exponential(base: Duration, factor: Factor, cap: Duration) -> Result<Self, PolicyError> {
        if base < MIN_WAIT {
            return Err(PolicyError::new("base", "must be at least 1 ms"));
        }
        if cap < base {
            return Err(PolicyError::new("cap", "must not be below the base wait"));
        }
        if cap > MAX_WAIT {
            return Err(PolicyError::new("cap", "must be at most 30 days"));
        }
        Ok(Self(Kind::Exponential { base, factor, cap }))
    }

    /// Explicit waits: the first after attempt 1, and so on; the last one repeats. The longest is the cap.
    ///
    /// # Errors
    /// The list is empty, longer than 1000, or holds a wait below [`MIN_WAIT`] or above [`MAX_WAIT`].
    pub fn list(waits: Vec<Duration>) -> Result<Self, PolicyError> {
        if waits.is_empty() || waits.len() > 1000 {
            return Err(PolicyError::new("waits", "must hold 1 to 1000 waits"));
        }
        if waits.iter().any(|wait| !(MIN_WAIT..=MAX_WAIT).contains(wait)) {
            return Err(PolicyError::new("waits", "must each lie between 1 ms and 30 days"));
        }
        Ok(Self(Kind::List(Cow::Owned(waits))))
    }

    /// Exponential, for the figures of a preset.
    pub(crate) const fn preset_exponential(base: Duration, factor: Factor, cap: Duration) -> Self {
        Self(Kind::Exponential { base, factor, cap })
    }

    /// Explicit waits, for the figures of a preset.
    pub(crate) const fn preset_list(waits: &'static [Duration]) -> Self {
        Self(Kind::List(Cow::Borrowed(waits)))
    }

    /// The wait after attempt 1.
    pub fn first(&self) -> Duration {
        self.wait_after(NonZeroU32::MIN)
    }

    /// The longest wait before jitter.
    pub fn cap(&self) -> Duration {
        match &self.0 {
            Kind::Exponential { cap, .. } => *cap,
            Kind::List(waits) => waits.iter().copied().max().unwrap_or(MAX_WAIT),
        }
    }

    /// The wait after attempt `number`, before jitter; never above [`Schedule::cap`], whatever the number.
    pub fn wait_after(&self, number: NonZeroU32) -> Duration {
        match &self.0 {
            Kind::Exponential { base, factor, cap } => grown(*base, *factor, *cap, number.get() - 1),
            Kind::List(waits) => {
                let index = usize::try_from(number.get() - 1).unwrap_or(usize::MAX);
                waits.get(index).or(waits.last()).copied().unwrap_or(MAX_WAIT)
            }
        }
    }

    /// From which attempt on every wait is the same, at most `limit`. Lets sums over 4 billion attempts be computed.
    pub(crate) fn steady_from(&self, limit: u32) -> u32 {
        match &self.0 {
            Kind::Exponential { base, factor, cap } => {
                let mut wait = *base;
                for number in 1..limit {
                    let next = grown(wait, *factor, *cap, 1);
                    if next == wait {
                        return number;
                    }
                    wait = next;
                }
                limit
            }
            Kind::List(waits) => u32::try_from(waits.len()).unwrap_or(u32::MAX).min(limit),
        }
    }
}

/// `base` grown `steps` times, stopping at `cap`: after some 230 steps at most, by the bounds of factor, base and cap.
fn grown(base: Duration, factor: Factor, cap: Duration, steps: u32) -> Duration {
    let cap = nanos_of(cap);
    let mut nanos = nanos_of(base);
    for _ in 0..steps {
        let next = u64::try_from(factor.times(nanos)).unwrap_or(u64::MAX).min(cap);
        if next == nanos {
            break;
        }
        nanos = next;
    }
    Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(schedule: &Schedule, numbers: &[u32]) -> Vec<u128> {
        let after = |number: &u32| schedule.wait_after(NonZeroU32::new(*number).unwrap()).as_millis();
        numbers.iter().map(after).collect()
    }

    fn exponential(base: u64, factor: u32, cap: u64) -> Result<Schedule, PolicyError> {
        Schedule::exponential(
            Duration::from_millis(base),
            Factor::per_mille(factor)?,
            Duration::from_millis(cap),
        )
    }

    fn field<T>(result: Result<T, PolicyError>) -> Option<&'static str> {
        result.err().map(|error| error.field())
    }

    #[test]
    fn exponential_waits_double_up_to_the_cap_for_every_number() {
        let schedule = exponential(100, 2000, 10_000).unwrap();
        assert_eq!(millis(&schedule, &[1, 2, 3, 7, 8, 9]), [100, 200, 400, 6400, 10_000, 10_000]);
        assert_eq!(millis(&schedule, &[64, 65, 69, 1025, u32::MAX]), [10_000; 5]);
    }

    #[test]
    fn a_factor_of_one_keeps_the_base_for_ever() {
        let schedule = exponential(100, 1000, 10_000).unwrap();
        assert_eq!(millis(&schedule, &[1, 2, u32::MAX]), [100; 3]);
        assert_eq!(schedule.steady_from(u32::MAX), 1);
    }

    #[test]
    fn a_broken_factor_is_exact_in_thousandths() {
        let schedule = exponential(1000, 1500, 10_000).unwrap();
        assert_eq!(millis(&schedule, &[1, 2, 3, 4]), [1000, 1500, 2250, 3375]);
        assert_eq!(Factor::try_from(1.5).map(Factor::get), Ok(1500));
    }

    #[test]
    fn a_list_repeats_its_last_wait_and_is_capped_by_its_longest() {
        let waits = [5, 300, 60].map(Duration::from_secs);
        let schedule = Schedule::list(waits.to_vec()).unwrap();
        assert_eq!(millis(&schedule, &[1, 2, 3, 4, u32::MAX]), [5_000, 300_000, 60_000, 60_000, 60_000]);
        assert_eq!((schedule.first(), schedule.cap()), (waits[0], waits[1]));
    }

    #[test]
    fn what_cannot_be_a_schedule_is_refused_by_field() {
        assert_eq!(field(exponential(0, 2000, 100)), Some("base"));
        assert_eq!(field(exponential(100, 2000, 99)), Some("cap"));
        assert_eq!(field(exponential(100, 2000, 31 * 24 * 3_600_000)), Some("cap"));
        assert_eq!(field(Schedule::list(vec![])), Some("waits"));
        assert_eq!(field(Schedule::list(vec![Duration::ZERO])), Some("waits"));
        assert_eq!(field(Schedule::list(vec![Duration::MAX])), Some("waits"));
        assert_eq!(field(Schedule::list(vec![MIN_WAIT; 1001])), Some("waits"));
    }

    #[test]
    fn what_cannot_be_a_factor_is_refused() {
        for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -2.0, 0.0, 0.5, 1.05, 101.0, 1e300] {
            assert_eq!(field(Factor::try_from(factor)), Some("factor"), "{factor}");
        }
        assert_eq!(Factor::try_from(2.0), Ok(Factor::TWO));
    }
}
