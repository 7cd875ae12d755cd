//! Acceptance: names, batches, and what is kept of an event.

use bytes::Bytes;

use super::bench::{Bench, Make, rule};
use crate::model::{DeliveryState, EventId, Header, Headers, Mode};
use crate::store::Rejection;
use crate::testkit::{Offer, offer};

const URL: &str = "http://loja.example/pedidos";

/// A caller's id and an idempotency key, each repeated.
pub fn g1_a_repeated_name_with_the_same_body_answers_the_same_id(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        for named in
            [offer(URL).named("pedido-1"), offer(URL).key("chave-1"), offer(URL).named("p-2").key("c-2")]
        {
            let first = bench.accept(named.clone()).await;
            let again = bench.accept(named).await;
            assert!(!first.replayed && again.replayed);
            assert_eq!((again.event, again.deliveries), (first.event, first.deliveries));
        }
        assert_eq!(bench.counts().await.accepted, 3);
        assert_eq!(bench.accept(offer(URL).named("pedido-1")).await.event, id("pedido-1"));
        let plain = bench.accept(offer(URL)).await.event;
        assert_ne!(plain, bench.accept(offer(URL)).await.event, "without a name nothing is repeated");
    });
}

fn id(text: &str) -> EventId {
    EventId::named(text).expect("a test's id is valid")
}

/// 409 for an id, 422 for a key; and nothing of the refused event is kept.
pub fn g1_a_name_with_another_body_is_refused_and_its_siblings_are_not(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.offer(vec![offer(URL).named("a"), offer(URL).key("k")]).await;
        let other = |offer: Offer| offer.fingerprint(9);
        let batch =
            vec![other(offer(URL).named("a")), offer(URL), other(offer(URL).key("k")), offer(URL).named("a")];
        let answers = bench.offer(batch).await;
        assert_eq!(answers[0].as_ref().err(), Some(&Rejection::IdTaken));
        assert_eq!(answers[2].as_ref().err(), Some(&Rejection::KeyReused));
        assert!(answers[1].as_ref().is_ok_and(|accepted| !accepted.replayed));
        assert!(answers[3].as_ref().is_ok_and(|accepted| accepted.replayed));
        assert_eq!(bench.counts().await.accepted, 3);
        // The key of a refused event stays free.
        let refused = other(offer(URL).named("a").key("livre"));
        assert_eq!(bench.offer(vec![refused]).await.remove(0), Err(Rejection::IdTaken));
        assert!(!bench.accept(offer(URL).key("livre")).await.replayed);
    });
}

/// Two lines of one batch with the same key.
pub fn g1_a_name_repeated_within_one_batch_makes_one_event(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let mut answers = bench.offer(vec![offer(URL).key("k"), offer(URL).key("k")]).await;
        let (second, first) = (answers.remove(1), answers.remove(0));
        assert_eq!(first.map(|one| one.event), second.map(|one| one.event));
        assert_eq!(bench.counts().await.accepted, 1);
    });
}

/// A second request while the first commits waits for the same commit.
pub fn g1_concurrent_requests_with_one_key_make_one_event(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let requests: Vec<_> = (0..16)
            .map(|_| {
                let store = bench.store.clone();
                tokio::spawn(async move { store.accept(vec![offer(URL).key("k").event()]).await })
            })
            .collect();
        let (mut fresh, mut ids) = (0, Vec::new());
        for request in requests {
            let answers = request.await.expect("no accept panics").expect("an open store accepts");
            for accepted in answers.into_iter().flatten() {
                fresh += usize::from(!accepted.replayed);
                ids.push(accepted.event);
            }
        }
        ids.dedup();
        assert_eq!((fresh, ids.len(), bench.counts().await.accepted), (1, 1, 1));
    });
}

/// The same id in two applications is two events.
pub fn g1_names_belong_to_their_application(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.accept(offer(URL).of("a").named("x").key("k")).await;
        let other = bench.accept(offer(URL).of("b").named("x").key("k").fingerprint(3)).await;
        assert!(!other.replayed);
        assert_eq!(bench.counts().await.accepted, 2);
    });
}

/// One answer per event, each in its place.
pub fn g1_a_batch_is_answered_in_order(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let batch = (0..300).map(|n| offer(URL).named(&format!("n-{n}"))).collect();
        let answers = bench.offer(batch).await;
        let ids: Vec<_> = answers.into_iter().flatten().map(|accepted| accepted.event.to_string()).collect();
        assert_eq!(ids, (0..300).map(|n| format!("n-{n}")).collect::<Vec<_>>());
        assert!(bench.offer(Vec::new()).await.is_empty());
    });
}

