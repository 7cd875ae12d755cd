//! What a producer may get wrong, and the words it gets for it. Nothing of it is stored.

use serde_json::{Value, json};

use crate::support::api::{Answer, Api, Counts};
use crate::support::process::{Serving, serve};
use crate::support::{directory, sink};

const URL: &str = "http://127.0.0.1:9/x";

/// A server on a store of its own, and the store.
fn server(flags: &[&str]) -> (Serving, tempfile::TempDir) {
    let directory = directory();
    (serve(directory.path()).args(flags).run(), directory)
}

/// A problem object with this status and code; returns it.
fn problem(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!((answer.status, answer.header("content-type")), (status, Some("application/problem+json")));
    let problem = answer.json();
    assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{problem}");
    problem
}

fn refused(api: Api, event: &str, status: u16, code: &str) -> Value {
    problem(&api.post("/v1/events", event).expect("answered"), status, code)
}

fn detail(problem: &Value) -> &str {
    problem["detail"].as_str().expect("a text")
}

fn nothing_was_stored(api: Api) {
    assert_eq!(api.counts(), Counts::default());
    assert_eq!(api.get("/v1/events")["data"], json!([]));
}

#[test]
fn malformed_json_is_400_with_the_position() {
    let (serving, _directory) = server(&[]);
    let broken = refused(serving.api, "{\"url\": \"http://x/\",\n \"payload\": }", 400, "malformed_json");
    let text = detail(&broken);
    assert!(text.contains("line 2 column 13"), "{text}");
    assert!(text.contains("(byte 33)"), "{text}");
    let cut = refused(serving.api, "{\"payload\": {", 400, "malformed_json");
    assert!(detail(&cut).contains("(byte 13)"), "{cut}");
    nothing_was_stored(serving.api);
}

