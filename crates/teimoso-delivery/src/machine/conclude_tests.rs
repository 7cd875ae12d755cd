use std::time::Duration;

use teimoso_retry::{
    Beyond, Fate, Forms, Hint, HintForm, HintWait, Nack, Preset, Proof, Refusal, RetryAfterRule, RetryPolicy,
    Why,
};

use super::*;
use crate::model::PhaseTimings;

const START: Millis = Millis::new(1_000_000_000);
const END: Millis = Millis::new(1_000_000_200);

fn report(fate: Fate, status: Option<u16>) -> Report {
    Report {
        fate,
        status,
        hint: None,
        error_kind: None,
        error: None,
        peer: None,
        timings: PhaseTimings::default(),
        response: None,
    }
}

fn told(status: u16, seconds: u64) -> Report {
    let hint = Hint { wait: HintWait::For(Duration::from_secs(seconds)), form: HintForm::Seconds };
    Report { hint: Some(hint), ..report(Fate::Answered, Some(status)) }
}

fn fresh(mode: Mode) -> Progress {
    Progress::fresh(mode, NextWhy::First)
}

fn after(progress: Progress, report: &Report, policy: &RetryPolicy) -> Conclusion {
    let number = AttemptNumber::after(progress.attempts);
    conclude(&Attempted { progress, number, started_at: START, now: END, report }, policy, 0)
}

fn preset(name: Preset) -> RetryPolicy {
    RetryPolicy::preset(name)
}

/// The end in one word: a state, or the reason of death.
fn word(next: Next) -> &'static str {
    match next {
        Next::Delivered => "delivered",
        Next::Scheduled { .. } => "retry",
        Next::Dead(reason) => reason.name(),
        Next::Released => "released",
    }
}

#[test]
fn every_fate_ends_as_the_contract_says_in_both_modes() {
    let answered = |status| (Fate::Answered, Some(status));
    let none = |fate| (fate, None);
    // (fate and status, at-least-once under `patient`, at-most-once under `patient`)
    let table = [
        (answered(200), "delivered", "delivered"),
        (answered(299), "delivered", "delivered"),
        ((Fate::BodyLost, Some(204)), "delivered", "delivered"),
        (answered(301), "redirect", "ambiguous"),
        (answered(400), "permanent_status", "permanent_status"),
        (answered(404), "permanent_status", "permanent_status"),
        (answered(408), "retry", "ambiguous"),
        (answered(410), "endpoint_gone", "endpoint_gone"),
        (answered(421), "retry", "retry"),
        (answered(425), "retry", "retry"),
        (answered(429), "retry", "retry"),
        (answered(500), "retry", "ambiguous"),
        (answered(503), "retry", "ambiguous"),
        ((Fate::BodyLost, Some(404)), "permanent_status", "permanent_status"),
        ((Fate::BodyLost, Some(502)), "retry", "ambiguous"),
        (answered(600), "retry", "ambiguous"),
        (answered(999), "retry", "ambiguous"),
        (none(Fate::NeverSent(Proof::Dns)), "retry", "retry"),
        (none(Fate::NeverSent(Proof::Connect)), "retry", "retry"),
        (none(Fate::NeverSent(Proof::TlsHandshake)), "retry", "retry"),
        (none(Fate::NeverSent(Proof::TlsCertificate)), "retry", "retry"),
        (none(Fate::NeverSent(Proof::NoConnection)), "retry", "retry"),
        (none(Fate::NeverSent(Proof::HandedBack)), "retry", "retry"),
        (none(Fate::NeverSent(Proof::ZeroBytesWritten)), "retry", "retry"),
        (none(Fate::NotProcessed(Nack::RefusedStream)), "retry", "retry"),
        (none(Fate::NotProcessed(Nack::GoAway)), "retry", "retry"),
        (none(Fate::Ambiguous(Why::Timeout)), "retry", "ambiguous"),
        (none(Fate::Ambiguous(Why::Closed)), "retry", "ambiguous"),
        (none(Fate::Ambiguous(Why::Reset)), "retry", "ambiguous"),
        (none(Fate::Ambiguous(Why::Protocol)), "retry", "ambiguous"),
        (none(Fate::Ambiguous(Why::Cancelled)), "retry", "ambiguous"),
        (none(Fate::Ambiguous(Why::Other)), "retry", "ambiguous"),
        (none(Fate::Refused(Refusal::InvalidDestination)), "invalid_destination", "invalid_destination"),
        (none(Fate::Refused(Refusal::BlockedAddress)), "blocked_address", "blocked_address"),
        (none(Fate::Refused(Refusal::TooLarge)), "too_large", "too_large"),
    ];
    for ((fate, status), at_least, at_most) in table {
        let report = report(fate, status);
        let end = |mode| word(after(fresh(mode), &report, &preset(Preset::Patient)).next);
        assert_eq!(end(Mode::AtLeastOnce), at_least, "{fate:?} {status:?}");
        assert_eq!(end(Mode::AtMostOnce), at_most, "{fate:?} {status:?} at most once");
    }
}

