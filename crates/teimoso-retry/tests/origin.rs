//! One test for each requirement of the origin that this crate carries, named by its number.

use std::num::NonZeroU32;
use std::time::Duration;

use teimoso_retry::{
    Decision, Factor, Fate, Forms, GiveUp, Hint, HintForm, HintWait, Jitter, Method, Mode, Outcome, Preset,
    Proof, RetryPolicy, Schedule, Told, Try, WaitSource, Why, decide, parse_retry_after,
};

const DNS: Outcome = Outcome { fate: Fate::NeverSent(Proof::Dns), status: None, hint: None };
const RESET: Outcome = Outcome { fate: Fate::Ambiguous(Why::Reset), status: None, hint: None };
const HOUR: Duration = Duration::from_secs(3600);

fn answered(status: u16) -> Outcome {
    Outcome { fate: Fate::Answered, status: Some(status), hint: None }
}

fn body_lost(status: u16) -> Outcome {
    Outcome { fate: Fate::BodyLost, status: Some(status), hint: None }
}

fn nth(number: u32, method: Method, replay_safe: bool, mode: Mode) -> Try {
    Try {
        number: NonZeroU32::new(number).expect("from 1"),
        elapsed: Duration::ZERO,
        method,
        replay_safe,
        mode,
    }
}

/// How often the request is sent when every attempt ends in the same way, and how that ends.
fn calls(
    policy: &RetryPolicy,
    method: Method,
    replay_safe: bool,
    mode: Mode,
    outcome: &Outcome,
) -> (u32, Decision) {
    for number in 1.. {
        match decide(policy, &nth(number, method, replay_safe, mode), outcome, true, 11) {
            Decision::RetryIn { .. } => {}
            end => return (number, end),
        }
    }
    unreachable!("every policy ends")
}

