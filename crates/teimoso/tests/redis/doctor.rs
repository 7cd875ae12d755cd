//! `teimoso doctor --store redis://…` beside a fleet: what is broken by hand is found, healed and delivered.

use redis_fixture::{Fsync, Server};
use serde_json::Value;

use crate::support::process::{Ended, teimoso};
use crate::support::receiver::Receiver;
use crate::{eventually, on};

fn doctor(url: &str, more: &[&str]) -> Ended {
    teimoso(&["doctor", "--store", url]).args(more).output().expect("the binary runs").into()
}

#[test]
fn g2_what_nobody_would_deliver_is_healed_beside_the_fleet_and_delivered() {
    let server = Server::start(Fsync::EverySecond);
    let receiver = Receiver::answering(&[200]);
    let serving = on(&server.url()).run();
    let hour = ",\"deliver_at\":\"2199-01-01T00:00:00Z\"";
    let sent = serving.api.send(&receiver.url("/x"), hour);
    let sound = doctor(&server.url(), &[]);
    assert_eq!(sound.code, Some(0), "{sound:?}");
    assert!(sound.stderr.ends_with("nothing is wrong\n"), "{sound:?}");

    let mut raw = server.raw();
    let tag = "{webhooks:prontos}";
    let _: () = redis::cmd("DEL").arg(format!("{tag}:lane:00000001")).query(&mut raw).expect("deleted");
    let _: () = redis::cmd("DEL").arg(format!("{tag}:timers")).query(&mut raw).expect("deleted");
    let seen = doctor(&server.url(), &["--json"]);
    assert_eq!(seen.code, Some(1), "{seen:?}");
    let seen: Value = serde_json::from_str(&seen.stdout).expect("JSON");
    assert_eq!(seen["findings"][0]["kind"], "alive_not_queued");
    assert_eq!(seen["findings"][0]["examples"][0], sent.delivery.as_str());
    let healed = doctor(&server.url(), &["--heal", "--json"]);
    assert_eq!(healed.code, Some(0), "{healed:?}");
    let healed: Value = serde_json::from_str(&healed.stdout).expect("JSON");
    assert_eq!((&healed["sound"], &healed["found"]), (&true.into(), &healed["healed"]));

    let retried = teimoso(&["deliveries", "cancel", &sent.delivery, "--store", &server.url()]).output();
    assert!(retried.expect("the binary runs").status.success());
    let retried = teimoso(&["deliveries", "retry", &sent.delivery, "--store", &server.url()]).output();
    assert!(retried.expect("the binary runs").status.success());
    eventually("it is delivered", || {
        Some(()).filter(|()| serving.api.delivery(&sent.delivery)["state"] == "delivered")
    });
    assert_eq!(doctor(&server.url(), &[]).code, Some(0));
    serving.stop();
}

#[test]
fn a_wrong_password_exits_4_and_is_not_printed() {
    let server = Server::start_with(&["--appendonly", "yes", "--requirepass", "segredo-certo"]);
    let ended = doctor(&server.url_with(":segredo-errado"), &[]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(!format!("{ended:?}").contains("segredo"), "{ended:?}");
}
