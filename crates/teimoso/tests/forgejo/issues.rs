//! Issues: made once, moved, claimed, given back.

use serde_json::{Value, json};
use teimoso_forgejo::testkit::{Fault, Forge};

use crate::forgejo;

#[test]
fn s1_13_an_issue_is_made_once_under_a_key() {
    let forge = Forge::start();
    let words = "issue create acme/site --title Register --body Agent --label bug --op register-7";
    let made = forgejo(&forge, words);
    assert_eq!((made.code, made.stdout), (0, format!("{}/acme/site/issues/4\n", forge.url())));
    let again = forgejo(&forge, &format!("{words} --json"));
    assert_eq!(again.stderr, "acme/site#4: was there already, under the same key\n");
    let object: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!((&object["number"], &object["created"]), (&json!(4), &json!("was_there")));
    assert_eq!(forge.executed(), ["create issue 4"]);
    let unknown = forgejo(&forge, "issue create acme/site --title T --label nope");
    assert_eq!((unknown.code, forge.executed().len()), (1, 1));
    assert!(unknown.stderr.starts_with("teimoso: acme/site has no label `nope`; nothing was made\n"));
}

#[test]
fn s1_2_an_issue_of_which_nobody_knows_is_exit_7_and_names_its_key() {
    let forge = Forge::start();
    forge.fail("POST", "/issues", 1, 9, Fault::Lost);
    let ended = forgejo(&forge, "issue create acme/site --title T");
    assert_eq!((ended.code, forge.count("POST", "/issues")), (7, 1));
    let unknown = "acme/site: outcome unknown: the issue may have been made, and was not found: POST ";
    assert!(ended.stderr.starts_with(unknown), "{}", ended.stderr);
    assert!(ended.stderr.contains("\n  repeat the command with --op "), "{}", ended.stderr);
}

#[test]
fn s1_13_a_transition_that_fails_is_exit_1() {
    let forge = Forge::start();
    let moved = forgejo(&forge, "issue transition acme/site 3 ready");
    assert_eq!((moved.code, moved.stderr.as_str()), (0, "acme/site#3: status/ready\n"));
    let unknown = forgejo(&forge, "issue transition acme/site 3 frozen");
    let line = "acme/site#3: there is no label status/frozen; the statuses are done, in-progress, ready\n";
    assert_eq!((unknown.code, unknown.stderr.as_str()), (1, line));
    forge.fail("POST", "/labels", 2, 9, Fault::empty(403));
    let refused = forgejo(&forge, "issue transition acme/site 3 done");
    let line = "teimoso: POST /repos/acme/site/issues/3/labels: HTTP 403: the server gives no reason\n  look at the \
                scopes of the token, and at what its user may do\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (1, line));
}

#[test]
fn s1_13_an_issue_is_claimed_by_one_and_given_back() {
    let forge = Forge::start();
    let first = forgejo(&forge, "issue claim acme/site 3");
    assert_eq!(
        (first.code, first.stderr.as_str()),
        (0, "acme/site#3: claimed by ana\nacme/site#3: status/in-progress\n")
    );
    let second = forgejo(&forge, "issue claim acme/site 3 --as agent-2");
    assert_eq!((second.code, second.stderr.as_str()), (1, "acme/site#3: not claimed: ana has it\n"));
    let status = forgejo(&forge, "issue status acme/site 3").stdout;
    let table =
        "ISSUE  STATE  STATUS       CLAIMED BY  TITLE\n3      open   in-progress  ana         Broken\n";
    assert_eq!(status, table);
    let back = forgejo(&forge, "issue ready acme/site 3");
    assert_eq!((back.code, back.stderr.lines().next()), (0, Some("acme/site#3: released; ana had it")));
    let line = json!({"number": 3, "state": "open", "status": ["ready"], "title": "Broken"});
    assert_eq!(forgejo(&forge, "issue status acme/site --json").stdout, format!("{line}\n"));
}
