//! What follows an attempt: done, again later, or a dead letter; and what it says about its lane.
//!
//! The retry policy decides; this file turns its answer into the delivery's words. Deliberately absent:
//! clocks, random sources and stores, which the engine brings.

use std::num::NonZeroU32;
use std::time::Duration;

use teimoso_retry::{
    Decision, Fate, GiveUp, Method, Mode as RetryMode, Outcome, Proof, Refusal, RetryPolicy, Told, Try,
    WaitSource, Why, decide,
};

use crate::model::{AttemptNumber, AttemptRecord, DeadReason, DecisionName, Millis, Mode, NextWhy, Progress};
use crate::ports::Report;
use crate::store::{LaneNews, Next};

/// An attempt that has just ended.
#[derive(Debug, Clone, Copy)]
pub struct Attempted<'a> {
    /// What was kept of the delivery when the attempt began.
    pub progress: Progress,
    /// The attempt's number.
    pub number: AttemptNumber,
    /// When it started.
    pub started_at: Millis,
    /// The wall clock at its end: waits count from here.
    pub now: Millis,
    /// What came of it.
    pub report: &'a Report,
}

/// What follows, as a store is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// Where the delivery goes.
    pub next: Next,
    /// What is kept of it from now on, this attempt counted.
    pub progress: Progress,
    /// The attempt for the record.
    pub record: AttemptRecord,
    /// For the lane; neutral unless the policy holds lanes back.
    pub news: LaneNews,
    /// The wait before the next attempt, if one follows.
    pub wait: Option<Duration>,
}

/// Decides what follows an attempt (`delivery.md` section 3). `entropy` is 64 uniformly random bits.
///
/// The policy counts attempts within the current budget, which a replay renews, and its
/// `give_up_after` from the start of that budget's first attempt.
#[must_use]
pub fn conclude(attempted: &Attempted<'_>, policy: &RetryPolicy, entropy: u64) -> Conclusion {
    let progress = counted(attempted);
    let decision = decide(policy, &as_try(attempted, &progress), &outcome(attempted.report), true, entropy);
    let (next, decided, wait) = match decision {
        Decision::Done => (Next::Delivered, DecisionName::Done, None),
        Decision::RetryIn { wait, source } => {
            let due = attempted.now.after(wait);
            (Next::Scheduled { due, why: why(source) }, DecisionName::Retry, Some((wait, source)))
        }
        Decision::GiveUp(reason) => (Next::Dead(dead_reason(reason)), DecisionName::GiveUp, None),
    };
    let progress = match next {
        Next::Scheduled { why, .. } => Progress { why, ..progress },
        _ => progress,
    };
    Conclusion {
        next,
        progress,
        record: record(attempted, decided, wait),
        news: news(attempted, policy),
        wait: wait.map(|(wait, _)| wait),
    }
}

fn counted(attempted: &Attempted<'_>) -> Progress {
    let Attempted { progress, started_at, .. } = *attempted;
    Progress {
        attempts: progress.attempts.saturating_add(1),
        first_attempt_at: progress.first_attempt_at.or(Some(started_at)),
        ..progress
    }
}

fn as_try(attempted: &Attempted<'_>, counted: &Progress) -> Try {
    let number = counted.attempts.saturating_sub(counted.budget_from);
    let first = counted.first_attempt_at.unwrap_or(attempted.started_at);
    Try {
        number: NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN),
        elapsed: attempted.now.since(first),
        method: Method::Post,
        replay_safe: counted.mode == Mode::AtLeastOnce,
        mode: match counted.mode {
            Mode::AtLeastOnce => RetryMode::AtLeastOnce,
            Mode::AtMostOnce => RetryMode::AtMostOnce,
        },
    }
}

fn outcome(report: &Report) -> Outcome {
    Outcome { fate: report.fate, status: report.status, hint: report.hint }
}

const fn why(source: WaitSource) -> NextWhy {
    match source {
        WaitSource::Schedule => NextWhy::Retry,
        WaitSource::RetryAfter => NextWhy::RetryAfter,
    }
}

