//! The safety net: what it says, and how it ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use teimoso_forgejo::testkit::{Fault, Forge};

use crate::{command, forgejo, green};

const NET: &str = "pr automerge acme/site 7 --poll 1ms";

/// A page for people where the API was asked: a look that fails, and that the client does not repeat.
fn page() -> Fault {
    Fault::Says(200, &[("content-type", "text/html")], "<title>Are you human?</title>".to_owned())
}

#[test]
fn s1_11_a_green_pull_request_is_merged_once_and_the_lines_tell_how() {
    let forge = Forge::start();
    forge.change(|state| {
        state.report("build", "success");
        state.report("test", "pending");
    });
    forge.at("GET", "/status", 4, |state| state.report("test", "success"));
    forge.fail("GET", "/pulls/7", 3, 1, page());
    let ended = forgejo(&forge, &format!("{NET} --method squash"));
    let lines = [
        "acme/site#7: 1 of 2 checks green, 1 pending",
        "acme/site#7: could not look, the wait goes on: GET /repos/acme/site/pulls/7: HTTP 200, but the answer is a \
         web page (Are you human?)",
        "acme/site#7: in sight again after 1 look that failed",
        "acme/site#7: 2 of 2 checks green, one more look before the merge",
        "acme/site#7: merging 1111111111 (squash)",
    ];
    assert_eq!(ended.stderr.lines().collect::<Vec<_>>(), lines);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "acme/site#7: merged as 3333333333\n"));
    assert_eq!(forge.executed(), ["merge 7 squash"]);
}

#[test]
fn s1_8_retries_are_told_in_portuguese_too() {
    let forge = green();
    forge.fail("GET", "/pulls/7", 1, 1, Fault::proxy(502));
    let ended = forgejo(&forge, &format!("{NET} --lang pt-BR"));
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "acme/site#7: mesclado em 3333333333\n"));
    let line = ended.stderr.lines().next().expect("a line");
    let begin =
        "[forgejo-api] GET /api/v1/repos/acme/site/pulls/7 falhou (tentativa 1/4): HTTP 502 — retry em ";
    assert!(line.starts_with(begin) && line.ends_with("ms"), "{line}");
}

#[test]
fn what_stops_it_for_good_is_exit_1_with_the_api_s_words() {
    let forge = green();
    forge.change(|state| state.report("lint", "failure"));
    let ended = forgejo(&forge, NET);
    let sentence = "acme/site#7: not merged, failed: lint\n";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (1, "", sentence));
    let forge = green();
    forge.fail("POST", "/merge", 1, 9, Fault::message(405, "Does not have enough approvals"));
    let ended = forgejo(&forge, NET);
    let sentence = "acme/site#7: not merged: POST /repos/acme/site/pulls/7/merge: HTTP 405: Does not have enough \
                    approvals";
    assert_eq!((ended.code, ended.stderr.lines().last()), (1, Some(sentence)));
    let forge = green();
    forge.change(|state| state.pull().open = false);
    assert_eq!(forgejo(&forge, NET).code, 1);
    let forge = Forge::start();
    assert_eq!(forgejo(&forge, &format!("{NET} --grace 0s")).code, 1);
    let allowed = forgejo(&forge, &format!("{NET} --grace 0s --allow-no-checks"));
    assert_eq!((allowed.code, forge.executed().len()), (0, 1));
}

#[test]
fn time_that_runs_out_is_exit_6() {
    let forge = Forge::start();
    forge.change(|state| state.report("test", "pending"));
    let ended = forgejo(&forge, &format!("{NET} --timeout 20ms"));
    let last = "acme/site#7: not merged, time ran out: 0 of 1 checks green, 1 pending";
    assert_eq!((ended.code, ended.stderr.lines().last()), (6, Some(last)));
    assert_eq!(forge.count("POST", "/merge"), 0);
}

#[test]
fn an_order_of_which_nobody_knows_is_exit_7() {
    let forge = green();
    forge.fail("POST", "/merge", 1, 9, Fault::DoneAndLost);
    forge.fail("GET", "/pulls/7", 3, 1_000_000, page());
    let ended = forgejo(&forge, &format!("{NET} --timeout 300ms"));
    assert_eq!(ended.code, 7, "{}", ended.stderr);
    let unknown = "acme/site#7: outcome unknown, the order to merge may have been followed: POST ";
    assert!(ended.stderr.contains(unknown), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("\n  look at the pull request before you repeat it\n"));
    assert_eq!(forge.count("POST", "/merge"), 1);
}

#[test]
fn the_events_are_one_json_object_per_line() {
    let forge = green();
    let ended = forgejo(&forge, &format!("{NET} --json"));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let mut events: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for event in &mut events {
        let elapsed = event.as_object_mut().expect("an object").remove("elapsed_ms");
        assert!(elapsed.is_some_and(|elapsed| elapsed.is_u64()));
    }
    let counts = json!({"all": 1, "green": 1, "pending": 0, "failed": 0});
    let expected = [
        json!({"event": "waiting", "for": "confirmation", "checks": counts}),
        json!({"event": "ordering", "method": "merge", "head": Forge::HEAD}),
        json!({
            "event": "ended", "outcome": "merged", "commit": "3".repeat(40), "by_us": true, "warning": null,
            "exit": 0,
        }),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_dry_run_says_what_it_would_do() {
    let forge = green();
    let ended = forgejo(&forge, &format!("{NET} --dry-run"));
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "acme/site#7: would merge 1111111111 (merge)\n"));
    forge.change(|state| state.report("test", "pending"));
    let ended = forgejo(&forge, &format!("{NET} --dry-run"));
    let words = "acme/site#7: would wait: 1 of 2 checks green, 1 pending\n";
    assert_eq!((ended.code, ended.stdout.as_str(), forge.executed().len()), (0, words, 0));
}

#[test]
fn a_signal_ends_the_wait_and_tells_what_is_known() {
    let forge = Forge::start();
    forge.change(|state| state.report("test", "pending"));
    let mut command = command(&forge, "pr automerge acme/site 7 --poll 1h");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    assert_eq!(line, "acme/site#7: 0 of 1 checks green, 1 pending\n");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "acme/site#7: interrupted: nothing was merged\n");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}
