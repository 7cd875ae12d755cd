//! What is refused: one sentence, the right exit code, and never a password.

use std::path::Path;

use crate::on;
use crate::support::process::{Ended, serve_after, teimoso};
use redis_fixture::{Fsync, Server, Tls};

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
    let server = Server::start_with(&["--appendonly", "yes", "--requirepass", "segredo-certo"]);
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
    let server = Server::start_with(&["--appendonly", "yes", "--requirepass", "segredo"]);
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
    let unknown = "redis+outro://:segredo@127.0.0.1/m";
    refused(&on(unknown).ended(), 2, "a store at redis+outro:// is not known");
    refused(&send(unknown), 2, "a store at redis+outro:// is not known");
    for url in [
        "redis+sentinel://:segredo@127.0.0.1",
        "redis://:segredo@127.0.0.1,127.0.0.2",
        "redis+cluster://:segredo@a/1",
    ] {
        refused(&on(url).ended(), 2, "the store's url cannot be used");
        refused(&send(url), 2, "the store's url cannot be used");
    }
    let group = format!("redis+sentinel://:segredo@{address}/mestre");
    refused(&on(&group).ended(), 1, "is it running?");
    refused(&send(&group), 1, "is it running?");
}

#[test]
fn a_redis_that_is_not_what_the_url_says_exits_1_and_says_what_it_is() {
    let server = Server::start(Fsync::EverySecond);
    let at = server.address();
    for (url, sentence) in [
        (format!("redis+sentinel://{at}/mestre"), "this is no sentinel"),
        (format!("redis+cluster://{at}"), "this redis is no node of a Cluster"),
    ] {
        refused(&on(&url).ended(), 1, sentence);
        refused(&send(&url), 1, sentence);
    }
}

#[test]
fn over_tls_only_who_is_vouched_for_is_trusted() {
    let tls = Tls::start();
    let url = tls.url();
    refused(&on(&url).ended(), 1, "name that in TEIMOSO_REDIS_CA");
    refused(&send(&url), 1, "name that in TEIMOSO_REDIS_CA");
    let missing = serve_after(Path::new(&url), "export TEIMOSO_REDIS_CA=/nowhere/ca.pem").ended();
    refused(&missing, 1, "TEIMOSO_REDIS_CA: /nowhere/ca.pem: ");
    for variable in ["TEIMOSO_REDIS_CA", "SSL_CERT_FILE"] {
        let given = format!("export {variable}={}", tls.authority());
        let serving = serve_after(Path::new(&url), &given).run();
        assert!(serving.until_said("teimoso: listening").contains("store redis at rediss://127.0.0.1:"));
        let sent = teimoso(&["send", "http://127.0.0.1:9/x", "--store", &url])
            .env(variable, tls.authority())
            .output();
        let sent: Ended = sent.expect("the binary runs").into();
        assert_eq!(sent.code, Some(0), "{sent:?}");
        serving.stop();
    }
}

#[test]
fn a_redis_that_would_lose_events_is_refused_unless_that_is_allowed() {
    let server = Server::start_with(&["--appendonly", "no"]);
    refused(&on(&server.url()).ended(), 1, "redis keeps no append-only file");
    refused(&on(&server.url()).ended(), 1, "--allow-volatile");
    let serving = on(&server.url()).args(&["--allow-volatile"]).run();
    assert!(serving.until_said("teimoso: listening").contains("appendonly no"));
    serving.stop();

    let evicting = ["--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let server = Server::start_with(&evicting);
    refused(&on(&server.url()).ended(), 1, "allkeys-lru");
    let serving = on(&server.url()).args(&["--allow-eviction"]).run();
    assert!(serving.until_said("teimoso: listening").contains("allkeys-lru"));
    serving.stop();
}

#[test]
fn a_durability_that_redis_cannot_give_exits_1_and_one_it_gives_is_named() {
    let server = Server::start(Fsync::EverySecond);
    let serving = on(&server.url()).args(&["--durability", "fast"]).run();
    assert!(serving.until_said("teimoso: listening").ends_with("durability fast"));
    serving.stop();
    let server = Server::start(Fsync::Always);
    let serving = on(&server.url()).args(&["--durability", "disk"]).run();
    assert!(serving.until_said("teimoso: listening").ends_with("durability disk"));
    serving.stop();
}

#[test]
fn g1_an_event_that_no_replica_confirms_is_answered_503() {
    let server = Server::start(Fsync::EverySecond);
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
