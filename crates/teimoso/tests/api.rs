//! The commands that talk to a server, against one that answers as each test says.

#[path = "support/server.rs"]
mod server;
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use server::Server;
use support::{Ended, ended, teimoso};

fn run(server: &Server, args: &[&str]) -> Ended {
    ended(teimoso(args).env("TEIMOSO_SERVER", &server.url).output().expect("the binary runs"))
}

fn not_found() -> (u16, String) {
    (404, json!({"title": "Not Found", "detail": "there is no such thing", "code": "not_found"}).to_string())
}

fn delivery(id: &str, state: &str, reason: Option<&str>, attempts: u32) -> Value {
    json!({"id": id, "event_id": "evt_1", "application": "default", "endpoint": null, "url": "http://x/hook",
        "state": state, "attempts": attempts, "max_attempts": 5, "mode": "at_least_once", "reason": reason,
        "next_attempt_at": null, "created_at": "2026-01-31T12:00:00.000Z", "last_status": 503})
}

fn list(items: &[Value], next_cursor: Option<&str>) -> (u16, String) {
    (200, json!({"data": items, "next_cursor": next_cursor}).to_string())
}

#[test]
fn s2_12_send_prints_the_id_and_sends_the_default_body() {
    let server =
        Server::start(|_| (202, json!({"id": "evt_1", "deliveries": [{"id": "dlv_1"}]}).to_string()));
    let sent = run(&server, &["send", "http://127.0.0.1:4000/ok"]);
    assert_eq!((sent.code, sent.stdout.as_str(), sent.stderr.as_str()), (0, "evt_1\n", ""));
    let asked = server.asked();
    assert_eq!(server.lines(), ["POST /v1/events"]);
    let body =
        r#"{"url":"http://127.0.0.1:4000/ok","payload":{"tipo":"pedido.pago","pedido":1234,"valor":99.9}}"#;
    assert_eq!(asked[0].body, body);
}

