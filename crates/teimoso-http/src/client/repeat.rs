//! The brain of the only retry loop: it counts, keeps the time and asks the policy; absent: sending, sleeping, clocks
//! and chance, which its two shells ([`Client`](crate::Client) and [`Retry`](crate::Retry)) hand in.
//!
//! ```text
//!            limits(now)                after(outcome, …)
//!   start ───────────────▶ attempt ───────────────────────▶ Done | GiveUp: hand the outcome over
//!                 ▲                        │
//!                 └──────── wait ◀─────────┘ RetryIn
//! ```

use std::num::NonZeroU32;
use std::time::Duration;

use teimoso_retry::{Decision, GiveUp, Method, Mode, Outcome, RetryPolicy, Try, decide};

use super::marks::Marks;
use crate::attempt::AttemptLimits;

/// One request on its way through its attempts.
#[derive(Debug)]
pub(crate) struct Repeat<'p> {
    policy: &'p RetryPolicy,
    method: Method,
    marks: Marks,
    started: Duration,
    number: NonZeroU32,
}

impl<'p> Repeat<'p> {
    /// A request whose first attempt is about to begin. `started` is when the call began: a call that follows a
    /// redirect has begun before.
    pub(crate) fn new(
        policy: &'p RetryPolicy,
        method: &http::Method,
        marks: Marks,
        started: Duration,
    ) -> Self {
        let method = Method::from_name(method.as_str());
        Self { policy, method, marks, started, number: NonZeroU32::MIN }
    }

    /// The number of the attempt that is under way, from 1.
    pub(crate) fn number(&self) -> NonZeroU32 {
        self.number
    }

    /// How many attempts there can be.
    pub(crate) fn max_attempts(&self) -> NonZeroU32 {
        if self.marks.once { NonZeroU32::MIN } else { self.policy.max_attempts() }
    }

    /// Whether no attempt can follow the one that is under way.
    pub(crate) fn is_last(&self) -> bool {
        self.number >= self.max_attempts()
    }

    /// The time since the call began.
    pub(crate) fn elapsed(&self, now: Duration) -> Duration {
        now.saturating_sub(self.started)
    }

    /// The limits of an attempt that begins now: the policy's, within what is left of the whole call. `None` when
    /// nothing is left.
    pub(crate) fn limits(&self, now: Duration) -> Option<AttemptLimits> {
        let left = match self.total() {
            Some(total) => total.saturating_sub(self.elapsed(now)),
            None => Duration::MAX,
        };
        (!left.is_zero()).then(|| AttemptLimits {
            connect_timeout: self.policy.connect_timeout(),
            total_timeout: self.policy.attempt_timeout().min(left),
            ..AttemptLimits::default()
        })
    }

    /// What follows an attempt that has just ended. `repeatable` says whether the request can be sent again at all,
    /// which a body that was read from a stream cannot; `pay` is asked at most once, and only for a retry that
    /// everything else allows.
    pub(crate) fn after(
        &mut self,
        outcome: &Outcome,
        now: Duration,
        entropy: impl FnOnce() -> u64,
        repeatable: bool,
        pay: impl FnOnce() -> bool,
    ) -> Decision {
        let attempt = Try {
            number: self.number,
            elapsed: self.elapsed(now),
            method: self.method,
            replay_safe: self.marks.replay_safe,
            mode: Mode::Client,
        };
        let decision = decide(self.policy, &attempt, outcome, true, entropy());
        let Decision::RetryIn { wait, .. } = decision else { return decision };
        if self.marks.once {
            return Decision::GiveUp(GiveUp::AttemptsExhausted);
        }
        if !repeatable {
            return Decision::GiveUp(GiveUp::NotReplaySafe);
        }
        if self.total().is_some_and(|total| attempt.elapsed.saturating_add(wait) >= total) {
            return Decision::GiveUp(GiveUp::DeadlineExceeded);
        }
        if !pay() {
            return Decision::GiveUp(GiveUp::BudgetExhausted);
        }
        self.number = self.number.saturating_add(1);
        decision
    }

    /// The time for the whole call: the policy's or the caller's, whichever ends first.
    fn total(&self) -> Option<Duration> {
        match (self.policy.give_up_after(), self.marks.deadline) {
            (Some(policy), Some(call)) => Some(policy.min(call)),
            (policy, call) => policy.or(call),
        }
    }
}

#[cfg(test)]
mod tests {
    use teimoso_retry::{Fate, Preset, Proof, WaitSource, Why};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const REFUSED: Outcome = Outcome { fate: Fate::NeverSent(Proof::Connect), status: None, hint: None };

