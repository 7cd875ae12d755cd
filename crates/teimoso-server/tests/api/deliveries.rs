//! What became of a delivery, and the orders a person may give.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use teimoso_delivery::model::{
    AttemptNumber, AttemptRecord, DeadReason, DecisionName, ErrorKind, NextWhy, Nonce, PhaseTimings,
    Progress, ResponseRecord,
};
use teimoso_delivery::retry::{Fate, WaitSource};
use teimoso_delivery::store::{Claim, ClaimRequest, Claimed, LaneNews, Next, Settlement, Store};

use crate::server::{NOW, Server, text};

async fn claim(server: &Server) -> Claimed {
    let request = ClaimRequest {
        now: NOW,
        want: 1,
        free: 64,
        nonce: Nonce(1),
        lease_until: NOW.after(Duration::from_secs(30)),
    };
    let Claim { mut taken, .. } = server.store.claim(request).await.expect("claimed");
    taken.pop().expect("one is due")
}

fn record(number: AttemptNumber, next: Next, body: &[u8], truncated: bool) -> AttemptRecord {
    let retry = matches!(next, Next::Scheduled { .. });
    AttemptRecord {
        number,
        started_at: NOW,
        fate: Fate::Answered,
        status: Some(503),
        error_kind: Some(ErrorKind::Http5xx),
        error: Some("HTTP 503".into()),
        decision: if retry { DecisionName::Retry } else { DecisionName::GiveUp },
        wait: retry.then_some((Duration::from_millis(5_250), WaitSource::Schedule)),
        peer: Some(SocketAddr::from(([127, 0, 0, 1], 4000))),
        timings: PhaseTimings {
            connect: Some(Duration::from_millis(2)),
            first_byte: Some(Duration::from_micros(3_900)),
            total: Duration::from_millis(7),
            ..PhaseTimings::default()
        },
        response: Some(Box::new(ResponseRecord {
            headers: "content-type: text/plain\nset-cookie: a\nset-cookie: b\nvary: a\nvary: b\n".into(),
            body: Bytes::copy_from_slice(body),
            truncated,
        })),
    }
}

/// Makes one failed attempt, followed by `next`.
async fn attempt(server: &Server, next: Next, body: &[u8], truncated: bool) {
    let claimed = claim(server).await;
    let number = AttemptNumber::after(claimed.progress.attempts);
    let progress = Progress {
        attempts: number.get(),
        first_attempt_at: Some(NOW),
        why: NextWhy::Retry,
        ..claimed.progress
    };
    let settlement = Settlement {
        lease: claimed.lease,
        next,
        progress,
        record: Some(Box::new(record(number, next, body, truncated))),
        news: LaneNews::Neutral,
        at: NOW,
    };
    server.store.settle(vec![settlement]).await.expect("settled").ticket.await.expect("durable");
}

const LATER: Next = Next::Scheduled { due: NOW, why: NextWhy::Retry };

