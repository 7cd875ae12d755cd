//! Commands that open a store themselves, and replays as jobs of a real server: the real binary on a real store.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

use serde_json::{Value, json};
use support::{Ended, ended, teimoso};
use teimoso::sink::{self, Options, SinkHandle};

const LOOPBACK: &str = "127.0.0.0/8";

fn run(args: &[&str]) -> Ended {
    ended(teimoso(args).output().expect("the binary runs"))
}

fn destination() -> SinkHandle {
    let options = Options { keep: 10, listener: None };
    sink::start(SocketAddr::from(([127, 0, 0, 1], 0)), options).expect("a sink")
}

/// The lines of a command's stdout as JSON.
fn objects(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A directory for a store, and its name.
fn place() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("store").display().to_string();
    (directory, store)
}

/// A server in a process of its own.
struct Serve {
    child: Child,
    url: String,
    // Read no further, and not closed either: its lines have somewhere to go.
    _stderr: BufReader<ChildStderr>,
}

impl Serve {
    fn start(store: &str) -> Serve {
        let line = ["serve", "--listen", "127.0.0.1:0", "--allow-net", LOOPBACK, "--policy", "webhook"];
        let mut command = teimoso(&line);
        let command = command.args(["--store", store, "--attempt-lines", "off"]).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut ready = String::new();
        stderr.read_line(&mut ready).expect("a ready line");
        let (_, rest) = ready.split_once("listening on ").expect("the ready line");
        let url = rest.split(',').next().expect("a URL").to_owned();
        Serve { child, url, _stderr: stderr }
    }

    fn run(&self, args: &[&str]) -> Ended {
        ended(teimoso(args).env("TEIMOSO_SERVER", &self.url).output().expect("the binary runs"))
    }

