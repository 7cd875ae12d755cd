//! Every window in which the process can die, one test per row of the contract's list: the process aborts at
//! exactly that point, and the next one takes over.

use serde_json::{Value, json};

use crate::support::api::{Api, Counts, Sent};
use crate::support::process::serve;
use crate::support::receiver::{Receiver, answer};
use crate::support::{directory, sink, until};

const AT_MOST_ONCE: &str = r#","mode":"at_most_once""#;

/// An event for a receiver that says 200, with an idempotency key.
fn keyed(url: &str) -> String {
    format!(r#"{{"url":"{url}","payload":{{"a":1}},"idempotency_key":"pedido-1"}}"#)
}

/// Offers an event to a server that is about to die: the answer may be lost with it.
fn offer(api: Api, url: &str, members: &str) {
    let event = format!(r#"{{"url":"{url}","payload":{{"pedido": 1.0}}{members}}}"#);
    let _maybe = api.post("/v1/events", &event);
}

/// The only delivery there is, with its attempts.
fn only(api: Api) -> Value {
    let all = api.deliveries("");
    assert_eq!(all.len(), 1, "{all:?}");
    api.delivery(all[0]["id"].as_str().expect("an id"))
}

/// The delivery's end: state, reason, attempts.
fn end(delivery: &Value) -> (&str, Option<&str>, u64) {
    let state = delivery["state"].as_str().expect("a state");
    (state, delivery["reason"].as_str(), delivery["attempts"].as_u64().expect("a number"))
}

/// The numbers of the recorded attempts.
fn numbers(delivery: &Value) -> Vec<u64> {
    let records = delivery["attempt_records"].as_array().expect("records");
    records.iter().map(|record| record["number"].as_u64().expect("a number")).collect()
}

/// Waits until nothing is pending, in flight or scheduled.
fn settled(api: Api) -> Counts {
    let open = |counts: &Counts| counts.pending + counts.in_flight + counts.scheduled;
    let counts = until("everything is settled", || Some(api.counts()).filter(|counts| open(counts) == 0));
    counts.assert_conserved();
    counts
}

#[test]
fn before_the_acceptance_is_durable_there_is_no_202_and_the_same_key_makes_one_event() {
    let (directory, sink) = (directory(), sink());
    let event = keyed(&sink.url("/ok"));
    let dying = serve(directory.path()).fault("accept-before-commit").run();
    assert!(dying.api.post("/v1/events", &event).is_err(), "an answer of a dead process");
    dying.ended().assert_aborted();
    assert_eq!(sink.count(), 0);

    let serving = serve(directory.path()).run();
    assert_eq!(serving.api.counts(), Counts::default());
    let accepted = serving.api.post("/v1/events", &event).expect("answered");
    assert_eq!((accepted.status, accepted.header("idempotent-replayed")), (202, None));
    let again = serving.api.post("/v1/events", &event).expect("answered");
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(Sent::read(&again.json()), Sent::read(&accepted.json()));
    let counts = settled(serving.api);
    assert_eq!(counts, Counts { accepted: 1, delivered: 1, ..Counts::default() });
    assert_eq!(sink.count(), 1);
}

#[test]
fn g1_after_the_commit_and_before_the_202_the_producers_retry_gets_the_same_event() {
    let (directory, sink) = (directory(), sink());
    let event = keyed(&sink.url("/ok"));
    let dying = serve(directory.path()).fault("accept-after-commit").run();
    assert!(dying.api.post("/v1/events", &event).is_err(), "an answer of a dead process");
    dying.ended().assert_aborted();

    let serving = serve(directory.path()).run();
    // It was accepted: it is delivered, whether or not the producer comes back.
    assert_eq!(settled(serving.api), Counts { accepted: 1, delivered: 1, ..Counts::default() });
    let stored = serving.api.deliveries("");
    let again = serving.api.post("/v1/events", &event).expect("answered");
    assert_eq!((again.status, again.header("idempotent-replayed")), (202, Some("true")));
    assert_eq!(json!(Sent::read(&again.json()).delivery), stored[0]["id"]);
    assert_eq!(settled(serving.api).accepted, 1);
    assert_eq!(sink.count(), 1);
}

#[test]
fn after_the_claim_and_before_a_byte_it_is_due_at_once() {
    let (directory, sink) = (directory(), sink());
    let dying = serve(directory.path()).fault("claimed").run();
    offer(dying.api, &sink.url("/ok"), "");
    dying.ended().assert_aborted();
    assert_eq!(sink.count(), 0);

    let serving = serve(directory.path()).run();
    let counts = settled(serving.api);
    assert_eq!(counts, Counts { accepted: 1, delivered: 1, ..Counts::default() });
    let delivery = only(serving.api);
    assert_eq!((end(&delivery), numbers(&delivery)), (("delivered", None, 1), vec![1]));
    assert_eq!(sink.count(), 1);
}

#[test]
fn g4_after_the_claim_at_most_once_is_dead_ambiguous_without_a_byte() {
    let (directory, sink) = (directory(), sink());
    let dying = serve(directory.path()).fault("claimed").run();
    offer(dying.api, &sink.url("/ok"), AT_MOST_ONCE);
    dying.ended().assert_aborted();

    let serving = serve(directory.path()).run();
    assert_eq!(settled(serving.api), Counts { accepted: 1, dead: 1, ..Counts::default() });
    assert_eq!(end(&only(serving.api)), ("dead", Some("ambiguous"), 0));
    assert_eq!(sink.count(), 0);
}

#[test]
fn g4_before_its_claim_is_durable_at_most_once_has_not_started_and_is_sent_once() {
    let (directory, sink) = (directory(), sink());
    let dying = serve(directory.path()).fault("start-before-commit").run();
    offer(dying.api, &sink.url("/ok"), AT_MOST_ONCE);
    dying.ended().assert_aborted();
    assert_eq!(sink.count(), 0);

    let serving = serve(directory.path()).run();
    assert_eq!(settled(serving.api), Counts { accepted: 1, delivered: 1, ..Counts::default() });
    assert_eq!(sink.count(), 1);
}

#[test]
fn g3_bytes_sent_and_no_durable_settlement_is_sent_again_under_the_same_number() {
    for point in ["settle-before-commit", "settle-half"] {
        let (directory, sink) = (directory(), sink());
        let dying = serve(directory.path()).fault(point).run();
        offer(dying.api, &sink.url("/ok"), "");
        dying.ended().assert_aborted();
        assert_eq!(sink.count(), 1);

        let serving = serve(directory.path()).run();
        settled(serving.api);
        let delivery = only(serving.api);
        assert_eq!((end(&delivery), numbers(&delivery)), (("delivered", None, 1), vec![1]), "{point}");
        let arrived = sink.requests();
        assert_eq!(arrived.len(), 2, "{point}");
        for request in arrived {
            assert_eq!(
                request.webhook_id().as_deref(),
                delivery["event_id"].as_str(),
                "the receiver can drop it"
            );
            assert_eq!(request.attempt(), Some(1));
            assert_eq!(request.body(), br#"{"pedido": 1.0}"#);
        }
    }
}

#[test]
fn g4_bytes_sent_and_no_durable_settlement_at_most_once_is_dead_ambiguous() {
    let (directory, sink) = (directory(), sink());
    let dying = serve(directory.path()).fault("settle-before-commit").run();
    offer(dying.api, &sink.url("/ok"), AT_MOST_ONCE);
    dying.ended().assert_aborted();

    let serving = serve(directory.path()).run();
    settled(serving.api);
    assert_eq!(end(&only(serving.api)), ("dead", Some("ambiguous"), 0));
    assert_eq!(sink.count(), 1);
}

#[test]
fn killed_while_the_receiver_works_at_least_once_repeats_and_at_most_once_does_not() {
    let directory = directory();
    // The first two requests are never answered.
    let receiver = Receiver::start(|before, stream| match before {
        0 | 1 => crate::support::receiver::hold(&stream),
        _ => answer(&stream, 200),
    });
    let serving = serve(directory.path()).run();
    let repeated = serving.api.send(&receiver.url("/least"), "");
    let once = serving.api.send(&receiver.url("/most"), AT_MOST_ONCE);
    receiver.until_arrived(2);
    serving.kill();

    let serving = serve(directory.path()).run();
    assert_eq!(end(&serving.api.until_state(&repeated.delivery, "delivered")), ("delivered", None, 1));
    assert_eq!(end(&serving.api.until_state(&once.delivery, "dead")), ("dead", Some("ambiguous"), 0));
    settled(serving.api);
    let to = |path: &str| {
        let start = format!("POST {path} ");
        receiver.arrived().iter().filter(|request| request.head.starts_with(&start)).count()
    };
    assert_eq!((to("/least"), to("/most")), (2, 1));
}

#[test]
fn a_settlement_is_whole_or_not_at_all_whether_it_schedules_or_buries() {
    for (path, ended) in
        [("/fail/1", ("delivered", None, 1)), ("/status/404", ("dead", Some("permanent_status"), 1))]
    {
        let (directory, sink) = (directory(), sink());
        let dying = serve(directory.path()).fault("settle-half").run();
        offer(dying.api, &sink.url(path), "");
        dying.ended().assert_aborted();

        // A record without its schedule or burial, or these without it, would leave a gap or a repetition in
        // the numbers, or counters that do not add up. The 503 that was lost is not counted as an attempt.
        let serving = serve(directory.path()).run();
        let counts = settled(serving.api);
        assert_eq!((counts.accepted, counts.delivered + counts.dead), (1, 1));
        let delivery = only(serving.api);
        assert_eq!((end(&delivery), numbers(&delivery)), (ended, vec![1]));
        let sent: Vec<_> = sink.requests().iter().map(|request| request.attempt()).collect();
        assert_eq!(sent, [Some(1), Some(1)]);
    }
}

#[test]
fn a_durable_settlement_is_not_repeated() {
    let (directory, sink) = (directory(), sink());
    let dying = serve(directory.path()).fault("settle-after-commit").run();
    offer(dying.api, &sink.url("/ok"), "");
    dying.ended().assert_aborted();

    let serving = serve(directory.path()).run();
    assert_eq!(settled(serving.api), Counts { accepted: 1, delivered: 1, ..Counts::default() });
    let delivery = only(serving.api);
    assert_eq!((end(&delivery), numbers(&delivery)), (("delivered", None, 1), vec![1]));
    assert_eq!(sink.count(), 1);
}

#[test]
fn while_a_due_retry_is_taken_it_stays_due() {
    let (directory, sink) = (directory(), sink());
    // The first claim takes the delivery, the second its retry.
    let dying = serve(directory.path()).fault("claimed:2").run();
    offer(dying.api, &sink.url("/fail/1"), "");
    dying.ended().assert_aborted();
    assert_eq!(sink.count(), 1);

    let serving = serve(directory.path()).run();
    settled(serving.api);
    let delivery = only(serving.api);
    assert_eq!((end(&delivery), numbers(&delivery)), (("delivered", None, 2), vec![1, 2]));
    let attempts: Vec<_> = sink.requests().iter().map(|request| request.attempt()).collect();
    assert_eq!(attempts, [Some(1), Some(2)]);
}

#[test]
fn a_replay_job_resumes_and_neither_skips_nor_repeats() {
    const DEAD: u64 = 30;
    let (directory, sink) = (directory(), sink());
    let serving = serve(directory.path()).run();
    for _ in 0..DEAD {
        serving.api.send(&sink.url("/nada"), "");
    }
    assert_eq!(settled(serving.api).dead, DEAD);
    serving.stop();

    let dying = serve(directory.path()).fault("replay-half:10").run();
    // About one per step: half a second on, the tenth dies with its deliveries moved and its cursor not.
    let job = dying.api.post("/v1/replays", r#"{"filter":{"reason":"permanent_status"},"rate":20}"#);
    let job = job.expect("answered");
    assert_eq!((job.status, job.json()["estimated"].as_u64()), (202, Some(DEAD)), "{job:?}");
    let path = format!("/v1/replays/{}", job.json()["id"].as_str().expect("an id"));
    dying.ended().assert_aborted();

    let serving = serve(directory.path()).run();
    let job =
        until("the job finishes", || Some(serving.api.get(&path)).filter(|job| job["state"] == "finished"));
    assert_eq!((&job["done"], &job["failed"]), (&json!(DEAD), &json!(0)), "{job}");
    assert_eq!(settled(serving.api), Counts { accepted: DEAD, dead: DEAD, ..Counts::default() });
    for delivery in serving.api.deliveries("") {
        assert_eq!(end(&delivery), ("dead", Some("permanent_status"), 2), "{delivery}");
    }
    // What was on the wire when the process died was sent again.
    let arrived = sink.count();
    assert!((2 * DEAD..=2 * DEAD + 10).contains(&arrived), "{arrived}");
}

#[test]
fn expiry_that_was_cut_off_goes_on_at_the_next_start() {
    const EVENTS: u64 = 20;
    let (directory, sink) = (directory(), sink());
    let serving = serve(directory.path()).run();
    for _ in 0..EVENTS {
        serving.api.send(&sink.url("/ok"), "");
    }
    let dead = serving.api.send(&sink.url("/nada"), "");
    assert_eq!(settled(serving.api).delivered, EVENTS);
    serving.stop();

    serve(directory.path()).args(&["--retention", "1ms"]).fault("expire-half").ended().assert_aborted();

    let serving = serve(directory.path()).run();
    let kept = Counts { accepted: EVENTS + 1, delivered: EVENTS, dead: 1, ..Counts::default() };
    assert_eq!(serving.api.counts(), kept, "a step that did not commit removed nothing");
    serving.stop();
    let serving = serve(directory.path()).args(&["--retention", "1ms"]).run();
    let counts = until("they are gone", || Some(serving.api.counts()).filter(|counts| counts.delivered == 0));
    assert_eq!(counts, Counts { accepted: EVENTS + 1, dead: 1, expunged: EVENTS, ..Counts::default() });
    assert_eq!(serving.api.payload(&dead.event), br#"{"pedido": 1.0}"#, "the dead stay");
}

#[test]
fn a_checkpoint_that_was_cut_off_loses_nothing() {
    let (directory, sink) = (directory(), sink());
    let dying = serve(directory.path()).fault("checkpoint").run();
    let mut acknowledged = Vec::new();
    // Four megabytes of log wake the checkpoint thread.
    for number in 0..64 {
        let body = format!("{number}").repeat(500_000);
        let headers = format!("content-type: text/plain\r\nteimoso-url: {}\r\n", sink.url("/ok"));
        match dying.api.request("POST", "/v1/events/raw", &headers, body.as_bytes()) {
            Ok(answer) => acknowledged.push((Sent::read(&answer.json()), body)),
            Err(_) => break,
        }
    }
    dying.ended().assert_aborted();
    assert!((4..64).contains(&acknowledged.len()), "{}", acknowledged.len());

    let serving = serve(directory.path()).run();
    let counts = settled(serving.api);
    assert!(counts.delivered >= acknowledged.len() as u64, "{counts:?}");
    for (sent, body) in acknowledged {
        assert!(serving.api.payload(&sent.event) == body.as_bytes(), "{}", sent.event);
        let arrived = sink.requests();
        let arrived = arrived.iter().find(|request| request.webhook_id().as_deref() == Some(&*sent.event));
        assert!(arrived.expect("it arrived").body() == body.as_bytes(), "G7: {}", sent.event);
    }
}

#[test]
fn g6_what_kills_the_process_at_every_claim_is_buried_as_poison() {
    let (directory, sink) = (directory(), sink());
    let dying = serve(directory.path()).fault("claimed").run();
    offer(dying.api, &sink.url("/ok"), "");
    dying.ended().assert_aborted();
    let mut deaths = 1;
    let serving = loop {
        match serve(directory.path()).fault("claimed").try_run() {
            // It was buried before anything was claimed, or dies in a moment.
            Ok(serving) if buried(&serving.api) => break serving,
            Ok(serving) => serving.ended().assert_aborted(),
            Err(ended) => ended.assert_aborted(),
        }
        deaths += 1;
        assert!(deaths <= 4, "three recoveries are too many, and one death may be hidden");
    };
    assert!(deaths >= 3, "{deaths}");
    let poison = only(serving.api);
    assert_eq!(end(&poison), ("dead", Some("poison"), 0));
    assert_eq!(settled(serving.api), Counts { accepted: 1, dead: 1, ..Counts::default() });
    assert_eq!(sink.count(), 0);
    // It is a dead letter like any other: a person may send it.
    let id = poison["id"].as_str().expect("an id");
    serving.stop();
    let serving = serve(directory.path()).run();
    let retried = serving.api.post(&format!("/v1/deliveries/{id}/retry"), "").expect("answered");
    assert_eq!(retried.status, 202, "{retried:?}");
    serving.api.until_state(id, "delivered");
}

/// Whether the only delivery is dead; `false` when the server is gone before it says so.
fn buried(api: &Api) -> bool {
    api.request("GET", "/v1/stats", "", b"").is_ok_and(|answer| answer.json()["deliveries"]["dead"] == 1)
}