#[tokio::test]
async fn an_attempt_shows_what_was_sent_what_came_and_what_follows() {
    let server = Server::start().await;
    let (event, delivery) = server.accepted(r#","headers":{"X-Trace":"7","Authorization":"Bearer s"}"#).await;
    attempt(&server, LATER, b"busy", false).await;
    let expected = json!({
        "delivery_id": delivery,
        "number": 1,
        "started_at": "2026-09-11T14:25:00.349Z",
        "duration_ms": 7,
        "fate": "answered",
        "status": 503,
        "error_kind": "http_5xx",
        "error": "HTTP 503",
        "decision": "retry",
        "wait_ms": 5250,
        "wait_source": "schedule",
        "peer": "127.0.0.1:4000",
        "http_version": "HTTP/1.1",
        "timings_ms": {"dns": null, "connect": 2, "tls": null, "first_byte": 3, "total": 7},
        "request_headers": {
            "content-type": "application/json",
            "webhook-id": event,
            "webhook-timestamp": "1789136700",
            "user-agent": "teimoso/1.2.3",
            "teimoso-attempt": "1",
            "x-trace": "7",
            "authorization": "[redacted]",
        },
        "response_headers": {"content-type": "text/plain", "set-cookie": "[redacted]", "vary": "a, b"},
        "response_body": "busy",
        "response_truncated": false,
    });
    let list = json!({"data": [expected], "next_cursor": null});
    assert_eq!(server.get(&format!("/v1/deliveries/{delivery}/attempts")).await.json(), list);
    assert_eq!(server.get(&format!("/v1/events/{event}/attempts")).await.json(), list);
    let one = server.get(&format!("/v1/deliveries/{delivery}")).await.json();
    assert_eq!(one["attempt_records"], list["data"]);
    assert_eq!(
        (&one["state"], &one["attempts"], &one["max_attempts"]),
        (&"scheduled".into(), &1.into(), &10.into())
    );
    assert_eq!((&one["next_attempt_why"], &one["last_status"]), (&"retry".into(), &503.into()));
    assert_eq!(one["last_error"], "HTTP 503");
}

#[tokio::test]
async fn a_kept_body_is_text_and_in_base64_only_when_it_is_not() {
    let server = Server::start().await;
    let bodies: [(&[u8], bool, &str, Option<&str>); 4] = [
        ("é".as_bytes(), false, "é", None),
        (b"\xff\x00", false, "\u{fffd}\0", Some("/wA=")),
        (b"ab\xc3", true, "ab\u{fffd}", None),
        (b"ab\xc3", false, "ab\u{fffd}", Some("YWLD")),
    ];
    for (body, truncated, shown, base64) in bodies {
        let (_, delivery) = server.accepted("").await;
        attempt(&server, Next::Dead(DeadReason::AttemptsExhausted), body, truncated).await;
        let attempts = server.get(&format!("/v1/deliveries/{delivery}/attempts")).await.json();
        let attempt = &attempts["data"][0];
        assert_eq!(
            (&attempt["response_body"], &attempt["response_truncated"]),
            (&shown.into(), &truncated.into())
        );
        assert_eq!(attempt.get("response_body_base64").and_then(Value::as_str), base64);
        assert!(attempt["wait_ms"].is_null() && attempt["wait_source"].is_null());
    }
}

#[tokio::test]
async fn s2_9_the_dead_keep_their_body_and_can_be_sent_again() {
    let server = Server::start().await;
    let (event, delivery) = server.accepted(r#","policy":"webhook""#).await;
    attempt(&server, Next::Dead(DeadReason::AttemptsExhausted), b"", false).await;
    let dead = server.get("/v1/deliveries?state=dead&reason=attempts_exhausted").await.json();
    assert_eq!(dead["data"][0]["id"], delivery.as_str());
    assert_eq!(dead["data"][0]["reason"], "attempts_exhausted");
    assert!(dead["data"][0]["next_attempt_at"].is_null());
    assert_eq!(dead["data"][0]["finished_at"], "2026-09-11T14:25:00.349Z");
    assert_eq!(server.get(&format!("/v1/events/{event}/payload")).await.text(), "{\"n\":1.0}");

    let again = server.post(&format!("/v1/deliveries/{delivery}/retry"), "").await;
    assert_eq!(again.status, 202, "{}", again.text());
    let view = again.json();
    assert_eq!((&view["id"], &view["next_attempt_why"]), (&delivery.as_str().into(), &"replay".into()));
    assert_eq!((&view["attempts"], &view["max_attempts"]), (&1.into(), &6.into()));
    assert_eq!(server.get("/v1/deliveries?state=dead").await.json()["data"], json!([]));
}

#[tokio::test]
async fn retry_is_refused_where_the_state_forbids_it() {
    let server = Server::start().await;
    let (_, delivery) = server.accepted("").await;
    let path = format!("/v1/deliveries/{delivery}/retry");
    server.post(&path, "").await.problem(409, "wrong_state");
    attempt(&server, Next::Delivered, b"", false).await;
    let problem = server.post(&path, "{}").await.problem(409, "wrong_state");
    assert!(text(&problem["detail"]).contains("\"explicit\":true"), "{problem}");
    server.post(&path, r#"{"explicid":true}"#).await.problem(422, "unknown_field");
    let plain = server.client().await.request("POST", &path, "", b"{\"explicit\":true}").await;
    plain.problem(415, "unsupported_media_type");
    assert_eq!(server.post(&path, r#"{"explicit":true}"#).await.status, 202);
    let unknown = "/v1/deliveries/dlv_01993a7e-0000-7000-8000-000000000000/retry";
    server.post(unknown, "").await.problem(404, "not_found");
}

#[tokio::test]
async fn cancel_is_200_202_or_409() {
    let server = Server::start().await;
    let (_, waiting) = server.accepted("").await;
    let cancelled = server.post(&format!("/v1/deliveries/{waiting}/cancel"), "").await;
    assert_eq!((cancelled.status, &cancelled.json()["state"]), (200, &"cancelled".into()));
    server.post(&format!("/v1/deliveries/{waiting}/cancel"), "").await.problem(409, "wrong_state");

    let (_, flying) = server.accepted("").await;
    let _claimed = claim(&server).await;
    let requested = server.post(&format!("/v1/deliveries/{flying}/cancel"), "").await;
    assert_eq!((requested.status, &requested.json()["state"]), (202, &"in_flight".into()));
    let unknown = "/v1/deliveries/dlv_01993a7e-0000-7000-8000-000000000000/cancel";
    server.post(unknown, "").await.problem(404, "not_found");
}

#[tokio::test]
async fn a_replay_is_a_job_that_can_be_watched_and_stopped() {
    let server = Server::start().await;
    server.accepted("").await;
    attempt(&server, Next::Dead(DeadReason::AttemptsExhausted), b"", false).await;
    let order = r#"{"filter":{"reason":"attempts_exhausted","since":"2026-09-11T00:00:00Z"},"rate":10,"dry_run":true}"#;
    let dry = server.post("/v1/replays", order).await;
    assert_eq!((dry.status, &dry.json()["estimated"], &dry.json()["id"]), (200, &1.into(), &Value::Null));

    let started = server.post("/v1/replays", r#"{"filter":{}}"#).await;
    assert_eq!(started.status, 202, "{}", started.text());
    let id = text(&started.json()["id"]);
    assert_eq!(started.header("location"), Some(format!("/v1/replays/{id}").as_str()));
    assert_eq!((&started.json()["estimated"], &started.json()["rate"]), (&1.into(), &100.into()));
    let shown = server.get(&format!("/v1/replays/{id}")).await.json();
    assert_eq!((&shown["id"], &shown["filter"]["reason"]), (&id.as_str().into(), &Value::Null));
    let stopped = server.client().await.request("DELETE", &format!("/v1/replays/{id}"), "", b"").await;
    assert_eq!(stopped.status, 200);

    let wrong = server.post("/v1/replays", r#"{"filter":{"reason":"exhausted"}}"#).await;
    assert_eq!(wrong.problem(422, "invalid_value")["errors"][0]["pointer"], "/filter/reason");
    for rate in ["0", "10001"] {
        let wrong = server.post("/v1/replays", &format!(r#"{{"rate":{rate}}}"#)).await;
        assert_eq!(wrong.problem(422, "invalid_value")["errors"][0]["pointer"], "/rate");
    }
}

#[tokio::test]
async fn g2_stats_count_every_delivery_once() {
    let server = Server::start().await;
    server.accepted("").await;
    attempt(&server, Next::Dead(DeadReason::AttemptsExhausted), b"", false).await;
    server.accepted("").await;
    server.clock.advance(Duration::from_millis(1_500));
    let stats = server.get("/v1/stats").await.json();
    let states =
        json!({"pending": 1, "in_flight": 0, "scheduled": 0, "delivered": 0, "dead": 1, "cancelled": 0});
    assert_eq!(stats["deliveries"], states);
    assert_eq!((&stats["accepted"], &stats["expunged"], &stats["lanes"]), (&2.into(), &0.into(), &1.into()));
    assert_eq!(stats["oldest_due_age_seconds"], 1.5);
    assert_eq!(stats["store"]["kind"], "memory");
}
