//! A validated retry policy: how often, how far apart, and what is worth another try; absent: the decision itself, and
//! configuration files, whose reader goes through [`PolicyBuilder`].

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::backoff::{MAX_WAIT, Schedule};
use crate::jitter::Jitter;
use crate::presets::Preset;
use crate::retry_after::RetryAfterRule;
use crate::status::StatusSet;

/// The longest time a single attempt may be given: one day.
const MAX_ATTEMPT: Duration = Duration::from_secs(24 * 3600);
/// The longest time between the first attempt and giving up: 366 days.
const MAX_GIVE_UP: Duration = Duration::from_secs(366 * 24 * 3600);

/// Which requests a rule repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// None.
    Never,
    /// Those whose method is exactly GET, whatever marks they carry.
    GetOnly,
    /// Those that may safely be sent twice.
    ReplaySafe,
    /// All.
    AnyRequest,
}

impl Scope {
    /// The stable name: `never`, `get_only`, `replay_safe` or `any_request`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::GetOnly => "get_only",
            Self::ReplaySafe => "replay_safe",
            Self::AnyRequest => "any_request",
        }
    }
}

/// What a response whose body was cut means to a client. The engine's modes never ask: a delivery is what its status
/// says, for nobody reads the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyLostRule {
    /// The body was wanted: try again, whatever the status, for the requests in this scope.
    Retry(Scope),
    /// The status alone counts.
    AsStatus,
}

/// A validated retry policy. Cheap to clone; made from a [`Preset`] or by a [`PolicyBuilder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    pub(crate) max_attempts: NonZeroU32,
    pub(crate) schedule: Schedule,
    pub(crate) jitter: Jitter,
    pub(crate) attempt_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) give_up_after: Option<Duration>,
    pub(crate) statuses: StatusSet,
    pub(crate) status_scope: Scope,
    pub(crate) misdirected_scope: Scope,
    pub(crate) never_sent_scope: Scope,
    pub(crate) not_processed_scope: Scope,
    pub(crate) ambiguous_scope: Scope,
    pub(crate) body_lost: BodyLostRule,
    pub(crate) retry_certificate: bool,
    pub(crate) retry_after: RetryAfterRule,
    pub(crate) gone_ends_endpoint: bool,
    pub(crate) breaker: bool,
}

/// One row of a policy's schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScheduleStep {
    /// The attempt that follows the wait, from 1.
    pub attempt: NonZeroU32,
    /// The wait before it, without jitter; zero for attempt 1.
    pub wait: Duration,
    /// The shortest it becomes with jitter.
    pub min: Duration,
    /// The longest it becomes with jitter.
    pub max: Duration,
}

impl RetryPolicy {
    /// The policy of this name.
    pub fn preset(name: Preset) -> Self {
        name.policy()
    }

    /// A builder that starts from the `standard` preset.
    pub fn builder() -> PolicyBuilder {
        Self::preset(Preset::Standard).to_builder()
    }

    /// A builder that starts from this policy.
    pub fn to_builder(&self) -> PolicyBuilder {
        PolicyBuilder { draft: self.clone(), max_attempts: self.max_attempts.get() }
    }

    /// How many attempts are made at most, the first included.
    pub fn max_attempts(&self) -> NonZeroU32 {
        self.max_attempts
    }

    /// The time one attempt may take, its response body included.
    pub fn attempt_timeout(&self) -> Duration {
        self.attempt_timeout
    }

