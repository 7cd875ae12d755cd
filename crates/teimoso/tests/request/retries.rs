//! What is tried again, when, and how the end of it is told.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::peer::{Peer, Play, Silent, answer, with};
use crate::request;
use crate::support::teimoso;

#[test]
fn a_get_is_repeated_until_it_is_answered() {
    let busy = answer("503 Service Unavailable", "busy");
    let peer = Peer::start(&[busy.clone(), busy, answer("200 OK", "here\n")]);
    let url = format!("{}/a?token=s3cret", peer.url);
    let ended = request(&["GET", &url, "--retry-delay", "1ms"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "here\n"));
    let lines = [
        "[request] GET /a failed (attempt 1/3): HTTP 503 — retry in 1ms\n",
        "[request] GET /a failed (attempt 2/3): HTTP 503 — retry in 1ms\n",
    ];
    assert_eq!(ended.stderr, lines.concat());
    assert_eq!(peer.asked().len(), 3);
    assert_eq!(peer.asked()[0].line, "GET /a?token=s3cret HTTP/1.1");
}

#[test]
fn s1_8_the_lines_come_in_portuguese_too() {
    let peer = Peer::start(&[answer("503 Service Unavailable", ""), answer("200 OK", "")]);
    let url = format!("{}/api/v1/pulls/7", peer.url);
    let ended = request(&["GET", &url, "--policy", "forgejo", "--retry-delay", "3ms", "--lang", "pt-BR"]);
    assert_eq!(ended.code, 0);
    let line = "[request] GET /api/v1/pulls/7 falhou (tentativa 1/4): HTTP 503 — retry em 3ms\n";
    assert_eq!(ended.stderr, line);
}

#[test]
fn when_retries_run_out_the_last_answer_is_printed_and_the_code_is_6() {
    let peer = Peer::start(&[answer("503 Service Unavailable", "still busy\n")]);
    let ended = request(&["GET", &peer.url, "--retry", "1", "--retry-delay", "1ms"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (6, "still busy\n"));
    let lines = [
        "[request] GET / failed (attempt 1/2): HTTP 503 — retry in 1ms\n",
        "[request] GET / failed (attempt 2/2): HTTP 503 — no retries left\n",
    ];
    assert_eq!((ended.stderr, peer.asked().len()), (lines.concat(), 2));
}

#[test]
fn what_is_final_is_tried_once_printed_all_the_same_and_the_code_is_1() {
    let peer = Peer::start(&[answer("404 Not Found", "no such thing\n")]);
    let ended = request(&["GET", &format!("{}/x", peer.url)]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "no such thing\n"));
    let line = "[request] GET /x failed (attempt 1/3): HTTP 404 — repeating is pointless\n";
    assert_eq!((ended.stderr.as_str(), peer.asked().len()), (line, 1));
    let silent = request(&["GET", &peer.url, "-s"]);
    assert_eq!((silent.code, silent.stdout.as_str(), silent.stderr.as_str()), (1, "no such thing\n", ""));
}

#[test]
fn a_post_that_was_never_sent_is_repeated_and_executed_once() {
    let silent = Silent::new();
    let line = ["request", "POST", &silent.url, "-d", "a=1", "--retry", "1000", "--retry-delay", "20ms"];
    let mut command = teimoso(&line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut said = String::new();
    stderr.read_line(&mut said).expect("a line");
    let peer = silent.listen(&[answer("201 Created", "made\n")]);
    stderr.read_to_string(&mut said).expect("lines");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"made\n"[..]));
    assert_eq!((peer.asked().len(), peer.asked()[0].body.as_slice()), (1, &b"a=1"[..]));
    for line in said.lines() {
        assert!(line.contains(": not sent: failed to connect to 127.0.0.1:"), "{line}");
        assert!(line.ends_with(" — retry in 20ms"), "{line}");
    }
}

#[test]
fn a_post_nobody_listens_for_runs_out_and_has_no_effect() {
    let silent = Silent::new();
    let ended = request(&["POST", &silent.url, "-s", "--retry", "1", "--retry-delay", "1ms"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (6, ""));
    let start =
        "teimoso: gave up after 2 attempts; nothing has taken effect: failed to connect to 127.0.0.1:";
    assert!(ended.stderr.starts_with(start), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1);
}

#[test]
fn s3_3_retry_after_replaces_the_wait() {
    let peer = Peer::start(&[with("503 Service Unavailable", "retry-after: 29")]);
    let mut command =
        teimoso(&["request", "GET", &peer.url, "--policy", "connector", "--retry-delay", "1ms"]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    BufReader::new(child.stderr.take().expect("piped")).read_line(&mut line).expect("a line");
    child.kill().expect("it waits");
    child.wait().expect("it ends");
    let expected = "[request] GET / failed (attempt 1/4): HTTP 503 — retry in 29000ms (Retry-After)\n";
    assert_eq!((line.as_str(), peer.asked().len()), (expected, 1));
}

#[test]
fn s3_3_a_retry_after_that_is_over_is_obeyed_after_the_first_wait() {
    let peer = Peer::start(&[with("503 Service Unavailable", "retry-after: 0"), answer("200 OK", "")]);
    let ended = request(&["GET", &peer.url, "--policy", "connector", "--retry-delay", "2ms"]);
    let line = "[request] GET / failed (attempt 1/4): HTTP 503 — retry in 2ms (Retry-After)\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (0, line));
}

#[test]
fn a_wait_longer_than_the_policy_s_cap_is_not_begun() {
    let peer = Peer::start(&[with("429 Too Many Requests", "retry-after: 3600")]);
    let ended = request(&["GET", &peer.url]);
    let line = "[request] GET / failed (attempt 1/3): HTTP 429 — the peer asks for a longer wait than the policy \
                allows\n";
    assert_eq!((ended.code, ended.stderr.as_str(), peer.asked().len()), (6, line, 1));
}

#[test]
fn a_body_that_breaks_off_is_read_again_for_a_get() {
    let peer = Peer::start(&[Play::Cut("half"), answer("200 OK", "the whole of it")]);
    let ended = request(&["GET", &peer.url, "--retry-delay", "1ms"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "the whole of it"));
    assert!(
        ended.stderr.contains("(attempt 1/3): HTTP 200, its body was lost: failed to "),
        "{}",
        ended.stderr
    );
}

#[test]
fn the_time_of_an_attempt_and_of_the_whole_call_are_limits() {
    let peer = Peer::start(&[Play::Hang]);
    let ended = request(&["GET", &peer.url, "-m", "0.05", "--retry", "1", "--retry-delay", "1ms"]);
    assert_eq!((ended.code, peer.asked().len()), (6, 2), "{}", ended.stderr);
    assert!(ended.stderr.contains("(attempt 2/2): no response: failed to "), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("teimoso: gave up after 2 attempts; nothing has taken effect\n"));
    let busy = Peer::start(&[answer("503 Service Unavailable", "")]);
    let ended = request(&["GET", &busy.url, "--retry-max-time", "60", "--retry-delay", "61"]);
    let line = "[request] GET / failed (attempt 1/3): HTTP 503 — no time left\n";
    assert_eq!((ended.code, ended.stderr.as_str(), busy.asked().len()), (6, line, 1));
}
