//! From the API to the destination, by one worker and by two.

use std::collections::BTreeMap;

use crate::support::receiver::Receiver;
use crate::support::{sink, until};
use crate::{eventually, on};
use redis_fixture::{Fsync, Server};

#[test]
fn an_accepted_event_is_delivered_and_the_words_say_on_what() {
    let server = Server::start(Fsync::EverySecond);
    let serving = on(&server.url()).run();
    let receiver = Receiver::answering(&[503, 200]);
    let event = format!("{{\"url\":\"{}\",\"payload\":{{\"b\": 1.0,\"a\":1e400}}}}", receiver.url("/x"));
    let answer = serving.api.post("/v1/events", &event).expect("answered");
    assert_eq!((answer.status, answer.header("teimoso-durability")), (202, Some("fast")), "{answer:?}");
    let delivery = answer.json()["deliveries"][0]["id"].as_str().expect("an id").to_owned();
    let delivery = serving.api.until_state(&delivery, "delivered");
    assert_eq!(delivery["attempts"], 2);
    let arrived = receiver.until_arrived(2);
    assert_eq!(arrived[1].body, b"{\"b\": 1.0,\"a\":1e400}");

    let ready = serving.until_said("teimoso: listening on ");
    for found in ["store redis at redis://127.0.0.1:", "appendonly yes, appendfsync everysec", "0 replicas"] {
        assert!(ready.contains(found), "{ready}");
    }
    assert!(ready.ends_with("noeviction), durability fast"), "{ready}");
    assert_eq!(serving.until_said("sender up"), format!("sender up, listening on {}", server.url()));
    let store = &serving.api.get("/v1/stats")["store"];
    assert_eq!((&store["kind"], &store["durability"]), (&"redis".into(), &"fast".into()));
    assert!(
        store["description"].as_str().is_some_and(|text| text.contains("appendfsync everysec")),
        "{store}"
    );
    serving.api.counts().assert_conserved();
    serving.stop();
}

#[test]
fn g4_at_most_once_is_refused_where_redis_cannot_carry_it() {
    let server = Server::start(Fsync::EverySecond);
    let serving = on(&server.url()).run();
    let event = "{\"url\":\"http://127.0.0.1:9/x\",\"payload\":1,\"mode\":\"at_most_once\"}";
    let answer = serving.api.post("/v1/events", event).expect("answered");
    assert_eq!((answer.status, &answer.json()["code"]), (422, &"mode_unavailable".into()), "{answer:?}");
}

#[test]
fn two_workers_share_one_redis_and_every_event_arrives_once() {
    let server = Server::start(Fsync::EverySecond);
    let destination = sink();
    let first = on(&server.url()).args(&["--in-flight", "2"]).run();
    let second = on(&server.url()).args(&["--in-flight", "2", "--workers-only"]).run();
    assert!(second.until_said("sender up").ends_with(&server.url()));
    // Many lanes: one alone may hold half of a worker's slots, and it holds them in the whole fleet.
    let mut sent = Vec::new();
    for number in 0..100 {
        sent.push(first.api.send(&destination.url(&format!("/slow/{}", 50 + number % 20)), "").event);
    }
    eventually("all are delivered", || Some(()).filter(|()| first.api.counts().delivered == 100));
    let mut arrived: BTreeMap<String, usize> = BTreeMap::new();
    for request in destination.requests() {
        *arrived.entry(request.webhook_id().expect("an id").into_owned()).or_default() += 1;
    }
    sent.sort();
    assert_eq!(
        arrived.into_iter().collect::<Vec<_>>(),
        sent.into_iter().map(|id| (id, 1)).collect::<Vec<_>>()
    );
    for worker in [&first, &second] {
        until("each has its share", || {
            worker.said().iter().any(|line| line.starts_with("-> attempt 1")).then_some(())
        });
    }
    first.api.counts().assert_conserved();
    second.stop();
    first.stop();
}
