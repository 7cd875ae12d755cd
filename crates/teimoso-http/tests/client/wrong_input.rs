//! What cannot be is refused with its own kind of error, and is never retried.

use std::time::Duration;

use teimoso_http::{Error, ErrorKind};
use teimoso_retry::{Factor, Fate, Preset, Refusal, RetryPolicy, Schedule};

use crate::support::{Play, Stage, answer, client, get, millis, status};

#[tokio::test]
async fn an_unusable_url_is_an_error_of_its_own_kind_and_nothing_is_tried() {
    let (client, clock) = client(Preset::Forgejo);
    for (url, said) in [
        ("/relative", "failed to use the url: the url must start with http:// or https://"),
        ("ftp://h.example/", "failed to use the url: the url must start with http:// or https://"),
        ("http://h.example:0/", "failed to use the url: the url's port is 0, where nothing can listen"),
        (
            "http://user:s3cret@h.example/",
            "failed to use the url: the url holds a user name or password; put credentials in a header",
        ),
    ] {
        let error = client.send(get(url)).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.kind()), (said, ErrorKind::InvalidDestination));
        assert_eq!(error.fate(), Fate::Refused(Refusal::InvalidDestination));
        assert!(error.is_request() && !error.is_connect() && !error.is_timeout() && !error.is_body());
        assert_eq!((error.attempts(), error.may_have_taken_effect()), (0, false));
    }
    assert_eq!(clock.waits(), millis(&[]));
}

#[tokio::test]
async fn a_method_that_asks_for_a_tunnel_is_refused_once() {
    let stage = Stage::playing([status(200)]).await;
    let (client, clock) = client(Preset::Forgejo);
    let request = http::Request::connect(stage.url("/")).body(()).unwrap();
    let error = client.send(request).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::InvalidDestination, 1));
    assert!(error.is_request());
    assert_eq!((clock.waits(), stage.executions()), (vec![], 0));
}

#[test]
fn an_unusable_header_is_an_error_of_its_own_kind() {
    let build = |name: &str, value: &str| -> Result<_, Error> {
        Ok(http::Request::get("http://h.example/").header(name, value).body(())?)
    };
    for (name, value) in [("a b", "c"), ("", "c"), ("a", "s3cret\r\nx: y"), ("a", "s3cret\0")] {
        let error = build(name, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidHeader);
        assert!(error.is_request() && error.attempts() == 0);
        assert!(!error.to_string().contains("s3cret"));
    }
}

#[tokio::test]
async fn a_malformed_retry_after_falls_back_to_the_schedule() {
    let long = "9".repeat(4000);
    let malformed = [
        "",
        " ",
        "soon",
        "-1",
        "+120",
        "1.5",
        "1e3",
        "0x10",
        "1_000",
        "120, 60",
        "NaN",
        "Infinity",
        "--",
        "Sun, 06 Nov 1994",
        "Sun, 30 Feb 2030 00:00:00 GMT",
        "Tue, 01 Jan 2030 24:00:00 GMT",
        "Tue, 01 Jan 2030 00:00:20 UTC",
        "2030-01-01T00:00:20Z",
        "\u{ff11}",
    ];
    for value in malformed {
        let stage =
            Stage::playing([answer(503, &format!("retry-after: {value}\r\n"), ""), status(200)]).await;
        let (client, clock) = client(Preset::Standard);
        client.send(get(&stage.url("/"))).await.unwrap();
        assert_eq!(clock.waits(), millis(&[100]), "{value:?}");
    }
    // Valid, and beyond every cap: never slept.
    let stage = Stage::playing([answer(503, &format!("retry-after: {long}\r\n"), ""), status(200)]).await;
    let (client, clock) = client(Preset::Standard);
    client.send(get(&stage.url("/"))).await.unwrap();
    assert_eq!((clock.waits(), stage.executions()), (vec![], 1));
}

#[tokio::test]
async fn zero_seconds_is_no_hot_loop() {
    let stage = Stage::playing([answer(429, "retry-after: 0\r\n", "")]).await;
    let (client, clock) = client(Preset::Standard);
    client.send(get(&stage.url("/"))).await.unwrap();
    assert_eq!(clock.waits(), millis(&[100, 100]));
}

#[tokio::test]
async fn a_peer_that_speaks_no_http_is_no_answer() {
    let stage = Stage::playing([Play::Answer("220 mail.example ESMTP\r\n".to_owned())]).await;
    let (client, _) = client(Preset::Standard);
    let request = http::Request::post(stage.url("/")).body("x").unwrap();
    let error = client.send(request).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Protocol, 1));
    assert!(error.may_have_taken_effect());
}

#[test]
fn a_policy_that_cannot_be_is_refused_and_says_which_field() {
    let second = Duration::from_secs(1);
    let fields = [
        RetryPolicy::builder().max_attempts(0).build().unwrap_err().field(),
        RetryPolicy::builder().attempt_timeout(Duration::ZERO).build().unwrap_err().field(),
        RetryPolicy::builder().give_up_after(Some(Duration::ZERO)).build().unwrap_err().field(),
        Factor::try_from(f64::NAN).unwrap_err().field(),
        Factor::try_from(-2.0).unwrap_err().field(),
    ];
    assert_eq!(fields, ["max_attempts", "attempt_timeout", "give_up_after", "factor", "factor"]);
    let cap_below_base = Schedule::exponential(2 * second, Factor::TWO, second).unwrap_err();
    assert!(cap_below_base.to_string().contains("cap"), "{cap_below_base}");
}
