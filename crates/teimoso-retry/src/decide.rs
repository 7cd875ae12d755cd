//! The decision after an attempt, as a pure function; absent: sleeping, sending and counting, which are its callers'.

use std::time::Duration;

use crate::fate::{Effect, Fate, Proof, Refusal, Why};
use crate::jitter::uniform;
use crate::policy::{BodyLostRule, RetryPolicy, Scope};
use crate::request::{Method, Mode, Try};
use crate::retry_after::{Hint, Told};
use crate::status::ruling;

/// How the try ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// What is known of the request.
    pub fate: Fate,
    /// The status code, where a response head arrived.
    pub status: Option<u16>,
    /// The response's `Retry-After`, read by [`crate::parse_retry_after`].
    pub hint: Option<Hint>,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// It succeeded: hand the response over, or settle as delivered.
    Done,
    /// Try again.
    RetryIn {
        /// How long from now.
        wait: Duration,
        /// Where the wait comes from.
        source: WaitSource,
    },
    /// No other attempt: hand the last outcome over unchanged, or settle as dead.
    GiveUp(GiveUp),
}

/// Where a wait comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitSource {
    /// The policy's schedule.
    Schedule,
    /// The peer's `Retry-After`.
    RetryAfter,
}

/// Why there is no other attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GiveUp {
    /// The status is final for this policy. A status outside 200–999, or a missing one, is treated so too; 600–999 are
    /// judged as 500 (RFC 9110 §15).
    PermanentStatus,
    /// A redirect, which is not followed from here. To a client it is simply the response.
    Redirect,
    /// 410, from a policy under which that means the endpoint and not only the request.
    EndpointGone,
    /// Every attempt of the policy has been made.
    AttemptsExhausted,
    /// The wait could not have ended before the total deadline.
    DeadlineExceeded,
    /// The request may have taken effect, and is not to be sent twice.
    Ambiguous,
    /// The policy retries this outcome, but not for this request. It is known either that the request has not taken
    /// effect, or what was answered.
    NotReplaySafe,
    /// The authority's retry budget is spent.
    BudgetExhausted,
    /// `Retry-After` asks for more than the policy's cap.
    RetryAfterBeyondCap,
    /// The peer's certificate was rejected, and the policy takes that as final.
    TlsCertificate,
    /// We declined to send.
    Refused(Refusal),
}

/// Decides what follows an attempt.
///
/// `budget_ok` says whether a retry could be paid; a caller without a budget passes `true`. `entropy` is 64 uniformly
/// random bits; the same arguments always give the same answer.
///
/// In order: success and what is final; attempts; a `Retry-After` beyond its cap; the total deadline; the budget. The
/// first that forbids another attempt is the reason given.
pub fn decide(
    policy: &RetryPolicy,
    attempt: &Try,
    outcome: &Outcome,
    budget_ok: bool,
    entropy: u64,
) -> Decision {
    match verdict(policy, attempt, outcome) {
        Verdict::Done => return Decision::Done,
        Verdict::Final(reason) => return Decision::GiveUp(reason),
        Verdict::Retry => {}
    }
    if attempt.number >= policy.max_attempts {
        return Decision::GiveUp(GiveUp::AttemptsExhausted);
    }
    let Some((wait, source)) = next_wait(policy, attempt, outcome, entropy) else {
        return Decision::GiveUp(GiveUp::RetryAfterBeyondCap);
    };
    if policy.give_up_after.is_some_and(|total| attempt.elapsed.saturating_add(wait) >= total) {
        return Decision::GiveUp(GiveUp::DeadlineExceeded);
    }
    if !budget_ok {
        return Decision::GiveUp(GiveUp::BudgetExhausted);
    }
    Decision::RetryIn { wait, source }
}

/// Whether an outcome is worth another attempt, before anything is counted.
enum Verdict {
    Done,
    Retry,
    Final(GiveUp),
}

fn verdict(policy: &RetryPolicy, attempt: &Try, outcome: &Outcome) -> Verdict {
    match (outcome.fate, attempt.mode) {
        (Fate::Refused(refusal), _) => Verdict::Final(GiveUp::Refused(refusal)),
        (Fate::NeverSent(Proof::TlsCertificate), _) if !policy.retry_certificate => {
            Verdict::Final(GiveUp::TlsCertificate)
        }
        (_, Mode::AtMostOnce) => at_most_once(policy, outcome),
        (Fate::NeverSent(_), _) => retry_within(policy.never_sent_scope, attempt, GiveUp::NotReplaySafe),
        (Fate::NotProcessed(_), _) => {
            retry_within(policy.not_processed_scope, attempt, GiveUp::NotReplaySafe)
        }
        // S1.5: whoever asked no longer wants an answer.
        (Fate::Ambiguous(Why::Cancelled), Mode::Client) => Verdict::Final(GiveUp::Ambiguous),
        (Fate::Ambiguous(_), _) => retry_within(policy.ambiguous_scope, attempt, GiveUp::Ambiguous),
        (Fate::BodyLost, Mode::Client) => match policy.body_lost {
            BodyLostRule::Retry(scope) => retry_within(scope, attempt, GiveUp::NotReplaySafe),
            BodyLostRule::AsStatus => by_status(policy, attempt, outcome.status),
        },
        (Fate::Answered | Fate::BodyLost, _) => by_status(policy, attempt, outcome.status),
    }
}

