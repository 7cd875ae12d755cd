//! What is refused: one sentence, the right exit code, and never a password.

use std::path::Path;

use crate::on;
use crate::server::{SOUND, start};
use crate::support::process::{Ended, serve_after, teimoso};

/// The sentence and the code; the password in none of the words.
fn refused(ended: &Ended, code: i32, sentence: &str) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.stderr.starts_with("teimoso: ") && ended.stderr.contains(sentence), "{ended:?}");
    assert!(!format!("{ended:?}").contains("segredo"), "{ended:?}");
}

fn send(url: &str) -> Ended {
    teimoso(&["send", "http://127.0.0.1:9/x", "--store", url]).output().expect("the binary runs").into()
}

#[test]
fn a_wrong_password_or_a_missing_permission_exits_4_and_is_not_printed() {
    let Some(server) = start(&[SOUND, &["--requirepass", "segredo-certo"]].concat()) else { return };
    let wrong = server.url_with(":segredo-errado");
    for url in [&wrong, &server.url()] {
        refused(&on(url).ended(), 4, "check user, password and permissions");
        refused(&send(url), 4, "check user, password and permissions");
    }
    let mut raw = redis::Client::open(server.url_with(":segredo-certo"))
        .and_then(|client| client.get_connection())
        .expect("the password is right");
    let rules = ["SETUSER", "ana", "on", ">segredo", "~*", "+info", "+config|get", "+client"];
    redis::cmd("ACL").arg(&rules).exec(&mut raw).expect("a user");
    refused(&on(&server.url_with("ana:segredo")).ended(), 4, "check user, password and permissions");
    refused(&send(&server.url_with("ana:segredo")), 4, "check user, password and permissions");
}

#[test]
fn the_password_comes_by_url_by_variable_or_by_file_and_is_said_nowhere() {
    let Some(server) = start(&[SOUND, &["--requirepass", "segredo"]].concat()) else { return };
    let file = server.file("password", "segredo\n");
    let url = server.url();
    for launch in [
        on(&server.url_with(":segredo")),
        serve_after(Path::new(&url), "export TEIMOSO_REDIS_PASSWORD=segredo"),
        serve_after(Path::new(&url), &format!("export TEIMOSO_REDIS_PASSWORD_FILE={file}")),
    ] {
        let serving = launch.run();
        let up = serving.until_said("sender up");
        assert_eq!(up, format!("sender up, listening on {url}"));
        let stats = serving.api.get("/v1/stats").to_string();
        let ended = serving.stop();
        assert!(!format!("{stats}{ended:?}").contains("segredo"), "{stats} {ended:?}");
    }
    let help = teimoso(&["serve", "--help"]).env("TEIMOSO_STORE", server.url_with(":segredo")).output();
    let help: Ended = help.expect("the binary runs").into();
    assert!(help.code == Some(0) && !help.stdout.contains("segredo"), "{help:?}");
}

#[test]
fn a_redis_that_is_not_there_exits_1_and_an_unknown_kind_of_url_2() {
    let (_held, address) = crate::support::closed_port();
    let url = format!("redis://:segredo@{address}");
    refused(&on(&url).ended(), 1, "is it running?");
    refused(&send(&url), 1, "is it running?");
    let sentinel = "redis+sentinel://:segredo@127.0.0.1/m";
    refused(&on(sentinel).ended(), 2, "a store at redis+sentinel:// is not known");
    refused(&send(sentinel), 2, "a store at redis+sentinel:// is not known");
}

#[test]
fn a_redis_that_would_lose_events_is_refused_unless_that_is_allowed() {
    let Some(server) = start(&["--appendonly", "no"]) else { return };
    refused(&on(&server.url()).ended(), 1, "redis keeps no append-only file");
    refused(&on(&server.url()).ended(), 1, "--allow-volatile");
    let serving = on(&server.url()).args(&["--allow-volatile"]).run();
    assert!(serving.until_said("teimoso: listening").contains("appendonly no"));
    serving.stop();

    let evicting = [SOUND, &["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]].concat();
    let Some(server) = start(&evicting) else { return };
    refused(&on(&server.url()).ended(), 1, "allkeys-lru");
    let serving = on(&server.url()).args(&["--allow-eviction"]).run();
    assert!(serving.until_said("teimoso: listening").contains("allkeys-lru"));
    serving.stop();
}

#[test]
fn a_durability_that_redis_cannot_give_exits_1_and_one_it_gives_is_named() {
    let Some(server) = start(SOUND) else { return };
    let serving = on(&server.url()).args(&["--durability", "fast"]).run();
    assert!(serving.until_said("teimoso: listening").ends_with("durability fast"));
    serving.stop();
    let Some(server) = start(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let serving = on(&server.url()).args(&["--durability", "disk"]).run();
    assert!(serving.until_said("teimoso: listening").ends_with("durability disk"));
    serving.stop();
}

#[test]
fn g1_an_event_that_no_replica_confirms_is_answered_503() {
    let Some(server) = start(SOUND) else { return };
    let serving = on(&server.url()).args(&["--durability", "replica"]).run();
    let event = "{\"url\":\"http://127.0.0.1:9/x\",\"payload\":1}";
    let answer = serving.api.post("/v1/events", event).expect("answered");
    assert_eq!(answer.status, 503, "{answer:?}");
}

#[test]
fn flags_of_redis_without_a_redis_are_usage_errors() {
    let directory = crate::support::directory();
    let workers = crate::support::process::serve(directory.path()).args(&["--workers-only"]).ended();
    refused(&workers, 2, "only a Redis is shared");
    let durable = crate::support::process::serve(directory.path()).args(&["--durability", "disk"]).ended();
    refused(&durable, 2, "--durability is for a store on Redis");
}
