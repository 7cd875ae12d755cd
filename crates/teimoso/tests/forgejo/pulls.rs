//! `pr view`, `pr checks`, `pr ready`, and branch protection.

use serde_json::{Value, json};
use teimoso_forgejo::testkit::{Fault, Forge};

use crate::{forgejo, green};

#[test]
fn s1_10_a_pull_request_is_shown_in_the_shape_of_gh() {
    let forge = green();
    let ended = forgejo(&forge, "pr view acme/site 7 --json state,number,mergeStateStatus,headRefOid");
    let expected =
        json!({"number": 7, "state": "OPEN", "headRefOid": Forge::HEAD, "mergeStateStatus": "CLEAN"});
    assert_eq!((ended.code, ended.stdout), (0, format!("{expected}\n")));
    let all: Value =
        serde_json::from_str(&forgejo(&forge, "pr view acme/site 7 --json").stdout).expect("JSON");
    assert_eq!(all["statusCheckRollup"][0]["state"], "SUCCESS");
    let words = forgejo(&forge, "pr view acme/site 7").stdout;
    let expected = "title     Add it\nstate     OPEN\nbranches  topic into main\n";
    assert!(words.starts_with(expected), "{words}");
}

#[test]
fn an_unknown_field_is_a_usage_error_before_anything_is_asked() {
    let forge = green();
    let ended = forgejo(&forge, "pr view acme/site 7 --json colour");
    assert_eq!((ended.code, forge.asked().len()), (2, 0));
    assert!(
        ended.stderr.contains("there is no field `colour`; the fields are number,title,"),
        "{}",
        ended.stderr
    );
    let swallowed = forgejo(&forge, "pr view --json acme/site 7");
    assert_eq!((swallowed.code, forge.asked().len()), (2, 0));
    let field = "there is no field `acme/site`; the fields are number,title,";
    assert!(swallowed.stderr.contains(field), "{}", swallowed.stderr);
}

#[test]
fn checks_exit_as_those_of_gh_do() {
    let forge = Forge::start();
    let none = forgejo(&forge, "pr checks acme/site 7");
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.as_str()), (1, "", "acme/site#7: no checks\n"));
    forge.change(|state| state.report("build", "success"));
    let passed = forgejo(&forge, "pr checks acme/site 7");
    let table = "VERDICT  STATE    CHECK  DESCRIPTION\ngreen    success  build\n";
    assert_eq!((passed.code, passed.stdout.as_str()), (0, table));
    forge.change(|state| state.report("test", "pending"));
    assert_eq!(forgejo(&forge, "pr checks acme/site 7").code, 8);
    forge.change(|state| state.report("lint", "warning"));
    let failed = forgejo(&forge, "pr checks acme/site 7 --json");
    let verdicts: Vec<Value> = failed
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["verdict"].clone())
        .collect();
    assert_eq!((failed.code, verdicts), (1, vec![json!("green"), json!("failed"), json!("pending")]));
}

#[test]
fn checks_are_watched_until_none_is_pending() {
    let forge = Forge::start();
    forge.change(|state| {
        state.report("build", "failure");
        state.report("test", "pending");
    });
    forge.at("GET", "/status", 3, |state| state.report("test", "success"));
    forge.fail("GET", "/pulls/7", 2, 1, Fault::Says(200, &[], "<title>Log in</title>".to_owned()));
    let ended = forgejo(&forge, "pr checks acme/site 7 --watch --poll 1ms");
    let lines = "acme/site#7: 0 of 2 checks green, 1 pending\nacme/site#7: could not look, the wait goes on: GET \
                 /repos/acme/site/pulls/7: HTTP 200, but the answer is a web page (Log in)\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (1, lines));
    assert_eq!(ended.stdout.lines().nth(2), Some("green    success  test"));
    assert_eq!(forge.count("GET", "/status"), 3);
}

#[test]
fn what_is_pending_when_the_watch_is_over_is_exit_8() {
    let forge = Forge::start();
    forge.change(|state| state.report("test", "pending"));
    let ended = forgejo(&forge, "pr checks acme/site 7 --watch --poll 1ms --timeout 20ms");
    let table = "VERDICT  STATE    CHECK  DESCRIPTION\npending  pending  test\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (8, table));
    assert!(forge.count("GET", "/status") > 1);
    let alone = forgejo(&forge, "pr checks acme/site 7 --timeout 1h");
    assert_eq!(alone.code, 2, "without --watch there is nothing that takes time");
}

#[test]
fn a_pull_request_that_is_closed_is_not_retitled() {
    let forge = green();
    forge.change(|state| state.pull().open = false);
    let ended = forgejo(&forge, "pr ready acme/site 7 --undo");
    let lines =
        "teimoso: acme/site#7 is closed, and stays as it is\n  open it again first, if it is not merged\n";
    assert_eq!((ended.code, ended.stderr.as_str(), forge.executed().len()), (1, lines, 0));
}

#[test]
fn s1_13_a_draft_becomes_ready_and_a_draft_again() {
    let forge = green();
    forge.change(|state| state.pull().title = "[WIP] Add it".to_owned());
    for (words, line, title) in [
        ("pr ready acme/site 7", "ready", "Add it"),
        ("pr ready acme/site 7", "already ready", "Add it"),
        ("pr ready acme/site 7 --undo", "a draft", "WIP: Add it"),
        ("pr ready acme/site 7 --undo", "already a draft", "WIP: Add it"),
    ] {
        let ended = forgejo(&forge, words);
        assert_eq!((ended.code, ended.stderr), (0, format!("acme/site#7: {line}\n")));
        assert_eq!(forge.see(|state| state.pulls[&7].title.clone()), title);
    }
    assert_eq!(forge.executed().len(), 2);
}

#[test]
fn s1_13_protection_is_shown_compared_and_applied_once() {
    let forge = Forge::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rules.json");
    let file = path.to_str().expect("text");
    std::fs::write(&path, r#"{"rule_name": "main", "required_approvals": 2}"#).expect("written");
    let dry = forgejo(&forge, &format!("protection apply acme/site {file} --dry-run"));
    assert_eq!((dry.code, dry.stdout.as_str()), (0, "+ main\n    + required_approvals: 2\n"));
    assert_eq!(dry.stderr, "acme/site: rules: 1 would be made, 0 would be changed, 0 the same\n");
    assert_eq!(forge.executed().len(), 0);
    forgejo(&forge, &format!("protection apply acme/site {file}"));
    let again = forgejo(&forge, &format!("protection apply acme/site {file} --json"));
    let same = json!({"rule": "main", "change": "same", "fields": []});
    assert_eq!((again.stdout, forge.executed().len()), (format!("{same}\n"), 1));
    std::fs::write(&path, r#"[{"rule_name": "main", "required_approvals": 3}]"#).expect("written");
    let changed = forgejo(&forge, &format!("protection apply acme/site {file}"));
    assert_eq!(changed.stdout, "~ main\n    ~ required_approvals: 2 -> 3\n");
    let shown = forgejo(&forge, "protection view acme/site").stdout;
    std::fs::write(&path, shown).expect("written");
    let round = forgejo(&forge, &format!("protection apply acme/site {file}"));
    assert_eq!((round.code, round.stdout.as_str(), forge.executed().len()), (0, "  main\n", 2));
}