fn waits(policy: &RetryPolicy, entropy: u64) -> Vec<Duration> {
    let attempt = |number| nth(number, Method::Get, true, Mode::AtLeastOnce);
    (1..policy.max_attempts().get())
        .map(|number| match decide(policy, &attempt(number), &RESET, true, entropy) {
            Decision::RetryIn { wait, source: WaitSource::Schedule } => wait,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn millis(values: &[u64]) -> Vec<Duration> {
    values.iter().copied().map(Duration::from_millis).collect()
}

#[test]
fn s1_2_forgejo_retries_a_transport_failure_of_every_method() {
    let forgejo = RetryPolicy::preset(Preset::Forgejo);
    for method in [Method::Get, Method::Post, Method::Patch, Method::Put, Method::Delete] {
        for outcome in [DNS, RESET] {
            let sent = calls(&forgejo, method, false, Mode::Client, &outcome);
            assert_eq!(sent, (4, Decision::GiveUp(GiveUp::AttemptsExhausted)), "{method:?} {outcome:?}");
        }
    }
}

#[test]
fn s1_3_forgejo_retries_a_lost_body_of_get_and_fails_closed_for_writes() {
    let forgejo = RetryPolicy::preset(Preset::Forgejo);
    assert_eq!(calls(&forgejo, Method::Get, false, Mode::Client, &body_lost(200)).0, 4);
    for method in [Method::Post, Method::Patch, Method::Put, Method::Delete] {
        let sent = calls(&forgejo, method, true, Mode::Client, &body_lost(200));
        assert_eq!(sent, (1, Decision::GiveUp(GiveUp::NotReplaySafe)));
    }
}

#[test]
fn s1_4_forgejo_retries_502_503_504_of_get_only() {
    let forgejo = RetryPolicy::preset(Preset::Forgejo);
    for status in [502, 503, 504] {
        assert_eq!(calls(&forgejo, Method::Get, false, Mode::Client, &answered(status)).0, 4);
        assert_eq!(calls(&forgejo, Method::Post, true, Mode::Client, &answered(status)).0, 1);
    }
    assert_eq!(calls(&forgejo, Method::Get, false, Mode::Client, &answered(500)).0, 1);
}

#[test]
fn s1_5_forgejo_never_retries_a_4xx_and_nobody_retries_an_abort() {
    let forgejo = RetryPolicy::preset(Preset::Forgejo);
    for status in 400..500 {
        let sent = calls(&forgejo, Method::Get, true, Mode::Client, &answered(status));
        assert_eq!(sent, (1, Decision::GiveUp(GiveUp::PermanentStatus)), "{status}");
    }
    let abort = Outcome { fate: Fate::Ambiguous(Why::Cancelled), status: None, hint: None };
    for preset in Preset::ALL {
        assert_eq!(calls(&preset.into(), Method::Get, true, Mode::Client, &abort).0, 1, "{preset}");
    }
}

#[test]
fn s1_6_forgejo_waits_300_600_1200_ms_within_a_fifth() {
    let forgejo = RetryPolicy::preset(Preset::Forgejo);
    assert_eq!(forgejo.max_attempts().get(), 4);
    assert_eq!(waits(&forgejo, 0), millis(&[240, 480, 960]));
    assert_eq!(waits(&forgejo, u64::MAX), millis(&[360, 720, 1440]));
    assert_eq!(forgejo.total_span(), (Duration::from_millis(1680), Duration::from_millis(2520)));
}

#[test]
fn s1_7_no_retries_turns_retrying_off() {
    let off = RetryPolicy::preset(Preset::Forgejo).to_builder().retries(0).build().unwrap();
    let sent = calls(&off, Method::Get, true, Mode::Client, &DNS);
    assert_eq!(sent, (1, Decision::GiveUp(GiveUp::AttemptsExhausted)));
    assert_eq!(off.total_span(), (Duration::ZERO, Duration::ZERO));
}

#[test]
fn s1_12_backoff_grows_from_base_to_twice_the_base_without_jitter() {
    let plain = RetryPolicy::preset(Preset::Forgejo).to_builder().jitter(Jitter::None).build().unwrap();
    for entropy in [0, 1 << 63, u64::MAX] {
        assert_eq!(waits(&plain, entropy), millis(&[300, 600, 1200]));
    }
    assert_eq!(plain.total_span(), (Duration::from_millis(2100), Duration::from_millis(2100)));
}

#[test]
fn s1_12_persistent_failure_ends_after_retries_plus_one_calls() {
    for retries in [0, 1, 3, 7] {
        let policy = RetryPolicy::preset(Preset::Forgejo).to_builder().retries(retries).build().unwrap();
        assert_eq!(calls(&policy, Method::Post, false, Mode::Client, &DNS).0, retries + 1);
    }
}

#[test]
fn s1_12_jitter_stays_within_a_fifth_and_reaches_both_ends() {
    let forgejo = RetryPolicy::preset(Preset::Forgejo);
    let first = |entropy| waits(&forgejo, entropy)[0];
    assert_eq!((first(0), first(u64::MAX)), (Duration::from_millis(240), Duration::from_millis(360)));
    assert_eq!(first(1 << 63).as_millis(), 300);
}

#[test]
fn s2_3_webhook_waits_two_seconds_doubled_to_300_and_up_to_one_second_more() {
    let policy = RetryPolicy::preset(Preset::Webhook).to_builder().max_attempts(12).build().unwrap();
    let base = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000, 300_000];
    assert_eq!(waits(&policy, 0), millis(&base));
    assert_eq!(waits(&policy, u64::MAX), millis(&base.map(|wait| wait + 1000)));
}

#[test]
fn s2_4_webhook_delivers_on_2xx_buries_4xx_at_once_and_all_else_after_five() {
    let webhook = RetryPolicy::preset(Preset::Webhook);
    let sent = |outcome: &Outcome| calls(&webhook, Method::Post, false, Mode::AtLeastOnce, outcome);
    for status in 200..300 {
        assert_eq!(sent(&answered(status)), (1, Decision::Done));
    }
    for status in (400..500).filter(|status| *status != 429) {
        assert_eq!(sent(&answered(status)), (1, Decision::GiveUp(GiveUp::PermanentStatus)), "{status}");
    }
    for status in [429].into_iter().chain(500..600) {
        assert_eq!(sent(&answered(status)), (5, Decision::GiveUp(GiveUp::AttemptsExhausted)), "{status}");
    }
    for outcome in [DNS, RESET] {
        assert_eq!(sent(&outcome), (5, Decision::GiveUp(GiveUp::AttemptsExhausted)));
    }
}

#[test]
fn s2_13_five_attempts_from_two_seconds_span_30_to_34_seconds() {
    let webhook = RetryPolicy::preset(Preset::Webhook);
    assert_eq!(webhook.total_span(), (Duration::from_secs(30), Duration::from_secs(34)));
}

#[test]
fn s2_13_thirty_seconds_doubled_to_300_for_ten_attempts_span_about_32_minutes() {
    let schedule =
        Schedule::exponential(Duration::from_secs(30), Factor::TWO, Duration::from_secs(300)).unwrap();
    let webhook = RetryPolicy::preset(Preset::Webhook);
    let tuned = webhook.to_builder().schedule(schedule).max_attempts(10).build().unwrap();
    // 30 + 60 + 120 + 240 + 5 × 300 s, and nine times up to a second.
    assert_eq!(tuned.total_span(), (Duration::from_secs(1950), Duration::from_secs(1959)));
}

#[test]
fn s2_13_patient_spans_75_hours_and_35_minutes() {
    let patient = RetryPolicy::preset(Preset::Patient);
    let plain = patient.to_builder().jitter(Jitter::None).build().unwrap();
    let span = 75 * HOUR + Duration::from_secs(35 * 60 + 5);
    assert_eq!(plain.total_span(), (span, span));
    assert_eq!(patient.total_span(), (span * 9 / 10, span * 11 / 10));
}

#[test]
fn s3_2_connector_retries_only_get_head_or_what_is_marked() {
    let connector = RetryPolicy::preset(Preset::Connector);
    let eligible = [DNS, RESET, answered(429), answered(502), answered(503), answered(504)];
    for outcome in eligible {
        let sent = |method, idempotent| calls(&connector, method, idempotent, Mode::Client, &outcome).0;
        assert_eq!(sent(Method::Get, false), 4);
        assert_eq!(sent(Method::Head, false), 4);
        assert_eq!(sent(Method::Post, true), 4);
        for method in [Method::Post, Method::Put, Method::Delete, Method::Patch] {
            assert_eq!(sent(method, false), 1, "{method:?} {outcome:?}");
        }
    }
    for status in [400, 401, 404, 408, 409, 500, 501] {
        assert_eq!(calls(&connector, Method::Get, true, Mode::Client, &answered(status)).0, 1, "{status}");
    }
}

fn connector_waits(status: u16, header: &[u8], entropy: u64) -> Decision {
    let hint = parse_retry_after([header], None, Duration::from_secs(1_800_000_000));
    let outcome = Outcome { hint, ..answered(status) };
    let attempt = nth(2, Method::Get, false, Mode::Client);
    decide(&RetryPolicy::preset(Preset::Connector), &attempt, &outcome, true, entropy)
}

#[test]
fn s3_3_seconds_replace_the_backoff_exactly_and_are_capped_at_30_seconds() {
    for status in [429, 503] {
        for entropy in [0, u64::MAX] {
            for (header, seconds) in
                [("1", 1), ("7", 7), ("30", 30), ("31", 30), ("99999999999999999999", 30)]
            {
                let expected =
                    Decision::RetryIn { wait: Duration::from_secs(seconds), source: WaitSource::RetryAfter };
                assert_eq!(connector_waits(status, header.as_bytes(), entropy), expected);
            }
        }
    }
}

#[test]
fn s3_3_a_date_or_anything_not_numeric_falls_back_to_the_backoff() {
    let backoff = Decision::RetryIn { wait: Duration::from_millis(600), source: WaitSource::Schedule };
    for header in ["Fri, 15 Jan 2027 08:00:30 GMT", "soon", "1.5", "-1", "+7", "", "7s"] {
        assert_eq!(connector_waits(503, header.as_bytes(), 0), backoff, "{header}");
    }
    assert_eq!(connector_waits(502, b"7", 0), backoff);
    assert_eq!(connector_waits(504, b"7", 0), backoff);
}

#[test]
fn s3_4_the_capped_value_is_there_for_the_error_to_carry() {
    let rule = RetryPolicy::preset(Preset::Connector).retry_after();
    let seconds = |wait| rule.told(Hint { wait, form: HintForm::Seconds });
    assert_eq!(seconds(HintWait::For(Duration::from_secs(7))), Told::Wait(Duration::from_secs(7)));
    assert_eq!(seconds(HintWait::For(Duration::from_secs(31))), Told::Wait(Duration::from_secs(30)));
    assert_eq!(seconds(HintWait::BeyondAny), Told::Wait(Duration::from_secs(30)));
    let date = Hint { wait: HintWait::For(Duration::from_secs(7)), form: HintForm::Date };
    assert_eq!(rule.told(date), Told::Ignored);
    assert_eq!(rule.forms(), Forms::Seconds);
}

#[test]
fn s3_5_connector_backs_off_from_300_ms_to_4_s_and_up_to_a_quarter_more() {
    let policy = RetryPolicy::preset(Preset::Connector).to_builder().max_attempts(7).build().unwrap();
    assert_eq!(waits(&policy, 0), millis(&[300, 600, 1200, 2400, 4000, 4000]));
    assert_eq!(waits(&policy, u64::MAX), millis(&[375, 750, 1500, 3000, 5000, 5000]));
}

#[test]
fn g3_at_least_once_repeats_what_is_ambiguous_or_retryable_and_nothing_else() {
    let patient = RetryPolicy::preset(Preset::Patient);
    let sent = |outcome: &Outcome| calls(&patient, Method::Post, false, Mode::AtLeastOnce, outcome).0;
    assert_eq!((sent(&RESET), sent(&answered(503)), sent(&answered(408))), (10, 10, 10));
    assert_eq!((sent(&answered(200)), sent(&body_lost(200)), sent(&answered(404))), (1, 1, 1));
}

#[test]
fn g4_at_most_once_overrides_every_mark_and_method() {
    for preset in Preset::ALL {
        for method in [Method::Get, Method::Post] {
            let end = |outcome: &Outcome| calls(&preset.into(), method, true, Mode::AtMostOnce, outcome);
            for outcome in [RESET, answered(503), answered(408), answered(302), body_lost(500)] {
                assert_eq!(end(&outcome), (1, Decision::GiveUp(GiveUp::Ambiguous)), "{preset} {outcome:?}");
            }
            let attempts = RetryPolicy::preset(preset).max_attempts().get();
            for outcome in [DNS, answered(421), answered(425), answered(429)] {
                assert_eq!(
                    end(&outcome),
                    (attempts, Decision::GiveUp(GiveUp::AttemptsExhausted)),
                    "{preset}"
                );
            }
        }
    }
}
