//! S1, the API client: every requirement that a client can carry, and the twelve cases of S1.12 by name.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use teimoso_http::{Client, Error, ErrorKind, RequestBody};
use teimoso_retry::{Decision, Fate, GiveUp, Jitter, Preset, Proof, RetryPolicy, Schedule, Why};

use crate::support::{
    Bits, Play, Stage, TestClock, answer, attempts, builder, client, get, millis, nowhere, post, status,
    trace,
};

fn forgejo() -> RetryPolicy {
    RetryPolicy::preset(Preset::Forgejo)
}

/// The longest waits of the preset.
fn longest() -> Vec<Duration> {
    millis(&[360, 720, 1440])
}

// S1.12, the twelve cases.

#[tokio::test]
async fn s1_12_a_network_failure_of_get_then_success() {
    let stage = Stage::playing([Play::Reset, status(200)]).await;
    let (client, clock) = client(forgejo());
    let response = client.send_and_collect(get(&stage.url("/"))).await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response), stage.executions()), (200, 2, 2));
    assert_eq!(trace(&response).attempts()[0].fate, Fate::Ambiguous(Why::Reset));
    assert_eq!(clock.waits(), longest()[..1]);
}

#[tokio::test]
async fn s1_12_a_network_failure_of_post_then_success() {
    let stage = Stage::playing([Play::Close, status(201)]).await;
    let (client, clock) = client(forgejo());
    let response = client.send_and_collect(post(&stage.url("/"))).await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (201, 2));
    assert_eq!(clock.waits(), longest()[..1]);
    let requests = stage.requests();
    assert!(requests.iter().all(|request| request.ends_with("\r\n\r\npayload")), "{requests:?}");
}

#[tokio::test]
async fn s1_12_a_body_drop_of_get_is_retried() {
    let stage = Stage::playing([Play::Cut, status(200)]).await;
    let (client, _) = client(forgejo());
    let response = client.send_and_collect(get(&stage.url("/"))).await.unwrap();
    assert_eq!((&response.body()[..], attempts(&response)), (b"body".as_slice(), 2));
    let first = &trace(&response).attempts()[0];
    assert_eq!((first.fate, first.status), (Fate::BodyLost, Some(200)));
}

#[tokio::test]
async fn s1_12_a_body_drop_of_a_write_fails_closed() {
    let stage = Stage::playing([Play::Cut, status(200)]).await;
    let (client, clock) = client(forgejo());
    let error = client.send_and_collect(post(&stage.url("/"))).await.unwrap_err();
    assert_eq!((error.fate(), error.status(), stage.executions()), (Fate::BodyLost, Some(200), 1));
    assert!(error.is_body() && error.may_have_taken_effect());
    assert_eq!(clock.waits(), millis(&[]));
}

#[tokio::test]
async fn s1_12_a_persistent_network_failure_fails_after_retries_plus_one_calls() {
    let stage = Stage::playing([Play::Reset]).await;
    let (client, clock) = client(forgejo());
    let error = client.send(get(&stage.url("/"))).await.unwrap_err();
    assert_eq!((error.attempts(), error.kind(), stage.executions()), (4, ErrorKind::Reset, 4));
    assert_eq!(clock.waits(), longest());
    let last = error.trace().last().unwrap().decision;
    assert_eq!(last, Decision::GiveUp(GiveUp::AttemptsExhausted));
}

#[tokio::test]
async fn s1_12_no_retries_means_one_call() {
    let stage = Stage::playing([Play::Reset]).await;
    let (client, clock) = client(forgejo().to_builder().retries(0).build().unwrap());
    let error = client.send(get(&stage.url("/"))).await.unwrap_err();
    assert_eq!((error.attempts(), stage.executions(), clock.waits()), (1, 1, vec![]));
}

#[tokio::test]
async fn s1_12_a_4xx_is_not_retried() {
    for code in [400, 401, 403, 404, 408, 409, 421, 425, 429, 499] {
        let stage = Stage::playing([status(code)]).await;
        let (client, _) = client(forgejo());
        let response = client.send(get(&stage.url("/"))).await.unwrap();
        assert_eq!((response.status().as_u16(), stage.executions()), (code, 1));
    }
}

