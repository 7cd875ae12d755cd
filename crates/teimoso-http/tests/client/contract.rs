//! What a call promises: the last attempt's own result, its history, its time, its budget, and that an end is an end.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use teimoso_http::{Client, Deadline, ErrorKind, Idempotent, NoRetry, RequestBody};
use teimoso_retry::{
    Budget, Decision, Fate, GiveUp, Jitter, Preset, Proof, RetryPolicy, Schedule, WaitSource, Why,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::common::{OK, Peer, drain, read_request};
use crate::support::{
    Asleep, Bits, Play, Stage, TestClock, answer, attempts, builder, client, get, millis, nowhere, post,
    status, trace, transport,
};

/// The default preset with a short schedule that is known: 10 ms, then 20 ms.
fn known() -> RetryPolicy {
    let waits = Schedule::list(millis(&[10, 20])).unwrap();
    RetryPolicy::builder().schedule(waits).jitter(Jitter::None).build().unwrap()
}

/// A peer that takes the next connection when the last one is over: first a 503 whose megabyte never ends, then OK.
pub async fn one_at_a_time() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = Arc::new(AtomicUsize::new(0));
    let count = served.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let first = count.fetch_add(1, Ordering::Relaxed) == 0;
            read_request(&mut stream).await.unwrap();
            if first {
                let head = b"HTTP/1.1 503 X\r\ncontent-length: 1000000\r\n\r\nbeginning";
                stream.write_all(head).await.unwrap();
                drain(stream).await;
            } else {
                stream.write_all(OK).await.unwrap();
            }
        }
    });
    (address, served)
}

