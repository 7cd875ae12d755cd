//! `POST /v1/events/raw`: any bytes, with headers around them.

use crate::client::Answer;
use crate::server::{Server, text};

async fn raw(server: &Server, headers: &str, body: &[u8]) -> Answer {
    server.client().await.request("POST", "/v1/events/raw", headers, body).await
}

#[tokio::test]
async fn g7_any_bytes_are_a_payload() {
    let server = Server::start().await;
    let bytes: Vec<u8> = (0..=255).cycle().take(50_000).collect();
    for (body, content_type) in [(&bytes[..], "image/png"), (b"", "text/plain; charset=utf-8")] {
        let headers = format!("teimoso-url: http://ok.test/\r\ncontent-type: {content_type}\r\n");
        let answer = raw(&server, &headers, body).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        let id = text(&answer.json()["id"]);
        assert_eq!(answer.header("location"), Some(format!("/v1/events/{id}").as_str()));
        let stored = server.get(&format!("/v1/events/{id}/payload")).await;
        assert_eq!(stored.body, body);
        assert_eq!(stored.header("content-type"), Some(content_type));
    }
}

#[tokio::test]
async fn headers_say_what_fields_say() {
    let server = Server::start().await;
    let headers = "Teimoso-Url: http://ok.test/r\r\nTeimoso-Type: a.b\r\nTeimoso-Id: mine\r\n\
        Teimoso-Policy: webhook\r\nTeimoso-Mode: at_least_once\r\nTeimoso-Deliver-At: 2026-09-12T00:00:00Z\r\n\
        Teimoso-Application: loja\r\nIdempotency-Key: k\r\nTeimoso-Header-X-Trace: 7\r\n";
    let answer = raw(&server, headers, b"x").await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    assert_eq!(raw(&server, headers, b"x").await.header("idempotent-replayed"), Some("true"));
    raw(&server, headers, b"y").await.problem(409, "id_taken");
    let event = server.get("/v1/events/mine").await.json();
    assert_eq!(event["content_type"], "application/octet-stream");
    assert_eq!((&event["type"], &event["application"]), (&"a.b".into(), &"loja".into()));
    let delivery = &event["deliveries"][0];
    assert_eq!((&delivery["url"], &delivery["policy"]), (&"http://ok.test/r".into(), &"webhook".into()));
    assert_eq!(delivery["next_attempt_at"], "2026-09-12T00:00:00.000Z");
}

#[tokio::test]
async fn a_wrong_header_is_named() {
    let server = Server::start().await;
    let unknown = raw(&server, "teimoso-ulr: http://ok.test/\r\n", b"x").await;
    let problem = unknown.problem(422, "unknown_field");
    assert_eq!(problem["errors"][0]["header"], "teimoso-ulr");
    assert!(text(&problem["detail"]).contains("did you mean `teimoso-url`?"), "{problem}");

    let url = raw(&server, "teimoso-url: ftp://x/\r\n", b"x").await.problem(422, "invalid_destination");
    assert_eq!(url["errors"][0]["header"], "Teimoso-url");
    raw(&server, "teimoso-url: http://ok.test/\r\nteimoso-header-host: x\r\n", b"x")
        .await
        .problem(422, "invalid_value");
    raw(&server, "teimoso-url: http://a.test/\r\nteimoso-url: http://b.test/\r\n", b"x")
        .await
        .problem(400, "malformed_request");
    let encoded = raw(&server, "teimoso-url: http://ok.test/\r\ncontent-encoding: gzip\r\n", b"x").await;
    encoded.problem(415, "unsupported_media_type");
}
