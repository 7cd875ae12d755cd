//! Every route of the test destination, over real sockets. The requests are written by hand, so that what is
//! tested is what any client would see.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use teimoso::sink::{self, Options, SinkHandle};

const PATIENCE: Duration = Duration::from_secs(10);

fn sink() -> SinkHandle {
    sink::start(loopback(), Options::default()).expect("a sink on a free port")
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn open(sink: &SinkHandle) -> TcpStream {
    let stream = TcpStream::connect(sink.addr).expect("the sink listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

/// One request on a connection of its own, closed by the server; the whole answer as text.
fn exchange(sink: &SinkHandle, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = open(sink);
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: sink\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer to the end");
    answer
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).expect("a status line").parse().expect("a number")
}

fn post(sink: &SinkHandle, path: &str, id: &str) -> u16 {
    status(&exchange(sink, "POST", path, &format!("webhook-id: {id}\r\n"), "{}"))
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head").1
}

#[test]
fn s2_11_ok_quebra_and_unknown_paths() {
    let sink = sink();
    assert_eq!(post(&sink, "/ok", "a"), 200);
    assert_eq!(post(&sink, "/quebra", "a"), 500);
    assert_eq!(post(&sink, "/quebra", "a"), 500);
    assert_eq!(post(&sink, "/nada", "a"), 404);
    assert_eq!(post(&sink, "/", "a"), 404);
}

#[test]
fn s2_11_teimoso_counts_per_webhook_id() {
    let sink = sink();
    let first: Vec<_> = (0..4).map(|_| post(&sink, "/teimoso", "a")).collect();
    assert_eq!(first, [503, 503, 200, 200]);
    assert_eq!(post(&sink, "/teimoso", "b"), 503);
}

#[test]
fn s2_11_teimoso_without_an_id_has_one_global_count() {
    let sink = sink();
    let seen: Vec<_> = (0..4).map(|_| status(&exchange(&sink, "POST", "/teimoso", "", "{}"))).collect();
    assert_eq!(seen, [503, 503, 200, 200]);
}

#[test]
fn a_query_is_no_part_of_the_route() {
    let sink = sink();
    assert_eq!(post(&sink, "/status/418?a=/b", "a"), 418);
}

#[test]
fn status_fail_gone_and_redirect() {
    let sink = sink();
    for code in [200, 204, 304, 429, 599, 999] {
        assert_eq!(post(&sink, &format!("/status/{code}"), "a"), code);
    }
    assert_eq!(post(&sink, "/status/101", "a"), 404);
    let failed: Vec<_> = (0..3).map(|_| post(&sink, "/fail/2", "a")).collect();
    assert_eq!(failed, [503, 503, 200]);
    assert_eq!(post(&sink, "/fail/1", "a"), 503, "each N counts by itself");
    assert_eq!(post(&sink, "/gone", "a"), 410);
    let redirect = exchange(&sink, "POST", "/redirect", "", "");
    assert_eq!(status(&redirect), 302);
    assert!(redirect.contains("\r\nlocation: /ok\r\n"), "{redirect}");
}

#[test]
fn retry_after_is_told_once_per_id() {
    let sink = sink();
    let told = exchange(&sink, "POST", "/retry-after/7", "webhook-id: a\r\n", "");
    assert_eq!(status(&told), 503);
    assert!(told.contains("\r\nretry-after: 7\r\n"), "{told}");
    assert_eq!(post(&sink, "/retry-after/7", "a"), 200);
    assert_eq!(post(&sink, "/retry-after/7", "b"), 503);
}

#[test]
fn slow_answers_late_and_not_before() {
    let sink = sink();
    let started = teimoso::clock::monotonic_now();
    assert_eq!(post(&sink, "/slow/120", "a"), 200);
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(120), "{took:?}");
}

#[test]
fn cut_sends_less_than_it_declares() {
    let sink = sink();
    let answer = exchange(&sink, "POST", "/cut", "", "{}");
    assert_eq!(status(&answer), 200);
    assert!(answer.contains("\r\ncontent-length: 64\r\n"), "{answer}");
    assert_eq!(body(&answer), "this body will not reach its ");
}

#[test]
fn reset_is_a_reset_and_not_a_close() {
    let sink = sink();
    let mut stream = open(&sink);
    stream.write_all(b"POST /reset HTTP/1.1\r\nhost: sink\r\ncontent-length: 2\r\n\r\n{}").expect("written");
    let error = stream.read(&mut [0; 64]).expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(sink.count(), 1);
}

#[test]
fn hang_reads_the_request_and_says_nothing() {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let options = Options { listener: Some(sender), ..Options::default() };
    let sink = sink::start(loopback(), options).expect("a sink on a free port");
    let mut stream = open(&sink);
    stream.write_all(b"POST /hang HTTP/1.1\r\nhost: sink\r\ncontent-length: 0\r\n\r\n").expect("written");
    let record = receiver.blocking_recv().expect("it arrived");
    assert_eq!(record.answer().status(), None);
    stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a time-out");
    let error = stream.read(&mut [0; 64]).expect_err("silence");
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    assert_eq!(sink.requests().len(), 1);
}

#[test]
fn requests_are_kept_as_ndjson_and_forgotten_on_demand() {
    let sink = sink();
    let headers = "webhook-id: evt_1\r\nteimoso-attempt: 2\r\nx-two: a\r\nx-two: b\r\n";
    exchange(&sink, "POST", "/teimoso?x=1", headers, "{\"a\":1.0}");
    exchange(&sink, "GET", "/ok", "", "");
    let answer = exchange(&sink, "GET", "/_requests", "", "");
    assert!(answer.contains("\r\ncontent-type: application/x-ndjson\r\n"), "{answer}");
    let sent = unchunked(body(&answer));
    let lines: Vec<serde_json::Value> =
        sent.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["method"], "POST");
    assert_eq!(lines[0]["path"], "/teimoso?x=1");
    assert_eq!(lines[0]["webhook_id"], "evt_1");
    assert_eq!(lines[0]["attempt"], 2);
    assert_eq!(lines[0]["headers"]["x-two"], "a, b");
    assert_eq!(lines[0]["body_base64"], "eyJhIjoxLjB9");
    assert_eq!(lines[0]["answered"], 503);
    assert_eq!(lines[1]["webhook_id"], serde_json::Value::Null);
    assert_eq!(lines[1]["attempt"], serde_json::Value::Null);

    assert_eq!(body(&exchange(&sink, "GET", "/_count", "", "")), "2\n");
    assert_eq!(status(&exchange(&sink, "DELETE", "/_requests", "", "")), 204);
    assert_eq!(body(&exchange(&sink, "GET", "/_count", "", "")), "0\n");
    assert_eq!(sink.requests().len(), 0);
    assert_eq!(post(&sink, "/teimoso", "evt_1"), 503, "the counts start again");
    assert_eq!(status(&exchange(&sink, "POST", "/_count", "", "")), 405);
}