#[tokio::test]
async fn a_peer_that_serves_one_connection_at_a_time_is_not_starved_by_an_unread_body() {
    let (address, served) = one_at_a_time().await;
    let (client, _) = client(known());
    let response = client.send(get(&format!("http://{address}/"))).await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    assert_eq!(served.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn the_answer_is_the_last_attempt_s_own_whatever_its_status() {
    let stage = Stage::playing([
        answer(503, "x-try: first\r\n", "first"),
        answer(502, "x-try: second\r\n", "second"),
        answer(504, "x-try: third\r\nset-cookie: a\r\nset-cookie: b\r\n", "third"),
    ])
    .await;
    let (client, _) = client(known());
    let response = client.send(get(&stage.url("/"))).await.unwrap();
    assert_eq!(response.status().as_u16(), 504);
    assert_eq!(response.headers()["x-try"], "third");
    assert_eq!(response.headers().get_all("set-cookie").iter().count(), 2);
    let (head, body) = response.into_parts();
    assert_eq!(body.collect(64).await.unwrap(), "third");
    let trace = head.extensions.get::<teimoso_http::RetryTrace>().unwrap();
    let statuses: Vec<_> =
        trace.attempts().iter().map(|attempt| (attempt.number.get(), attempt.status)).collect();
    assert_eq!(statuses, [(1, Some(503)), (2, Some(502)), (3, Some(504))]);
    let started: Vec<_> = trace.attempts().iter().map(|attempt| attempt.started_after).collect();
    assert_eq!(started, millis(&[0, 10, 30]));
    assert_eq!(trace.total_wait(), Duration::from_millis(30));
    let peer = stage.url("").strip_prefix("http://").unwrap().parse().unwrap();
    assert!(trace.attempts().iter().all(|attempt| attempt.peer == Some(peer)));
    assert!(trace.attempts().iter().all(|attempt| attempt.timings.total.is_some()));
    assert_eq!(trace.last().unwrap().decision, Decision::GiveUp(GiveUp::AttemptsExhausted));
}

#[tokio::test]
async fn one_good_answer_is_one_attempt_with_a_trace_of_one() {
    let stage = Stage::playing([status(200)]).await;
    let (client, clock) = client(Preset::Standard);
    for reused in [false, true] {
        let response = client.send_and_collect(get(&stage.url("/"))).await.unwrap();
        let trace = trace(&response).attempts();
        assert_eq!((trace.len(), trace[0].decision, trace[0].reused), (1, Decision::Done, reused));
    }
    assert_eq!(clock.waits(), millis(&[]));
}

#[tokio::test]
async fn standard_repeats_a_write_only_with_proof_or_a_mark() {
    let (client, _) = client(known());
    let lost = Stage::playing([Play::Close, status(200)]).await;
    let error = client.send(post(&lost.url("/"))).await.unwrap_err();
    assert_eq!((error.fate(), error.attempts(), lost.executions()), (Fate::Ambiguous(Why::Closed), 1, 1));
    assert!(error.may_have_taken_effect());

    let error = client.send(post(&nowhere("/"))).await.unwrap_err();
    assert_eq!((error.fate(), error.attempts()), (Fate::NeverSent(Proof::Connect), 3));
    assert!(!error.may_have_taken_effect());

    for request in [
        http::Request::post(lost.url("/")).extension(Idempotent).body("x").unwrap(),
        http::Request::post(lost.url("/")).header("Idempotency-Key", "k-1").body("x").unwrap(),
    ] {
        let lost = Stage::playing([Play::Close, status(200)]).await;
        let (mut head, body) = request.into_parts();
        head.uri = lost.url("/").parse().unwrap();
        let response = client.send(http::Request::from_parts(head, body)).await.unwrap();
        assert_eq!((attempts(&response), lost.executions()), (2, 2));
    }
}

#[tokio::test]
async fn an_idempotency_key_is_the_same_on_every_attempt() {
    let stage = Stage::playing([Play::Reset, status(503), status(200)]).await;
    let (client, _) = client(known());
    let request = http::Request::post(stage.url("/")).header("idempotency-key", "k-7").body("x").unwrap();
    client.send(request).await.unwrap();
    let requests = stage.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests.iter().all(|request| *request == requests[0] && request.contains("idempotency-key: k-7"))
    );
}

#[tokio::test]
async fn a_request_may_forbid_its_own_retries_or_bring_its_own_policy() {
    let stage = Stage::playing([status(503)]).await;
    let (client, clock) = client(known());
    let once = http::Request::get(stage.url("/")).extension(NoRetry).body(()).unwrap();
    assert_eq!(attempts(&client.send(once).await.unwrap()), 1);
    let own = known().to_builder().max_attempts(5).build().unwrap();
    let own = http::Request::get(stage.url("/")).extension(own).body(()).unwrap();
    assert_eq!(attempts(&client.send(own).await.unwrap()), 5);
    assert_eq!(clock.waits(), millis(&[10, 20, 20, 20]));
    assert_eq!(stage.executions(), 6);
}

#[tokio::test]
async fn a_stream_is_sent_once_and_that_is_no_error() {
    let stage = Stage::playing([status(503), status(200)]).await;
    let (client, _) = client(known());
    let stream = || RequestBody::stream(Full::new(Bytes::from_static(b"once")));
    let put = |url: &str| http::Request::put(url).extension(Idempotent).body(stream()).unwrap();
    let response = client.send(put(&stage.url("/"))).await.unwrap();
    assert_eq!((response.status().as_u16(), stage.executions()), (503, 1));
    assert_eq!(trace(&response).last().unwrap().decision, Decision::GiveUp(GiveUp::NotReplaySafe));
    assert!(stage.requests()[0].ends_with("\r\n\r\nonce"));
}

#[tokio::test]
async fn a_stream_that_nobody_read_from_is_sent_after_all() {
    let (client, clock) = client(known());
    let stream = RequestBody::stream(Full::new(Bytes::from_static(b"once")));
    let error = client.send(http::Request::post(nowhere("/")).body(stream).unwrap()).await.unwrap_err();
    assert_eq!((error.attempts(), error.fate()), (3, Fate::NeverSent(Proof::Connect)));
    assert_eq!(clock.waits(), millis(&[10, 20]));
}

#[tokio::test]
async fn a_wait_that_cannot_end_in_time_is_not_begun_and_the_answer_is_kept() {
    let stage = Stage::playing([answer(503, "retry-after: 29\r\n", "busy"), status(200)]).await;
    let (client, clock) = client(known());
    let request =
        http::Request::get(stage.url("/")).extension(Deadline(Duration::from_secs(29))).body(()).unwrap();
    let response = client.send_and_collect(request).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.body()[..]), (503, b"busy".as_slice()));
    assert_eq!(trace(&response).last().unwrap().decision, Decision::GiveUp(GiveUp::DeadlineExceeded));
    assert_eq!((clock.waits(), stage.executions()), (vec![], 1));
}

