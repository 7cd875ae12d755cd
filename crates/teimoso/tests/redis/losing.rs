//! Workers and servers that go away, and what must not go with them.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::receiver::{Receiver, answer, hold};
use crate::support::sink;
use crate::{eventually, on};
use redis_fixture::{Fsync, Server};

#[test]
fn s2_10_a_killed_worker_loses_nothing_that_was_on_the_wire() {
    let server = Server::start(Fsync::EverySecond);
    let destination =
        Receiver::start(|before, stream| if before < 8 { hold(&stream) } else { answer(&stream, 200) });
    let first = on(&server.url()).run();
    let sent: Vec<_> = (0..20).map(|_| first.api.send(&destination.url("/x"), "")).collect();
    destination.until_arrived(8);
    first.kill();

    let second = on(&server.url()).run();
    for delivery in &sent {
        eventually("a delivery of the dead worker is made by the next", || {
            Some(()).filter(|()| second.api.delivery(&delivery.delivery)["state"] == "delivered")
        });
    }
    let arrived: BTreeSet<String> =
        destination.arrived().iter().map(|request| request.header("webhook-id").to_owned()).collect();
    assert_eq!(arrived, sent.into_iter().map(|sent| sent.event).collect());
    second.api.counts().assert_conserved();
    second.stop();
}

#[test]
fn a_restart_of_redis_under_load_loses_no_acknowledged_event_and_no_worker() {
    let mut server = Server::start(Fsync::EverySecond);
    let destination = sink();
    let serving = on(&server.url()).args(&["--attempt-lines", "off"]).run();
    let worker = on(&server.url()).args(&["--attempt-lines", "off", "--workers-only"]).run();
    let event = format!("{{\"url\":\"{}\",\"payload\":1}}", destination.url("/ok"));
    let (accepted, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let count = || accepted.lock().expect("no panic").len();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let answer = serving.api.post("/v1/events", &event).expect("the API goes on");
                match answer.status {
                    202 => {
                        let id = answer.json()["id"].as_str().expect("an id").to_owned();
                        accepted.lock().expect("no panic").push(id);
                    }
                    503 => std::thread::sleep(Duration::from_millis(20)),
                    status => panic!("{status}: {answer:?}"),
                }
            }
        });
        for _ in 0..3 {
            let before = count();
            eventually("events are accepted", || (count() >= before + 100).then_some(()));
            server.stop();
            server.start_again();
        }
        let before = count();
        eventually("events are accepted again", || (count() >= before + 100).then_some(()));
        stop.store(true, Ordering::SeqCst);
    });

    let accepted: BTreeSet<String> = accepted.into_inner().expect("no panic").into_iter().collect();
    eventually("everything is delivered", || {
        let counts = serving.api.counts();
        counts.assert_conserved();
        (counts.pending + counts.in_flight + counts.scheduled == 0).then_some(())
    });
    let arrived: BTreeSet<String> = destination
        .requests()
        .iter()
        .map(|request| request.webhook_id().expect("an id").into_owned())
        .collect();
    let lost: Vec<_> = accepted.difference(&arrived).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), accepted.len());
    worker.stop();
    serving.stop();
}
