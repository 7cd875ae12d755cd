//! Limits, shedding, slow clients, panics, and the end.

use std::time::Duration;

use teimoso_delivery::store::StoreErrorKind;
use teimoso_server::ApiConfig;

use crate::server::{Fault, Server, config, soon};

#[tokio::test]
async fn g11_one_request_too_many_is_shed_and_health_is_not() {
    let mut config = config();
    config.shed_above_in_flight_requests = 2;
    let server = Server::with(config).await;
    server.store.close_gate();
    let body = r#"{"payload":1}"#;
    let (first, second) = tokio::join!(async { server.post("/v1/events", body).await }, async {
        let other = server.post("/v1/events", body);
        let shed = async {
            soon(server.store.wait_offered(2)).await;
            for path in ["/v1/stats", "/v1/events"] {
                let answer = server.get(path).await;
                answer.problem(503, "overloaded");
                assert_eq!(answer.header("retry-after"), Some("1"));
            }
            assert_eq!(server.get("/livez").await.status, 200);
            assert_eq!(server.get("/readyz").await.status, 200);
            server.store.gate.add_permits(2);
        };
        tokio::join!(other, shed).0
    });
    assert_eq!((first.status, second.status), (202, 202));
    assert_eq!(server.get("/v1/stats").await.status, 200);
}

#[tokio::test]
async fn g11_bodies_together_are_bounded() {
    let server = Server::with(room_for_two()).await;
    server.store.close_gate();
    let large = format!("{}{{\"payload\":1}}", " ".repeat(TWO_FIT_BYTES - 20));
    let post = || server.post("/v1/events", &large);
    let (first, second) = tokio::join!(post(), async {
        let more = async {
            soon(server.store.wait_offered(2)).await;
            post().await.problem(503, "overloaded");
            server.store.gate.add_permits(3);
            assert_eq!(server.post("/v1/events", r#"{"payload":1}"#).await.status, 202);
        };
        tokio::join!(post(), more).0
    });
    assert_eq!((first.status, second.status), (202, 202));
}

/// Twice this is held at once, and not three times: 1 000 bytes of payload and their envelope, 64 KiB.
const TWO_FIT_BYTES: usize = 66_000;

fn room_for_two() -> ApiConfig {
    let mut config = config();
    config.max_payload = 1_000;
    config.max_buffered_body_bytes = 0;
    config
}

#[tokio::test]
async fn g11_an_idle_server_takes_the_largest_payload_however_little_all_bodies_may_take() {
    let mut config = config();
    config.max_payload = 2_000_000;
    config.max_buffered_body_bytes = 1_000;
    let server = Server::with(config).await;
    let largest = format!("{{\"payload\":\"{}\"}}", "x".repeat(2_000_000 - 2));
    assert_eq!(server.post("/v1/events", &largest).await.status, 202);
    let raw = server.client().await.request("POST", "/v1/events/raw", "", &[0; 2_000_000]).await;
    assert_eq!(raw.status, 202, "{}", raw.text());
}

#[tokio::test]
async fn g11_a_declared_body_counts_before_it_has_come() {
    let server = Server::with(room_for_two()).await;
    let head = "POST /v1/events HTTP/1.1\r\nhost: t\r\ncontent-type: application/json";
    let begun = format!("{head}\r\ncontent-length: {TWO_FIT_BYTES}\r\n\r\n{{\"pay");
    let (mut one, mut two, mut three) = tokio::join!(server.client(), server.client(), server.client());
    for client in [&mut one, &mut two, &mut three] {
        client.send(begun.as_bytes()).await;
    }
    let answer = tokio::select! {
        answer = one.answer() => answer,
        answer = two.answer() => answer,
        answer = three.answer() => answer,
    };
    answer.problem(503, "overloaded");
}

#[tokio::test]
async fn g11_a_body_that_trickles_is_given_up() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let head =
        "POST /v1/events HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n";
    client.send(format!("{head}{{\"pay").as_bytes()).await;
    soon(server.let_time_pass()).await;
    client.answer().await.problem(408, "request_timeout");
    assert_eq!(server.store.offered(), 0);
}

#[tokio::test]
async fn g11_a_head_that_trickles_is_closed() {
    let mut config = config();
    config.header_read_timeout = Duration::from_millis(50);
    let server = Server::with(config).await;
    let mut client = server.client().await;
    client.send(b"GET /livez HTTP/1.1\r\nhost:").await;
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn g11_a_head_without_an_end_is_refused() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let endless = format!("GET /livez HTTP/1.1\r\nhost: t\r\nx: {}", "y".repeat(100_000));
    client.send(endless.as_bytes()).await;
    assert_eq!(client.head().await.status, 431);
}

#[tokio::test]
async fn g11_connections_are_bounded_and_further_ones_wait() {
    let mut config = config();
    config.max_connections = 1;
    let server = Server::with(config).await;
    let mut first = server.client().await;
    assert_eq!(first.request("GET", "/livez", "", b"").await.status, 200);
    let mut second = server.client().await;
    second.send(b"GET /livez HTTP/1.1\r\nhost: t\r\n\r\n").await;
    let early = tokio::time::timeout(Duration::from_millis(100), second.head()).await;
    assert!(early.is_err(), "there is room for one");
    drop(first);
    assert_eq!(second.head().await.status, 200);
}

#[tokio::test]
async fn a_panic_is_one_500_and_nothing_more() {
    let server = Server::start().await;
    let mut client = server.client().await;
    server.store.set_fault(Some(Fault::Panic));
    let json = "content-type: application/json\r\n";
    let answer = client.request("POST", "/v1/events", json, b"{\"payload\":1}").await;
    answer.problem(500, "internal");
    server.store.set_fault(None);
    assert_eq!(client.request("POST", "/v1/events", json, b"{\"payload\":1}").await.status, 202);
    assert_eq!(server.get("/livez").await.status, 200);
}

#[tokio::test]
async fn readiness_follows_the_store_and_the_drain() {
    let server = Server::start().await;
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status, ready.json()), (200, serde_json::json!({"status": "ready"})));
    for (kind, code) in [(StoreErrorKind::Full, "store_full"), (StoreErrorKind::Failed, "store_failed")] {
        *server.store.health.lock().expect("no panic") = Some(kind);
        server.get("/readyz").await.problem(503, code);
    }
    *server.store.health.lock().expect("no panic") = None;
    assert_eq!(server.get("/readyz").await.status, 200);

    let (event, delivery) = server.accepted("").await;
    server.app.set_draining();
    server.get("/readyz").await.problem(503, "draining");
    let refused = server.post("/v1/events", r#"{"payload":1}"#).await;
    refused.problem(503, "draining");
    assert_eq!(refused.header("retry-after"), Some("1"));
    server.post(&format!("/v1/deliveries/{delivery}/cancel"), "").await.problem(503, "draining");
    assert_eq!(server.get(&format!("/v1/events/{event}")).await.status, 200);
    assert_eq!(server.get("/livez").await.json()["status"], "ok");
}

