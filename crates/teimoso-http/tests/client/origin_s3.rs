//! S3, the connector's client: what it retries, how long it waits, and who decides.

use std::time::Duration;

use teimoso_http::{Client, Idempotent};
use teimoso_retry::{Decision, Fate, GiveUp, Preset, Proof, WaitSource};

use crate::support::{
    Bits, Play, Stage, TestClock, answer, attempts, builder, client, get, millis, nowhere, post, status,
    trace,
};

const SECOND: Duration = Duration::from_secs(1);

fn marked(url: &str) -> http::Request<&'static str> {
    http::Request::post(url).extension(Idempotent).body("payload").unwrap()
}

/// How many requests the peer executed before `client` was content.
async fn executions(
    client: &Client,
    act: Play,
    request: impl FnOnce(&str) -> http::Request<&'static str>,
) -> usize {
    let stage = Stage::playing([act, status(200)]).await;
    let _whatever = client.send(request(&stage.url("/"))).await;
    stage.executions()
}

fn eligible() -> Vec<Play> {
    vec![Play::Reset, Play::Close, status(429), status(502), status(503), status(504)]
}

#[tokio::test]
async fn s3_1_a_request_is_idempotent_only_if_it_says_so() {
    let (client, _) = client(Preset::Connector);
    assert_eq!(executions(&client, Play::Reset, post).await, 1);
    assert_eq!(executions(&client, Play::Reset, marked).await, 2);
}

#[tokio::test]
async fn s3_2_get_and_head_and_marked_requests_are_retried() {
    let (client, _) = client(Preset::Connector);
    for act in eligible() {
        assert_eq!(executions(&client, act.clone(), marked).await, 2);
        for method in ["GET", "HEAD"] {
            let request = |url: &str| http::Request::builder().method(method).uri(url).body("").unwrap();
            assert_eq!(executions(&client, act.clone(), request).await, 2, "{method}");
        }
    }
}

#[tokio::test]
async fn s3_2_any_other_request_propagates_its_first_failure() {
    let (client, clock) = client(Preset::Connector);
    for act in eligible() {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let request = |url: &str| http::Request::builder().method(method).uri(url).body("x").unwrap();
            assert_eq!(executions(&client, act.clone(), request).await, 1, "{method}");
        }
    }
    // Not even when it was certainly not sent.
    let error = client.send(post(&nowhere("/"))).await.unwrap_err();
    assert_eq!((error.attempts(), error.fate()), (1, Fate::NeverSent(Proof::Connect)));
    assert_eq!(clock.waits(), millis(&[]));
}

#[tokio::test]
async fn s3_2_other_statuses_are_answers() {
    let (client, _) = client(Preset::Connector);
    for code in [400, 401, 404, 408, 409, 421, 425, 500, 501, 505] {
        assert_eq!(executions(&client, status(code), marked).await, 1, "{code}");
    }
}

async fn wait_after(code: u16, retry_after: &str) -> (Duration, WaitSource) {
    let told = answer(code, &format!("retry-after: {retry_after}\r\n"), "");
    let stage = Stage::playing([told, status(200)]).await;
    let (client, clock) = client(Preset::Connector);
    let response = client.send(get(&stage.url("/"))).await.unwrap();
    let Decision::RetryIn { wait, source } = trace(&response).attempts()[0].decision else { panic!() };
    assert_eq!(clock.waits(), [wait]);
    (wait, source)
}

#[tokio::test]
async fn s3_3_a_number_of_seconds_replaces_the_backoff_within_30_s() {
    for code in [429, 503] {
        assert_eq!(wait_after(code, "7").await, (7 * SECOND, WaitSource::RetryAfter));
        assert_eq!(wait_after(code, "30").await, (30 * SECOND, WaitSource::RetryAfter));
        assert_eq!(wait_after(code, "31").await, (30 * SECOND, WaitSource::RetryAfter));
        assert_eq!(wait_after(code, "99999999999999999999").await, (30 * SECOND, WaitSource::RetryAfter));
    }
}

#[tokio::test]
async fn s3_3_anything_else_falls_back_to_the_backoff() {
    let backoff = (Duration::from_millis(375), WaitSource::Schedule);
    for value in ["Tue, 01 Jan 2030 00:00:20 GMT", "soon", "", "-1", "1.5", "+7"] {
        assert_eq!(wait_after(503, value).await, backoff, "{value:?}");
    }
    assert_eq!(wait_after(502, "7").await, backoff);
}

#[tokio::test]
async fn s3_4_the_outcome_carries_the_capped_wait_of_a_429_or_503_with_a_valid_number() {
    let (client, _) = client(Preset::Connector);
    for (code, value, expected) in [
        (429, "7", Some(7 * SECOND)),
        (503, "7000", Some(30 * SECOND)),
        (503, "Tue, 01 Jan 2030 00:00:20 GMT", None),
        (429, "soon", None),
        (502, "7", None),
        (400, "7", None),
    ] {
        let stage = Stage::playing([answer(code, &format!("retry-after: {value}\r\n"), "")]).await;
        let response = client.send(post(&stage.url("/"))).await.unwrap();
        assert_eq!(trace(&response).retry_after(), expected, "{code} {value}");
    }
    let stage = Stage::playing([Play::Answer(
        "HTTP/1.1 429 X\r\nretry-after: 9\r\ncontent-length: 9\r\nconnection: close\r\n\r\ncu".to_owned(),
    )])
    .await;
    let deadline = http::Request::post(stage.url("/"))
        .extension(
            teimoso_retry::RetryPolicy::preset(Preset::Connector)
                .to_builder()
                .attempt_timeout(Duration::from_millis(50))
                .build()
                .unwrap(),
        )
        .body("x")
        .unwrap();
    let error = client.send_and_collect(deadline).await.unwrap_err();
    assert_eq!((error.retry_after(), error.status(), error.is_body()), (Some(9 * SECOND), Some(429), true));
}

#[tokio::test]
async fn s3_5_waits_grow_from_300_ms_to_4_s_with_jitter_upward() {
    let clock = TestClock::default();
    let policy =
        teimoso_retry::RetryPolicy::preset(Preset::Connector).to_builder().retries(5).build().unwrap();
    for (bits, waits) in
        [(0, millis(&[300, 600, 1200, 2400, 4000])), (u64::MAX, millis(&[375, 750, 1500, 3000, 5000]))]
    {
        let before = clock.waits().len();
        let client = builder(policy.clone(), &clock).entropy(Bits(bits)).build().unwrap();
        client.send(get(&nowhere("/"))).await.unwrap_err();
        assert_eq!(clock.waits()[before..], waits);
    }
}

#[tokio::test]
async fn s3_6_the_client_knows_no_call_and_unmarked_ones_never_retry() {
    let (client, _) = client(Preset::Connector);
    for path in ["/instance/connect", "/instance/logout", "/message/sendText", "/message/sendMedia"] {
        let stage = Stage::playing([status(503), status(200)]).await;
        let response = client.send(post(&stage.url(path))).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response), stage.executions()), (503, 1, 1));
        let last = trace(&response).last().unwrap();
        assert_eq!(last.decision, Decision::GiveUp(GiveUp::NotReplaySafe), "{path}");
    }
}
