//! Receivers that lie, drip, flood or never end: the attempt ends within its deadline, memory stays flat, and the
//! next delivery is as quick as ever.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::process::{Serving, serve};
use crate::support::receiver::{Receiver, hold};
use crate::support::{directory, sink};

/// What `--attempt-timeout` says …
const DEADLINE_MS: u64 = 1_000;
/// … and how much later a busy machine may write the end down.
const SLACK_MS: u64 = 1_000;
/// What memory may grow by.
const FLAT_KIB: u64 = 20 * 1_024;

/// A server whose attempts have a second, and the store it runs on.
fn impatient() -> (Serving, tempfile::TempDir) {
    let directory = directory();
    (serve(directory.path()).args(&["--attempt-timeout", "1s"]).run(), directory)
}

/// A receiver that sends this, and then waits for the other side to leave.
fn sending(bytes: Vec<u8>) -> Receiver {
    Receiver::start(move |_, mut stream| {
        let _left = stream.write_all(&bytes);
        hold(&stream);
    })
}

/// A receiver that sends `head`, and then `piece` again and again until the other side has left.
fn endless(head: &'static str, piece: Vec<u8>, every: Duration) -> Receiver {
    Receiver::start(move |_, mut stream: TcpStream| {
        let mut written = stream.write_all(head.as_bytes());
        while written.is_ok() {
            written = stream.write_all(&piece);
            std::thread::sleep(every);
        }
    })
}

/// The first attempt at this receiver, ended within its deadline.
fn attempted(serving: &Serving, receiver: &Receiver) -> Value {
    let sent = serving.api.send(&receiver.url("/"), "");
    let record = crate::support::until("the first attempt ends", || {
        serving.api.delivery(&sent.delivery)["attempt_records"].get(0).cloned()
    });
    let took = record["duration_ms"].as_u64().expect("a number");
    assert!(took <= DEADLINE_MS + SLACK_MS, "{took} ms: {record}");
    record
}

/// Fate, error kind, decision.
fn ended(record: &Value) -> (&str, Option<&str>, &str) {
    let text = |name: &str| record[name].as_str();
    (text("fate").expect("a fate"), text("error_kind"), text("decision").expect("a decision"))
}

#[test]
fn garbage_is_an_ambiguous_answer_of_kind_protocol() {
    let (serving, _directory) = impatient();
    for garbage in [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec(),
        b"HTTP/1.1 two hundred\r\n\r\n".to_vec(),
        vec![0; 4_096],
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n".to_vec(),
    ] {
        let record = attempted(&serving, &sending(garbage));
        assert_eq!(ended(&record), ("ambiguous", Some("protocol"), "retry"), "{record}");
    }
}

#[test]
fn g11_an_endless_head_ends_the_attempt_whether_it_floods_or_drips() {
    let (serving, _directory) = impatient();
    let line = b"x-more: 0123456789012345678901234567890123456789\r\n";
    let flood = endless("HTTP/1.1 200 OK\r\n", line.repeat(1_000), Duration::ZERO);
    let record = attempted(&serving, &flood);
    assert_eq!(ended(&record), ("ambiguous", Some("protocol"), "retry"), "{record}");
    let drip = endless("HTTP/1.1 200 OK\r\n", b"x-y: z\r\n".to_vec(), Duration::from_millis(50));
    let record = attempted(&serving, &drip);
    assert_eq!(ended(&record), ("ambiguous", Some("timeout"), "retry"), "{record}");
    let silence = sending(Vec::new());
    let record = attempted(&serving, &silence);
    assert_eq!(ended(&record), ("ambiguous", Some("timeout"), "retry"), "{record}");
}

#[test]
fn an_endless_body_ends_with_the_attempt_and_its_status_decides() {
    let (serving, _directory) = impatient();
    let drip = |head| endless(head, b"3\r\nabc\r\n".to_vec(), Duration::from_millis(50));
    let record = attempted(&serving, &drip("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"));
    assert_eq!(ended(&record), ("body_lost", Some("timeout"), "done"), "{record}");
    let record = attempted(&serving, &drip("HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n"));
    assert_eq!((ended(&record).0, ended(&record).2), ("body_lost", "retry"), "{record}");
    assert_eq!(record["response_truncated"], true);
}