#[test]
fn send_reads_data_from_stdin_and_files() {
    let server = Server::start(|_| (202, json!({"id": "evt_1", "deliveries": []}).to_string()));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("event.json");
    std::fs::write(&file, " {\"a\": 1.0}\n").expect("written");
    let data = format!("@{}", file.display());
    let sent = run(&server, &["send", "http://x/", "--data", &data, "--json"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (0, "{\"deliveries\":[],\"id\":\"evt_1\"}\n"));
    assert!(sent.stderr.contains("no endpoint wants it"), "{}", sent.stderr);

    let mut command = teimoso(&["send", "http://x/", "--data", "-"]);
    let command = command.env("TEIMOSO_SERVER", &server.url).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    child.stdin.take().expect("piped").write_all(b"[1e400]").expect("written");
    assert_eq!(ended(child.wait_with_output().expect("it ends")).code, 0);
    let bodies: Vec<_> = server.asked().into_iter().map(|asked| asked.body).collect();
    assert_eq!(
        bodies,
        [r#"{"url":"http://x/","payload":{"a": 1.0}}"#, r#"{"url":"http://x/","payload":[1e400]}"#]
    );

    let missing = run(&server, &["send", "http://x/", "--data", "@/nonexistent"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.starts_with("teimoso: cannot read /nonexistent: "), "{}", missing.stderr);
}

#[test]
fn a_problem_is_told_in_its_own_words() {
    let server = Server::start(|_| {
        let problem =
            json!({"title": "Unprocessable", "detail": "127.0.0.1 is loopback: --allow-net 127.0.0.0/8"});
        (422, problem.to_string())
    });
    let sent = run(&server, &["send", "http://127.0.0.1/"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (1, ""));
    assert_eq!(sent.stderr, "teimoso: 127.0.0.1 is loopback: --allow-net 127.0.0.0/8\n");
}

#[test]
fn a_lost_answer_is_an_unknown_outcome() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let closing = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(&stream);
        while server::line(&mut reader).is_some_and(|line| !line.is_empty()) {}
    });
    let sent = ended(teimoso(&["send", "http://x/", "--server", &url]).output().expect("it runs"));
    closing.join().expect("no panic");
    assert_eq!((sent.code, sent.stdout.as_str()), (7, ""));
    assert!(sent.stderr.contains("it may have been accepted"), "{}", sent.stderr);
}

/// `send --wait` against an event whose delivery ends so.
fn waited(state: &'static str, reason: Option<&'static str>) -> Ended {
    let looks = AtomicUsize::new(0);
    let server = Server::start(move |asked| match asked.method.as_str() {
        "POST" => (202, json!({"id": "evt_1", "deliveries": [{"id": "dlv_1"}]}).to_string()),
        _ => {
            let delivery = match looks.fetch_add(1, Ordering::SeqCst) {
                0 => delivery("dlv_1", "pending", None, 0),
                1 => delivery("dlv_1", "scheduled", None, 1),
                _ => delivery("dlv_1", state, reason, 2),
            };
            (200, json!({"id": "evt_1", "deliveries": [delivery]}).to_string())
        }
    });
    run(&server, &["send", "http://x/", "--wait"])
}

#[test]
fn send_wait_exits_with_what_became_of_it() {
    let delivered = waited("delivered", None);
    assert_eq!((delivered.code, delivered.stdout.as_str()), (0, "evt_1\n"));
    let said = "dlv_1: scheduled, 1 of 5 attempts made\ndlv_1: delivered (HTTP 503) after 2 attempts\n";
    assert_eq!(delivered.stderr, said);
    assert_eq!(waited("dead", Some("attempts_exhausted")).code, 6);
    assert_eq!(waited("dead", Some("ambiguous")).code, 7);
    assert_eq!(waited("dead", Some("permanent_status")).code, 1);
    assert_eq!(waited("cancelled", None).code, 1);
}

#[test]
fn send_wait_json_prints_the_final_event_only() {
    let server = Server::start(|asked| match asked.method.as_str() {
        "POST" => (202, json!({"id": "evt_1", "deliveries": [{"id": "dlv_1"}]}).to_string()),
        _ => {
            (200, json!({"id": "evt_1", "deliveries": [delivery("dlv_1", "delivered", None, 1)]}).to_string())
        }
    });
    let sent = run(&server, &["send", "http://x/", "--wait", "--json"]);
    let event: Value = serde_json::from_str(&sent.stdout).expect("one object");
    assert_eq!((sent.code, &event["deliveries"][0]["state"]), (0, &json!("delivered")));
}

#[test]
fn send_wait_outlasts_a_restart_of_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let url = format!("http://{address}");
    let mut command = teimoso(&["send", "http://x/", "--wait", "--server", &url]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let accepted = json!({"id": "evt_1", "deliveries": [{"id": "dlv_1"}]});
    answer_once(&listener, &accepted);
    drop(listener);
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    assert_eq!(server::line(&mut stderr).as_deref(), Some("the server is out of reach; still waiting"));
    let listener = TcpListener::bind(address).expect("the same port");
    answer_once(&listener, &json!({"id": "evt_1", "deliveries": [delivery("dlv_1", "delivered", None, 1)]}));
    assert_eq!(server::line(&mut stderr).as_deref(), Some("the server is back"));
    assert_eq!(server::line(&mut stderr).as_deref(), Some("dlv_1: delivered (HTTP 503) after 1 attempt"));
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// Takes one connection, answers its first request, and closes it.
fn answer_once(listener: &TcpListener, body: &Value) {
    let (stream, _) = listener.accept().expect("a connection");
    let mut reader = BufReader::new(&stream);
    let mut length = 0;
    while let Some(line) = server::line(&mut reader).filter(|line| !line.is_empty()) {
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().expect("a length");
        }
    }
    reader.read_exact(&mut vec![0; length]).expect("the body");
    let body = body.to_string();
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    (&stream).write_all((head + &body).as_bytes()).expect("written");
}

#[test]
fn send_ndjson_streams_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let batch = std::thread::spawn(move || batch_server(&listener));
    let mut command = teimoso(&["send", "http://x/", "--ndjson", "-", "--server", &url]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdin.write_all(b"{\"payload\":1.0}\n").expect("written");
    stdin.flush().expect("flushed");
    // The first answer comes while the second line has not been written.
    assert_eq!(server::line(&mut stdout).as_deref(), Some("evt_1"));
    stdin.write_all(b"\n{\"url\":\"http://y/\",\"payload\":2}\nbad").expect("written");
    drop(stdin);
    assert_eq!(server::line(&mut stdout).as_deref(), Some("evt_2"));
    assert_eq!(server::line(&mut stdout), None);
    let ended = ended(child.wait_with_output().expect("it ends"));
    assert_eq!((ended.code, ended.stderr.as_str()), (5, "line 4: not JSON\n2 accepted, 1 refused\n"));
    let lines = batch.join().expect("no panic");
    assert_eq!(lines, [r#"{"payload":1.0,"url":"http://x/"}"#, r#"{"url":"http://y/","payload":2}"#, "bad"]);
}

#[test]
fn a_batch_that_the_server_ends_early_is_an_unknown_outcome() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let batch = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(&stream);
        while server::line(&mut reader).is_some_and(|line| !line.is_empty()) {}
        let mut writer = &stream;
        writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("written");
        while chunk(&mut reader).is_some() {}
    });
    let mut command = teimoso(&["send", "--ndjson", "-", "--server", &url]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let stdin = child.stdin.take().expect("piped");
    let ended = ended(child.wait_with_output().expect("it ends although stdin does not"));
    drop(stdin);
    assert_eq!((ended.code, ended.stdout.as_str()), (7, ""));
    assert!(ended.stderr.contains("it ended before stdin did (after 0 answers)"), "{}", ended.stderr);
    batch.join().expect("no panic");
}

/// Answers each line as it comes; returns what came.
fn batch_server(listener: &TcpListener) -> Vec<String> {
    let (stream, _) = listener.accept().expect("a connection");
    let mut reader = BufReader::new(&stream);
    let mut writer = &stream;
    assert_eq!(server::line(&mut reader).as_deref(), Some("POST /v1/events/batch HTTP/1.1"));
    while server::line(&mut reader).is_some_and(|line| !line.is_empty()) {}
    writer.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").expect("written");
    let mut lines = Vec::new();
    while let Some(line) = chunk(&mut reader) {
        lines.push(line.trim_end().to_owned());
        let answer = match lines.len() {
            3 => json!({"status": 400, "detail": "not JSON"}),
            number => json!({"id": format!("evt_{number}"), "deliveries": []}),
        };
        let answer = format!("{answer}\n");
        write!(writer, "{:x}\r\n{answer}\r\n", answer.len()).expect("written");
    }
    writer.write_all(b"0\r\n\r\n").expect("written");
    lines
}

/// A chunk; `None` for the last (RFC 9112 section 7.1). The client sends a chunk per line.
fn chunk(reader: &mut impl BufRead) -> Option<String> {
    let size = usize::from_str_radix(&server::line(reader)?, 16).ok()?;
    let mut data = vec![0; size + 2];
    reader.read_exact(&mut data).ok()?;
    data.truncate(size);
    (size > 0).then(|| String::from_utf8(data).expect("UTF-8"))
}

#[test]
fn lists_follow_the_cursor_up_to_the_limit() {
    let server = Server::start(|asked| match asked.path.contains("cursor=c%2F1") {
        false => list(
            &[delivery("dlv_1", "dead", Some("poison"), 1), delivery("dlv_2", "pending", None, 0)],
            Some("c/1"),
        ),
        true => list(
            &[delivery("dlv_3", "scheduled", None, 1), delivery("dlv_4", "scheduled", None, 1)],
            Some("c/2"),
        ),
    });
    let json =
        run(&server, &["deliveries", "list", "--limit", "3", "--state", "dead", "--type", "a&b", "--json"]);
    let ids: Vec<Value> = json
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
        .collect();
    assert_eq!((json.code, ids), (0, vec![json!("dlv_1"), json!("dlv_2"), json!("dlv_3")]));
    let first = "GET /v1/deliveries?state=dead&type=a%26b&limit=3";
    let second = "GET /v1/deliveries?state=dead&type=a%26b&limit=1&cursor=c%2F1";
    assert_eq!(server.lines(), [first, second]);

    let table = run(&server, &["deliveries", "list", "--limit", "1"]);
    assert_eq!(
        table.stdout.lines().collect::<Vec<_>>(),
        ["ID     STATE  ATTEMPTS  LAST  NEXT    URL", "dlv_1  dead   1/5       503   poison  http://x/hook",]
    );
    assert_eq!(table.stderr, "1 shown, there are more: raise --limit\n");
}

#[test]
fn since_counts_back_from_now() {
    let server = Server::start(|_| list(&[], None));
    let events = run(&server, &["events", "list", "--since", "2026-01-31T12:00:00-03:00", "--lang", "pt-BR"]);
    assert_eq!((events.code, events.stdout.as_str(), events.stderr.as_str()), (0, "", "nada a mostrar\n"));
    assert_eq!(server.lines(), ["GET /v1/events?since=2026-01-31T15%3A00%3A00Z&limit=50"]);
    run(&server, &["events", "list", "--since", "2h"]);
    assert!(server.lines()[1].starts_with("GET /v1/events?since=20"), "{:?}", server.lines());
}

#[test]
fn what_does_not_exist_exits_3() {
    let server = Server::start(|_| not_found());
    for line in [&["events", "show", "x"][..], &["deliveries", "show", "x"], &["dead", "show", "a/../b"]] {
        let ended = run(&server, line);
        assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{line:?}");
        assert_eq!(ended.stderr, "teimoso: there is no such thing\n");
    }
    assert_eq!(server.lines()[2], "GET /v1/deliveries/a%2F..%2Fb");
    assert_eq!(run(&server, &["deliveries", "cancel", "x"]).code, 3);
}

#[test]
fn s2_9_a_dead_delivery_is_shown_with_its_body() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/v1/events/evt_1/payload" => (200, "{\"corpo\": 1.0}".to_owned()),
        _ => {
            let mut delivery = delivery("dlv_1", "dead", Some("permanent_status"), 1);
            delivery["attempt_records"] = json!([{"number": 1, "started_at": "2026-01-31T12:00:00.000Z",
                "duration_ms": 3, "fate": "answered", "status": 404, "decision": "give_up", "wait_ms": null}]);
            (200, delivery.to_string())
        }
    });
    let shown = run(&server, &["dead", "show", "dlv_1"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    assert!(shown.stdout.contains("reason:            permanent_status\n"), "{}", shown.stdout);
    assert!(
        shown.stdout.contains("\n1        2026-01-31T12:00:00.000Z  3ms   answered  404     give_up\n"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.ends_with("\n\n{\"corpo\": 1.0}\n"), "{}", shown.stdout);
    let json = run(&server, &["dead", "show", "dlv_1", "--json"]).stdout;
    assert!(json.ends_with(",\"payload\":{\"corpo\": 1.0}}\n"), "{json}");
}

/// Two dead letters, one of them ambiguous besides; a replay job that needs three looks to end with one failure.
fn dead_server() -> Server {
    let looks = AtomicUsize::new(0);
    Server::start(move |asked| {
        let job = |state: &str, done: u64, failed: u64| {
            json!({"id": "rpl_1", "state": state, "estimated": 2, "done": done, "failed": failed}).to_string()
        };
        match (asked.method.as_str(), asked.path.as_str()) {
            ("POST", "/v1/replays") if asked.body.contains("\"dry_run\":true") => {
                let estimated = if asked.body.contains("ambiguous") { 1 } else { 2 };
                (200, json!({"id": null, "state": "finished", "estimated": estimated}).to_string())
            }
            ("POST", "/v1/replays") => (202, job("running", 0, 0)),
            ("GET", "/v1/replays/rpl_1") => match looks.fetch_add(1, Ordering::SeqCst) {
                0 | 1 => (200, job("running", 1, 0)),
                _ => (200, job("finished", 1, 1)),
            },
            ("DELETE", "/v1/replays/rpl_1") => (200, job("cancelled", 1, 0)),
            ("POST", path) if path.contains("dlv_3") => {
                (409, json!({"detail": "it is not dead"}).to_string())
            }
            ("POST", _) => (202, "{}".to_owned()),
            _ => not_found(),
        }
    })
}

/// The orders of replay jobs.
fn orders(server: &Server) -> Vec<Value> {
    let orders = server.asked().into_iter().filter(|asked| asked.path == "/v1/replays");
    orders.map(|asked| serde_json::from_str(&asked.body).expect("JSON")).collect()
}

#[test]
fn a_bulk_replay_needs_a_yes_and_says_what_it_leaves_out() {
    let server = dead_server();
    let asked = run(&server, &["dead", "replay", "--all"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (2, ""));
    assert!(
        asked.stderr.starts_with("2 dead deliveries to replay; 1 ambiguous left out"),
        "{}",
        asked.stderr
    );
    assert!(orders(&server).iter().all(|order| order["dry_run"] == true), "{:?}", orders(&server));
}

#[test]
fn a_bulk_replay_is_a_job_that_is_followed_to_its_end() {
    let server = dead_server();
    let line = ["dead", "replay", "--since", "2026-01-31T12:00:00Z", "--yes", "--rate", "7/s"];
    let replayed = run(&server, &line);
    assert_eq!((replayed.code, replayed.stdout.as_str()), (5, "rpl_1\n"));
    assert!(replayed.stderr.ends_with("replay finished: 1 replayed, 1 failed\n"), "{}", replayed.stderr);
    let filter = json!({"reason": null, "since": "2026-01-31T12:00:00Z"});
    assert_eq!(orders(&server)[2], json!({"filter": filter, "rate": 7, "dry_run": false}));
    assert_eq!(server.lines()[3..], ["GET /v1/replays/rpl_1"; 3]);

    let json = run(&server, &["dead", "replay", "--reason", "ambiguous", "--yes", "--json"]);
    let job: Value = serde_json::from_str(&json.stdout).expect("one object");
    assert_eq!((json.code, &job["state"]), (5, &json!("finished")));
}

#[test]
fn a_dry_run_changes_nothing() {
    let server = dead_server();
    let dry = run(&server, &["dead", "replay", "--reason", "poison", "--dry-run"]);
    assert_eq!(
        (dry.code, dry.stdout.as_str(), dry.stderr.as_str()),
        (0, "2 dead deliveries to replay\n", "")
    );
    let json = run(&server, &["dead", "replay", "--reason", "ambiguous", "--dry-run", "--json"]);
    assert_eq!(json.stdout, "{\"estimated\":1,\"id\":null,\"state\":\"finished\"}\n");
    assert!(orders(&server).iter().all(|order| order["dry_run"] == true), "{:?}", orders(&server));
    assert_eq!(orders(&server)[1]["filter"]["reason"], "ambiguous");
}

#[test]
fn a_replay_job_can_be_stopped() {
    let server = dead_server();
    let stopped = run(&server, &["dead", "replay", "--cancel", "rpl_1"]);
    assert_eq!((stopped.code, stopped.stderr.as_str()), (0, "replay cancelled: 1 replayed, 0 failed\n"));
    assert_eq!(server.lines(), ["DELETE /v1/replays/rpl_1"]);
    assert_eq!(run(&server, &["dead", "replay", "--cancel", "rpl_2"]).code, 3);
}

#[test]
fn a_replay_by_id_asks_nobody() {
    let server = dead_server();
    let replayed = run(&server, &["dead", "replay", "dlv_2", "dlv_2", "--json"]);
    assert_eq!(replayed.code, 0);
    assert_eq!(replayed.stdout, "{\"error\":null,\"id\":\"dlv_2\",\"ok\":true}\n");
    assert_eq!(server.lines(), ["POST /v1/deliveries/dlv_2/retry"]);
    let partly = run(&server, &["dead", "replay", "dlv_2", "dlv_3"]);
    assert_eq!((partly.code, partly.stdout.as_str()), (5, "dlv_2\n"));
    assert_eq!(partly.stderr, "dlv_3: it is not dead\n1 of 2 done, 1 failed\n");
    let failed = run(&server, &["deliveries", "retry", "dlv_3"]);
    assert_eq!((failed.code, failed.stderr.as_str()), (1, "teimoso: it is not dead\n"));
}

#[test]
fn tail_prints_each_event_once_in_order() {
    let looks = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        let event = |id: &str, second: u32| {
            let at = format!("2026-01-31T12:00:0{second}.000Z");
            json!({"id": id, "type": "t", "created_at": at, "payload_bytes": 2, "deliveries": []})
        };
        match looks.fetch_add(1, Ordering::SeqCst) {
            0 => list(&[event("evt_2", 1), event("evt_1", 0)], None),
            _ => list(&[event("evt_4", 2), event("evt_3", 1), event("evt_2", 1)], None),
        }
    });
    let mut command = teimoso(&["events", "tail", "--since", "2026-01-31T12:00:00Z"]);
    let command = command.env("TEIMOSO_SERVER", &server.url).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let lines: Vec<_> = (0..4).map(|_| server::line(&mut stdout).expect("a line")).collect();
    child.kill().expect("killed");
    child.wait().expect("reaped");
    let ids: Vec<_> = lines.iter().map(|line| line.split("  ").nth(1).expect("an id")).collect();
    assert_eq!(ids, ["evt_1", "evt_2", "evt_3", "evt_4"]);
    assert_eq!(lines[0], "2026-01-31T12:00:00.000Z  evt_1  t  2 bytes");
    assert!(
        server.lines()[1].starts_with("GET /v1/events?since=2026-01-31T12%3A00%3A01Z&"),
        "{:?}",
        server.lines()
    );
}

#[test]
fn something_else_on_the_port_is_recognised() {
    let server = Server::start(|_| (200, "<html>".to_owned()));
    let listed = run(&server, &["events", "list"]);
    assert_eq!(listed.code, 1);
    assert!(
        listed.stderr.starts_with("teimoso: what answers there is no teimoso server"),
        "{}",
        listed.stderr
    );
}
