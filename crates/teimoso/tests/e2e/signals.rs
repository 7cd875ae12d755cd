//! Ctrl-C drains; a second one exits at once; neither loses anything.

use std::io::Write;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::api::Api;
use crate::support::process::serve;
use crate::support::receiver::{Receiver, answer, hold};
use crate::support::{directory, until};

#[test]
fn ctrl_c_lets_the_running_attempt_end_and_exits_0() {
    let directory = directory();
    let (release, released) = channel::<()>();
    let released = std::sync::Mutex::new(released);
    let receiver = Receiver::start(move |_, stream| {
        released.lock().expect("no panic").recv().expect("the test releases it");
        answer(&stream, 200);
    });
    let serving = serve(directory.path()).run();
    let api = serving.api;
    let running = api.send(&receiver.url("/slow"), "");
    receiver.until_arrived(1);
    serving.signal("INT");
    assert_eq!(
        serving.until_said("draining"),
        "draining: 1 attempts in flight; a second signal exits at once"
    );
    release.send(()).expect("it waits");
    let ended = serving.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let last = [
        "draining: 1 attempts in flight; a second signal exits at once".to_owned(),
        format!("-> attempt 1 of event {} to {}", running.event, receiver.url("/slow")),
        "  delivered! HTTP 200".to_owned(),
        "drained".to_owned(),
    ];
    assert_eq!(lines[lines.len() - 4..], last);

    let serving = serve(directory.path()).run();
    assert_eq!(serving.api.delivery(&running.delivery)["state"], "delivered");
    assert_eq!(receiver.arrived().len(), 1);
}

#[test]
fn while_draining_nothing_new_is_taken_or_started() {
    let directory = directory();
    let receiver = Receiver::start(|before, stream| match before {
        0 => hold(&stream),
        _ => answer(&stream, 200),
    });
    let serving = serve(directory.path()).args(&["--attempt-timeout", "2s"]).run();
    let api = serving.api;
    let hanging = api.send(&receiver.url("/slow"), "");
    receiver.until_arrived(1);
    serving.signal("TERM");
    serving.until_said("draining");
    let refused = api.post("/v1/events", &format!(r#"{{"url":"{}","payload":1}}"#, receiver.url("/new")));
    // Refused in words, or by a listener that is closed already.
    assert!(refused.is_err() || refused.is_ok_and(|answer| answer.status == 503));
    let ended = serving.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.ends_with("drained\n"), "{ended:?}");

    // The attempt timed out, which is an end like any other; its retry belongs to the next process.
    let serving = serve(directory.path()).run();
    let delivery = serving.api.until_state(&hanging.delivery, "delivered");
    assert_eq!(delivery["attempts"], 2);
    assert_eq!(receiver.arrived().len(), 2);
}

/// Fills the store with events that are due much later.
fn fill(api: Api, url: &str) {
    let later = teimoso::clock::wall_now() + Duration::from_secs(3_600);
    let headers =
        format!("content-type: text/plain\r\nteimoso-url: {url}\r\nteimoso-deliver-at: {later}\r\n");
    let payload = vec![b'x'; 50_000];
    until("the store is full", || {
        let answer = api.request("POST", "/v1/events/raw", &headers, &payload).expect("answered");
        (answer.status == 507).then_some(())
    });
}

#[test]
fn a_drain_that_cannot_save_on_a_full_disk_ends_and_says_how_much_is_repeated() {
    let directory = directory();
    // Failures whose answers are kept fill what a full store holds back for settlements.
    let receiver = Receiver::start(|_, mut stream| {
        let head = "HTTP/1.1 500 X\r\ncontent-length: 16384\r\nconnection: close\r\n\r\n";
        let _left = stream.write_all(&[head.as_bytes(), &[b'x'; 16_384]].concat());
    });
    let serving = serve(directory.path()).args(&["--max-store-size", "1MiB"]).run();
    let soon = teimoso::clock::wall_now() + Duration::from_secs(3);
    for _ in 0..150 {
        serving.api.send(&receiver.url("/fails"), &format!(r#","deliver_at":"{soon}""#));
    }
    fill(serving.api, &receiver.url("/later"));
    serving.until_said("the store fails, deliveries wait: no room left on the disk");
    let accepted = serving.api.counts().accepted;
    serving.signal("TERM");
    let ended = serving.ended();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains(" could not be saved and will be attempted again: no room left"),
        "{ended:?}"
    );

    let serving = serve(directory.path()).args(&["--max-store-size", "32MiB"]).run();
    let counts =
        until("all were attempted", || Some(serving.api.counts()).filter(|counts| counts.scheduled == 150));
    counts.assert_conserved();
    assert_eq!(counts.accepted, accepted);
}

#[test]
fn a_second_ctrl_c_exits_130_at_once_and_loses_nothing() {
    let directory = directory();
    let receiver = Receiver::start(|before, stream| match before {
        0 => hold(&stream),
        _ => answer(&stream, 200),
    });
    let serving = serve(directory.path()).run();
    let hanging = serving.api.send(&receiver.url("/slow"), "");
    receiver.until_arrived(1);
    serving.signal("INT");
    serving.until_said("draining");
    let start = teimoso::clock::monotonic_now();
    serving.signal("INT");
    let ended = serving.ended();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let took = start.elapsed();
    assert!(took.as_secs() < 5, "{took:?}: the attempt would have taken 15 s");
    assert!(!ended.stderr.contains("drained"), "{ended:?}");

    let serving = serve(directory.path()).run();
    let delivery = serving.api.until_state(&hanging.delivery, "delivered");
    assert_eq!(delivery["attempts"], 1);
    let numbers: Vec<_> =
        receiver.arrived().iter().map(|request| request.header("teimoso-attempt").to_owned()).collect();
    assert_eq!(numbers, ["1", "1"]);
}

#[test]
fn a_second_sigterm_exits_143() {
    let directory = directory();
    let receiver = Receiver::start(|_, stream| hold(&stream));
    let serving = serve(directory.path()).run();
    serving.api.send(&receiver.url("/slow"), "");
    receiver.until_arrived(1);
    serving.signal("TERM");
    serving.until_said("draining");
    serving.signal("TERM");
    assert_eq!(serving.ended().code, Some(143));
}