#[test]
fn a_client_preset_in_the_engine_still_ends_with_a_reason_of_the_closed_list() {
    let end =
        |name, fate, status| word(after(fresh(Mode::AtLeastOnce), &report(fate, status), &preset(name)).next);
    assert_eq!(end(Preset::Forgejo, Fate::Answered, Some(503)), "permanent_status");
    assert_eq!(end(Preset::Forgejo, Fate::Ambiguous(Why::Reset), None), "retry");
    assert_eq!(end(Preset::Standard, Fate::NeverSent(Proof::TlsCertificate), None), "invalid_destination");
    assert_eq!(end(Preset::Connector, Fate::Answered, Some(429)), "retry");
}

#[test]
fn s2_4_the_fifth_failure_is_the_last_and_attempts_count_requests_fired() {
    let policy = preset(Preset::Webhook);
    let mut progress = fresh(Mode::AtLeastOnce);
    let mut waits = Vec::new();
    for number in 1..=5 {
        let end = after(progress, &report(Fate::NeverSent(Proof::Connect), None), &policy);
        assert_eq!(end.record.number.get(), number);
        assert_eq!(end.progress.attempts, number);
        waits.extend(end.wait);
        progress = end.progress;
        if number == 5 {
            assert_eq!(end.next, Next::Dead(DeadReason::AttemptsExhausted));
        }
    }
    assert_eq!(waits, [2, 4, 8, 16].map(Duration::from_secs));
}

#[test]
fn s2_5_a_404_dies_with_one_attempt() {
    let end = after(fresh(Mode::AtLeastOnce), &report(Fate::Answered, Some(404)), &preset(Preset::Webhook));
    assert_eq!((end.next, end.progress.attempts), (Next::Dead(DeadReason::PermanentStatus), 1));
    assert_eq!((end.record.decision, end.record.wait), (DecisionName::GiveUp, None));
}

#[test]
fn g6_a_replay_renews_the_budget_and_continues_the_numbers() {
    let replayed = Progress { attempts: 5, budget_from: 5, ..fresh(Mode::AtLeastOnce) };
    let end = after(replayed, &report(Fate::Answered, Some(500)), &preset(Preset::Webhook));
    assert_eq!(end.record.number.get(), 6);
    assert_eq!(end.wait, Some(Duration::from_secs(2)));
    assert_eq!(end.progress.first_attempt_at, Some(START));
}

#[test]
fn the_deadline_counts_from_the_budgets_first_attempt() {
    let hour = Some(Duration::from_secs(3_600));
    let policy = preset(Preset::Webhook).to_builder().give_up_after(hour).build().unwrap();
    let began = |at| Progress { attempts: 1, first_attempt_at: Some(at), ..fresh(Mode::AtLeastOnce) };
    let long_ago = Millis::new(END.get() - 3_597_000);
    let failed = report(Fate::Answered, Some(500));
    assert_eq!(after(began(long_ago), &failed, &policy).next, Next::Dead(DeadReason::DeadlineExceeded));
    let due = Millis::new(END.get() + 4_000);
    let again = Next::Scheduled { due, why: NextWhy::Retry };
    assert_eq!(after(began(START), &failed, &policy).next, again);
    assert_eq!(after(began(START), &failed, &policy).progress.first_attempt_at, Some(START));
}

