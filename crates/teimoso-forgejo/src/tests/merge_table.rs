//! Every answer that an order to merge may get, one test each: what is asked next, and how it ends. In none of them is a
//! merge executed twice.

use std::time::Duration;

use super::support::{green, merged, net};
use crate::NextStep;
use crate::automerge::{Note, Outcome, Plan};
use crate::testkit::{Fault, Forge};

const MERGE: &str = "/pulls/7/merge";

/// A green pull request whose `times` first orders end so, and the run that merges it.
async fn after(times: usize, fault: Fault) -> (Forge, Outcome, Vec<Note>) {
    let forge = green();
    forge.fail("POST", MERGE, 1, times, fault);
    let ran = net(&forge, Plan::default()).await;
    (forge, ran.outcome, ran.notes)
}

fn orders(forge: &Forge) -> usize {
    forge.count("POST", MERGE)
}

fn merges(forge: &Forge) -> Vec<String> {
    let mut executed = forge.executed();
    executed.retain(|what| what.starts_with("merge"));
    executed
}

/// Asserts that between any two orders the pull request was read.
fn assert_read_between_orders(forge: &Forge) {
    let mut read = true;
    for asked in forge.asked() {
        if asked.is("POST", MERGE) {
            assert!(read, "two orders in a row");
            read = false;
        }
        read |= asked.is("GET", "/pulls/7");
    }
}

#[tokio::test]
async fn s1_11_200_is_confirmed_by_a_look() {
    let forge = green();
    let ran = net(&forge, Plan::default()).await;
    assert_eq!(ran.outcome, merged());
    assert_eq!((orders(&forge), merges(&forge)), (1, vec!["merge 7 merge".to_owned()]));
    assert!(forge.asked().last().unwrap().is("GET", "/pulls/7"));
}

#[tokio::test]
async fn s1_13_an_order_always_names_the_head_that_was_judged() {
    let forge = green();
    net(&forge, Plan { delete_branch: true, ..Plan::default() }).await;
    let asked = forge.asked();
    let order = asked.iter().find(|asked| asked.is("POST", MERGE)).unwrap();
    let expected = serde_json::json!({
        "Do": "merge", "head_commit_id": Forge::HEAD, "delete_branch_after_merge": true,
    });
    assert_eq!(order.body, Some(expected));
}

#[tokio::test]
async fn s1_13_405_while_conflicts_are_looked_for_is_ordered_again() {
    let (forge, outcome, notes) = after(2, Fault::message(405, "Please try again later")).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 3, 1));
    assert_eq!(notes.iter().filter(|note| matches!(note, Note::NotYet { .. })).count(), 2);
    assert_read_between_orders(&forge);
}

#[tokio::test]
async fn s1_13_405_without_a_word_because_it_is_merged_is_a_success() {
    let (forge, outcome, _) = after(1, Fault::done_and_message(405, "")).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 1, 1));
}

