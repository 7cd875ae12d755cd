//! What may have taken effect is never repeated without a mark, and the exit code says so.

use crate::peer::{Peer, Play, Silent, answer};
use crate::request;

#[test]
fn a_post_that_was_read_and_not_answered_is_executed_once_and_the_code_is_7() {
    let peer = Peer::start(&[Play::Close]);
    let ended = request(&["POST", &format!("{}/orders", peer.url), "-d", "a=1"]);
    assert_eq!((ended.code, ended.stdout.as_str(), peer.asked().len()), (7, "", 1));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let start =
        "[request] POST /orders failed (attempt 1/3): may have taken effect: failed to get a response: ";
    assert!(lines[0].starts_with(start), "{}", ended.stderr);
    let end = " — not repeated: not safe to send twice unless marked (--idempotent)";
    assert!(lines[0].ends_with(end), "{}", ended.stderr);
    let last = [
        "teimoso: outcome unknown after 1 attempt: the request may have taken effect, and no whole response came",
        "  look at the other side before you send it again",
    ];
    assert_eq!(lines[1..], last);
}

#[test]
fn a_shell_script_tells_it_failed_from_it_may_have_happened() {
    let script = r#"
        "$TEIMOSO" request POST "$1" -s -d a=1 >/dev/null 2>&1
        case $? in
            0) echo done ;;
            7) echo look ;;
            6) echo later ;;
            *) echo failed ;;
        esac"#;
    let run = |peer: &Peer, path: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script, "sh", &format!("{}{path}", peer.url)]);
        let output = shell.env("TEIMOSO", env!("CARGO_BIN_EXE_teimoso")).output().expect("a shell");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(run(&Peer::start(&[answer("201 Created", "")]), "/"), "done\n");
    assert_eq!(run(&Peer::start(&[Play::Close]), "/"), "look\n");
    assert_eq!(run(&Peer::start(&[answer("422 Unprocessable", "")]), "/"), "failed\n");
    let silent = Silent::new();
    let output = request(&["POST", &silent.url, "-s", "--retry-delay", "1ms"]);
    assert_eq!(output.code, 6);
}

#[test]
fn a_post_answered_with_503_is_not_repeated_without_a_mark() {
    let peer = Peer::start(&[answer("503 Service Unavailable", "busy")]);
    let ended = request(&["POST", &peer.url]);
    assert_eq!((ended.code, ended.stdout.as_str(), peer.asked().len()), (1, "busy", 1));
    let line = "[request] POST / failed (attempt 1/3): HTTP 503, which may have taken effect — not repeated: not \
                safe to send twice unless marked (--idempotent)\n";
    assert_eq!(ended.stderr, line);
}

#[test]
fn a_marked_post_is_repeated() {
    let peer = Peer::start(&[answer("503 Service Unavailable", ""), Play::Close, answer("200 OK", "ok")]);
    let ended = request(&["POST", &peer.url, "--idempotent", "-d", "a=1", "--retry-delay", "1ms"]);
    assert_eq!((ended.code, ended.stdout.as_str(), peer.asked().len()), (0, "ok", 3), "{}", ended.stderr);
    assert!(
        peer.asked().iter().all(|asked| asked.body == b"a=1" && asked.header("idempotency-key").is_none())
    );
}

#[test]
fn s1_2_the_policy_forgejo_repeats_what_may_have_taken_effect_and_says_so() {
    let peer = Peer::start(&[Play::Close]);
    let line = ["POST", &peer.url, "--policy", "forgejo", "--retry", "1", "--retry-delay", "1ms"];
    let ended = request(&line);
    assert_eq!((ended.code, peer.asked().len()), (7, 2), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(lines[0].contains("(attempt 1/2): may have taken effect: "), "{}", ended.stderr);
    assert!(lines[0].ends_with(" — retry in 1ms") && lines[1].ends_with(" — no retries left"));
    assert!(lines[2].starts_with("teimoso: outcome unknown after 2 attempts: "), "{}", ended.stderr);
}

#[test]
fn a_key_is_the_same_on_every_attempt_and_told_when_the_outcome_is_unknown() {
    let peer = Peer::start(&[Play::Close]);
    let line = ["POST", &peer.url, "--idempotency-key", "auto", "--retry", "2", "--retry-delay", "1ms"];
    let ended = request(&line);
    assert_eq!(ended.code, 7, "{}", ended.stderr);
    let asked = peer.asked();
    let keys: Vec<_> = asked.iter().map(|asked| asked.header("idempotency-key").expect("a key")).collect();
    assert_eq!(keys.len(), 3);
    assert_eq!((keys[0], keys[1], keys[0].len()), (keys[1], keys[2], 36));
    let last =
        format!("  where keys are honoured it is safe to send it again with --idempotency-key {}\n", keys[0]);
    assert!(ended.stderr.ends_with(&last), "{}", ended.stderr);
    let again = request(&["POST", &peer.url, "--idempotency-key", keys[0], "--retry", "0"]);
    assert_eq!((again.code, peer.asked()[3].header("idempotency-key")), (7, Some(keys[0])));
}

#[test]
fn a_late_answer_to_a_post_leaves_the_outcome_unknown() {
    let peer = Peer::start(&[Play::Hang]);
    let ended = request(&["POST", &peer.url, "-m", "0.05", "-s"]);
    assert_eq!((ended.code, peer.asked().len()), (7, 1));
    let start = "teimoso: outcome unknown after 1 attempt: the request may have taken effect, and no whole response \
                 came: failed to ";
    assert!(ended.stderr.starts_with(start), "{}", ended.stderr);
}

#[test]
fn a_post_whose_answer_broke_off_is_not_repeated() {
    let peer = Peer::start(&[Play::Cut("half")]);
    let ended = request(&["POST", &peer.url]);
    assert_eq!((ended.code, ended.stdout.as_str(), peer.asked().len()), (7, "", 1));
    assert!(ended.stderr.contains(": HTTP 200, its body was lost: failed to "), "{}", ended.stderr);
}