#[test]
fn an_unknown_field_is_422_and_names_the_nearest() {
    let (serving, _directory) = server(&[]);
    let event = format!(r#"{{"url":"{URL}","paylod":1}}"#);
    let unknown = refused(serving.api, &event, 422, "unknown_field");
    let text = detail(&unknown);
    assert!(text.contains("unknown field `paylod`") && text.contains("did you mean `payload`?"), "{text}");
    assert_eq!(unknown["errors"][0]["pointer"], "/paylod");
    nothing_was_stored(serving.api);
}

#[test]
fn g12_a_blocked_url_is_422_and_names_the_rule_and_the_flag() {
    let (serving, _directory) = server(&[]);
    // The server of these tests allows 127.0.0.0/8 only.
    for (url, rule, flag) in [
        ("http://10.1.2.3/hook", "10.1.2.3 is private", "--allow-net 10.1.2.3/32 "),
        ("http://0xa010203/", "10.1.2.3 is private", "--allow-net 10.1.2.3/32 "),
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254 is ", "--allow-net 169.254.169.254/32 "),
        ("http://[::1]/", "::1 is loopback", "--allow-net ::1/128 "),
    ] {
        let event = format!(r#"{{"url":"{url}","payload":1}}"#);
        let blocked = refused(serving.api, &event, 422, "blocked_address");
        let text = detail(&blocked);
        assert!(text.starts_with(rule) && text.contains(flag), "{url}: {text}");
        assert_eq!(blocked["errors"][0]["pointer"], "/url");
    }
    for url in ["ftp://example.com/", "example.com/hook", "http://", "http://user:secret@example.com/"] {
        let event = format!(r#"{{"url":"{url}","payload":1}}"#);
        let unusable = refused(serving.api, &event, 422, "invalid_destination");
        assert_eq!(unusable["errors"][0]["pointer"], "/url", "{url}");
        assert!(!detail(&unusable).contains("secret"), "{unusable}");
    }
    nothing_was_stored(serving.api);
}

#[test]
fn g11_a_payload_over_the_limit_is_413_with_the_limit() {
    let (serving, _directory) = server(&["--max-payload", "1000B"]);
    let (api, sink) = (serving.api, sink());
    let event =
        |bytes: usize| format!(r#"{{"url":"{}","payload":"{}"}}"#, sink.url("/ok"), "x".repeat(bytes - 2));
    let large = refused(api, &event(1_001), 413, "payload_too_large");
    assert_eq!(large["limit_bytes"], 1_000);
    assert!(detail(&large).contains("1000 bytes"), "{large}");
    let raw = format!("content-type: text/plain\r\nteimoso-url: {}\r\n", sink.url("/ok"));
    let larger = api.request("POST", "/v1/events/raw", &raw, &[b'x'; 1_001]).expect("answered");
    assert_eq!(problem(&larger, 413, "payload_too_large")["limit_bytes"], 1_000);
    nothing_was_stored(api);
    // The limit itself is within the limit.
    assert_eq!(api.post("/v1/events", &event(1_000)).expect("answered").status, 202);
}

#[test]
fn a_wrong_content_type_is_415() {
    let (serving, _directory) = server(&[]);
    let event = format!(r#"{{"url":"{URL}","payload":1}}"#);
    for kind in ["", "content-type: text/plain\r\n", "content-type: application/x-www-form-urlencoded\r\n"] {
        let answer = serving.api.request("POST", "/v1/events", kind, event.as_bytes()).expect("answered");
        let wrong = problem(&answer, 415, "unsupported_media_type");
        assert!(detail(&wrong).contains("application/json"), "{wrong}");
    }
    nothing_was_stored(serving.api);
}

#[test]
fn a_name_repeated_with_another_body_is_refused_and_never_hides_a_loss() {
    let (serving, _directory) = server(&[]);
    let (api, sink) = (serving.api, sink());
    let event =
        |payload: u32, name: &str| format!(r#"{{"url":"{}","payload":{payload},{name}}}"#, sink.url("/ok"));
    for (name, status, code, pointer) in [
        (r#""idempotency_key":"k""#, 422, "idempotency_key_reused", "/idempotency_key"),
        (r#""id":"pedido-1""#, 409, "id_taken", "/id"),
    ] {
        let first = api.post("/v1/events", &event(1, name)).expect("answered");
        assert_eq!((first.status, first.header("idempotent-replayed")), (202, None), "{first:?}");
        let other = refused(api, &event(2, name), status, code);
        assert_eq!(other["errors"][0]["pointer"], pointer);
        let same = api.post("/v1/events", &event(1, name)).expect("answered");
        assert_eq!((same.status, same.header("idempotent-replayed")), (202, Some("true")));
        assert_eq!(same.json()["id"], first.json()["id"]);
    }
    assert_eq!(api.counts().accepted, 2);
}

#[test]
fn a_bad_line_of_a_batch_is_refused_by_its_number_and_the_others_are_accepted() {
    let (serving, _directory) = server(&[]);
    let (api, sink) = (serving.api, sink());
    let line = |payload: &str| format!("{{\"url\":\"{}\",\"payload\":{payload}}}\n", sink.url("/ok"));
    let lines = [line("1"), "{\"payload\"\n".to_owned(), line("2"), line("3,\"tpye\":\"x\"")].concat();
    let kind = "content-type: application/x-ndjson\r\n";
    let answer = api.request("POST", "/v1/events/batch", kind, lines.as_bytes()).expect("answered");
    assert_eq!(answer.status, 200);
    let text = String::from_utf8(answer.body).expect("UTF-8");
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), 4);
    assert_eq!((&answers[1]["code"], &answers[1]["line"]), (&json!("malformed_json"), &json!(2)));
    assert_eq!((&answers[3]["code"], &answers[3]["line"]), (&json!("unknown_field"), &json!(4)));
    assert!(detail(&answers[3]).contains("did you mean `type`?"), "{}", answers[3]);
    for accepted in [&answers[0], &answers[2]] {
        api.until_state(accepted["deliveries"][0]["id"].as_str().expect("an id"), "delivered");
    }
    assert_eq!(api.counts().accepted, 2);
}