/// Only what has certainly not taken effect is tried again, whatever the policy's scopes say (G4).
fn at_most_once(policy: &RetryPolicy, outcome: &Outcome) -> Verdict {
    let answered = matches!(outcome.fate, Fate::Answered | Fate::BodyLost);
    match (outcome.fate.may_have_taken_effect(outcome.status), outcome.status) {
        (Effect::Yes, _) => Verdict::Done,
        (Effect::Unknown, _) => Verdict::Final(GiveUp::Ambiguous),
        (Effect::No, Some(421 | 425 | 429)) => Verdict::Retry,
        (Effect::No, status) if answered => Verdict::Final(final_status(policy, status)),
        (Effect::No, _) => Verdict::Retry,
    }
}

fn by_status(policy: &RetryPolicy, attempt: &Try, status: Option<u16>) -> Verdict {
    let scope = match status {
        Some(200..=299) => return Verdict::Done,
        Some(421 | 425) if policy.misdirected_scope != Scope::Never => policy.misdirected_scope,
        Some(code) if policy.statuses.contains(ruling(code)) => policy.status_scope,
        _ => return Verdict::Final(final_status(policy, status)),
    };
    match attempt.mode {
        Mode::Client => retry_within(scope, attempt, GiveUp::NotReplaySafe),
        // In the engine nothing is unsafe to replay: a policy that still declines takes the status as final.
        Mode::AtLeastOnce | Mode::AtMostOnce => retry_within(scope, attempt, final_status(policy, status)),
    }
}

fn final_status(policy: &RetryPolicy, status: Option<u16>) -> GiveUp {
    match status {
        Some(300..=399) => GiveUp::Redirect,
        Some(410) if policy.gone_ends_endpoint => GiveUp::EndpointGone,
        _ => GiveUp::PermanentStatus,
    }
}

fn retry_within(scope: Scope, attempt: &Try, otherwise: GiveUp) -> Verdict {
    let within = match scope {
        Scope::Never => false,
        Scope::GetOnly => attempt.method == Method::Get,
        Scope::ReplaySafe => attempt.may_be_replayed(),
        Scope::AnyRequest => true,
    };
    if within { Verdict::Retry } else { Verdict::Final(otherwise) }
}

/// The wait before the next attempt, or `None` when the peer asks for more than the policy waits.
///
/// What the peer asks for stands in place of the schedule and neither reads nor moves the exponent, which is the number
/// of the attempt.
fn next_wait(
    policy: &RetryPolicy,
    attempt: &Try,
    outcome: &Outcome,
    entropy: u64,
) -> Option<(Duration, WaitSource)> {
    let told = match (outcome.status, outcome.hint) {
        (Some(429 | 503), Some(hint)) => policy.retry_after.told(hint),
        _ => Told::Ignored,
    };
    match told {
        Told::Ignored => {
            let wait = policy.jitter.spread(policy.schedule.wait_after(attempt.number), entropy);
            Some((wait, WaitSource::Schedule))
        }
        // "At once" would be a hot loop.
        Told::Wait(Duration::ZERO) => Some((policy.schedule.first(), WaitSource::RetryAfter)),
        Told::Wait(wait) => Some((a_little_later(policy, wait, entropy), WaitSource::RetryAfter)),
        Told::BeyondCap if attempt.mode == Mode::Client => None,
        // A delivery is worth more than a caller's patience: the engine waits as long as it may and asks again.
        Told::BeyondCap => {
            Some((a_little_later(policy, policy.retry_after.cap(), entropy), WaitSource::RetryAfter))
        }
    }
}

/// Never earlier than told; with the rule's spread, later by up to a tenth, and by no more than the first wait.
fn a_little_later(policy: &RetryPolicy, told: Duration, entropy: u64) -> Duration {
    if !policy.retry_after.spread() {
        return told;
    }
    let most = (told / 10).min(policy.schedule.first());
    told.saturating_add(uniform(most, entropy))
}

impl Decision {
    /// The stable name: `done`, `retry` or `give_up`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::RetryIn { .. } => "retry",
            Self::GiveUp(_) => "give_up",
        }
    }
}

