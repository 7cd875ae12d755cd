//! Random faults at every provider: without the mark a message is executed at most once per call, whatever happens; with
//! it, every attempt says the same.

use std::time::Duration;

use proptest::prelude::*;
use teimoso_whatsapp::testkit::{Double, Fault, Reply, media, text};
use teimoso_whatsapp::{MediaKind, PROVIDERS, Repeat, SendOptions, SendOutcome};

use crate::support::{TestClock, with};

fn fault() -> impl Strategy<Value = Fault> {
    let status = prop::sample::select(vec![408_u16, 429, 500, 502, 503, 504]);
    let retry_after = prop::option::of(prop::sample::select(vec!["0", "7", "soon"]));
    let answer = (status, retry_after).prop_map(|(status, retry_after)| {
        let reply = Reply::json(status, "{}");
        Fault::Answer(match retry_after {
            Some(value) => reply.with("retry-after", value),
            None => reply,
        })
    });
    let late = prop::sample::select(vec![400_u16, 409, 422])
        .prop_map(|status| Fault::Answer(Reply::json(status, r#"{"error":"Timed Out"}"#)));
    let stranger = prop::sample::select(vec!["{}", r#"{"status":500}"#, r#"{"message":"Welcome"}"#])
        .prop_map(|body| Fault::Answer(Reply::json(200, body)));
    prop_oneof![
        2 => Just(Fault::None),
        2 => late,
        2 => stranger,
        6 => answer,
        2 => Just(Fault::Close),
        2 => Just(Fault::Reset),
        2 => Just(Fault::ResetUnread),
        2 => Just(Fault::Cut),
        1 => Just(Fault::Silence),
    ]
}

#[derive(Debug, Clone)]
struct Case {
    provider: usize,
    file: Option<MediaKind>,
    repeat: Repeat,
    reconcile: bool,
    faults: Vec<Fault>,
    /// How many sends before this one left their connection to be used again.
    before: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let kinds = [MediaKind::Image, MediaKind::Video, MediaKind::Audio, MediaKind::Document];
    let repeats = vec![Repeat::Never, Repeat::Never, Repeat::Unsent, Repeat::Idempotent];
    (
        0..PROVIDERS.len(),
        prop::option::of(prop::sample::select(kinds.to_vec())),
        prop::sample::select(repeats),
        any::<bool>(),
        prop::collection::vec(fault(), 1..5),
        0..2_usize,
    )
        .prop_map(|(provider, file, repeat, reconcile, faults, before)| Case {
            provider,
            file,
            repeat,
            reconcile,
            faults,
            before,
        })
}

/// Plays the case; says what came of the last send, and how many of its requests were read and executed.
async fn play(case: &Case) -> (SendOutcome, Vec<Vec<u8>>, usize) {
    let facts = PROVIDERS[case.provider].facts();
    let double = Double::of(facts.name);
    let clock = TestClock::default();
    // Silence must end some time; whatever else is slow is only slow.
    let silent = case.faults.contains(&Fault::Silence);
    let timeout = if silent { Duration::from_millis(100) } else { Duration::from_secs(20) };
    let connector = with(&double, &double.url(), |builder| builder.clock(clock).attempt_timeout(timeout));
    let repeats = facts.caller_id.allows_repeats() && (case.file.is_none() || facts.caller_id_on_media);
    let repeat = if case.repeat == Repeat::Idempotent && !repeats { Repeat::Never } else { case.repeat };
    let looks_up = facts.lookup && (case.file.is_none() || facts.caller_id_on_media);
    let options = SendOptions { repeat, id: None, reconcile: case.reconcile && looks_up };
    let mut before = (0, 0);
    for _ in 0..if silent { 0 } else { case.before } {
        connector.send_text(&text(), &SendOptions::default()).await;
        before = (double.sends().len(), double.executed());
    }
    double.fail(case.faults.clone());
    let outcome = match case.file {
        Some(kind) => connector.send_media(&media(kind, false), &options).await,
        None => connector.send_text(&text(), &options).await,
    };
    let bodies = double.sends().into_iter().skip(before.0).map(|asked| asked.body).collect();
    (outcome, bodies, double.executed() - before.1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn without_the_mark_a_message_is_executed_at_most_once_whatever_happens(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (outcome, bodies, executed) = runtime.block_on(play(&case));
        if case.repeat == Repeat::Idempotent {
            prop_assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]), "attempts differ: {outcome:?}");
        } else {
            prop_assert!(bodies.len() <= 1, "sent {} times: {outcome:?}", bodies.len());
        }
        match outcome {
            SendOutcome::Sent(_) => prop_assert!(executed >= 1, "it says sent"),
            SendOutcome::NotSent { .. } => prop_assert_eq!(executed, 0, "it says not sent"),
            SendOutcome::Unknown { error, .. } => prop_assert!(error.may_have_taken_effect()),
        }
    }
}