#[tokio::test]
async fn s1_9_405_with_a_reason_is_the_end_in_the_api_s_words() {
    let reason = "Does not have enough approvals";
    let (forge, outcome, _) = after(9, Fault::message(405, reason)).await;
    let Outcome::Blocked { unauthorized: false, reason: told, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(told, format!("POST /repos/acme/site/pulls/7/merge: HTTP 405: {reason}"));
    assert_eq!((orders(&forge), merges(&forge).len()), (1, 0));
}

#[tokio::test]
async fn a_pull_request_that_stays_unmergeable_is_believed_after_a_while() {
    let forge = green();
    forge.change(|state| state.pull().mergeable = false);
    let ran = net(&forge, Plan::default()).await;
    assert!(
        matches!(&ran.outcome, Outcome::NotMergeable(reason) if reason.ends_with("Please try again later"))
    );
    assert_eq!((orders(&forge), merges(&forge).len()), (1, 0));
    let waited: Duration = ran.clock.waits().iter().sum();
    assert_eq!(waited, Duration::from_secs(15 + 120), "one look to confirm, two minutes to settle");
}

#[tokio::test]
async fn what_becomes_mergeable_in_the_meantime_is_merged() {
    let forge = green();
    forge.change(|state| state.pull().mergeable = false);
    forge.at("GET", "/pulls/7", 5, |state| state.pull().mergeable = true);
    let ran = net(&forge, Plan::default()).await;
    assert_eq!((ran.outcome, orders(&forge)), (merged(), 1));
}

#[tokio::test]
async fn s1_13_403_after_the_merge_because_the_branch_stays_is_a_success_with_a_warning() {
    let (forge, outcome, _) = after(1, Fault::done_and_message(403, "the head branch is protected")).await;
    let Outcome::Merged { ordered: true, warning: Some(warning), .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(warning.ends_with("HTTP 403: the head branch is protected"), "{warning}");
    assert_eq!((orders(&forge), merges(&forge).len()), (1, 1));
}

#[tokio::test]
async fn s1_5_403_before_the_merge_is_the_end_after_exactly_one_order() {
    let scope = "token does not have at least one of required scope(s): [write:repository]";
    let (forge, outcome, _) = after(9, Fault::message(403, scope)).await;
    assert!(matches!(outcome, Outcome::Blocked { ref reason, .. } if reason.ends_with(scope)), "{outcome:?}");
    assert_eq!((orders(&forge), merges(&forge).len()), (1, 0));
}

#[tokio::test]
async fn s1_9_403_without_a_body_is_still_a_sentence() {
    let (_, outcome, _) = after(9, Fault::empty(403)).await;
    let sentence = "POST /repos/acme/site/pulls/7/merge: HTTP 403: the server gives no reason".to_owned();
    let next_step = Some(NextStep::Permission);
    assert_eq!(outcome, Outcome::Blocked { unauthorized: false, reason: sentence, next_step });
}

#[tokio::test]
async fn a_rejected_token_is_told_from_a_missing_right() {
    let (_, outcome, _) = after(9, Fault::message(401, "user does not exist [uid: 0, name: ]")).await;
    assert!(matches!(outcome, Outcome::Blocked { unauthorized: true, .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_201_has_merged_nothing_and_the_watch_goes_on() {
    let (forge, outcome, notes) = after(1, Fault::empty(201)).await;
    assert!(notes.contains(&Note::Scheduled));
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 2, 1));
}

#[tokio::test]
async fn a_409_that_says_it_is_scheduled_already_is_no_end() {
    let said = "Pull request already scheduled to auto merge when checks succeed [pull_id: 7]";
    let (forge, outcome, notes) = after(1, Fault::message(409, said)).await;
    assert!(notes.contains(&Note::Scheduled));
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 2, 1));
}

#[tokio::test]
async fn a_409_for_a_head_that_moved_starts_the_judgement_anew() {
    let forge = green();
    forge.at("POST", MERGE, 1, |state| {
        state.pull().head = Forge::NEXT_HEAD.to_owned();
        state.report("ci", "pending");
    });
    forge.at("GET", "2222/status", 3, |state| state.report("ci", "success"));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!((ran.outcome, orders(&forge)), (merged(), 2));
    let moved = Note::HeadMoved { from: Forge::HEAD.to_owned(), to: Forge::NEXT_HEAD.to_owned() };
    assert!(ran.notes.contains(&moved));
    let asked = forge.asked();
    let heads: Vec<_> = asked
        .iter()
        .filter(|asked| asked.is("POST", MERGE))
        .map(|asked| asked.body.clone().unwrap()["head_commit_id"].clone())
        .collect();
    assert_eq!(heads, [Forge::HEAD, Forge::NEXT_HEAD]);
}

#[tokio::test]
async fn a_409_for_a_base_that_moved_is_ordered_again_after_a_look() {
    let (forge, outcome, _) = after(2, Fault::message(409, "merge push out of date")).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 3, 1));
    assert_read_between_orders(&forge);
}