/// The chunks of a body put together again (RFC 9112 section 7.1).
fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}

#[test]
fn a_large_body_is_counted_whole_and_kept_in_part() {
    let sink = sink();
    let large = "x".repeat((1 << 20) + 5);
    assert_eq!(status(&exchange(&sink, "POST", "/ok", "", &large)), 200);
    let kept = sink.requests();
    assert_eq!((kept[0].body().len(), kept[0].body_bytes()), (1 << 20, (1 << 20) + 5));
}

#[test]
fn a_request_cut_short_by_its_sender_did_not_arrive() {
    let sink = sink();
    let mut stream = open(&sink);
    stream.write_all(b"POST /ok HTTP/1.1\r\nhost: sink\r\ncontent-length: 10\r\n\r\n12345").expect("written");
    stream.shutdown(std::net::Shutdown::Write).expect("half closed");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the end");
    assert_eq!(rest.len(), 0, "no answer");
    assert_eq!(sink.count(), 0);
}

#[test]
fn one_connection_carries_many_requests() {
    let sink = sink();
    let mut stream = open(&sink);
    for _ in 0..3 {
        stream.write_all(b"POST /ok HTTP/1.1\r\nhost: sink\r\ncontent-length: 2\r\n\r\n{}").expect("written");
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("more of the answer");
            answer.push(byte[0]);
        }
    }
    assert_eq!(sink.count(), 3);
}

#[test]
fn keep_bounds_what_is_kept_and_not_what_is_counted() {
    let options = Options { keep: 2, listener: None };
    let sink = sink::start(loopback(), options).expect("a sink on a free port");
    for path in ["/ok", "/gone", "/nada"] {
        post(&sink, path, "a");
    }
    let paths: Vec<_> = sink.requests().iter().map(|record| record.path().to_owned()).collect();
    assert_eq!(paths, ["/gone", "/nada"]);
    assert_eq!(sink.count(), 3);
}

#[test]
fn every_request_is_told_to_the_listener_in_order() {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let options = Options { keep: 0, listener: Some(sender) };
    let sink = sink::start(loopback(), options).expect("a sink on a free port");
    for path in ["/ok", "/gone"] {
        post(&sink, path, "a");
        assert_eq!(receiver.blocking_recv().expect("told").path(), path);
    }
    assert_eq!(sink.requests().len(), 0);
    drop(receiver);
    assert_eq!(post(&sink, "/ok", "a"), 200, "a listener that left holds nothing up");
}

#[test]
fn a_taken_port_is_an_error_and_a_stopped_sink_frees_it() {
    let sink = sink();
    let addr = sink.addr;
    let error = sink::start(addr, Options::default()).expect_err("taken");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    sink.stop();
    let again = sink::start(addr, Options::default()).expect("free again");
    assert_eq!(again.addr, addr);
}

#[test]
fn a_sink_starts_and_stops_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let sink = sink();
        assert!(sink::start(sink.addr, Options::default()).is_err());
        drop(sink);
    });
}
