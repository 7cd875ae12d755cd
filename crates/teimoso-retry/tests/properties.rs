//! What holds for every attempt number, every input and every random draw.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use teimoso_retry::{
    Beyond, Budget, Decision, Effect, Factor, Fate, Forms, Hint, HintForm, HintWait, Jitter, MAX_WAIT,
    Method, Mode, Nack, Outcome, PerMille, Preset, Proof, Refusal, RetryAfterRule, RetryPolicy, Schedule,
    Try, WaitSource, Why, decide, parse_retry_after,
};

fn any_jitter() -> impl Strategy<Value = Jitter> {
    let ratio = (0_u16..=1000).prop_map(|ratio| PerMille::new(ratio).expect("at most 1000"));
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        ratio.clone().prop_map(Jitter::PlusMinus),
        ratio.prop_map(Jitter::AddRatio),
        (0..=MAX_WAIT.as_millis() as u64).prop_map(|span| Jitter::AddSpan(Duration::from_millis(span))),
    ]
}

fn any_wait() -> impl Strategy<Value = Duration> {
    let top = MAX_WAIT.as_nanos() as u64;
    prop_oneof![1_000_000..=top, 1_000_000..=5_000_000_000_u64, Just(top)].prop_map(Duration::from_nanos)
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let factor = prop_oneof![Just(1000_u32), 1100..=100_000_u32]
        .prop_map(|factor| Factor::per_mille(factor).expect("within bounds"));
    prop_oneof![
        (any_wait(), factor, any_wait()).prop_map(|(a, factor, b)| Schedule::exponential(
            a.min(b),
            factor,
            a.max(b)
        )
        .expect("within bounds")),
        prop::collection::vec(any_wait(), 1..20)
            .prop_map(|waits| Schedule::list(waits).expect("within bounds")),
    ]
}

fn any_policy() -> impl Strategy<Value = RetryPolicy> {
    let rule =
        (any::<bool>(), any_wait(), any::<bool>(), any::<bool>()).prop_map(|(both, cap, clamp, spread)| {
            let forms = if both { Forms::Both } else { Forms::Seconds };
            let beyond = if clamp { Beyond::Clamp } else { Beyond::GiveUp };
            RetryAfterRule::new(forms, cap, beyond, spread).expect("within bounds")
        });
    let give_up = prop::option::of(any_wait());
    let attempts = prop_oneof![1..10_u32, Just(u32::MAX)];
    (prop::sample::select(&Preset::ALL[..]), any_schedule(), any_jitter(), rule, give_up, attempts).prop_map(
        |(preset, schedule, jitter, rule, give_up, attempts)| {
            RetryPolicy::preset(preset)
                .to_builder()
                .schedule(schedule)
                .jitter(jitter)
                .retry_after(rule)
                .give_up_after(give_up)
                .max_attempts(attempts)
                .build()
                .expect("within bounds")
        },
    )
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop::sample::select(vec![
        Fate::NeverSent(Proof::Dns),
        Fate::NeverSent(Proof::TlsCertificate),
        Fate::NotProcessed(Nack::GoAway),
        Fate::Answered,
        Fate::Answered,
        Fate::BodyLost,
        Fate::Ambiguous(Why::Timeout),
        Fate::Ambiguous(Why::Cancelled),
        Fate::Refused(Refusal::TooLarge),
    ])
}

fn any_hint() -> impl Strategy<Value = Hint> {
    let wait = prop_oneof![
        Just(HintWait::BeyondAny),
        Just(HintWait::For(Duration::ZERO)),
        any_wait().prop_map(HintWait::For),
        any::<u64>().prop_map(|seconds| HintWait::For(Duration::from_secs(seconds))),
    ];
    (wait, any::<bool>())
        .prop_map(|(wait, date)| Hint { wait, form: if date { HintForm::Date } else { HintForm::Seconds } })
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let status = prop::option::of(prop_oneof![any::<u16>(), 100..600_u16, Just(429), Just(503)]);
    (any_fate(), status, prop::option::of(any_hint())).prop_map(|(fate, status, hint)| Outcome {
        fate,
        status,
        hint,
    })
}

fn any_number() -> impl Strategy<Value = NonZeroU32> {
    prop_oneof![1..=100_u32, 1..=u32::MAX, Just(u32::MAX)]
        .prop_map(|number| NonZeroU32::new(number).expect("from 1"))
}

fn any_try() -> impl Strategy<Value = Try> {
    let method =
        prop::sample::select(vec![Method::Get, Method::Head, Method::Post, Method::Put, Method::Other]);
    let mode = prop::sample::select(vec![Mode::AtLeastOnce, Mode::AtMostOnce, Mode::Client]);
    let elapsed = prop_oneof![Just(Duration::ZERO), any_wait(), Just(Duration::MAX)];
    (any_number(), elapsed, method, any::<bool>(), mode).prop_map(
        |(number, elapsed, method, replay_safe, mode)| Try { number, elapsed, method, replay_safe, mode },
    )
}