    fn forgejo() -> RetryPolicy {
        RetryPolicy::preset(Preset::Forgejo)
    }

    fn standard() -> RetryPolicy {
        RetryPolicy::preset(Preset::Standard)
    }

    fn after(repeat: &mut Repeat<'_>, now: Duration) -> Decision {
        repeat.after(&REFUSED, now, || u64::MAX, true, || true)
    }

    #[test]
    fn attempts_are_counted_to_the_policy_s_last() {
        let policy = forgejo();
        let mut repeat = Repeat::new(&policy, &http::Method::POST, Marks::default(), SECOND);
        for number in 1..4 {
            assert_eq!(repeat.number().get(), number);
            assert!(matches!(
                after(&mut repeat, SECOND),
                Decision::RetryIn { source: WaitSource::Schedule, .. }
            ));
        }
        assert_eq!(after(&mut repeat, SECOND), Decision::GiveUp(GiveUp::AttemptsExhausted));
        assert_eq!(repeat.number(), repeat.max_attempts());
    }

    #[test]
    fn an_attempt_gets_the_policy_s_time_within_what_is_left_of_the_total() {
        let policy = standard();
        let repeat = Repeat::new(&policy, &http::Method::GET, Marks::default(), 5 * SECOND);
        let total = |now: Duration| repeat.limits(now).map(|limits| limits.total_timeout);
        assert_eq!(total(5 * SECOND), Some(10 * SECOND));
        assert_eq!(total(32 * SECOND), Some(3 * SECOND));
        assert_eq!(total(35 * SECOND), None);
        assert_eq!(total(Duration::MAX), None);
        let endless = forgejo();
        let repeat = Repeat::new(&endless, &http::Method::GET, Marks::default(), SECOND);
        assert_eq!(repeat.limits(Duration::MAX).map(|limits| limits.total_timeout), Some(15 * SECOND));
    }

    #[test]
    fn the_earlier_of_two_deadlines_holds() {
        for (given, expected) in [(3, Some(3 * SECOND)), (60, Some(10 * SECOND)), (0, None)] {
            let marks = Marks { deadline: Some(given * SECOND), ..Marks::default() };
            let policy = standard();
            let repeat = Repeat::new(&policy, &http::Method::GET, marks, SECOND);
            assert_eq!(repeat.limits(SECOND).map(|limits| limits.total_timeout), expected);
        }
    }

    #[test]
    fn a_wait_that_cannot_end_before_the_caller_s_deadline_is_not_begun() {
        let marks = Marks { deadline: Some(360 * Duration::from_millis(1)), ..Marks::default() };
        let policy = forgejo();
        let mut repeat = Repeat::new(&policy, &http::Method::GET, marks, SECOND);
        assert_eq!(after(&mut repeat, SECOND), Decision::GiveUp(GiveUp::DeadlineExceeded));
    }

    #[test]
    fn nothing_is_paid_for_what_is_not_retried() {
        let policy = standard();
        let unpaid = |marks: Marks, outcome: &Outcome, repeatable: bool| {
            let mut repeat = Repeat::new(&policy, &http::Method::POST, marks, SECOND);
            let decision = repeat.after(outcome, SECOND, || 0, repeatable, || panic!("asked to pay"));
            assert_eq!(repeat.number().get(), 1);
            decision
        };
        let once = Marks { once: true, ..Marks::default() };
        let marks = Marks::default();
        assert_eq!(unpaid(once, &REFUSED, true), Decision::GiveUp(GiveUp::AttemptsExhausted));
        assert_eq!(unpaid(marks, &REFUSED, false), Decision::GiveUp(GiveUp::NotReplaySafe));
        let lost = Outcome { fate: Fate::Ambiguous(Why::Closed), ..REFUSED };
        assert_eq!(unpaid(marks, &lost, true), Decision::GiveUp(GiveUp::Ambiguous));
        let fine = Outcome { fate: Fate::Answered, status: Some(204), hint: None };
        assert_eq!(unpaid(marks, &fine, true), Decision::Done);
    }

    #[test]
    fn a_retry_that_cannot_be_paid_is_not_made() {
        let policy = standard();
        let mut repeat = Repeat::new(&policy, &http::Method::GET, Marks::default(), SECOND);
        let decision = repeat.after(&REFUSED, SECOND, || 0, true, || false);
        assert_eq!(decision, Decision::GiveUp(GiveUp::BudgetExhausted));
        assert_eq!(repeat.number().get(), 1);
    }
}
