//! `POST /v1/events/batch`: both ways at once, in order, bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use teimoso_delivery::store::StoreErrorKind;
use tokio::io::AsyncWriteExt;

use crate::client::{Answer, Client};
use crate::server::{Fault, Server, config, pause, soon, text};

const HEAD: &str = "POST /v1/events/batch HTTP/1.1\r\nhost: t\r\ncontent-type: application/x-ndjson\r\n\
    transfer-encoding: chunked\r\n\r\n";

/// Sends one chunk of a chunked request.
async fn chunk(client: &mut Client, data: &str) {
    client.send(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes()).await;
}

async fn begin(server: &Server) -> Client {
    let mut client = server.client().await;
    client.send(HEAD.as_bytes()).await;
    let head = client.head().await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(head.header("teimoso-durability"), Some("none"));
    client
}

/// The next chunk of the answer, as lines.
async fn lines(client: &mut Client) -> Vec<Value> {
    parsed(&client.chunk().await.expect("the answer goes on"))
}

fn parsed(bytes: &[u8]) -> Vec<Value> {
    assert!(bytes.is_empty() || bytes.ends_with(b"\n"));
    let text = std::str::from_utf8(bytes).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

async fn whole(server: &Server, body: &str) -> Vec<Value> {
    let headers = "content-type: application/x-ndjson\r\n";
    let answer = server.client().await.request("POST", "/v1/events/batch", headers, body.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    parsed(&answer.body)
}

#[tokio::test]
async fn a_line_is_answered_before_the_next_one_is_sent() {
    let server = Server::start().await;
    let mut client = begin(&server).await;
    for n in 1..=3 {
        chunk(&mut client, &format!("{{\"id\":\"e{n}\",\"url\":\"http://ok.test/\",\"payload\":{n}}}\n"))
            .await;
        let answers = lines(&mut client).await;
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0]["id"], format!("e{n}"));
        assert_eq!(answers[0]["deliveries"][0]["state"], "pending");
    }
    client.send(b"0\r\n\r\n").await;
    assert_eq!(client.chunk().await, None);
    assert_eq!(server.get("/v1/events/e3/payload").await.text(), "3");
}

#[tokio::test]
async fn answers_keep_the_order_of_the_lines_and_a_bad_line_spoils_no_other() {
    let server = Server::start().await;
    let body = "{\"id\":\"a\",\"payload\":1}\n\n  \r\n{\"id\":\"b\",\"payload\":tru}\r\n{\"payload\":1,\"urll\":\"x\"}\n\
        {\"id\":\"c\",\"payload\":1,\"url\":\"http://blocked.test/\"}\n{\"id\":\"a\",\"payload\":2}\n{\"id\":\"a\",\"payload\":1}";
    let answers = whole(&server, body).await;
    let brief: Vec<_> =
        answers.iter().map(|a| (a["id"].as_str(), a["code"].as_str(), a["line"].as_u64())).collect();
    assert_eq!(
        brief,
        [
            (Some("a"), None, None),
            (None, Some("malformed_json"), Some(4)),
            (None, Some("unknown_field"), Some(5)),
            (None, Some("blocked_address"), Some(6)),
            (None, Some("id_taken"), Some(7)),
            (Some("a"), None, None),
        ]
    );
    assert_eq!((&answers[1]["status"], &answers[4]["status"]), (&400.into(), &409.into()));
    assert_eq!(answers[5]["idempotent_replayed"], true);
}

#[tokio::test]
async fn g7_payloads_of_lines_are_bytes_too() {
    let server = Server::start().await;
    let payloads = ["{\"a\": 1.0, \"a\":1e400}", "\"\u{2028}\\ud800\"", "12345678901234567890"];
    let body: String = payloads.iter().map(|payload| format!("{{\"payload\":{payload}}}\n")).collect();
    let answers = whole(&server, &body).await;
    for (payload, answer) in payloads.iter().zip(&answers) {
        let stored = server.get(&format!("/v1/events/{}/payload", text(&answer["id"]))).await;
        assert_eq!(&stored.text(), payload);
    }
    assert_eq!(answers.len(), payloads.len());
}

#[tokio::test]
async fn lines_are_cut_wherever_the_network_cuts_them() {
    let server = Server::start().await;
    let mut client = begin(&server).await;
    for part in ["{\"id\":\"x\",\"pay", "load\":[1,", "2]}\n{\"id\":\"y\",\"payload\":0}"] {
        chunk(&mut client, part).await;
    }
    assert_eq!(lines(&mut client).await[0]["id"], "x");
    client.send(b"0\r\n\r\n").await;
    assert_eq!(lines(&mut client).await[0]["id"], "y");
    assert_eq!(client.chunk().await, None);
    assert_eq!(server.get("/v1/events/x/payload").await.text(), "[1,2]");
}