/// Remembered through the 24th hour; forgotten at the latest two hours on.
pub fn g1_a_name_is_remembered_for_a_day_and_not_for_ever(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.accept(offer(URL).key("k")).await;
        bench.pass(24 * 3_600 - 1);
        assert!(bench.accept(offer(URL).key("k")).await.replayed);
        bench.pass(2 * 3_600);
        assert!(!bench.accept(offer(URL).key("k").fingerprint(5)).await.replayed);
        assert_eq!(bench.counts().await.accepted, 2);
    });
}

/// No endpoint matches: accepted, kept, and nothing to deliver.
pub fn an_event_without_a_destination_is_kept_without_deliveries(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let accepted = bench.accept(offer(URL).nowhere()).await;
        assert_eq!(accepted.deliveries, []);
        assert_eq!(bench.counts().await.accepted, 0);
        let event =
            bench.store.event(accepted.event).await.expect("an open store reads").expect("it is kept");
        assert_eq!((event.payload_bytes, event.deliveries.len()), (22, 0));
    });
}

/// What `info` promises is what `accept` does.
pub fn g4_at_most_once_is_accepted_where_the_store_says_so(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let answer = bench.offer(vec![offer(URL).at_most_once()]).await.remove(0);
        if bench.store.info().at_most_once {
            let id = answer.expect("the store says it can").deliveries[0].0;
            assert_eq!(bench.view(id).await.mode, Mode::AtMostOnce);
            assert_eq!(bench.claim_one().await.progress.mode, Mode::AtMostOnce);
        } else {
            assert_eq!(answer, Err(Rejection::ModeUnavailable));
            assert_eq!(bench.counts().await.accepted, 0);
        }
    });
}

/// Bytes that a parser would change, and bytes that are no JSON at all.
const NASTY: &[&[u8]] = &[
    br#"{"b":1, "a":1.0,"a":2}"#,
    br#"[1e400,12345678901234567890,-0,1.10,1E+2]"#,
    "\"\u{2028}\\ud800\\u0000\u{1f980}\"".as_bytes(),
    b" {\n}\r\n\t",
    b"",
    b"\x00",
    b"\xff\xfe not text",
];

/// Never parsed and printed again.
pub fn g7_the_payload_is_byte_exact(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let big: Vec<u8> = (0..1_048_576u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
        let payloads = NASTY.iter().copied().map(Bytes::from_static).chain([Bytes::from(big)]);
        for payload in payloads {
            let event = bench.accept(offer(URL).payload(payload.clone())).await.event;
            let kept = bench.store.payload(event).await.expect("an open store reads").expect("it is kept");
            assert_eq!(kept.1, payload);
            assert_eq!(bench.claim_one().await.event.payload, payload);
        }
    });
}

/// Everything that a request is made of.
pub fn what_was_accepted_is_what_is_claimed(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let url = "http://loja.example/pedidos?chave=1&b=%20";
        let mut event = offer(url).of("loja").named("p-1").kind("pedido.pago").policy("webhook").event();
        let header = |name, value| Header::new(name, value).expect("a test's header is valid");
        event.headers = Headers::new(vec![header("x-b", "2: x"), header("x-a", "")]).expect("there are two");
        let accepted =
            bench.store.accept(vec![event.clone()]).await.expect("an open store accepts").remove(0);
        assert_eq!(accepted.expect("nothing speaks against it").deliveries[0].1, DeliveryState::Pending);
        let claimed = bench.claim_one().await;
        assert_eq!((&*claimed.url, &*claimed.lane), (url, "http://loja.example/pedidos"));
        let got = &*claimed.event;
        assert_eq!((&got.id, &got.application), (&id("p-1"), &event.application));
        assert_eq!((&got.kind, &got.policy, &got.headers), (&event.kind, &event.policy, &event.headers));
        assert_eq!((&got.content_type, got.created_at), (&event.content_type, bench.now()));
        assert_eq!((claimed.due, claimed.progress.attempts), (bench.now(), 0));
    });
}

/// A repetition under the same id that brings a key: the key is remembered, too.
pub fn g1_a_key_that_joins_a_known_id_belongs_to_it_from_then_on(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let first = bench.accept(offer(URL).named("pedido-1")).await;
        let joined = bench.accept(offer(URL).named("pedido-1").key("k")).await;
        assert_eq!((joined.event, joined.replayed), (first.event.clone(), true));
        let alone = bench.accept(offer(URL).key("k")).await;
        assert_eq!((alone.event, alone.replayed), (first.event, true));
        let other = bench.offer(vec![offer(URL).key("k").fingerprint(9)]).await;
        assert_eq!(other, [Err(Rejection::KeyReused)]);
    });
}
