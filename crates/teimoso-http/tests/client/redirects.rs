//! Redirects over real sockets: each hop a request of its own, above the retries.

use http::HeaderValue;
use teimoso_http::{Client, Redirects};
use teimoso_retry::{Fate, Preset, Proof};

use crate::support::{Play, Stage, TestClock, answer, attempts, builder, get, nowhere, post, status, trace};

fn following(limit: u32) -> Client {
    builder(Preset::Standard, &TestClock::default()).redirects(Redirects::Limit(limit)).build().unwrap()
}

fn moved(status: u16, location: &str) -> Play {
    answer(status, &format!("location: {location}\r\n"), "moved")
}

fn first_line(request: &str) -> &str {
    request.lines().next().unwrap_or_default()
}

#[tokio::test]
async fn a_redirect_is_an_answer_unless_following_is_switched_on() {
    let stage = Stage::playing([moved(302, "/next"), status(200)]).await;
    let client = builder(Preset::Standard, &TestClock::default()).build().unwrap();
    let response = client.send_and_collect(get(&stage.url("/"))).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.body()[..]), (302, b"moved".as_slice()));
    assert_eq!(stage.executions(), 1);
}

#[tokio::test]
async fn each_hop_has_its_own_attempts() {
    let stage = Stage::playing([status(503), moved(302, "/next?a=b"), Play::Reset, status(200)]).await;
    let response = following(3).send_and_collect(get(&stage.url("/first"))).await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let told: Vec<_> = trace(&response)
        .attempts()
        .iter()
        .map(|attempt| (attempt.hop, attempt.number.get(), attempt.status))
        .collect();
    assert_eq!(told, [(0, 1, Some(503)), (0, 2, Some(302)), (1, 1, None), (1, 2, Some(200))]);
    let requests = stage.requests();
    let lines: Vec<_> = requests.iter().map(|request| first_line(request)).collect();
    let (first, next) = ("GET /first HTTP/1.1", "GET /next?a=b HTTP/1.1");
    assert_eq!(lines, [first, first, next, next]);
}

#[tokio::test]
async fn a_307_takes_method_and_body_along_and_a_303_neither() {
    let stage = Stage::playing([moved(307, "/a"), moved(303, "/b"), status(200)]).await;
    following(3).send(post(&stage.url("/"))).await.unwrap();
    let requests = stage.requests();
    let lines: Vec<_> = requests.iter().map(|request| first_line(request)).collect();
    assert_eq!(lines, ["POST / HTTP/1.1", "POST /a HTTP/1.1", "GET /b HTTP/1.1"]);
    assert!(requests[1].ends_with("\r\n\r\npayload") && requests[2].ends_with("\r\n\r\n"));
}

#[tokio::test]
async fn beyond_the_limit_the_last_redirect_is_the_answer() {
    let stage = Stage::playing([moved(302, "/again")]).await;
    for limit in [0, 1, 4] {
        let before = stage.executions();
        let response = following(limit).send_and_collect(get(&stage.url("/"))).await.unwrap();
        assert_eq!((response.status().as_u16(), &response.body()[..]), (302, b"moved".as_slice()));
        assert_eq!(
            (attempts(&response), stage.executions() - before),
            (limit as usize + 1, limit as usize + 1)
        );
    }
}

#[tokio::test]
async fn credentials_do_not_leave_the_host_they_were_meant_for() {
    let elsewhere = Stage::playing([status(200)]).await;
    let stage = Stage::playing([moved(307, "/same"), moved(307, &elsewhere.url("/other"))]).await;
    let mut key = HeaderValue::from_static("s3cret-key");
    key.set_sensitive(true);
    let client = builder(Preset::Standard, &TestClock::default())
        .redirects(Redirects::Limit(5))
        .default_header("x-api-key", key)
        .default_header("x-plain", "kept")
        .build()
        .unwrap();
    let request = http::Request::put(stage.url("/"))
        .header("authorization", "Bearer s3cret-token")
        .header("cookie", "session=s3cret-cookie")
        .header("proxy-authorization", "Basic s3cret-proxy")
        .body("payload")
        .unwrap();
    client.send(request).await.unwrap();
    for kept in stage.requests() {
        for secret in ["s3cret-token", "s3cret-cookie", "s3cret-key"] {
            assert!(kept.contains(secret), "{kept}");
        }
    }
    let requests = elsewhere.requests();
    assert_eq!(requests.len(), 1);
    assert!(!requests[0].contains("s3cret") && requests[0].contains("x-plain: kept"), "{}", requests[0]);
    assert!(requests[0].starts_with("PUT /other HTTP/1.1") && requests[0].ends_with("\r\n\r\npayload"));
}

#[tokio::test]
async fn a_post_that_was_answered_303_is_never_sent_again_when_the_next_hop_is_refused() {
    let gone = nowhere("/done");
    let stage = Stage::playing([moved(303, &gone)]).await;
    let error = following(5).send(post(&stage.url("/"))).await.unwrap_err();
    assert_eq!((stage.executions(), error.fate()), (1, Fate::NeverSent(Proof::Connect)));
    assert!(error.is_connect() && error.may_have_taken_effect());
    let told: Vec<_> = error
        .trace()
        .attempts()
        .iter()
        .map(|attempt| (attempt.hop, attempt.number.get(), attempt.method.as_str()))
        .collect();
    assert_eq!(told, [(0, 1, "POST"), (1, 1, "GET"), (1, 2, "GET"), (1, 3, "GET")]);
}

#[tokio::test]
async fn a_failing_hop_after_a_safe_one_has_taken_no_effect() {
    let stage = Stage::playing([moved(302, &nowhere("/"))]).await;
    let error = following(5).send(get(&stage.url("/"))).await.unwrap_err();
    assert!(error.is_connect() && !error.may_have_taken_effect());
}

#[tokio::test]
async fn a_redirect_to_what_cannot_be_used_is_the_answer() {
    for location in ["ftp://h.example/", "http://user:pw@h.example/", "http://", ""] {
        let stage = Stage::playing([moved(302, location)]).await;
        let response = following(1).send(get(&stage.url("/only?once=1"))).await.unwrap();
        // An empty Location names the URL itself, which the limit then ends.
        assert_eq!(
            (response.status().as_u16(), stage.executions()),
            (302, 1 + usize::from(location.is_empty()))
        );
    }
}