impl WaitSource {
    /// The stable name: `schedule` or `retry_after`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::RetryAfter => "retry_after",
        }
    }
}

impl GiveUp {
    /// The stable name; of a refusal, the refusal's own.
    pub fn name(self) -> &'static str {
        match self {
            Self::PermanentStatus => "permanent_status",
            Self::Redirect => "redirect",
            Self::EndpointGone => "endpoint_gone",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Ambiguous => "ambiguous",
            Self::NotReplaySafe => "not_replay_safe",
            Self::BudgetExhausted => "budget_exhausted",
            Self::RetryAfterBeyondCap => "retry_after_beyond_cap",
            Self::TlsCertificate => "tls_certificate",
            Self::Refused(refusal) => refusal.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::fate::Nack;
    use crate::presets::Preset;
    use crate::retry_after::{HintForm, HintWait};

    const GET: Try = Try {
        number: NonZeroU32::MIN,
        elapsed: Duration::ZERO,
        method: Method::Get,
        replay_safe: false,
        mode: Mode::Client,
    };
    const DELIVERY: Try = Try { method: Method::Post, mode: Mode::AtLeastOnce, ..GET };

    fn told(status: u16, wait: HintWait) -> Outcome {
        let hint = Some(Hint { wait, form: HintForm::Seconds });
        Outcome { fate: Fate::Answered, status: Some(status), hint }
    }

    fn seconds(status: u16, seconds: u64) -> Outcome {
        told(status, HintWait::For(Duration::from_secs(seconds)))
    }

    fn asked(preset: Preset, attempt: &Try, outcome: &Outcome, entropy: u64) -> Decision {
        decide(&preset.into(), attempt, outcome, true, entropy)
    }

    fn after(wait: Duration) -> Decision {
        Decision::RetryIn { wait, source: WaitSource::RetryAfter }
    }

    #[test]
    fn a_told_wait_is_lengthened_by_a_tenth_or_the_first_wait_whichever_is_less() {
        let standard = |entropy| asked(Preset::Standard, &GET, &seconds(503, 20), entropy);
        assert_eq!(standard(0), after(Duration::from_secs(20)));
        assert_eq!(standard(u64::MAX), after(Duration::from_millis(20_100)));
        let patient = |entropy| asked(Preset::Patient, &DELIVERY, &seconds(429, 20), entropy);
        assert_eq!(patient(0), after(Duration::from_secs(20)));
        assert_eq!(patient(u64::MAX), after(Duration::from_secs(22)));
        let patient = asked(Preset::Patient, &DELIVERY, &seconds(429, 3600), u64::MAX);
        assert_eq!(patient, after(Duration::from_secs(3605)));
    }

    #[test]
    fn retry_after_counts_on_429_and_503_alone() {
        let source = |status| match asked(Preset::Patient, &DELIVERY, &seconds(status, 7), 0) {
            Decision::RetryIn { source, .. } => source,
            other => panic!("{other:?}"),
        };
        assert_eq!([429, 503].map(source), [WaitSource::RetryAfter; 2]);
        assert_eq!([408, 421, 425, 500, 502, 504].map(source), [WaitSource::Schedule; 6]);
    }

    #[test]
    fn retry_after_counts_although_the_body_was_lost() {
        let outcome = Outcome { fate: Fate::BodyLost, ..seconds(503, 7) };
        assert_eq!(asked(Preset::Connector, &GET, &outcome, 0), after(Duration::from_secs(7)));
    }

    #[test]
    fn presets_without_retry_after_keep_to_their_schedule() {
        for (preset, attempt, wait) in [(Preset::Webhook, DELIVERY, 2000), (Preset::Forgejo, GET, 240)] {
            let scheduled =
                Decision::RetryIn { wait: Duration::from_millis(wait), source: WaitSource::Schedule };
            assert_eq!(asked(preset, &attempt, &seconds(503, 7), 0), scheduled);
        }
    }

    #[test]
    fn zero_waits_the_plain_first_wait_however_often_it_is_said() {
        for number in [1, 2] {
            let attempt = Try { number: NonZeroU32::new(number).unwrap(), ..GET };
            for entropy in [0, u64::MAX] {
                let decision = asked(Preset::Standard, &attempt, &seconds(429, 0), entropy);
                assert_eq!(decision, after(Duration::from_millis(100)));
                let decision = asked(Preset::Connector, &attempt, &seconds(429, 0), entropy);
                assert_eq!(decision, after(Duration::from_millis(300)));
            }
        }
        let ninth = Try { number: NonZeroU32::new(9).unwrap(), ..DELIVERY };
        assert_eq!(asked(Preset::Patient, &ninth, &seconds(503, 0), 3), after(Duration::from_secs(5)));
    }

    #[test]
    fn beyond_the_cap_a_client_gives_up_and_the_engine_waits_the_cap() {
        let beyond = Decision::GiveUp(GiveUp::RetryAfterBeyondCap);
        let no_total =
            RetryPolicy::preset(Preset::Standard).to_builder().give_up_after(None).build().unwrap();
        assert_eq!(decide(&no_total, &GET, &seconds(503, 60), true, 0), after(Duration::from_secs(60)));
        assert_eq!(decide(&no_total, &GET, &seconds(503, 61), true, 0), beyond);
        assert_eq!(decide(&no_total, &GET, &told(503, HintWait::BeyondAny), true, 0), beyond);
        let delivery = decide(&no_total, &DELIVERY, &seconds(503, 61), true, 0);
        assert_eq!(delivery, after(Duration::from_secs(60)));
        for outcome in [seconds(503, 86_401), told(503, HintWait::BeyondAny)] {
            assert_eq!(asked(Preset::Patient, &DELIVERY, &outcome, 0), after(Duration::from_hours(24)));
        }
    }

    #[test]
    fn a_wait_that_cannot_end_before_the_total_deadline_is_not_begun() {
        let late = |millis| Try { elapsed: Duration::from_millis(millis), ..GET };
        let at = |millis| asked(Preset::Standard, &late(millis), &seconds(503, 10), 0);
        assert_eq!(at(19_999), after(Duration::from_secs(10)));
        assert_eq!(at(20_000), Decision::GiveUp(GiveUp::DeadlineExceeded));
        assert_eq!(at(u64::MAX), Decision::GiveUp(GiveUp::DeadlineExceeded));
    }

    #[test]
    fn of_several_reasons_to_stop_the_first_in_order_is_given() {
        let policy = RetryPolicy::preset(Preset::Standard);
        let reason = |attempt: &Try, outcome: &Outcome| decide(&policy, attempt, outcome, false, 0);
        let late = Try { elapsed: Duration::from_secs(60), ..GET };
        let last = Try { number: policy.max_attempts(), ..late };
        let give_up = Decision::GiveUp;
        assert_eq!(reason(&last, &seconds(404, 99)), give_up(GiveUp::PermanentStatus));
        assert_eq!(reason(&last, &seconds(503, 99)), give_up(GiveUp::AttemptsExhausted));
        assert_eq!(reason(&late, &seconds(503, 99)), give_up(GiveUp::RetryAfterBeyondCap));
        assert_eq!(reason(&late, &seconds(503, 9)), give_up(GiveUp::DeadlineExceeded));
        assert_eq!(reason(&GET, &seconds(503, 9)), give_up(GiveUp::BudgetExhausted));
        assert_eq!(reason(&last, &seconds(200, 9)), Decision::Done);
    }

    #[test]
    fn a_number_past_the_last_ends_too() {
        let outcome = Outcome { fate: Fate::NotProcessed(Nack::GoAway), status: None, hint: None };
        let attempt = Try { number: NonZeroU32::MAX, ..DELIVERY };
        let decision = asked(Preset::Webhook, &attempt, &outcome, 0);
        assert_eq!(decision, Decision::GiveUp(GiveUp::AttemptsExhausted));
    }

    #[test]
    fn at_most_once_obeys_retry_after_too() {
        let once = Try { mode: Mode::AtMostOnce, ..DELIVERY };
        assert_eq!(asked(Preset::Patient, &once, &seconds(429, 30), 0), after(Duration::from_secs(30)));
        let ambiguous = Decision::GiveUp(GiveUp::Ambiguous);
        assert_eq!(asked(Preset::Patient, &once, &seconds(503, 30), 0), ambiguous);
    }

    #[test]
    fn names_are_the_contract() {
        let reasons = [
            (GiveUp::PermanentStatus, "permanent_status"),
            (GiveUp::Redirect, "redirect"),
            (GiveUp::EndpointGone, "endpoint_gone"),
            (GiveUp::AttemptsExhausted, "attempts_exhausted"),
            (GiveUp::DeadlineExceeded, "deadline_exceeded"),
            (GiveUp::Ambiguous, "ambiguous"),
            (GiveUp::Refused(Refusal::BlockedAddress), "blocked_address"),
            (GiveUp::Refused(Refusal::InvalidDestination), "invalid_destination"),
            (GiveUp::Refused(Refusal::TooLarge), "too_large"),
        ];
        for (reason, name) in reasons {
            assert_eq!(reason.name(), name);
        }
        assert_eq!(
            [WaitSource::Schedule, WaitSource::RetryAfter].map(WaitSource::name),
            ["schedule", "retry_after"]
        );
    }
}
