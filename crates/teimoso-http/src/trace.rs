//! The history of a call: every attempt with what is known of it and what followed; absent: URLs, headers and bodies,
//! which may hold secrets.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use teimoso_retry::{Decision, Effect, Fate};

use crate::attempt::{AttemptError, Timings};

/// Every attempt of one call, in order. The client puts it into the extensions of the response and beside an
/// [`Error`](crate::Error); [`Retry`](crate::Retry) puts it into the extensions of the response.
///
/// A call that needed one attempt costs no allocation here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetryTrace {
    attempts: List,
}

#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one attempt is what most calls need, and must not allocate")]
enum List {
    #[default]
    Empty,
    One([AttemptTrace; 1]),
    Many(Vec<AttemptTrace>),
}

/// One attempt of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AttemptTrace {
    /// From 1; it starts anew at every hop.
    pub number: NonZeroU32,
    /// How many redirects had been followed before.
    pub hop: u32,
    /// The method this attempt was sent with; a redirect may change it.
    pub method: http::Method,
    /// What is known of the request.
    pub fate: Fate,
    /// The status code, if a response head arrived.
    pub status: Option<u16>,
    /// Why there is no complete response. Always `None` under a [`Retry`](crate::Retry), whose service has an error
    /// type of its own.
    pub error: Option<AttemptError>,
    /// The wait that a 429's or 503's `Retry-After` asks for, as the policy reads it (S3.4): cut to the cap by a policy
    /// that clamps, in full by one that gives up beyond its cap, `None` where the header is missing, invalid or not
    /// read. A number beyond every clock is [`Duration::MAX`].
    pub retry_after: Option<Duration>,
    /// When it began, counted from the start of the call.
    pub started_after: Duration,
    /// How long its phases took; nothing is known of them under a [`Retry`](crate::Retry).
    pub timings: Timings,
    /// The address that was connected to, or tried last.
    pub peer: Option<SocketAddr>,
    /// Whether it went over a connection that had served an earlier request.
    pub reused: bool,
    /// What the policy decided after it: the wait and its source, or why there is no other attempt.
    pub decision: Decision,
}

impl AttemptTrace {
    /// Whether this attempt's request may have taken effect. A safe method (RFC 9110 §9.2.1) has no effect to take,
    /// whatever became of it.
    pub fn may_have_taken_effect(&self) -> bool {
        !self.method.is_safe() && self.fate.may_have_taken_effect(self.status) != Effect::No
    }

    fn wait(&self) -> Duration {
        match self.decision {
            Decision::RetryIn { wait, .. } => wait,
            Decision::Done | Decision::GiveUp(_) => Duration::ZERO,
        }
    }
}

impl RetryTrace {
    pub(crate) fn push(&mut self, attempt: AttemptTrace) {
        self.attempts = match std::mem::take(&mut self.attempts) {
            List::Empty => List::One([attempt]),
            List::One([first]) => List::Many(vec![first, attempt]),
            List::Many(mut attempts) => {
                attempts.push(attempt);
                List::Many(attempts)
            }
        };
    }

    /// The attempts, in order. Empty only beside an error that was found before anything was tried.
    pub fn attempts(&self) -> &[AttemptTrace] {
        match &self.attempts {
            List::Empty => &[],
            List::One(attempts) => attempts,
            List::Many(attempts) => attempts,
        }
    }

    /// The last attempt, whose outcome is the call's.
    pub fn last(&self) -> Option<&AttemptTrace> {
        self.attempts().last()
    }

    /// What all waits add up to, as they were decided.
    pub fn total_wait(&self) -> Duration {
        self.attempts().iter().fold(Duration::ZERO, |sum, attempt| sum.saturating_add(attempt.wait()))
    }

    /// The wait that the last answer asks for ([`AttemptTrace::retry_after`]).
    pub fn retry_after(&self) -> Option<Duration> {
        self.last()?.retry_after
    }

    /// Whether any attempt of the call may have taken effect: an earlier one that ended ambiguous counts even if the
    /// last one was never sent, and so does a write that was answered by a redirect.
    pub fn may_have_taken_effect(&self) -> bool {
        self.attempts().iter().any(AttemptTrace::may_have_taken_effect)
    }
}

#[cfg(test)]
mod tests {
    use teimoso_retry::{GiveUp, Proof, WaitSource, Why};

    use super::*;

    fn attempt(
        number: u32,
        method: http::Method,
        fate: Fate,
        status: Option<u16>,
        wait: u64,
    ) -> AttemptTrace {
        let wait = Duration::from_millis(wait);
        AttemptTrace {
            number: NonZeroU32::new(number).unwrap(),
            hop: 0,
            method,
            fate,
            status,
            error: None,
            retry_after: None,
            started_after: Duration::ZERO,
            timings: Timings::default(),
            peer: None,
            reused: false,
            decision: match wait {
                Duration::ZERO => Decision::GiveUp(GiveUp::AttemptsExhausted),
                wait => Decision::RetryIn { wait, source: WaitSource::Schedule },
            },
        }
    }

    fn trace(attempts: Vec<AttemptTrace>) -> RetryTrace {
        attempts.into_iter().fold(RetryTrace::default(), |mut trace, attempt| {
            trace.push(attempt);
            trace
        })
    }

    const REFUSED: Fate = Fate::NeverSent(Proof::Connect);

    #[test]
    fn attempts_are_kept_in_order_and_waits_add_up() {
        assert_eq!(RetryTrace::default().attempts(), []);
        for count in 1..=4 {
            let all: Vec<_> = (1..=count)
                .map(|number| {
                    attempt(number, http::Method::GET, REFUSED, None, u64::from(count - number) * 10)
                })
                .collect();
            let trace = trace(all.clone());
            assert_eq!(trace.attempts(), all);
            assert_eq!(trace.last(), all.last());
            let waits = u64::from(count * (count - 1) / 2 * 10);
            assert_eq!(trace.total_wait(), Duration::from_millis(waits));
        }
    }

    #[test]
    fn one_ambiguous_attempt_of_a_write_taints_the_call() {
        let lost = attempt(1, http::Method::POST, Fate::Ambiguous(Why::Reset), None, 10);
        let refused = attempt(2, http::Method::POST, REFUSED, None, 0);
        assert!(trace(vec![lost, refused.clone()]).may_have_taken_effect());
        assert!(!trace(vec![refused]).may_have_taken_effect());
        let conflict = attempt(1, http::Method::POST, Fate::Answered, Some(409), 0);
        assert!(!trace(vec![conflict]).may_have_taken_effect());
    }

    #[test]
    fn a_safe_method_has_no_effect_to_take() {
        let lost = attempt(1, http::Method::GET, Fate::Ambiguous(Why::Timeout), None, 0);
        assert!(!trace(vec![lost]).may_have_taken_effect());
    }

    #[test]
    fn a_write_answered_by_a_redirect_may_have_taken_effect() {
        let moved = attempt(1, http::Method::POST, Fate::Answered, Some(303), 0);
        let next = attempt(1, http::Method::GET, REFUSED, None, 0);
        assert!(trace(vec![moved, next]).may_have_taken_effect());
    }
}