#[tokio::test]
async fn a_409_of_git_s_is_a_conflict_in_its_words() {
    let body =
        r#"{"Style":"merge","StdOut":"CONFLICT (content): Merge conflict in a.rs","StdErr":"","Err":{}}"#;
    let (forge, outcome, _) = after(9, Fault::Says(409, &[], body.to_owned())).await;
    let Outcome::Conflict(reason) = outcome else { panic!("{outcome:?}") };
    assert!(reason.ends_with("git says: CONFLICT (content): Merge conflict in a.rs"), "{reason}");
    assert_eq!(orders(&forge), 1);
}

#[tokio::test]
async fn a_409_because_somebody_else_merged_it_is_a_success() {
    let body = r#"{"ID":1,"IssueID":2,"HeadRepoID":1}"#.to_owned();
    let (forge, outcome, _) = after(1, Fault::DoneAndSays(409, &[], body)).await;
    assert_eq!((outcome, merges(&forge).len()), (merged(), 1));
}

#[tokio::test]
async fn a_409_of_a_hook_is_the_end() {
    let said = "PushRejected without remote message";
    let (forge, outcome, _) = after(9, Fault::message(409, said)).await;
    assert!(matches!(outcome, Outcome::Blocked { ref reason, .. } if reason.ends_with(said)), "{outcome:?}");
    assert_eq!(orders(&forge), 1);
}

#[tokio::test]
async fn a_404_to_an_order_is_the_end_and_a_closed_pull_request_is_told() {
    let (_, outcome, _) = after(9, Fault::message(404, "gone")).await;
    assert!(
        matches!(outcome, Outcome::Blocked { ref reason, .. } if reason.contains("lacks access")),
        "{outcome:?}"
    );
    let forge = green();
    forge.at("POST", MERGE, 1, |state| state.pull().open = false);
    assert_eq!(net(&forge, Plan::default()).await.outcome, Outcome::Closed);
}

#[tokio::test]
async fn quota_and_archive_are_the_end() {
    for (status, said) in [(413, "quota exceeded"), (423, "acme/site is archived")] {
        let (forge, outcome, _) = after(9, Fault::message(status, said)).await;
        assert!(
            matches!(outcome, Outcome::Blocked { ref reason, .. } if reason.ends_with(said)),
            "{outcome:?}"
        );
        assert_eq!(orders(&forge), 1);
    }
}

#[tokio::test]
async fn s1_4_a_500_after_the_merge_is_a_success_with_a_warning() {
    let (forge, outcome, _) = after(1, Fault::done_and_message(500, "")).await;
    assert!(matches!(outcome, Outcome::Merged { warning: Some(_), .. }), "{outcome:?}");
    assert_eq!((orders(&forge), merges(&forge).len()), (1, 1));
}

#[tokio::test]
async fn s1_4_a_500_before_the_merge_is_ordered_again_a_few_times() {
    let (forge, outcome, _) = after(3, Fault::message(500, "")).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 4, 1));
    assert_read_between_orders(&forge);
    let (forge, outcome, _) = after(99, Fault::message(500, "")).await;
    assert!(matches!(outcome, Outcome::Blocked { unauthorized: false, .. }), "{outcome:?}");
    assert_eq!((orders(&forge), merges(&forge).len()), (5, 0));
}

#[tokio::test]
async fn s1_4_a_502_of_a_proxy_is_never_sent_again_blindly() {
    let (forge, outcome, notes) = after(2, Fault::proxy(502)).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 3, 1));
    assert_eq!(notes.iter().filter(|note| matches!(note, Note::Unclear { .. })).count(), 2);
    assert_read_between_orders(&forge);
    let page = Fault::DoneAndSays(504, &[("content-type", "text/html")], "<title>504</title>".to_owned());
    let (forge, outcome, _) = after(1, page).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 1, 1));
}

