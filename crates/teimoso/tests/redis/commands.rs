//! The commands straight on a Redis that a server is using, too.

use redis_fixture::{Fsync, Server};
use serde_json::Value;

use crate::on;
use crate::support::process::{Ended, teimoso};
use crate::support::receiver::Receiver;

fn command(url: &str, line: &[&str]) -> Ended {
    teimoso(line).args(["--store", url]).output().expect("the binary runs").into()
}

fn lines(ended: &Ended) -> Vec<Value> {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn events_deliveries_and_the_dead_are_looked_at_and_replayed_beside_a_server() {
    let server = Server::start(Fsync::EverySecond);
    let url = server.url();
    let receiver = Receiver::answering(&[404, 200]);
    let serving = on(&url).run();
    let sent = serving.api.send(&receiver.url("/x"), ",\"type\":\"pedido.pago\"");
    serving.api.until_state(&sent.delivery, "dead");

    let events = lines(&command(&url, &["events", "list", "--json"]));
    assert_eq!((events.len(), &events[0]["id"]), (1, &sent.event.as_str().into()));
    let dead = lines(&command(&url, &["dead", "list", "--json"]));
    assert_eq!((dead.len(), &dead[0]["reason"]), (1, &"permanent_status".into()));
    let shown = lines(&command(&url, &["deliveries", "show", &sent.delivery, "--json"]));
    assert_eq!(shown[0]["last_status"], 404);

    let replayed = command(&url, &["dead", "replay", &sent.delivery]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    serving.api.until_state(&sent.delivery, "delivered");
    serving.api.counts().assert_conserved();
    serving.stop();
}

#[test]
fn send_with_more_than_s2_has_fields_for_goes_through_the_store() {
    let server = Server::start(Fsync::EverySecond);
    let receiver = Receiver::answering(&[200]);
    let line = ["send", &receiver.url("/x"), "--type", "t", "--wait", "--allow-net", "127.0.0.0/8"];
    let ended = command(&server.url(), &line);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("delivered (HTTP 200) after 1 attempt"), "{ended:?}");
    assert_eq!(receiver.arrived()[0].header("webhook-id"), ended.stdout.trim_end());
}

#[test]
fn s2_9_a_public_dead_letter_is_listed_shown_and_replayed_by_its_id() {
    let server = Server::start(Fsync::EverySecond);
    let url = server.url();
    let receiver = Receiver::answering(&[200]);
    // As a sender of another kind left it.
    let letter =
        format!(r#"{{"id":"evt_1","url":"{}","corpo":{{"a":1.0}},"tentativas":5}}"#, receiver.url("/x"));
    for entry in [letter.as_str(), "{nonsense"] {
        let _: usize =
            redis::Commands::rpush(&mut server.raw(), "webhooks:mortos", entry).expect("the server takes it");
    }
    let serving = on(&url).run();
    let dead = lines(&command(&url, &["dead", "list", "--json"]));
    let reasons: Vec<&Value> = dead.iter().map(|letter| &letter["reason"]).collect();
    assert_eq!(reasons, ["malformed", "attempts_exhausted"]);
    let id = dead[1]["id"].as_str().expect("it has an id").to_owned();
    let shown = lines(&command(&url, &["events", "show", "evt_1", "--json"]));
    assert_eq!(shown[0]["deliveries"][0]["id"], *id);
    let malformed = dead[0]["id"].as_str().expect("it has an id");
    let refused = command(&url, &["dead", "replay", malformed]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("no event"), "{refused:?}");

    let replayed = command(&url, &["dead", "replay", &id]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    serving.api.until_state(&id, "delivered");
    assert_eq!(receiver.arrived()[0].body, br#"{"a":1.0}"#);
    serving.api.counts().assert_conserved();
    serving.stop();
}