#[tokio::test]
async fn a_stop_lets_the_current_request_finish_and_closes_the_idle_ones() {
    let mut server = Server::start().await;
    let mut idle = server.client().await;
    assert_eq!(idle.request("GET", "/livez", "", b"").await.status, 200);
    server.store.close_gate();
    let mut busy = server.client().await;
    busy.send(b"POST /v1/events HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"payload\":1}")
        .await;
    soon(server.store.wait_offered(1)).await;
    server.stop();
    assert!(idle.is_closed().await);
    server.store.gate.add_permits(1);
    assert_eq!(busy.answer().await.status, 202);
    assert!(busy.is_closed().await);
    soon(server.task).await.expect("no panic").expect("served");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_ever() {
    let mut server = Server::start().await;
    server.store.close_gate();
    let mut busy = server.client().await;
    busy.send(b"POST /v1/events HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"payload\":1}")
        .await;
    soon(server.store.wait_offered(1)).await;
    server.stop();
    soon(server.let_time_pass()).await;
    soon(server.task).await.expect("no panic").expect("served");
    assert!(busy.is_closed().await);
}

#[tokio::test]
async fn a_client_that_leaves_before_its_answer_costs_nothing() {
    let mut config = config();
    config.shed_above_in_flight_requests = 1;
    let server = Server::with(config).await;
    server.store.close_gate();
    let mut client = server.client().await;
    client
        .send(b"POST /v1/events HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"payload\":1}")
        .await;
    soon(server.store.wait_offered(1)).await;
    server.get("/v1/stats").await.problem(503, "overloaded");
    drop(client);
    server.store.gate.add_permits(1);
    soon(async {
        while server.get("/v1/stats").await.status != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