    /// The time one attempt may take to connect, TLS included. Never above [`RetryPolicy::attempt_timeout`].
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout.min(self.attempt_timeout)
    }

    /// The time from the first attempt's start after which no other attempt begins; none: attempts alone are counted.
    pub fn give_up_after(&self) -> Option<Duration> {
        self.give_up_after
    }

    /// Whether failures of one delivery hold its whole lane back: circuit breaker, and the pause a `Retry-After` asks
    /// for (G10).
    pub fn breaker(&self) -> bool {
        self.breaker
    }

    /// How a wait is spread.
    pub fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// The waits before jitter.
    pub fn waits(&self) -> &Schedule {
        &self.schedule
    }

    /// The answered statuses that are retried, by the scope that [`PolicyBuilder::statuses`] set.
    pub fn statuses(&self) -> StatusSet {
        self.statuses
    }

    /// What is done with `Retry-After`.
    pub fn retry_after(&self) -> RetryAfterRule {
        self.retry_after
    }

    /// The schedule in full, one step per attempt, lazily: there may be four billion.
    pub fn schedule(&self) -> impl Iterator<Item = ScheduleStep> + '_ {
        (1..=self.max_attempts.get()).filter_map(NonZeroU32::new).map(|attempt| self.step(attempt))
    }

    fn step(&self, attempt: NonZeroU32) -> ScheduleStep {
        let wait = match NonZeroU32::new(attempt.get() - 1) {
            Some(before) => self.schedule.wait_after(before),
            None => {
                return ScheduleStep {
                    attempt,
                    wait: Duration::ZERO,
                    min: Duration::ZERO,
                    max: Duration::ZERO,
                };
            }
        };
        let (min, max) = self.jitter.bounds(wait);
        ScheduleStep { attempt, wait, min, max }
    }

    /// The least and the most that all waits add up to (S2.13). The attempts' own duration, `Retry-After` and
    /// [`RetryPolicy::give_up_after`] are not in it. Saturates at [`Duration::MAX`].
    pub fn total_span(&self) -> (Duration, Duration) {
        let waits = self.max_attempts.get() - 1;
        // From `steady` on every wait is the same, so four billion attempts are one multiplication.
        let steady = self.schedule.steady_from(waits);
        let mut span = (Duration::ZERO, Duration::ZERO);
        let mut add = |number: u32, times: u32| {
            if let Some(number) = NonZeroU32::new(number) {
                let (min, max) = self.jitter.bounds(self.schedule.wait_after(number));
                span.0 = span.0.saturating_add(min.saturating_mul(times));
                span.1 = span.1.saturating_add(max.saturating_mul(times));
            }
        };
        (1..steady).for_each(|number| add(number, 1));
        add(steady, waits - steady.saturating_sub(1));
        span
    }
}

/// Changes a policy and validates the result as a whole.
///
/// Attempts, time-outs and the deadline are checked by [`PolicyBuilder::build`]; what has a type of its own
/// ([`Schedule`], [`Jitter`], [`StatusSet`], [`RetryAfterRule`]) was checked when it was made.
#[derive(Debug, Clone)]
pub struct PolicyBuilder {
    draft: RetryPolicy,
    max_attempts: u32,
}

impl PolicyBuilder {
    /// Attempts in all, at least 1.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Attempts after the first; 0 turns retrying off (S1.7).
    pub fn retries(self, retries: u32) -> Self {
        self.max_attempts(retries.saturating_add(1))
    }

    /// The waits between attempts.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.draft.schedule = schedule;
        self
    }

    /// How each wait is spread. A span of [`Jitter::AddSpan`] is at most [`MAX_WAIT`].
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.draft.jitter = jitter;
        self
    }

    /// The time one attempt may take: above zero, at most a day.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.draft.attempt_timeout = timeout;
        self
    }

    /// The time one attempt may take to connect: above zero. Where the attempt's own is shorter, that one holds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.draft.connect_timeout = timeout;
        self
    }

    /// The time from the first attempt's start after which no other begins: above zero, at most 366 days.
    pub fn give_up_after(mut self, total: Option<Duration>) -> Self {
        self.draft.give_up_after = total;
        self
    }

    /// The answered statuses that are retried, and for which requests.
    pub fn statuses(mut self, statuses: StatusSet, scope: Scope) -> Self {
        self.draft.statuses = statuses;
        self.draft.status_scope = scope;
        self
    }

    /// For which requests 421 and 425 are retried: by both the peer says that it did not process the request
    /// (RFC 9110 §15.5.20, RFC 8470 §5.2).
    pub fn misdirected(mut self, scope: Scope) -> Self {
        self.draft.misdirected_scope = scope;
        self
    }

    /// For which requests [`crate::Fate::NeverSent`] is retried.
    pub fn never_sent(mut self, scope: Scope) -> Self {
        self.draft.never_sent_scope = scope;
        self
    }

    /// For which requests [`crate::Fate::NotProcessed`] is retried.
    pub fn not_processed(mut self, scope: Scope) -> Self {
        self.draft.not_processed_scope = scope;
        self
    }

    /// For which requests [`crate::Fate::Ambiguous`] is retried. [`Scope::AnyRequest`] risks doubled writes.
    pub fn ambiguous(mut self, scope: Scope) -> Self {
        self.draft.ambiguous_scope = scope;
        self
    }

    /// What a client makes of a lost body.
    pub fn body_lost(mut self, rule: BodyLostRule) -> Self {
        self.draft.body_lost = rule;
        self
    }

    /// Whether a rejected certificate is tried again like any other request that was never sent.
    pub fn retry_certificate(mut self, retry: bool) -> Self {
        self.draft.retry_certificate = retry;
        self
    }

    /// What is done with `Retry-After`.
    pub fn retry_after(mut self, rule: RetryAfterRule) -> Self {
        self.draft.retry_after = rule;
        self
    }

    /// Whether 410 means that the endpoint has gone for good, and not only that this request has failed.
    pub fn gone_ends_endpoint(mut self, ends: bool) -> Self {
        self.draft.gone_ends_endpoint = ends;
        self
    }

    /// Whether failures of one delivery hold its whole lane back (G10).
    pub fn breaker(mut self, on: bool) -> Self {
        self.draft.breaker = on;
        self
    }

    /// The policy.
    ///
    /// # Errors
    /// Names the first field whose value is out of its bounds.
    pub fn build(self) -> Result<RetryPolicy, PolicyError> {
        let Some(max_attempts) = NonZeroU32::new(self.max_attempts) else {
            return Err(PolicyError::new("max_attempts", "must be at least 1"));
        };
        let policy = RetryPolicy { max_attempts, ..self.draft };
        if policy.attempt_timeout.is_zero() || policy.attempt_timeout > MAX_ATTEMPT {
            return Err(PolicyError::new("attempt_timeout", "must be above zero and at most 24 hours"));
        }
        if policy.connect_timeout.is_zero() {
            return Err(PolicyError::new("connect_timeout", "must be above zero"));
        }
        if policy.give_up_after.is_some_and(|total| total.is_zero() || total > MAX_GIVE_UP) {
            return Err(PolicyError::new("give_up_after", "must be above zero and at most 366 days"));
        }
        if matches!(policy.jitter, Jitter::AddSpan(span) if span > MAX_WAIT) {
            return Err(PolicyError::new("jitter", "must add at most 30 days"));
        }
        Ok(policy)
    }
}