#[tokio::test]
async fn s1_12_a_5xx_of_get_is_retried() {
    let stage = Stage::playing([status(502), status(503), status(504), status(200)]).await;
    let (client, clock) = client(forgejo());
    let response = client.send(get(&stage.url("/"))).await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response), stage.executions()), (200, 4, 4));
    assert_eq!(clock.waits(), longest());
}

#[tokio::test]
async fn s1_12_a_5xx_of_get_that_lasts_is_the_answer_after_four_attempts() {
    let stage = Stage::playing([status(502), status(502), status(502), answer(503, "", "last")]).await;
    let (client, _) = client(forgejo());
    let response = client.send_and_collect(get(&stage.url("/"))).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.body()[..]), (503, b"last".as_slice()));
    assert_eq!((attempts(&response), stage.executions()), (4, 4));
}

#[tokio::test]
async fn s1_12_a_5xx_of_post_is_not_retried() {
    for code in [500, 502, 503, 504] {
        let stage = Stage::playing([status(code)]).await;
        let (client, _) = client(forgejo());
        let response = client.send(post(&stage.url("/"))).await.unwrap();
        assert_eq!((response.status().as_u16(), stage.executions()), (code, 1));
    }
}

#[tokio::test]
async fn s1_12_backoff_grows_from_the_base_to_twice_the_base() {
    let policy = forgejo().to_builder().jitter(Jitter::None).build().unwrap();
    let (client, clock) = client(policy);
    client.send(get(&nowhere("/"))).await.unwrap_err();
    assert_eq!(clock.waits(), millis(&[300, 600, 1200]));
}

#[tokio::test]
async fn s1_12_jitter_is_pinned_to_a_fifth() {
    let clock = TestClock::default();
    for (bits, waits) in [(0, millis(&[240, 480, 960])), (u64::MAX, longest())] {
        let before = clock.waits().len();
        let client = builder(forgejo(), &clock).entropy(Bits(bits)).build().unwrap();
        client.send(get(&nowhere("/"))).await.unwrap_err();
        assert_eq!(clock.waits()[before..], waits);
    }
}

// The other requirements of S1.

/// Two callers that know nothing of retrying.
async fn title(client: &Client, url: &str) -> Result<Bytes, Error> {
    Ok(client.send_and_collect(http::Request::get(url).body(())?).await?.into_body())
}

async fn close(client: &Client, url: &str) -> Result<u16, Error> {
    Ok(client.send(http::Request::patch(url).body("{}")?).await?.status().as_u16())
}

#[tokio::test]
async fn s1_1_every_caller_of_the_one_client_gains_retries_without_changing() {
    let stage = Stage::playing([Play::Reset, answer(200, "", "title"), Play::Reset, status(200)]).await;
    let (client, _) = client(forgejo());
    assert_eq!(title(&client, &stage.url("/1")).await.unwrap(), "title");
    assert_eq!(close(&client, &stage.url("/1")).await.unwrap(), 200);
    assert_eq!(stage.executions(), 4);
}

#[tokio::test]
async fn s1_2_a_failure_before_any_answer_is_retried_for_every_method() {
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        let request = |url: &str| http::Request::builder().method(method).uri(url).body("x").unwrap();
        let stage = Stage::playing([Play::Reset, Play::Close, status(200)]).await;
        let (client, _) = client(forgejo());
        let response = client.send(request(&stage.url("/"))).await.unwrap();
        assert_eq!((attempts(&response), stage.executions()), (3, 3), "{method}");
        let error = client.send(request(&nowhere("/"))).await.unwrap_err();
        assert_eq!((error.attempts(), error.fate()), (4, Fate::NeverSent(Proof::Connect)), "{method}");
        assert!(error.is_connect() && !error.may_have_taken_effect());
    }
}

#[tokio::test]
async fn s1_3_a_body_that_never_comes_whole_is_an_error_of_the_body_after_four_attempts() {
    let stage = Stage::playing([Play::Cut]).await;
    let (client, _) = client(forgejo());
    let error = client.send_and_collect(get(&stage.url("/"))).await.unwrap_err();
    assert_eq!((error.attempts(), stage.executions(), error.is_body()), (4, 4, true));
    assert_eq!(error.to_string(), "failed to read the response body: the peer closed the connection");
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let stage = Stage::playing([Play::Cut, status(200)]).await;
        let request = http::Request::builder().method(method).uri(stage.url("/")).body("x").unwrap();
        assert!(client.send_and_collect(request).await.unwrap_err().is_body());
        assert_eq!(stage.executions(), 1, "{method}");
    }
}

