//! A lane's breaker and ramp: a receiver that fails is left alone, one that recovers is not stampeded
//! (G10).

use std::num::NonZeroU32;
use std::time::Duration;

use crate::model::{LaneRecord, Millis, PauseWhy};
use crate::store::LaneNews;

/// Consecutive failures that open the breaker …
pub const FAILURES_TO_OPEN: u32 = 10;
/// … when they span at least this long.
pub const FAILURES_SPAN: Duration = Duration::from_secs(30);
/// The first pause of an open breaker; it doubles with every failed probe …
pub const FIRST_PAUSE: Duration = Duration::from_secs(30);
/// … up to this.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What is kept ([`LaneRecord`]) and what is only remembered while the process lives.
#[derive(Debug, Default)]
pub(super) struct Health {
    record: LaneRecord,
    failures: u32,
    first_failure_at: Millis,
    successes: u32,
}

impl Health {
    pub(super) fn from_record(record: LaneRecord) -> Self {
        Self { record, ..Self::default() }
    }

    pub(super) fn record(&self) -> LaneRecord {
        self.record
    }

    /// Nothing to remember: no pause, no ramp, no failure.
    pub(super) fn is_default(&self) -> bool {
        self.record == LaneRecord::default() && self.failures == 0
    }

    pub(super) fn not_before(&self) -> Option<Millis> {
        self.record.not_before.map(|(at, _)| at)
    }

    /// How many may be in flight, given the engine's own cap.
    pub(super) fn allowance(&self, cap: u32) -> u32 {
        self.record.allowance.map_or(cap, |allowance| allowance.get().min(cap))
    }

    /// Hears how an attempt went; returns the record when it changed.
    pub(super) fn hear(&mut self, news: LaneNews, now: Millis, cap: u32) -> Option<LaneRecord> {
        let before = self.record;
        match news {
            LaneNews::Neutral => {}
            LaneNews::Pause(until) => self.pause(until),
            // Stragglers that were in flight when the pause began say nothing about its end.
            _ if self.not_before().is_some_and(|at| at > now) => {}
            LaneNews::Success => self.succeed(cap),
            LaneNews::Failure => self.fail(now),
        }
        (self.record != before).then_some(self.record)
    }

    fn pause(&mut self, until: Millis) {
        if self.not_before().is_none_or(|at| at < until) {
            self.record.not_before = Some((until, PauseWhy::RetryAfter));
        }
        self.record.allowance = Some(NonZeroU32::MIN);
        self.successes = 0;
    }

    fn succeed(&mut self, cap: u32) {
        self.failures = 0;
        self.record.not_before = None;
        let Some(allowance) = self.record.allowance else { return };
        self.successes += 1;
        if self.successes < allowance.get() {
            return;
        }
        self.successes = 0;
        let doubled = allowance.saturating_mul(NonZeroU32::MIN.saturating_add(1));
        self.record.allowance = (doubled.get() < cap).then_some(doubled);
        if self.record.allowance.is_none() {
            self.record.openings = 0;
        }
    }

    fn fail(&mut self, now: Millis) {
        if self.failures == 0 {
            self.first_failure_at = now;
        }
        self.failures = self.failures.saturating_add(1);
        self.successes = 0;
        let probing = self.record.openings > 0 && self.record.allowance.is_some();
        let persistent =
            self.failures >= FAILURES_TO_OPEN && now.since(self.first_failure_at) >= FAILURES_SPAN;
        if probing || persistent {
            self.open(now);
        }
    }

    fn open(&mut self, now: Millis) {
        let doublings = u32::from(self.record.openings).min(16);
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
        self.record = LaneRecord {
            not_before: Some((now.after(pause), PauseWhy::Breaker)),
            allowance: Some(NonZeroU32::MIN),
            openings: self.record.openings.saturating_add(1),
        };
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Millis {
        Millis::new(seconds * 1000)
    }

    fn failed(health: &mut Health, seconds: impl IntoIterator<Item = u64>) {
        for second in seconds {
            health.hear(LaneNews::Failure, at(second), 16);
        }
    }

    #[test]
    fn g10_ten_failures_open_only_when_they_span_thirty_seconds() {
        let mut burst = Health::default();
        failed(&mut burst, std::iter::repeat_n(1, 50));
        assert_eq!(burst.not_before(), None);
        let mut steady = Health::default();
        failed(&mut steady, (0..10).map(|n| n * 4));
        assert_eq!(steady.record().not_before, Some((at(36 + 30), PauseWhy::Breaker)));
        assert_eq!(steady.allowance(16), 1);
    }

    #[test]
    fn g10_a_failed_probe_doubles_the_pause_up_to_five_minutes() {
        let mut health = Health::default();
        failed(&mut health, (0..10).map(|n| n * 4));
        let mut pauses = Vec::new();
        for _ in 0..5 {
            let now = health.not_before().unwrap();
            health.hear(LaneNews::Failure, now, 16);
            pauses.push(health.not_before().unwrap().since(now).as_secs());
        }
        assert_eq!(pauses, [60, 120, 240, 300, 300]);
    }

    #[test]
    fn g10_the_ramp_doubles_with_every_full_round_of_successes() {
        let mut health =
            Health::from_record(LaneRecord { allowance: NonZeroU32::new(1), ..Default::default() });
        let mut ramp = Vec::new();
        for _ in 0..15 {
            health.hear(LaneNews::Success, at(1), 16);
            ramp.push(health.allowance(16));
        }
        assert_eq!(ramp, [2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 16]);
        assert_eq!(health.record(), LaneRecord::default());
    }

    #[test]
    fn g10_a_retry_after_pauses_the_lane_and_is_never_shortened() {
        let mut health = Health::default();
        assert!(health.hear(LaneNews::Pause(at(60)), at(0), 16).is_some());
        assert_eq!(health.hear(LaneNews::Pause(at(30)), at(1), 16), None);
        assert_eq!(health.hear(LaneNews::Success, at(2), 16), None, "a straggler ends no pause");
        assert_eq!(health.not_before(), Some(at(60)));
        health.hear(LaneNews::Success, at(60), 16);
        assert_eq!((health.not_before(), health.allowance(16)), (None, 2));
    }
}