#[tokio::test]
async fn many_lines_are_stored_in_groups_of_256_at_most() {
    let server = Server::start().await;
    let body: String = (0..3_000).map(|n| format!("{{\"id\":\"n{n}\",\"payload\":{n}}}\n")).collect();
    let answers = whole(&server, &body).await;
    assert_eq!(answers.len(), 3_000);
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer["id"], format!("n{n}"));
    }
    let largest = server.store.largest.load(Ordering::SeqCst);
    assert!((100..=256).contains(&largest), "{largest}");
}

#[tokio::test]
async fn g11_a_line_that_is_too_long_gets_its_413_and_is_skipped() {
    let mut config = config();
    config.max_payload = 100;
    let server = Server::with(config).await;
    let over_payload = format!("{{\"payload\":\"{}\"}}", "x".repeat(200));
    let over_line = format!("{{\"payload\":\"{}\"}}", "x".repeat(400_000));
    let body = format!(
        "{{\"id\":\"a\",\"payload\":1}}\n{over_payload}\n{over_line}\n{{\"id\":\"b\",\"payload\":1}}\n"
    );
    let answers = whole(&server, &body).await;
    assert_eq!((answers.len(), &answers[0]["id"], &answers[3]["id"]), (4, &"a".into(), &"b".into()));
    for (line, limit) in [(2, 100), (3, 100 + 64 * 1024)] {
        let problem = &answers[line - 1];
        assert_eq!((&problem["status"], &problem["limit_bytes"]), (&413.into(), &limit.into()));
        assert_eq!(problem["line"], line);
    }
}

#[tokio::test]
async fn a_line_is_answered_only_once_it_is_stored() {
    let server = Server::start().await;
    server.store.close_gate();
    let mut client = begin(&server).await;
    chunk(&mut client, "{\"id\":\"a\",\"payload\":1}\n").await;
    soon(server.store.wait_offered(1)).await;
    chunk(&mut client, "{\"id\":\"b\",\"payload\":1}\n").await;
    soon(server.store.wait_offered(2)).await;
    let early = tokio::time::timeout(Duration::from_millis(100), client.chunk()).await;
    assert!(early.is_err(), "nothing is stored yet, several accepts are under way");
    server.store.gate.add_permits(2);
    let mut answers = lines(&mut client).await;
    if answers.len() < 2 {
        answers.extend(lines(&mut client).await);
    }
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&"a".into(), &"b".into()));
}

#[tokio::test]
async fn g11_at_most_4096_lines_wait_for_their_answers() {
    let server = Server::start().await;
    server.store.close_gate();
    let client = begin(&server).await;
    let (_reading, mut writing) = client.stream.into_split();
    let sender = tokio::spawn(async move {
        let line = "{\"payload\":1}\n".repeat(1_000);
        let chunk = format!("{:x}\r\n{line}\r\n", line.len());
        for _ in 0..20 {
            writing.write_all(chunk.as_bytes()).await.expect("buffers take it, or the server does later");
        }
        writing
    });
    soon(server.store.wait_offered(4_096)).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.store.offered(), 4_096);
    server.store.gate.add_permits(10_000);
    soon(server.store.wait_offered(20_000)).await;
    drop(sender.await.expect("all is sent"));
}