#[tokio::test]
async fn s1_4_the_unread_body_of_a_503_is_let_go_before_the_next_try() {
    // A peer that serves one connection at a time: were the first one held through the wait, the second would starve.
    let peer = crate::contract::one_at_a_time().await;
    let (client, _) = client(forgejo());
    let response = client.send_and_collect(get(&format!("http://{}/", peer.0))).await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
}

#[tokio::test]
async fn s1_5_a_403_makes_exactly_one_request() {
    let stage = Stage::playing([status(403), status(200)]).await;
    let (client, clock) = client(forgejo());
    let response = client.send(get(&stage.url("/"))).await.unwrap();
    assert_eq!((response.status().as_u16(), stage.executions(), clock.waits()), (403, 1, vec![]));
    let last = trace(&response).last().unwrap();
    assert_eq!(last.decision, Decision::GiveUp(GiveUp::PermanentStatus));
}

#[tokio::test]
async fn s1_6_three_retries_wait_2520_ms_at_most() {
    let (client, clock) = client(forgejo());
    let error = client.send(get(&nowhere("/"))).await.unwrap_err();
    assert_eq!((clock.waited(), error.trace().total_wait()), (Duration::from_millis(2520), clock.waited()));
}

#[tokio::test]
async fn s1_7_retries_backoff_jitter_and_sleep_are_options_and_none_must_be_given() {
    let waits = Schedule::list(millis(&[7, 11])).unwrap();
    let policy = forgejo().to_builder().retries(2).schedule(waits).jitter(Jitter::None).build().unwrap();
    let (client, clock) = client(policy);
    assert_eq!(client.send(get(&nowhere("/"))).await.unwrap_err().attempts(), 3);
    assert_eq!(clock.waits(), millis(&[7, 11]));
}

#[tokio::test]
async fn s1_8_one_warning_per_retry_with_all_that_its_line_says() {
    let stage = Stage::playing([status(502), Play::Reset, status(200)]).await;
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = lines.clone();
    let client = builder(forgejo(), &TestClock::default())
        .observer(move |event| {
            let (method, path, number, max) = (&event.method, event.path(), event.number, event.max_attempts);
            let wait = event.wait.as_millis();
            let line = format!(
                "[forgejo-api] {method} {path} falhou (tentativa {number}/{max}): {} — retry em {wait}ms",
                event.reason
            );
            kept.lock().unwrap().push(line);
        })
        .build()
        .unwrap();
    client.send(get(&stage.url("/api/v1/repos?token=s3cret"))).await.unwrap();
    let expected = [
        "[forgejo-api] GET /api/v1/repos falhou (tentativa 1/4): http 502 — retry em 360ms",
        "[forgejo-api] GET /api/v1/repos falhou (tentativa 2/4): \
         get a response: the peer reset the connection — retry em 720ms",
    ];
    assert_eq!(*lines.lock().unwrap(), expected);
}

#[tokio::test]
async fn s1_9_a_permanent_failure_is_the_peer_s_own_answer_untouched() {
    let body = r#"{"message":"token is not allowed to do this"}"#;
    let stage = Stage::playing([answer(403, "x-reason: scope\r\n", body)]).await;
    let (client, _) = client(forgejo());
    let response = client.send_and_collect(post(&stage.url("/"))).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.body()[..]), (403, body.as_bytes()));
    assert_eq!(response.headers()["x-reason"], "scope");
}

#[tokio::test]
async fn a_factory_s_body_is_whole_on_every_attempt() {
    let stage = Stage::playing([Play::Reset, Play::Reset, status(200)]).await;
    let (client, _) = client(forgejo());
    let body = RequestBody::factory(|| http_body_util::Full::new(Bytes::from_static(b"made again")));
    let request = http::Request::post(stage.url("/")).body(body).unwrap();
    client.send(request).await.unwrap();
    let requests = stage.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.ends_with("\r\n\r\nmade again")), "{requests:?}");
}