#[tokio::test]
async fn s1_2_a_connection_that_is_cut_after_the_merge_is_a_success_and_one_merge() {
    let (forge, outcome, notes) = after(1, Fault::DoneAndLost).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 1, 1));
    assert!(notes.iter().any(|note| matches!(note, Note::Unclear { .. })));
}

#[tokio::test]
async fn s1_2_a_connection_that_is_cut_before_the_merge_is_ordered_again_after_a_whole_poll() {
    let (forge, outcome, _) = after(1, Fault::Lost).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 2, 1));
    assert_read_between_orders(&forge);
    let asked = forge.asked();
    let first = asked.iter().position(|asked| asked.is("POST", MERGE)).unwrap();
    let second = asked.iter().rposition(|asked| asked.is("POST", MERGE)).unwrap();
    let looks = asked[first..second].iter().filter(|asked| asked.is("GET", "/pulls/7")).count();
    assert_eq!(looks, 2, "one at once, one a poll later");
}

#[tokio::test]
async fn an_order_whose_fate_stays_unknown_ends_as_unknown() {
    let forge = green();
    forge.fail("POST", MERGE, 1, 9, Fault::DoneAndLost);
    forge.fail("GET", "/pulls/7", 3, usize::MAX / 2, Fault::proxy(502));
    let ran = net(&forge, Plan::default()).await;
    assert!(matches!(ran.outcome, Outcome::Unknown { .. }), "{:?}", ran.outcome);
    assert_eq!((orders(&forge), merges(&forge).len()), (1, 1));
}

#[tokio::test]
async fn a_200_that_cannot_be_confirmed_is_still_the_server_s_word() {
    let forge = green();
    forge.fail("GET", "/pulls/7", 3, usize::MAX / 2, Fault::proxy(502));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!((ran.outcome, merges(&forge).len()), (Outcome::MergedUnseen, 1));
}

#[tokio::test]
async fn a_200_without_a_merge_is_not_believed_and_not_ordered_again() {
    let (forge, outcome, _) = after(1, Fault::empty(200)).await;
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    assert_eq!((orders(&forge), merges(&forge).len()), (1, 0));
}

#[tokio::test]
async fn a_405_that_goes_on_is_believed_although_the_pull_request_says_otherwise() {
    let forge = green();
    forge.fail("POST", MERGE, 1, 999, Fault::message(405, "Please try again later"));
    let ran = net(&forge, Plan::default()).await;
    assert!(matches!(ran.outcome, Outcome::NotMergeable(_)), "{:?}", ran.outcome);
    // At 0 s, and each of the eight polls of two minutes.
    assert_eq!((orders(&forge), merges(&forge).len()), (9, 0));
    assert_read_between_orders(&forge);
}

#[tokio::test]
async fn a_page_with_status_200_is_no_merge_and_the_order_goes_out_again() {
    let page = || ("<title>Are you human?</title>".to_owned(), [("content-type", "text/html")].as_slice());
    let (body, headers) = page();
    let (forge, outcome, notes) = after(1, Fault::Says(200, headers, body)).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 2, 1));
    assert_eq!(notes.iter().filter(|note| matches!(note, Note::Unclear { .. })).count(), 1);
    assert_read_between_orders(&forge);
    let (body, headers) = page();
    let (forge, outcome, _) = after(1, Fault::DoneAndSays(200, headers, body)).await;
    assert_eq!((outcome, orders(&forge), merges(&forge).len()), (merged(), 1, 1));
}

#[tokio::test]
async fn a_429_is_ordered_again_when_the_server_wants_it() {
    let forge = green();
    let busy = Fault::Says(429, &[("retry-after", "90")], String::new());
    forge.fail("POST", MERGE, 1, 1, busy);
    let ran = net(&forge, Plan::default()).await;
    assert_eq!((ran.outcome, orders(&forge), merges(&forge).len()), (merged(), 2, 1));
    assert!(ran.clock.waits().contains(&Duration::from_secs(90)), "{:?}", ran.clock.waits());
    assert_read_between_orders(&forge);
}
