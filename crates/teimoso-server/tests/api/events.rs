//! `POST /v1/events` and what can be read of an event afterwards.

use crate::server::{Server, text};

#[tokio::test]
async fn g1_an_accepted_event_is_answered_202_with_its_deliveries_place_and_durability() {
    let server = Server::start().await;
    let answer =
        server.post("/v1/events", r#"{"url":"http://ok.test/a","type":"pedido.pago","payload":1}"#).await;
    assert_eq!(answer.status, 202);
    let json = answer.json();
    let id = text(&json["id"]);
    assert!(id.starts_with("evt_"), "{id}");
    assert_eq!(answer.header("location"), Some(format!("/v1/events/{id}").as_str()));
    assert_eq!(answer.header("teimoso-durability"), Some("none"));
    assert_eq!(answer.header("idempotent-replayed"), None);
    assert_eq!(json["deliveries"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["deliveries"][0]["state"], "pending");
    assert!(json["deliveries"][0]["endpoint"].is_null());
    assert!(text(&json["deliveries"][0]["id"]).starts_with("dlv_"));
}

#[tokio::test]
async fn an_event_that_nobody_wants_is_kept_and_has_no_deliveries() {
    let server = Server::start().await;
    let answer = server.post("/v1/events", r#"{"type":"a","payload":1}"#).await;
    assert_eq!(answer.status, 202);
    assert_eq!(answer.json()["deliveries"], serde_json::json!([]));
    let event = server.get(&format!("/v1/events/{}", text(&answer.json()["id"]))).await;
    assert_eq!(event.status, 200);
    assert_eq!(event.json()["deliveries"], serde_json::json!([]));
}

#[tokio::test]
async fn g7_the_payload_comes_back_byte_for_byte() {
    let server = Server::start().await;
    let long = format!("\"{}\"", "x".repeat(40_000));
    let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
    let payloads = [
        r#"{"b":1.0,"a":1e400,"a":12345678901234567890}"#,
        "{ \"a\" :\t[ 1 , 2 ]\n }",
        "\"\u{2028}\u{2029}\"",
        r#""\ud800\u0041""#,
        "null",
        "0",
        &long,
        &deep,
    ];
    for payload in payloads {
        let body = format!("{{ \"url\":\"http://ok.test/\",\n \"payload\" : {payload} , \"type\":\"t\"}}\n");
        let answer = server.post("/v1/events", &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        let stored = server.get(&format!("/v1/events/{}/payload", text(&answer.json()["id"]))).await;
        assert_eq!(stored.text(), payload);
        assert_eq!(stored.header("content-type"), Some("application/json"));
        assert_eq!(stored.header("x-content-type-options"), Some("nosniff"));
    }
}

#[tokio::test]
async fn g1_a_repeated_key_gets_the_first_answer_and_another_body_is_refused() {
    let server = Server::start().await;
    let body = r#"{"url":"http://ok.test/","payload":{"a":1}}"#;
    let first = server.post_with("/v1/events", "idempotency-key: \"k1\"\r\n", body).await;
    let again = server.post_with("/v1/events", "Idempotency-Key: k1\r\n", body).await;
    assert_eq!((first.status, again.status), (202, 202));
    assert_eq!(first.json(), again.json());
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let by_field = server
        .post("/v1/events", r#"{"idempotency_key":"k1","url":"http://ok.test/","payload":{"a":1}}"#)
        .await;
    assert_eq!(by_field.json()["id"], first.json()["id"]);

    let spaced = r#"{"url":"http://ok.test/","payload":{"a": 1}}"#;
    let other = server.post_with("/v1/events", "idempotency-key: k1\r\n", spaced).await;
    let problem = other.problem(422, "idempotency_key_reused");
    assert_eq!(problem["errors"][0]["pointer"], "/idempotency_key");
    let without = server.post("/v1/events", spaced).await;
    assert_ne!(without.json()["id"], first.json()["id"]);
}

#[tokio::test]
async fn the_key_in_the_head_and_the_one_in_the_body_must_agree() {
    let server = Server::start().await;
    let body = r#"{"url":"http://ok.test/","payload":1,"idempotency_key":"a"}"#;
    assert_eq!(server.post_with("/v1/events", "idempotency-key: \"a\"\r\n", body).await.status, 202);
    let differ = server.post_with("/v1/events", "idempotency-key: b\r\n", body).await;
    assert_eq!(differ.problem(422, "idempotency_key_mismatch")["errors"][0]["pointer"], "/idempotency_key");
    let malformed = server.post_with("/v1/events", "idempotency-key: \"a\r\n", body).await;
    assert_eq!(malformed.problem(400, "malformed_request")["errors"][0]["header"], "Idempotency-Key");
}

#[tokio::test]
async fn a_callers_id_is_kept_and_another_content_under_it_is_a_conflict() {
    let server = Server::start().await;
    let first =
        server.post("/v1/events", r#"{"id":"evt_1789136700349","url":"http://ok.test/","payload":1}"#).await;
    assert_eq!(first.json()["id"], "evt_1789136700349");
    assert_eq!(first.header("location"), Some("/v1/events/evt_1789136700349"));
    let same =
        server.post("/v1/events", r#"{"id":"evt_1789136700349","url":"http://ok.test/","payload":1}"#).await;
    assert_eq!(same.header("idempotent-replayed"), Some("true"));
    let other =
        server.post("/v1/events", r#"{"id":"evt_1789136700349","url":"http://ok.test/","payload":2}"#).await;
    assert_eq!(other.problem(409, "id_taken")["errors"][0]["pointer"], "/id");
    assert_eq!(server.get("/v1/events/evt_1789136700349").await.json()["id"], "evt_1789136700349");
}

#[tokio::test]
async fn a_callers_id_may_need_encoding_or_be_a_word_of_ours() {
    let server = Server::start().await;
    for (id, path) in [("a:b<c>", "a:b%3Cc%3E"), ("raw", "raw"), ("batch", "batch")] {
        let body = format!(r#"{{"id":"{id}","url":"http://ok.test/","payload":1}}"#);
        let answer = server.post("/v1/events", &body).await;
        assert_eq!(answer.header("location"), Some(format!("/v1/events/{path}").as_str()));
        assert_eq!(server.get(&format!("/v1/events/{path}")).await.json()["id"], id);
        assert_eq!(server.get(&format!("/v1/events/{path}/payload")).await.text(), "1");
    }
    let ours = r#"{"id":"evt_01993a7e-0000-7000-8000-000000000000","url":"http://ok.test/","payload":1}"#;
    assert_eq!(
        server.post("/v1/events", ours).await.problem(422, "invalid_value")["errors"][0]["pointer"],
        "/id"
    );
}

#[tokio::test]
async fn every_field_arrives_in_the_view() {
    let server = Server::start().await;
    let more = r#","type":"pedido.pago","application":"loja","policy":"webhook","mode":"at_least_once",
        "headers":{"X-A":"1"},"deliver_at":"2026-09-11T14:30:00Z""#;
    let (event, delivery) = server.accepted(more).await;
    let json = server.get(&format!("/v1/events/{event}")).await.json();
    assert_eq!(json["type"], "pedido.pago");
    assert_eq!(json["application"], "loja");
    assert_eq!(json["created_at"], "2026-09-11T14:25:00.349Z");
    assert_eq!(json["payload_bytes"], 9);
    assert_eq!(json["content_type"], "application/json");
    let view = &json["deliveries"][0];
    assert_eq!(view["id"], delivery.as_str());
    assert_eq!(view["event_id"], event.as_str());
    assert_eq!(view["url"], "http://ok.test/a?q=1");
    assert_eq!((&view["attempts"], &view["max_attempts"]), (&0.into(), &5.into()));
    assert_eq!((&view["mode"], &view["policy"]), (&"at_least_once".into(), &"webhook".into()));
    assert_eq!(view["next_attempt_at"], "2026-09-11T14:30:00.000Z");
    assert_eq!(view["next_attempt_why"], "deliver_at");
    for absent in ["reason", "finished_at", "last_status", "last_error", "endpoint"] {
        assert!(view[absent].is_null(), "{absent}: {view}");
    }
}

#[tokio::test]
async fn a_delivery_time_in_the_past_is_now_and_does_not_change_what_a_request_is() {
    let server = Server::start().await;
    let more = r#","idempotency_key":"k","deliver_at":"2026-09-11T14:25:01Z""#;
    let (event, delivery) = server.accepted(more).await;
    server.clock.advance(std::time::Duration::from_secs(60));
    assert_eq!(server.accepted(more).await.0, event);
    let (_, past) = server.accepted(r#","deliver_at":"2020-01-01T00:00:00Z""#).await;
    let view = server.get(&format!("/v1/deliveries/{past}")).await.json();
    assert_eq!(view["next_attempt_why"], "first");
    assert_eq!(
        server.get(&format!("/v1/deliveries/{delivery}")).await.json()["next_attempt_why"],
        "deliver_at"
    );
}

#[tokio::test]
async fn events_are_listed_by_type_and_time_in_pages() {
    let server = Server::start().await;
    for kind in ["a", "b", "a", "a"] {
        server.accepted(&format!(r#","type":"{kind}""#)).await;
        server.clock.advance(std::time::Duration::from_secs(1));
    }
    let first = server.get("/v1/events?type=a&limit=2").await.json();
    assert_eq!(first["data"].as_array().map(Vec::len), Some(2));
    let cursor = text(&first["next_cursor"]);
    let rest = server.get(&format!("/v1/events?type=a&limit=2&cursor={cursor}")).await.json();
    assert_eq!(rest["data"].as_array().map(Vec::len), Some(1));
    assert!(rest["next_cursor"].is_null());
    let since = server
        .get("/v1/events?since=2026-09-11T16:25:02.000%2B02:00&until=2026-09-11T14:25:03Z")
        .await
        .json();
    assert_eq!(since["data"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_head_request_has_the_head_of_a_get() {
    let server = Server::start().await;
    let (event, _) = server.accepted("").await;
    let mut client = server.client().await;
    let head = client.request("HEAD", &format!("/v1/events/{event}/payload"), "", b"").await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("9")));
    assert_eq!(
        client.request("GET", &format!("/v1/events/{event}/payload"), "", b"").await.text(),
        "{\"n\":1.0}"
    );
}