/// The dead letter's reason from the closed list that comes closest to the policy's own.
///
/// Four of the policy's reasons have no namesake. `NotReplaySafe`: the policy never repeats a request of
/// this fate, so this attempt was its last. `BudgetExhausted` and `RetryAfterBeyondCap` are told to
/// clients only; what they mean is that no attempt, or none in time, is left. `TlsCertificate`: the
/// destination as it stands cannot be used; the record's error kind says why.
const fn dead_reason(reason: GiveUp) -> DeadReason {
    match reason {
        GiveUp::PermanentStatus => DeadReason::PermanentStatus,
        GiveUp::Redirect => DeadReason::Redirect,
        GiveUp::EndpointGone => DeadReason::EndpointGone,
        GiveUp::AttemptsExhausted | GiveUp::BudgetExhausted | GiveUp::NotReplaySafe => {
            DeadReason::AttemptsExhausted
        }
        GiveUp::DeadlineExceeded | GiveUp::RetryAfterBeyondCap => DeadReason::DeadlineExceeded,
        GiveUp::Ambiguous => DeadReason::Ambiguous,
        GiveUp::TlsCertificate | GiveUp::Refused(Refusal::InvalidDestination) => {
            DeadReason::InvalidDestination
        }
        GiveUp::Refused(Refusal::BlockedAddress) => DeadReason::BlockedAddress,
        GiveUp::Refused(Refusal::TooLarge) => DeadReason::TooLarge,
    }
}

fn record(
    attempted: &Attempted<'_>,
    decision: DecisionName,
    wait: Option<(Duration, WaitSource)>,
) -> AttemptRecord {
    let report = attempted.report;
    AttemptRecord {
        number: attempted.number,
        started_at: attempted.started_at,
        fate: report.fate,
        status: report.status,
        error_kind: report.error_kind,
        error: report.error.clone(),
        decision,
        wait,
        peer: report.peer,
        timings: report.timings,
        response: report.response.clone(),
    }
}

/// What the lane learns (G10); nothing unless the policy holds lanes back.
fn news(attempted: &Attempted<'_>, policy: &RetryPolicy) -> LaneNews {
    if !policy.breaker() {
        return LaneNews::Neutral;
    }
    let report = attempted.report;
    match report.fate {
        // Our own doing says nothing about the receiver; a stated refusal of one request neither.
        Fate::Refused(_) | Fate::NotProcessed(_) | Fate::Ambiguous(Why::Cancelled) => LaneNews::Neutral,
        Fate::NeverSent(Proof::HandedBack) => LaneNews::Neutral,
        Fate::NeverSent(_) | Fate::Ambiguous(_) => LaneNews::Failure,
        Fate::Answered | Fate::BodyLost => match pause(attempted, policy) {
            Some(until) => LaneNews::Pause(until),
            None => answered(report.status),
        },
    }
}

/// Until when a 429 or 503 asks the lane to wait; a wait of zero asks for nothing.
fn pause(attempted: &Attempted<'_>, policy: &RetryPolicy) -> Option<Millis> {
    let report = attempted.report;
    let hint = report.hint.filter(|_| matches!(report.status, Some(429 | 503)))?;
    let wait = match policy.retry_after().told(hint) {
        Told::Wait(wait) => wait,
        Told::BeyondCap => policy.retry_after().cap(),
        Told::Ignored => Duration::ZERO,
    };
    (!wait.is_zero()).then(|| attempted.now.after(wait))
}

/// A 429 that names no time neither fails nor proves that more may be sent. What no class has is a failure of the
/// receiver's like a 5xx (RFC 9110 §15).
const fn answered(status: Option<u16>) -> LaneNews {
    match status {
        Some(500..=999) | None => LaneNews::Failure,
        Some(429) => LaneNews::Neutral,
        Some(_) => LaneNews::Success,
    }
}

#[cfg(test)]
#[path = "conclude_tests.rs"]
mod tests;