#[test]
fn g11_memory_stays_flat_under_floods_and_the_next_delivery_is_prompt() {
    let (serving, _directory) = impatient();
    let sink = sink();
    // Warm: pools, caches and buffers are what they will be.
    for _ in 0..50 {
        let sent = serving.api.send(&sink.url("/ok"), "");
        serving.api.until_state(&sent.delivery, "delivered");
    }
    let before = serving.peak_memory_kib();

    let megabyte = vec![b'x'; 1 << 20];
    let ten_gigabytes = "HTTP/1.1 200 OK\r\ncontent-length: 10737418240\r\n\r\n";
    let record = attempted(&serving, &endless(ten_gigabytes, megabyte.clone(), Duration::ZERO));
    assert_eq!(ended(&record), ("answered", None, "done"), "{record}");
    let failing = "HTTP/1.1 503 No\r\ncontent-length: 10737418240\r\n\r\n";
    let record = attempted(&serving, &endless(failing, megabyte.clone(), Duration::ZERO));
    assert_eq!(ended(&record), ("answered", Some("http_5xx"), "retry"), "{record}");
    assert_eq!(record["response_truncated"], true);
    assert_eq!(record["response_body"].as_str().map(str::len), Some(16 * 1_024));
    let unbounded = endless("HTTP/1.1 200 OK\r\n\r\n", megabyte, Duration::ZERO);
    assert_eq!(ended(&attempted(&serving, &unbounded)), ("answered", None, "done"));
    let line = b"x-more: 0123456789012345678901234567890123456789\r\n".repeat(20_000);
    assert_eq!(
        attempted(&serving, &endless("HTTP/1.1 200 OK\r\n", line, Duration::ZERO))["fate"],
        "ambiguous"
    );
    bomb(&serving);

    let after = serving.peak_memory_kib();
    assert!(after - before < FLAT_KIB, "from {before} to {after} KiB");
    let sent = serving.api.send(&sink.url("/ok"), "");
    let prompt = serving.api.until_state(&sent.delivery, "delivered");
    assert_eq!(prompt["attempts"], 1);
}

/// A gzip bomb is kept as the bytes that came: nothing is ever inflated.
fn bomb(serving: &Serving) {
    let bomb = gzip_of_zeros(6_000);
    let length = bomb.len();
    let head = format!("HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n");
    let record = attempted(serving, &sending([head.as_bytes(), &bomb].concat()));
    assert_eq!(ended(&record), ("answered", Some("http_5xx"), "retry"), "{record}");
    assert_eq!(record["response_headers"]["content-encoding"], "gzip");
    let kept = record["response_body_base64"].as_str().expect("no text");
    assert_eq!(kept.len().div_ceil(4) * 3 / 1_024, 16, "cut at 16 KiB");
    assert!(kept.starts_with("H4sI"), "the gzip header as it came: {}", &kept[..16]);
}

/// `count` times 2 064 zeros in gzip (RFC 1952), 13 bytes for each: twelve megabytes in 78 kB.
///
/// One block with fixed codes (RFC 1951 section 3.2.6): a literal zero, then copies of length 258 at distance 1,
/// each in 13 bits, so that eight of them end on a byte.
fn gzip_of_zeros(count: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |code: u32, length: u32| bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
    // The last block, its type (least significant bit first), the literal 0.
    push(0b1_10, 3);
    push(0b0011_0000, 8);
    for _ in 0..count * 8 {
        push(0b1100_0101, 8);
        push(0, 5);
    }
    push(0, 7);
    let deflated = bits
        .chunks(8)
        .map(|bits| bits.iter().enumerate().fold(0_u8, |byte, (place, bit)| byte | u8::from(*bit) << place));
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    // The checksum at the end is never read: whoever inflates this has failed already.
    header.into_iter().chain(deflated).chain([0; 8]).collect()
}