/// A value that a policy refuses. Reads after "failed to build the policy: ".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PolicyError {
    field: &'static str,
    problem: &'static str,
}

impl PolicyError {
    pub(crate) const fn new(field: &'static str, problem: &'static str) -> Self {
        Self { field, problem }
    }

    /// The field that holds the value, as the builder spells it.
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.problem)
    }
}

impl std::error::Error for PolicyError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::Factor;

    fn refused(change: impl FnOnce(PolicyBuilder) -> PolicyBuilder) -> Option<String> {
        change(RetryPolicy::builder()).build().err().map(|error| error.to_string())
    }

    #[test]
    fn a_policy_names_the_field_it_refuses() {
        let day = Duration::from_hours(24);
        let cases = [
            (refused(|policy| policy.max_attempts(0)), "max_attempts must be at least 1"),
            (
                refused(|policy| policy.attempt_timeout(Duration::ZERO)),
                "attempt_timeout must be above zero and at most 24 hours",
            ),
            (
                refused(|policy| policy.attempt_timeout(day + Duration::from_nanos(1))),
                "attempt_timeout must be above zero and at most 24 hours",
            ),
            (refused(|policy| policy.connect_timeout(Duration::ZERO)), "connect_timeout must be above zero"),
            (
                refused(|policy| policy.give_up_after(Some(Duration::ZERO))),
                "give_up_after must be above zero and at most 366 days",
            ),
            (
                refused(|policy| policy.give_up_after(Some(Duration::MAX))),
                "give_up_after must be above zero and at most 366 days",
            ),
            (
                refused(|policy| policy.jitter(Jitter::AddSpan(Duration::MAX))),
                "jitter must add at most 30 days",
            ),
        ];
        for (actual, expected) in cases {
            assert_eq!(actual.as_deref(), Some(expected));
        }
    }

    #[test]
    fn every_preset_passes_its_own_validation_unchanged() {
        for preset in Preset::ALL {
            let policy = RetryPolicy::preset(preset);
            assert_eq!(policy.to_builder().build(), Ok(policy), "{preset}");
        }
    }

    #[test]
    fn a_connect_timeout_is_never_longer_than_the_attempt() {
        let policy = RetryPolicy::builder().attempt_timeout(Duration::from_secs(2)).build().unwrap();
        assert_eq!(policy.connect_timeout(), Duration::from_secs(2));
    }

    #[test]
    fn the_schedule_starts_at_once_and_shows_each_range() {
        let rows: Vec<_> = RetryPolicy::preset(Preset::Webhook)
            .schedule()
            .map(|step| (step.attempt.get(), step.wait.as_secs(), step.min.as_secs(), step.max.as_secs()))
            .collect();
        assert_eq!(rows, [(1, 0, 0, 0), (2, 2, 2, 3), (3, 4, 4, 5), (4, 8, 8, 9), (5, 16, 16, 17)]);
    }

    #[test]
    fn the_span_of_four_billion_attempts_is_computed_not_counted() {
        let second = Duration::from_secs(1);
        let schedule = Schedule::exponential(second, Factor::TWO, 2 * second).unwrap();
        let policy = RetryPolicy::builder().schedule(schedule).jitter(Jitter::None).max_attempts(u32::MAX);
        // One wait of 1 s, all others of 2 s.
        let span = Duration::from_secs(2 * u64::from(u32::MAX - 1) - 1);
        assert_eq!(policy.build().unwrap().total_span(), (span, span));
    }
}