proptest! {
    #[test]
    fn no_wait_is_above_the_cap_before_jitter_nor_beyond_its_bounds_after(
        schedule in any_schedule(), jitter in any_jitter(), number in any_number(), entropy: u64,
    ) {
        let base = schedule.wait_after(number);
        prop_assert!(base <= schedule.cap());
        let (min, max) = jitter.bounds(base);
        let wait = jitter.spread(base, entropy);
        prop_assert!(min <= wait && wait <= max);
        prop_assert!(max <= jitter.bounds(schedule.cap()).1);
    }

    #[test]
    fn an_exponential_schedule_never_shrinks_and_settles_at_its_cap(
        base in any_wait(), factor in 1100..=100_000_u32, number in 1..u32::MAX,
    ) {
        let schedule = Schedule::exponential(base, Factor::per_mille(factor).unwrap(), MAX_WAIT).unwrap();
        let after = |number| schedule.wait_after(NonZeroU32::new(number).unwrap());
        prop_assert!(after(number) <= after(number + 1));
        prop_assert_eq!(after(u32::MAX), MAX_WAIT);
    }

    #[test]
    fn a_decision_keeps_every_bound(
        policy in any_policy(), attempt in any_try(), outcome in any_outcome(), budget_ok: bool, entropy: u64,
    ) {
        let decision = decide(&policy, &attempt, &outcome, budget_ok, entropy);
        prop_assert_eq!(decision, decide(&policy, &attempt, &outcome, budget_ok, entropy));
        if let Decision::RetryIn { wait, source } = decision {
            let bound = match source {
                WaitSource::Schedule => policy.jitter().bounds(policy.waits().cap()).1,
                WaitSource::RetryAfter => {
                    let cap = policy.retry_after().cap();
                    let first = policy.waits().first();
                    first.max(cap + first.min(cap / 10))
                }
            };
            prop_assert!(wait <= bound);
            prop_assert!(budget_ok);
            prop_assert!(attempt.number < policy.max_attempts());
            prop_assert!(policy.give_up_after().is_none_or(|total| attempt.elapsed.saturating_add(wait) < total));
        }
    }

    #[test]
    fn what_the_peer_asks_for_within_the_cap_is_never_cut_short(
        policy in any_policy(), attempt in any_try(), seconds in 1..=2_592_000_u64, entropy: u64,
    ) {
        let told = Duration::from_secs(seconds);
        prop_assume!(told <= policy.retry_after().cap());
        let hint = Some(Hint { wait: HintWait::For(told), form: HintForm::Seconds });
        let outcome = Outcome { fate: Fate::Answered, status: Some(503), hint };
        if let Decision::RetryIn { wait, source } = decide(&policy, &attempt, &outcome, true, entropy) {
            prop_assert_eq!(source, WaitSource::RetryAfter);
            prop_assert!(wait >= told);
        }
    }

    #[test]
    fn g4_at_most_once_never_repeats_what_may_have_taken_effect(
        policy in any_policy(), attempt in any_try(), outcome in any_outcome(), entropy: u64,
    ) {
        let attempt = Try { mode: Mode::AtMostOnce, ..attempt };
        if let Decision::RetryIn { .. } = decide(&policy, &attempt, &outcome, true, entropy) {
            prop_assert_eq!(outcome.fate.may_have_taken_effect(outcome.status), Effect::No);
        }
    }

    #[test]
    fn the_span_is_the_sum_of_the_schedule(
        schedule in any_schedule(), jitter in any_jitter(), attempts in 1..400_u32,
    ) {
        let policy =
            RetryPolicy::builder().schedule(schedule).jitter(jitter).max_attempts(attempts).build().unwrap();
        let sum = policy.schedule().fold((Duration::ZERO, Duration::ZERO), |sum, step| {
            (sum.0 + step.min, sum.1 + step.max)
        });
        prop_assert_eq!(policy.total_span(), sum);
        prop_assert_eq!(policy.schedule().count(), attempts as usize);
    }

    #[test]
    fn no_header_panics_and_no_date_asks_for_less_than_nothing(
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4),
        date in prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
        now: u64,
    ) {
        let now = Duration::from_secs(now);
        let hint = parse_retry_after(lines.iter().map(Vec::as_slice), date.as_deref(), now);
        prop_assert!(hint.is_none_or(|hint| hint.wait >= HintWait::For(Duration::ZERO)));
    }

    #[test]
    fn no_text_shaped_like_a_date_panics(line in "[A-Z][a-z]{2,8},? [0-9A-Za-z -]{5,12} [0-9]{1,2}:[0-9]{2}:(60|[0-9]{2})( GMT| [0-9]{4})", now: u64) {
        let now = Duration::from_secs(now);
        let hint = parse_retry_after([line.as_bytes()], Some(line.as_bytes()), now);
        // The same instant as the response's own date: nothing to wait for.
        prop_assert!(hint.is_none_or(|hint| hint.wait == HintWait::For(Duration::ZERO)));
    }

    #[test]
    fn in_every_window_retries_stay_within_the_ratio_and_the_reserve(
        per_mille in 0..=2000_u32, reserve in 0..=20_u32, events in prop::collection::vec(any::<bool>(), 0..200),
    ) {
        let mut budget = Budget::new(per_mille, reserve);
        let spent: Vec<(u64, u64)> = events
            .iter()
            .map(|is_request| {
                if *is_request {
                    budget.request();
                    return (1, 0);
                }
                (0, u64::from(budget.spend()))
            })
            .collect();
        for start in 0..spent.len() {
            let (mut requests, mut retries) = (0, 0);
            for (request, retry) in &spent[start..] {
                requests += request;
                retries += retry;
                prop_assert!(retries <= requests * u64::from(per_mille) / 1000 + u64::from(reserve));
            }
        }
    }
}