    /// Sends events that die at once, and waits until the last has.
    fn bury(&self, url: &str, count: usize) {
        for _ in 1..count {
            assert_eq!(self.run(&["send", url]).code, 0);
        }
        assert_eq!(self.run(&["send", url, "--wait"]).code, 1);
        while objects(&self.run(&["dead", "list", "--json"]).stdout).len() < count {}
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn interrupt(child: &Child) {
    let signal = format!("kill -INT {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &signal]).status().expect("a shell").success());
}

#[test]
fn what_is_sent_to_a_store_waits_there_for_a_server() {
    let (_directory, store) = place();
    let sent = run(&["send", "https://example.com/hook", "--store", &store, "--id", "order-1"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (0, "order-1\n"));
    assert_eq!(sent.stderr, format!("stored; it is delivered once `teimoso serve --store {store}` runs\n"));

    let listed = objects(&run(&["events", "list", "--store", &store, "--json"]).stdout);
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0]["id"], &listed[0]["deliveries"][0]["state"]),
        (&json!("order-1"), &json!("pending"))
    );
    let delivery = listed[0]["deliveries"][0]["id"].as_str().expect("an id").to_owned();
    let cancelled = run(&["deliveries", "cancel", &delivery, "--store", &store]);
    assert_eq!((cancelled.code, cancelled.stdout), (0, format!("{delivery}\n")));
    let shown = run(&["deliveries", "show", &delivery, "--store", &store, "--json"]).stdout;
    assert_eq!(objects(&shown)[0]["state"], "cancelled");
    assert_eq!(run(&["events", "show", "order-2", "--store", &store]).code, 3);
}

#[test]
fn a_stream_of_events_goes_to_a_store_too() {
    let (_directory, store) = place();
    let mut command = teimoso(&["send", "https://example.com/", "--ndjson", "-", "--store", &store]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let lines = b"{\"payload\":1}\nnonsense\n{\"payload\":2}\n";
    child.stdin.take().expect("piped").write_all(lines).expect("written");
    let sent = ended(child.wait_with_output().expect("it ends"));
    assert_eq!((sent.code, sent.stdout.lines().count()), (5, 2), "{}", sent.stderr);
    assert!(sent.stderr.starts_with("line 2: malformed JSON"), "{}", sent.stderr);
    assert!(sent.stderr.contains("2 accepted, 1 refused\nstored; "), "{}", sent.stderr);
    let listed = run(&["events", "list", "--store", &store, "--json"]);
    assert_eq!(objects(&listed.stdout).len(), 2);
}

#[test]
fn send_store_wait_delivers_by_itself() {
    let (_directory, store) = place();
    let sink = destination();
    let send =
        |path: &str| run(&["send", &sink.url(path), "--store", &store, "--wait", "--allow-net", LOOPBACK]);
    let delivered = send("/ok");
    assert_eq!(delivered.code, 0, "{}", delivered.stderr);
    assert!(delivered.stderr.ends_with(": delivered (HTTP 200) after 1 attempt\n"), "{}", delivered.stderr);
    let dead = send("/status/404");
    assert_eq!(dead.code, 1, "{}", dead.stderr);
    assert!(dead.stderr.ends_with(": dead (permanent_status) after 1 attempt\n"), "{}", dead.stderr);
    assert_eq!(sink.count(), 2);
}

#[test]
fn what_was_delivered_is_sent_again_only_explicitly() {
    let sink = destination();
    let (_dir, store) = place();
    let url = sink.url("/ok");
    let sent = run(&["send", &url, "--store", &store, "--allow-net", "127.0.0.0/8", "--wait"]);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    let listed = run(&["deliveries", "list", "--store", &store, "--json"]);
    let id = objects(&listed.stdout)[0]["id"].as_str().expect("a delivery has an id").to_owned();
    let refused = run(&["deliveries", "retry", &id, "--store", &store]);
    assert!(refused.code == 1 && refused.stderr.contains("--explicit"), "{}", refused.stderr);
    let again = run(&["deliveries", "retry", &id, "--store", &store, "--explicit"]);
    assert_eq!((again.code, again.stdout.trim()), (0, id.as_str()));
}

#[test]
fn g12_the_guard_applies_to_what_is_sent_to_a_store() {
    let (_directory, store) = place();
    let sink = destination();
    let line = ["send", &sink.url("/ok"), "--store", &store, "--wait"];
    let refused = run(&line);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert!(refused.stderr.contains("--allow-net 127.0.0.0/8 would allow it"), "{}", refused.stderr);
    assert_eq!((sink.count(), run(&["events", "list", "--store", &store]).stdout.as_str()), (0, ""));
    let allowed = teimoso(&line).env("TEIMOSO_ALLOW_NET", "10.0.0.0/8,127.0.0.0/8").output();
    assert_eq!((ended(allowed.expect("it runs")).code, sink.count()), (0, 1));
}

#[test]
fn a_look_creates_no_store() {
    let (directory, store) = place();
    for line in [&["events", "list"][..], &["deliveries", "show", "x"], &["dead", "replay", "--all"]] {
        let ended = run(&[line, &["--store", &store]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{line:?}");
        assert!(
            ended.stderr.starts_with(&format!("teimoso: there is no store at {store}\n")),
            "{}",
            ended.stderr
        );
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
    assert!(!Path::new(&store).exists());
}

#[test]
fn a_store_that_a_server_holds_is_refused_in_one_sentence() {
    let (_directory, store) = place();
    let server = Serve::start(&store);
    for line in [&["events", "list"][..], &["send", "https://example.com/"], &["dead", "list"]] {
        let ended = run(&[line, &["--store", &store]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{line:?}");
        let sentence = format!(
            "teimoso: the store at {store} is in use by another process (pid {}); stop it, or talk to it with --server\n",
            server.child.id()
        );
        assert_eq!(ended.stderr, sentence);
    }
    assert_eq!(server.run(&["events", "list"]).code, 0, "the server is untouched");
}

#[test]
fn s2_9_the_dead_are_replayed_by_a_job_on_either_kind_of_store() {
    let (_directory, embedded) = place();
    for store in ["memory:", &embedded] {
        let server = Serve::start(store);
        let sink = destination();
        server.bury(&sink.url("/status/404"), 3);
        let dry = server.run(&["dead", "replay", "--all", "--dry-run"]);
        assert_eq!((dry.code, dry.stdout.as_str()), (0, "3 dead deliveries to replay\n"), "{store}");
        assert_eq!(sink.count(), 3);
        let none = server.run(&["dead", "replay", "--reason", "poison", "--yes"]);
        assert_eq!((none.code, none.stdout.as_str()), (0, "0 dead deliveries to replay\n"), "{store}");

        let replayed = server.run(&["dead", "replay", "--reason", "permanent_status", "--yes", "--json"]);
        assert_eq!(replayed.code, 0, "{store}: {}", replayed.stderr);
        assert!(replayed.stderr.ends_with("replay finished: 3 replayed, 0 failed\n"), "{}", replayed.stderr);
        let job = &objects(&replayed.stdout)[0];
        assert_eq!((&job["state"], &job["done"]), (&json!("finished"), &json!(3)), "{store}");
        while sink.count() < 6 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn an_interrupted_replay_goes_on_and_can_be_stopped() {
    let server = Serve::start("memory:");
    let sink = destination();
    // At one per second it runs for far longer than this test.
    server.bury(&sink.url("/status/404"), 40);
    let mut command = teimoso(&["dead", "replay", "--all", "--yes", "--rate", "1/s"]);
    let command = command.env("TEIMOSO_SERVER", &server.url).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut job = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut job).expect("an id");
    let job = job.trim();
    interrupt(&child);
    let followed = ended(child.wait_with_output().expect("it ends"));
    assert_eq!(followed.code, 130);
    let parting = format!(
        "the replay goes on without this command; stop it with `teimoso dead replay --cancel {job}`\n"
    );
    assert!(followed.stderr.ends_with(&parting), "{}", followed.stderr);

    let stopped = server.run(&["dead", "replay", "--cancel", job, "--json"]);
    assert_eq!((stopped.code, &objects(&stopped.stdout)[0]["state"]), (0, &json!("cancelled")));
}

#[test]
fn a_replay_of_a_store_of_ones_own_makes_its_dead_due() {
    let (_directory, store) = place();
    let sink = destination();
    let line = ["send", &sink.url("/gone"), "--store", &store, "--wait", "--allow-net", LOOPBACK];
    assert_eq!(run(&line).code, 1);
    let replayed = run(&["dead", "replay", "--all", "--yes", "--store", &store]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    let due = run(&["deliveries", "list", "--state", "scheduled", "--store", &store, "--json"]);
    assert_eq!((objects(&due.stdout).len(), sink.count()), (1, 1), "{}", due.stderr);
}

#[test]
fn an_interrupted_wait_says_that_the_event_is_safe() {
    let server = Serve::start("memory:");
    let sink = destination();
    let mut command = teimoso(&["send", &sink.url("/hang"), "--wait"]);
    let command = command.env("TEIMOSO_SERVER", &server.url).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut id = String::new();
    stdout.read_line(&mut id).expect("an id");
    // The delivery is on the wire, so that the command has begun to wait.
    while sink.count() < 1 {
        std::thread::yield_now();
    }
    interrupt(&child);
    let waited = ended(child.wait_with_output().expect("it ends"));
    assert_eq!(waited.code, 130);
    assert!(waited.stderr.contains(&format!("`teimoso events show {}`", id.trim())), "{}", waited.stderr);
}