#[tokio::test]
async fn an_attempt_ends_with_the_call_and_a_call_without_time_sends_nothing() {
    let peer = Peer::start(|_, stream| drain(stream)).await;
    let (client, _) = client(known());
    let within = |time| http::Request::post(peer.url()).extension(Deadline(time)).body("x").unwrap();
    let error = client.send(within(Duration::from_millis(80))).await.unwrap_err();
    assert_eq!((error.fate(), error.kind()), (Fate::Ambiguous(Why::Timeout), ErrorKind::Timeout));
    assert!(error.is_timeout() && peer.accepted() == 1);
    let error = client.send(within(Duration::ZERO)).await.unwrap_err();
    assert_eq!((error.fate(), error.is_timeout()), (Fate::NeverSent(Proof::NoConnection), true));
    assert_eq!((error.may_have_taken_effect(), peer.accepted()), (false, 1));
}

#[tokio::test]
async fn retry_after_is_obeyed_in_all_forms_and_never_early() {
    let date = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for (told, least) in [
        ("retry-after: 20\r\n".to_owned(), 20),
        // By the response's own clock, which is decades behind ours.
        (format!("{date}retry-after: Sun, 06 Nov 1994 08:49:52 GMT\r\n"), 15),
        (format!("{date}retry-after: Sunday, 06-Nov-94 08:49:52 GMT\r\n"), 15),
        (format!("{date}retry-after: Sun Nov  6 08:49:52 1994\r\n"), 15),
        // By ours, which stands at the beginning of 2030.
        ("retry-after: Tue, 01 Jan 2030 00:00:12 GMT\r\n".to_owned(), 12),
        ("retry-after: 3\r\nretry-after: 5\r\n".to_owned(), 5),
    ] {
        let stage = Stage::playing([answer(503, &told, ""), status(200)]).await;
        let clock = TestClock::default();
        let client = builder(known(), &clock).entropy(Bits(0)).build().unwrap();
        let response = client.send(get(&stage.url("/"))).await.unwrap();
        assert_eq!(clock.waits(), [Duration::from_secs(least)], "{told}");
        let first = &trace(&response).attempts()[0];
        assert!(matches!(first.decision, Decision::RetryIn { source: WaitSource::RetryAfter, .. }));
        assert_eq!(first.retry_after, Some(Duration::from_secs(least)));
    }
}

#[tokio::test]
async fn a_retry_after_beyond_the_cap_gives_the_answer_back_at_once() {
    for told in ["61", "1789136700", "99999999999999999999", "Tue, 01 Jan 2030 01:00:00 GMT"] {
        let stage = Stage::playing([answer(429, &format!("retry-after: {told}\r\n"), "slow down")]).await;
        let (client, clock) = client(known());
        let response = client.send_and_collect(get(&stage.url("/"))).await.unwrap();
        assert_eq!((&response.body()[..], stage.executions()), (b"slow down".as_slice(), 1));
        let last = trace(&response).last().unwrap();
        assert_eq!(last.decision, Decision::GiveUp(GiveUp::RetryAfterBeyondCap));
        assert!(last.retry_after > Some(Duration::from_secs(60)), "the caller learns how long");
        assert_eq!(clock.waits(), millis(&[]));
    }
}

async fn attempts_against(client: &Client, url: &str) -> u32 {
    client.send(get(url)).await.unwrap_err().attempts()
}

#[tokio::test]
async fn the_default_budget_stops_retrying_against_a_dead_peer_and_no_other() {
    let (client, _) = client(Preset::Standard);
    let dead = nowhere("/");
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(attempts_against(&client, &dead).await);
    }
    // Ten are saved, each request earns a fifth: what is left after five requests is 0.8, after the sixth 1.0 − 1.
    assert_eq!(made, [3, 3, 3, 3, 3, 2, 1]);
    assert_eq!(attempts_against(&client, &nowhere("/")).await, 3);
    let error = client.send(get(&dead)).await.unwrap_err();
    assert_eq!(error.trace().last().unwrap().decision, Decision::GiveUp(GiveUp::BudgetExhausted));
}

#[tokio::test]
async fn without_a_budget_every_request_has_all_its_attempts() {
    let clock = TestClock::default();
    let client = builder(Preset::Standard, &clock).retry_budget(None).build().unwrap();
    let dead = nowhere("/");
    for _ in 0..10 {
        assert_eq!(attempts_against(&client, &dead).await, 3);
    }
}

