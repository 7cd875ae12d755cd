//! `teimoso migrate` between a directory and a Redis: killed in the middle, begun again, everything there once.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use redis_fixture::{Fsync, Server};
use serde_json::Value;
use teimoso::clock::SystemClock;
use teimoso::wiring::entropy::SystemEntropy;
use teimoso_delivery::store::Store;
use teimoso_delivery::testkit::offer;
use teimoso_store_embedded::EmbeddedStore;

use crate::support::process::{Ended, serve, teimoso};
use crate::support::receiver::Receiver;
use crate::support::{directory, until};
use crate::{eventually, on};

/// Enough that a kill finds it at work.
const MANY: usize = 20_000;

fn migrate(from: &str, to: &str) -> std::process::Command {
    teimoso(&["migrate", "--json", "--from", from, "--to", to])
}

fn done(from: &str, to: &str) -> Value {
    let ended: Ended = migrate(from, to).output().expect("the binary runs").into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let object: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&object["complete"], &object["source"]), (&true.into(), &object["target"]), "{object}");
    object
}

/// Starts it and kills it when the target has something.
fn killed_in_the_middle(from: &str, to: &str, mut count: impl FnMut() -> usize) {
    let child = migrate(from, to).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child: Child = child.expect("the binary runs");
    until("something has moved", || Some(()).filter(|()| count() > 0));
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    let moved = count();
    assert!(moved < MANY, "it was killed in the middle: {moved}");
}

fn fill(store: &Path) {
    let clock = Arc::new(SystemClock::start());
    let opened =
        EmbeddedStore::open(store, teimoso_store_embedded::Options::default(), clock, &SystemEntropy);
    let opened = opened.expect("an empty directory opens");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for batch in 0..MANY / 500 {
            let event = |n: usize| {
                let n = batch * 500 + n;
                let mut event = offer(&format!("http://127.0.0.1:9/{}?n={n}", n % 40))
                    .payload(format!("{{\"n\": {n}, \"b\":1.0}}"))
                    .key(&format!("k-{n}"));
                if n.is_multiple_of(3) {
                    event = event.named(&format!("p-{n}"));
                }
                event.event()
            };
            opened.accept((0..500).map(event).collect()).await.expect("an open store accepts");
        }
        opened.close().await;
    });
}

fn events_in(server: &Server) -> usize {
    redis::cmd("HLEN").arg("{webhooks:prontos}:events").query(&mut server.raw()).expect("a number")
}

fn events_at(store: &Path) -> usize {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let Ok(conn) = rusqlite::Connection::open_with_flags(store.join("teimoso.db"), flags) else { return 0 };
    let count = conn.query_row("SELECT count(*) FROM event", [], |row| row.get::<_, i64>(0));
    count.map_or(0, |count| usize::try_from(count).unwrap_or(0))
}

#[test]
fn g2_a_move_killed_in_the_middle_and_begun_again_ends_with_exactly_everything() {
    let server = Server::start(Fsync::EverySecond);
    let home = directory();
    let (first, second) = (home.path().join("first"), home.path().join("second"));
    let (from, back) = (first.display().to_string(), second.display().to_string());
    let receiver = Receiver::answering(&[404, 200]);
    let serving = serve(&first).run();
    let dead = serving.api.send(&receiver.url("/dead"), "");
    serving.api.until_state(&dead.delivery, "dead");
    let waits = serving.api.send(&receiver.url("/waits"), ",\"deliver_at\":\"2199-01-01T00:00:00Z\"");
    serving.stop();
    fill(&first);

    killed_in_the_middle(&from, &server.url(), || events_in(&server));
    let half = on(&server.url()).ended();
    assert!(half.stderr.contains("half moved into") && half.code == Some(1), "{half:?}");
    let moved = done(&from, &server.url());
    assert_eq!((&moved["target"]["events"], &moved["target"]["dead"]), (&(MANY + 2).into(), &1.into()));
    assert_eq!(
        moved["target"]["names"],
        (MANY + MANY.div_ceil(3)).to_string().parse::<u64>().expect("a number")
    );
    let again: Ended = migrate(&from, &server.url()).output().expect("the binary runs").into();
    assert!(again.code == Some(1) && again.stderr.contains("is not empty"), "{again:?}");

    killed_in_the_middle(&server.url(), &back, || events_at(&second));
    let home_again = done(&server.url(), &back);
    assert_eq!(home_again["target"]["digest"], moved["source"]["digest"], "there and back, nothing differs");

    let third = home.path().join("third").display().to_string();
    assert_eq!(done(&back, &third)["target"]["digest"], moved["source"]["digest"]);
    let serving = serve(Path::new(&third)).args(&["--attempt-lines", "off"]).run();
    let view = serving.api.get(&format!("/v1/deliveries/{}", dead.delivery));
    assert_eq!((&view["state"], &view["attempts"]), (&"dead".into(), &1.into()), "{view}");
    let view = serving.api.get(&format!("/v1/deliveries/{}", waits.delivery));
    assert_eq!(view["next_attempt_at"], "2199-01-01T00:00:00.000Z", "{view}");
    let retried = serving.api.post(&format!("/v1/deliveries/{}/retry", dead.delivery), "").expect("answered");
    assert!(retried.status < 300, "{retried:?}");
    serving.api.until_state(&dead.delivery, "delivered");
    let named = serving.api.get("/v1/events/p-3");
    assert_eq!(named["payload_bytes"], "{\"n\": 3, \"b\":1.0}".len());
    serving.kill();
}

#[test]
fn a_move_from_or_to_a_redis_at_work_is_refused() {
    let server = Server::start(Fsync::EverySecond);
    let home = directory();
    let store = home.path().join("data").display().to_string();
    let serving = on(&server.url()).args(&["--workers-only"]).run();
    for (from, to) in
        [(server.url(), store.clone()), (server.url(), home.path().join("b").display().to_string())]
    {
        let ended: Ended = migrate(&from, &to).output().expect("the binary runs").into();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(&format!("a server is at work on {}", server.url())), "{ended:?}");
    }
    serving.stop();
    let same: Ended = migrate(&store, &store).output().expect("the binary runs").into();
    assert_eq!(same.code, Some(2), "{same:?}");
}

#[test]
fn s2_10_what_a_killed_worker_held_is_recovered_and_moves() {
    let server = Server::start(Fsync::EverySecond);
    let home = directory();
    let store = home.path().join("data");
    let receiver = Receiver::start(|before, stream| {
        if before == 0 {
            crate::support::receiver::hold(&stream);
        } else {
            crate::support::receiver::answer(&stream, 200);
        }
    });
    let serving = on(&server.url()).run();
    let sent = serving.api.send(&receiver.url("/x"), "");
    receiver.until_arrived(1);
    serving.kill();
    let moved = done(&server.url(), &store.display().to_string());
    assert_eq!(moved["target"]["pending"], 1);
    let serving = serve(&store).run();
    eventually("it is delivered", || {
        Some(()).filter(|()| serving.api.delivery(&sent.delivery)["state"] == "delivered")
    });
    let arrived = receiver.until_arrived(2);
    assert_eq!(arrived[1].header("webhook-id"), sent.event);
    serving.stop();
}
