//! What is printed where: stdout, a file, JSON.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::peer::{Peer, Play, answer, with};
use crate::request;
use crate::support::teimoso;

fn object(stdout: &str) -> Value {
    assert_eq!(stdout.lines().count(), 1, "one object");
    serde_json::from_str(stdout).expect("JSON")
}

#[test]
fn json_is_one_object_with_the_outcome_and_every_attempt() {
    let script =
        [with("503 Service Unavailable", "retry-after: 0"), Play::Close, with("200 OK", "x-a: 1\r\nx-a: 2")];
    let peer = Peer::start(&script);
    let secret = "authorization: Bearer s3cret";
    let line = ["GET", &peer.url, "--json", "-H", secret, "--policy", "connector", "--retry-delay", "7ms"];
    let ended = request(&line);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut got = object(&ended.stdout);
    assert!(!ended.stdout.contains("s3cret") && !ended.stderr.contains("s3cret"));
    let error = got["attempts"][1]["error"].take();
    assert!(error.as_str().is_some_and(|text| text.starts_with("failed to get a response: ")), "{error}");
    let expected = json!({
        "fate": "answered",
        "status": 200,
        "headers": {"content-length": "0", "connection": "close", "x-a": "1, 2"},
        "body": "",
        "attempts": [
            {"number": 1, "fate": "answered", "status": 503, "error": null, "wait_ms": 7, "wait_source": "retry_after"},
            {"number": 2, "fate": "ambiguous", "status": null, "error": null, "wait_ms": 7, "wait_source": "schedule"},
            {"number": 3, "fate": "answered", "status": 200, "error": null, "wait_ms": null, "wait_source": null},
        ],
        "may_have_taken_effect": false,
    });
    assert_eq!(got, expected);
}

#[test]
fn json_says_of_a_lost_post_that_it_may_have_taken_effect() {
    let peer = Peer::start(&[Play::Close]);
    let ended = request(&["POST", &peer.url, "--json", "-s"]);
    let got = object(&ended.stdout);
    assert_eq!((ended.code, &got["may_have_taken_effect"]), (7, &json!(true)));
    assert_eq!(
        (&got["fate"], &got["status"], &got["headers"]),
        (&json!("ambiguous"), &json!(null), &json!(null))
    );
    assert_eq!((&got["body"], got["attempts"].as_array().map(Vec::len)), (&json!(null), Some(1)));
}

#[test]
fn json_holds_what_is_no_text_in_base64_and_nothing_that_went_into_a_file() {
    let peer = Peer::start(&[Play::Answer("200 OK", Vec::new(), vec![0xff, 0x00])]);
    let got = object(&request(&["GET", &peer.url, "--json"]).stdout);
    assert_eq!((&got["body"], &got["body_base64"]), (&json!(null), &json!("/wA=")));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("answer").display().to_string();
    let got = object(&request(&["GET", &peer.url, "--json", "-o", &file]).stdout);
    assert_eq!((&got["body"], &got["body_base64"]), (&json!(null), &Value::Null));
    assert_eq!(fs::read(&file).expect("there"), [0xff, 0x00]);
}

#[test]
fn include_prints_the_head_first() {
    let peer = Peer::start(&[Play::Answer("200 OK", vec!["X-Name: a b".to_owned()], b"body".to_vec())]);
    let ended = request(&["GET", &peer.url, "-i"]);
    let expected = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\nx-name: a b\r\n\r\nbody";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, expected, ""));
}

#[test]
fn a_file_is_whole_or_not_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("answer");
    let name = file.display().to_string();
    let cut = Peer::start(&[Play::Cut("half")]);
    let ended = request(&["GET", &cut.url, "-o", &name, "--retry", "1", "--retry-delay", "1ms"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (6, ""), "{}", ended.stderr);
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
    let whole = Peer::start(&[answer("200 OK", "the whole")]);
    let ended = request(&["GET", &whole.url, "-o", &name]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
    assert_eq!(fs::read(&file).expect("there"), b"the whole");
    let ended = request(&["GET", &cut.url, "-o", &name, "--retry", "0"]);
    assert_eq!((ended.code, fs::read(&file).expect("there")), (6, b"the whole".to_vec()));
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
}

#[test]
fn an_answer_with_nowhere_to_go_is_found_out_before_anything_is_sent() {
    let peer = Peer::start(&[answer("200 OK", "")]);
    let ended = request(&["POST", &peer.url, "-o", "/no/such/place"]);
    assert_eq!((ended.code, peer.asked().len()), (1, 0));
    assert!(ended.stderr.starts_with("teimoso: cannot write /no/such/place: "), "{}", ended.stderr);
}

#[test]
fn an_answer_that_could_not_be_printed_leaves_a_post_unknown_and_a_get_failed() {
    let peer = Peer::start(&[answer("201 Created", "made")]);
    for (method, code) in [("POST", 7), ("GET", 1)] {
        let ended = request(&[method, &peer.url, "-o", "/dev/full"]);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        let end = "\n  the request itself was answered with HTTP 201\n";
        assert!(ended.stderr.starts_with("teimoso: cannot write /dev/full: ") && ended.stderr.ends_with(end));
    }
}

#[test]
fn an_answer_larger_than_allowed_is_refused() {
    let peer = Peer::start(&[answer("200 OK", "too long")]);
    let ended = request(&["GET", &peer.url, "--max-filesize", "7"]);
    assert_eq!((ended.code, ended.stdout.as_str(), peer.asked().len()), (1, "", 1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("(attempt 1/3): HTTP 200: failed to read the response body"),
        "{}",
        ended.stderr
    );
    assert_eq!(request(&["GET", &peer.url, "--max-filesize", "8"]).code, 0);
}

#[test]
fn a_body_comes_from_stdin_byte_for_byte_and_headers_have_their_defaults() {
    let peer = Peer::start(&[answer("200 OK", "")]);
    let mut command = teimoso(&["request", "PUT", &peer.url, "--data-binary", "-", "-A", "robot/1"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("piped").write_all(b"a\r\n\xff").expect("written");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let asked = &peer.asked()[0];
    assert_eq!((asked.line.as_str(), asked.body.as_slice()), ("PUT / HTTP/1.1", &b"a\r\n\xff"[..]));
    assert_eq!(asked.header("user-agent"), Some("robot/1"));
    assert_eq!(asked.header("accept"), Some("*/*"));
    assert_eq!(asked.header("content-type"), Some("application/x-www-form-urlencoded"));
}