#[tokio::test]
async fn a_dropped_call_makes_no_further_attempt_and_gets_its_payment_back() {
    let stage = Stage::playing([Play::Reset]).await;
    let clock = Asleep::default();
    let asleep = clock.0.clone();
    let client = Client::builder()
        .policy(known())
        .clock(clock)
        .retry_budget(Some(Budget::new(0, 1)))
        .transport(transport().build().unwrap())
        .build()
        .unwrap();
    for calls in 1..=3 {
        let url = stage.url("/");
        let call = async { client.send(get(&url)).await.map(|_| ()) };
        tokio::select! {
            ended = call => panic!("{ended:?}"),
            () = asleep.notified() => {}
        }
        // A budget of one retry would not let a second call wait, had the first one not got its payment back.
        assert_eq!(stage.executions(), calls);
    }
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let (gone, mut is_gone) = tokio::sync::mpsc::channel(1);
    let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
    let peer = Peer::start(move |_, mut stream| {
        let (gone, begun) = (gone.clone(), begun.clone());
        async move {
            read_request(&mut stream).await.unwrap();
            begun.send(()).await.unwrap();
            drain(stream).await;
            gone.send(()).await.unwrap();
        }
    })
    .await;
    let (client, _) = client(known());
    let url = peer.url();
    tokio::select! {
        ended = client.send(get(&url)) => panic!("{ended:?}"),
        _ = has_begun.recv() => {}
    }
    is_gone.recv().await.unwrap();
    assert_eq!(peer.accepted(), 1);
}

#[tokio::test]
async fn a_streamed_answer_that_breaks_is_the_reader_s_to_see() {
    let stage = Stage::playing([Play::Cut]).await;
    let (client, _) = client(known());
    let response = client.send(get(&stage.url("/"))).await.unwrap();
    assert_eq!(attempts(&response), 1);
    let error = BodyExt::collect(response.into_body()).await.unwrap_err();
    assert_eq!((error.kind(), stage.executions()), (ErrorKind::Closed, 1));
}

#[tokio::test]
async fn a_body_beyond_the_cap_is_an_error_that_is_not_fetched_again() {
    let stage = Stage::playing([answer(200, "", "four")]).await;
    let client = builder(known(), &TestClock::default()).response_body_max(3).build().unwrap();
    let error = client.send_and_collect(get(&stage.url("/"))).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.fate(), error.status()),
        (ErrorKind::TooLarge, Fate::Answered, Some(200))
    );
    assert_eq!((error.is_body(), error.attempts(), stage.executions()), (true, 1, 1));
    let body = client.send(get(&stage.url("/"))).await.unwrap().into_body();
    assert_eq!(body.collect(64).await.unwrap(), "four");
}

#[tokio::test]
async fn default_headers_fill_gaps_and_override_nothing() {
    let stage = Stage::playing([status(200)]).await;
    let client = builder(known(), &TestClock::default())
        .default_header("accept", "application/json")
        .default_header("x-team", "a")
        .default_header("x-team", "b")
        .build()
        .unwrap();
    let request = http::Request::get(stage.url("/")).header("accept", "text/plain").body(()).unwrap();
    client.send(request).await.unwrap();
    let requests = stage.requests();
    let lines = |name: &str| requests[0].lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    assert_eq!(lines("accept:"), ["accept: text/plain"]);
    assert_eq!(lines("x-team:"), ["x-team: a", "x-team: b"]);
}

#[test]
fn a_call_can_be_spawned_and_a_client_shared() {
    fn assert_shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    fn assert_send<T: Send>(_: &T) {}
    let (client, _) = client(Preset::Standard);
    assert_shared(&client);
    let stream = || RequestBody::stream(Full::new(Bytes::new()));
    assert_send(&client.send(http::Request::new(stream())));
    assert_send(&client.send_and_collect(http::Request::new(stream())));
}

#[tokio::test]
async fn attempts_seen_by_the_peer_are_the_attempts_that_are_told() {
    let seen = Arc::new(Mutex::new(0_u32));
    let count = seen.clone();
    let peer = Peer::start(move |_, mut stream| {
        let count = count.clone();
        async move {
            read_request(&mut stream).await.unwrap();
            *count.lock().unwrap() += 1;
        }
    })
    .await;
    let (client, _) = client(known());
    let error = client.send(get(&peer.url())).await.unwrap_err();
    assert_eq!((error.attempts(), *seen.lock().unwrap()), (3, 3));
}