#[test]
fn a_retry_after_sets_the_due_time_and_pauses_the_lane_never_earlier_than_told() {
    let end = after(fresh(Mode::AtLeastOnce), &told(503, 120), &preset(Preset::Patient));
    let until = Millis::new(END.get() + 120_000);
    assert_eq!(end.next, Next::Scheduled { due: until, why: NextWhy::RetryAfter });
    assert_eq!(end.progress.why, NextWhy::RetryAfter);
    assert_eq!(end.news, LaneNews::Pause(until));
    assert_eq!(end.record.wait, Some((Duration::from_secs(120), WaitSource::RetryAfter)));
}

#[test]
fn an_endless_retry_after_pauses_no_longer_than_the_policys_cap() {
    let day = Millis::new(END.get() + 24 * 3_600_000);
    let end = after(fresh(Mode::AtLeastOnce), &told(429, u64::MAX), &preset(Preset::Patient));
    assert_eq!(end.news, LaneNews::Pause(day));
    let strict = RetryAfterRule::new(Forms::Both, Duration::from_secs(60), Beyond::GiveUp, false).unwrap();
    let policy = preset(Preset::Patient).to_builder().retry_after(strict).build().unwrap();
    let end = after(fresh(Mode::AtLeastOnce), &told(429, 61), &policy);
    let minute = Millis::new(END.get() + 60_000);
    assert_eq!(end.next, Next::Scheduled { due: minute, why: NextWhy::RetryAfter });
    assert_eq!(end.news, LaneNews::Pause(minute));
}

#[test]
fn g10_what_a_lane_learns_from_each_end() {
    let news = |report: &Report| after(fresh(Mode::AtLeastOnce), report, &preset(Preset::Patient)).news;
    let answered = |status| news(&report(Fate::Answered, Some(status)));
    let failed = |fate| news(&report(fate, None));
    assert_eq!(answered(200), LaneNews::Success);
    assert_eq!(answered(404), LaneNews::Success);
    assert_eq!(answered(500), LaneNews::Failure);
    assert_eq!(answered(503), LaneNews::Failure);
    assert_eq!([600, 999].map(answered), [LaneNews::Failure; 2]);
    assert_eq!(news(&told(503, 0)), LaneNews::Failure);
    assert_eq!(answered(429), LaneNews::Neutral);
    assert_eq!(news(&told(500, 60)), LaneNews::Failure);
    assert_eq!(failed(Fate::NeverSent(Proof::Connect)), LaneNews::Failure);
    assert_eq!(failed(Fate::NeverSent(Proof::HandedBack)), LaneNews::Neutral);
    assert_eq!(failed(Fate::Ambiguous(Why::Timeout)), LaneNews::Failure);
    assert_eq!(failed(Fate::Ambiguous(Why::Cancelled)), LaneNews::Neutral);
    assert_eq!(failed(Fate::Refused(Refusal::BlockedAddress)), LaneNews::Neutral);
}

#[test]
fn a_policy_without_a_breaker_teaches_lanes_nothing() {
    for report in [told(503, 60), report(Fate::Answered, Some(500)), report(Fate::Answered, Some(200))] {
        assert_eq!(
            after(fresh(Mode::AtLeastOnce), &report, &preset(Preset::Webhook)).news,
            LaneNews::Neutral
        );
    }
}

#[test]
fn a_counter_at_its_end_does_not_panic() {
    let worn = Progress { attempts: u32::MAX, ..fresh(Mode::AtLeastOnce) };
    let end = after(worn, &report(Fate::Answered, Some(500)), &preset(Preset::Patient));
    assert_eq!(end.next, Next::Dead(DeadReason::AttemptsExhausted));
    assert_eq!(end.progress.attempts, u32::MAX);
}