#[tokio::test]
async fn g11_a_client_that_reads_no_answers_is_not_read_from_and_in_the_end_hung_up_on() {
    const TOTAL_BYTES: usize = 100_000_000;
    let mut config = config();
    config.max_batches = 1;
    let server = Server::with(config).await;
    let (_unread, mut writing) = begin(&server).await.stream.into_split();
    let sent_bytes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent_bytes);
    let sender = tokio::spawn(async move {
        // The longer an answer is than its line, the sooner the buffers between us are full of answers.
        let lines = "{\"payload\":1,\"url\":\"http://ok.test/\"}\n".repeat(1_000);
        let chunk = format!("{:x}\r\n{lines}\r\n", lines.len());
        while counted.load(Ordering::SeqCst) < TOTAL_BYTES
            && writing.write_all(chunk.as_bytes()).await.is_ok()
        {
            counted.fetch_add(chunk.len(), Ordering::SeqCst);
        }
    });
    let state = || (sent_bytes.load(Ordering::SeqCst), server.store.offered());
    let mut before = state();
    let stuck = loop {
        pause(Duration::from_millis(500)).await;
        let now = state();
        if now == before {
            break now;
        }
        before = now;
    };
    assert!(stuck.0 < TOTAL_BYTES, "the server read everything, and nobody read its answers");
    assert_eq!(server.get("/livez").await.status, 200);
    assert_eq!(state(), stuck, "nothing more is read");

    soon(server.let_time_pass()).await;
    soon(sender).await.expect("it sees the end of its connection");
    assert!(sent_bytes.load(Ordering::SeqCst) < TOTAL_BYTES);
    soon(async {
        let headers = "content-type: application/x-ndjson\r\n";
        while server.client().await.request("POST", "/v1/events/batch", headers, b"").await.status != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_loses_only_what_was_not_answered() {
    let server = Server::start().await;
    let mut client = begin(&server).await;
    chunk(&mut client, "{\"id\":\"kept\",\"payload\":1}\n{\"id\":\"half").await;
    assert_eq!(lines(&mut client).await[0]["id"], "kept");
    drop(client);
    assert_eq!(server.get("/v1/events/kept").await.status, 200);
    assert_eq!(server.store.offered(), 1);
    assert_eq!(whole(&server, "{\"payload\":1}\n").await.len(), 1);
}

#[tokio::test]
async fn a_client_may_close_its_side_and_still_get_its_answers() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let body = "{\"id\":\"a\",\"payload\":1}\n";
    let head = HEAD.replace("transfer-encoding: chunked", &format!("content-length: {}", body.len()));
    client.send(format!("{head}{body}").as_bytes()).await;
    client.stream.shutdown().await.expect("half a close");
    assert_eq!(parsed(&client.answer().await.body)[0]["id"], "a");
}

#[tokio::test]
async fn a_batch_that_waits_for_continue_is_told_to() {
    let server = Server::start().await;
    let mut client = server.client().await;
    client.send(HEAD.replace("host: t", "host: t\r\nexpect: 100-continue").as_bytes()).await;
    assert_eq!(client.head().await.status, 100);
    chunk(&mut client, "{\"id\":\"a\",\"payload\":1}\n").await;
    client.send(b"0\r\n\r\n").await;
    assert_eq!(parsed(&client.answer().await.body)[0]["id"], "a");
}

#[tokio::test]
async fn a_failing_store_fails_lines_and_not_the_batch() {
    let server = Server::start().await;
    let mut client = begin(&server).await;
    server.store.set_fault(Some(Fault::Fail(StoreErrorKind::Full)));
    chunk(&mut client, "{\"payload\":1}\n{}\n").await;
    let answers = lines(&mut client).await;
    let brief: Vec<_> = answers.iter().map(|a| (a["status"].as_u64(), a["line"].as_u64())).collect();
    assert_eq!(brief, [(Some(507), Some(1)), (Some(422), Some(2))]);
    server.store.set_fault(None);
    chunk(&mut client, "{\"id\":\"c\",\"payload\":1}\n").await;
    assert_eq!(lines(&mut client).await[0]["id"], "c");
}

#[tokio::test]
async fn draining_ends_a_batch_after_what_it_was_sent() {
    let mut server = Server::start().await;
    let mut client = begin(&server).await;
    chunk(&mut client, "{\"id\":\"a\",\"payload\":1}\n").await;
    assert_eq!(lines(&mut client).await[0]["id"], "a");
    server.stop();
    assert_eq!(client.chunk().await, None);
    assert!(client.is_closed().await);
    soon(server.task).await.expect("no panic").expect("served");
}

#[tokio::test]
async fn g1_draining_answers_every_line_that_waits_for_its_answer() {
    let mut server = Server::start().await;
    let mut client = begin(&server).await;
    server.store.close_gate();
    for n in 1..=3 {
        chunk(&mut client, &format!("{{\"id\":\"e{n}\",\"payload\":{n}}}\n")).await;
        soon(server.store.wait_offered(n)).await;
    }
    server.stop();
    soon(async {
        while !server.app.is_draining() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // Each answer makes the batch look at its input again.
    for n in 1..=3 {
        server.store.gate.add_permits(1);
        assert_eq!(lines(&mut client).await[0]["id"], format!("e{n}"));
    }
    assert_eq!(client.chunk().await, None);
    soon(server.task).await.expect("no panic").expect("served");
}

#[tokio::test]
async fn g11_a_batch_that_falls_silent_is_ended_with_a_word() {
    let server = Server::start().await;
    let mut client = begin(&server).await;
    chunk(&mut client, "{\"id\":\"a\",\"payload\":1}\n").await;
    assert_eq!(lines(&mut client).await[0]["id"], "a");
    soon(server.let_time_pass()).await;
    let last = lines(&mut client).await;
    assert_eq!((&last[0]["code"], &last[0]["line"]), (&"request_timeout".into(), &2.into()));
    assert_eq!(client.chunk().await, None);
}

#[tokio::test]
async fn what_is_no_batch_is_refused_before_it_begins() {
    let mut config = config();
    config.max_batches = 1;
    let server = Server::with(config).await;
    let post = async |headers: &str| -> Answer {
        server.client().await.request("POST", "/v1/events/batch", headers, b"{\"payload\":1}\n").await
    };
    let key = post("content-type: application/x-ndjson\r\nidempotency-key: k\r\n").await;
    assert_eq!(key.problem(422, "invalid_value")["errors"][0]["header"], "Idempotency-Key");
    let json = post("content-type: application/json\r\n").await.problem(415, "unsupported_media_type");
    assert!(text(&json["detail"]).contains("application/x-ndjson"), "{json}");
    let _running = begin(&server).await;
    let shed = post("content-type: application/x-ndjson\r\n").await;
    shed.problem(503, "overloaded");
    assert_eq!(shed.header("retry-after"), Some("1"));
}
