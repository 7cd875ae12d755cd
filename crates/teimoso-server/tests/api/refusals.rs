//! Wrong input, and what it gets.

use teimoso_delivery::store::{Rejection, StoreErrorKind};

use crate::server::{Fault, Server, config, text};

#[tokio::test]
async fn malformed_json_is_400_with_the_position() {
    let server = Server::start().await;
    let problem = server.post("/v1/events", "{\n\"payload\": nope}").await.problem(400, "malformed_json");
    let detail = text(&problem["detail"]);
    assert!(detail.contains("line 2 column 13") && detail.contains("(byte 14)"), "{detail}");
    server.post("/v1/events", "").await.problem(400, "malformed_json");
    server.post("/v1/events", "{\"payload\":1}{}").await.problem(400, "malformed_json");
}

#[tokio::test]
async fn a_wrong_field_is_422_and_pointed_at() {
    let server = Server::start().await;
    let cases = [
        (r#"{"playload":1}"#, "unknown_field", "/playload", "did you mean `payload`?"),
        (r#"{"payload":1,"payload":1}"#, "duplicate_field", "/payload", "appears twice"),
        (r#"{"url":"http://ok.test/"}"#, "missing_field", "/payload", "`payload` is missing"),
        (r#"{"payload":1,"url":7}"#, "invalid_value", "/url", "expected a string"),
        (r#"{"payload":1,"url":"ftp://x"}"#, "invalid_destination", "/url", "must begin with http://"),
        (
            r#"{"payload":1,"url":"http://blocked.test/"}"#,
            "blocked_address",
            "/url",
            "--allow-net 10.0.0.0/8",
        ),
        (r#"{"payload":1,"type":"a b"}"#, "invalid_value", "/type", "letters"),
        (r#"{"payload":1,"id":"a.b"}"#, "invalid_value", "/id", "without"),
        (r#"{"payload":1,"application":""}"#, "invalid_value", "/application", "1 to 64"),
        (r#"{"payload":1,"mode":"at_most_onse"}"#, "invalid_value", "/mode", "`at_most_once`"),
        (r#"{"payload":1,"policy":"patiend"}"#, "unknown_policy", "/policy", "did you mean `patient`?"),
        (r#"{"payload":1,"policy":"standard"}"#, "unknown_policy", "/policy", "for clients"),
        (r#"{"payload":1,"deliver_at":"tomorrow"}"#, "invalid_value", "/deliver_at", "RFC 3339"),
        (r#"{"payload":1,"headers":{"a/b":"1"}}"#, "invalid_value", "/headers/a~1b", "tokens"),
        (r#"{"payload":1,"headers":{"Host":"x"}}"#, "invalid_value", "/headers/Host", "must not name `host`"),
        (r#"{"payload":1,"headers":{"A":"1","a":"2"}}"#, "duplicate_field", "/headers/a", "appears twice"),
        (r#"{"payload":1,"headers":[1]}"#, "invalid_value", "/headers", "an object of strings"),
        (r#"{"payload":1,"idempotency_key":""}"#, "invalid_value", "/idempotency_key", "1 to 256"),
        (r"[1]", "invalid_value", "", "an object"),
    ];
    for (body, code, pointer, says) in cases {
        let problem = server.post("/v1/events", body).await.problem(422, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        assert!(text(&problem["detail"]).contains(says), "{problem}");
        assert_eq!(problem["type"], format!("urn:teimoso:problem:{code}"));
        assert_eq!(problem["title"], "Unprocessable Entity");
    }
    assert_eq!(server.store.offered(), 0);
}

#[tokio::test]
async fn an_instant_nobody_can_wait_for_is_422_with_the_bound() {
    let server = Server::start().await;
    let cases = [
        ("6429-10-17T02:45:55.328Z", "at most 6429-10-17T02:45:55.327Z"),
        ("9999-12-31T23:59:59Z", "at most 6429-10-17T02:45:55.327Z"),
        ("2026-09-12T00:00:00+24:00", "offset of at most 23:59"),
        ("2026-09-12T00:00:00-25:59", "offset of at most 23:59"),
    ];
    for (at, says) in cases {
        let body = format!(r#"{{"payload":1,"deliver_at":"{at}"}}"#);
        let problem = server.post("/v1/events", &body).await.problem(422, "invalid_value");
        assert_eq!(problem["errors"][0]["pointer"], "/deliver_at");
        assert!(text(&problem["detail"]).contains(says), "{problem}");
    }
    let long = r#"{"payload":1,"deliver_at":"2026-09-12T00:00:00.000000000000000000000001+23:59"}"#;
    assert_eq!(server.post("/v1/events", long).await.status, 202);
    // As a filter, an instant that no event can reach excludes none.
    assert_eq!(server.get("/v1/events?until=9999-12-31T23:59:59Z").await.status, 200);
}

#[tokio::test]
async fn a_web_page_is_refused_whatever_it_asks() {
    let mut config = config();
    config.only_local_names = true;
    let server = Server::with(config).await;
    let ask = async |request: &str| {
        let mut client = server.client().await;
        client.send(format!("{request}\r\n\r\n").as_bytes()).await;
        client.answer().await
    };
    let host = format!("host: {}", server.addr);
    for request in ["GET /v1/stats", "GET /livez", "POST /v1/events/raw", "OPTIONS /v1/events", "GET /none"] {
        let request = format!("{request} HTTP/1.1\r\n");
        ask(&format!("{request}{host}\r\nsec-fetch-site: cross-site")).await.problem(403, "cross_origin");
        ask(&format!("{request}{host}\r\norigin: http://evil.example")).await.problem(403, "cross_origin");
        let problem = ask(&format!("{request}host: evil.example:80")).await.problem(403, "unknown_host");
        assert!(text(&problem["detail"]).contains("`evil.example:80`"), "{problem}");
        ask(&format!("{request}x: y")).await.problem(400, "malformed_request");
    }
    assert_eq!(ask(&format!("GET /v1/stats HTTP/1.1\r\n{host}")).await.status, 200);
    assert_eq!(ask("GET /v1/stats HTTP/1.0").await.status, 200);
    assert_eq!(server.store.offered(), 0);
}

#[tokio::test]
async fn a_wrong_content_type_is_415_and_told_the_right_one() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for headers in
        ["content-type: text/plain\r\n", "", "content-type: application/json\r\ncontent-encoding: gzip\r\n"]
    {
        let answer = client.request("POST", "/v1/events", headers, b"{\"payload\":1}").await;
        answer.problem(415, "unsupported_media_type");
    }
    let answer = client.request("POST", "/v1/events", "content-type: text/plain\r\n", b"1").await;
    assert!(text(&answer.json()["detail"]).contains("must be application/json"), "{}", answer.text());
    let charset = "content-type: Application/JSON; charset=utf-8\r\n";
    assert_eq!(client.request("POST", "/v1/events", charset, b"{\"payload\":1}").await.status, 202);
}

#[tokio::test]
async fn g11_headers_without_end_are_refused_at_their_limit() {
    let server = Server::start().await;
    let headers: Vec<String> = (0..50_000).map(|n| format!("\"h{n}\":\"\"")).collect();
    let body = format!("{{\"payload\":1,\"headers\":{{{}}}}}", headers.join(","));
    let problem = server.post("/v1/events", &body).await.problem(422, "invalid_value");
    assert_eq!(problem["errors"][0]["pointer"], "/headers");
    assert_eq!(problem["detail"], "headers must be at most 64");
}

#[tokio::test]
async fn g11_what_is_too_large_is_413_with_the_limit() {
    let mut config = config();
    config.max_payload = 1_000;
    let server = Server::with(config).await;
    let body = |length: usize| format!("{{\"payload\":\"{}\"}}", "x".repeat(length - 2));
    assert_eq!(server.post("/v1/events", &body(1_000)).await.status, 202);
    let problem = server.post("/v1/events", &body(1_001)).await.problem(413, "payload_too_large");
    assert_eq!(problem["limit_bytes"], 1_000);
    assert!(text(&problem["detail"]).contains("1000 bytes"), "{problem}");

    let whole = server.post("/v1/events", &body(3_000_000)).await.problem(413, "payload_too_large");
    assert_eq!(whole["limit_bytes"], 1_000 + 64 * 1024);
    let raw = server.client().await.request("POST", "/v1/events/raw", "", &[0; 1_001]).await;
    assert_eq!(raw.problem(413, "payload_too_large")["limit_bytes"], 1_000);
}

#[tokio::test]
async fn g11_a_chunked_body_has_the_same_limit_and_a_patient_client_is_told_before_it_sends() {
    let mut config = config();
    config.max_payload = 10;
    let server = Server::with(config).await;
    let mut client = server.client().await;
    let head = "POST /v1/events/raw HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n";
    client.send(format!("{head}6\r\nabcdef\r\n5\r\nghijk\r\n0\r\n\r\n").as_bytes()).await;
    client.answer().await.problem(413, "payload_too_large");

    let mut patient = server.client().await;
    let head =
        "POST /v1/events/raw HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 11\r\n\r\n";
    patient.send(head.as_bytes()).await;
    patient.answer().await.problem(413, "payload_too_large");
}

#[tokio::test]
async fn unknown_paths_ids_and_methods_are_problems_too() {
    let server = Server::start().await;
    for path in [
        "/",
        "/v1/nothing",
        "/v1/events/",
        "/v1/events/unknown",
        "/v1/events/a%20b",
        "/v1/events/%ff",
        "/v1/events/a%2Fb/payload",
        "/v1/events/evt_01993a7e-0000-7000-8000-000000000000",
        "/v1/deliveries/nonsense",
        "/v1/deliveries/dlv_01993a7e-0000-7000-8000-000000000000",
        "/v1/deliveries/dlv_01993a7e-0000-7000-8000-000000000000/attempts",
        "/v1/replays/rpl_01993a7e-0000-7000-8000-000000000000",
        "/v1/replays/x",
    ] {
        server.get(path).await.problem(404, "not_found");
    }
    let mut client = server.client().await;
    for (path, allow) in
        [("/v1/events", "POST,GET,HEAD"), ("/v1/stats", "GET,HEAD"), ("/v1/events/raw", "POST,GET,HEAD")]
    {
        let answer = client.request("PUT", path, "", b"").await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allow));
    }
}

#[tokio::test]
async fn a_wrong_query_is_422_and_pointed_at() {
    let server = Server::start().await;
    let cases = [
        ("/v1/deliveries?state=ded", "invalid_value", "state", "did you mean `dead`?"),
        ("/v1/deliveries?reason=x", "invalid_value", "reason", "known are permanent_status"),
        ("/v1/deliveries?limit=0", "invalid_value", "limit", "1 to 250"),
        ("/v1/deliveries?limit=251", "invalid_value", "limit", "1 to 250"),
        ("/v1/deliveries?stat=dead", "unknown_field", "stat", "did you mean `state`?"),
        ("/v1/events?since=yesterday", "invalid_value", "since", "RFC 3339"),
        ("/v1/events?type=a%20b", "invalid_value", "type", "letters"),
        ("/v1/events?limit=1&limit=2", "duplicate_field", "limit", "more than once"),
    ];
    for (path, code, parameter, says) in cases {
        let problem = server.get(path).await.problem(422, code);
        assert_eq!(problem["errors"][0]["parameter"], parameter);
        assert!(text(&problem["detail"]).contains(says), "{problem}");
    }
}

#[tokio::test]
async fn g1_a_store_that_cannot_promise_is_never_a_202() {
    let server = Server::start().await;
    let cases = [
        (Fault::Fail(StoreErrorKind::Full), 507, "store_full"),
        (Fault::Fail(StoreErrorKind::Failed), 503, "store_failed"),
        (Fault::Fail(StoreErrorKind::Busy), 503, "store_busy"),
        (Fault::Fail(StoreErrorKind::Closed), 503, "store_closed"),
        (Fault::Reject(Rejection::TooManyLanes), 503, "too_many_lanes"),
        (Fault::Reject(Rejection::ModeUnavailable), 422, "mode_unavailable"),
        (Fault::Reject(Rejection::IdTaken), 409, "id_taken"),
        (Fault::Reject(Rejection::KeyReused), 422, "idempotency_key_reused"),
    ];
    for (fault, status, code) in cases {
        server.store.set_fault(Some(fault));
        let answer = server.post("/v1/events", r#"{"payload":1}"#).await;
        answer.problem(status, code);
        let retry_after = match status {
            503 => Some("1"),
            507 => Some("5"),
            _ => None,
        };
        assert_eq!(answer.header("retry-after"), retry_after, "{code}");
    }
}

#[tokio::test]
async fn g4_a_store_without_durability_refuses_at_most_once() {
    let server = Server::start().await;
    let body = r#"{"url":"http://ok.test/","payload":1,"mode":"at_most_once"}"#;
    let problem = server.post("/v1/events", body).await.problem(422, "mode_unavailable");
    assert_eq!(problem["errors"][0]["pointer"], "/mode");
}
