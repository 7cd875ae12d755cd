//! The story that the safety net was made for, and what else may happen in forty-five minutes.

use std::time::Duration;

use super::support::{client, green, merged, net, site};
use crate::automerge::{Note, Outcome, Plan, Standing};
use crate::checks::{Counts, Verdict};
use crate::testkit::{Fault, Forge};

const PULL: &str = "/pulls/7";
const STATUS: &str = "/status";

fn running(forge: &Forge) {
    forge.change(|state| {
        state.report("ci / build (pull_request)", "success");
        state.report("ci / test (pull_request)", "pending");
    });
}

#[tokio::test]
async fn s1_11_thirty_polls_a_lost_connection_on_the_seventh_a_502_on_the_twelfth_and_one_merge() {
    let forge = Forge::start();
    running(&forge);
    forge.fail("GET", PULL, 7, 1, Fault::Lost);
    // The seventh needed two requests, so that the twelfth poll begins with the thirteenth.
    forge.fail("GET", PULL, 13, 1, Fault::proxy(502));
    forge.at("GET", STATUS, 30, |state| state.report("ci / test (pull_request)", "success"));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!(ran.outcome, merged());
    assert_eq!(forge.executed(), ["merge 7 merge"]);
    assert_eq!(forge.count("POST", "/merge"), 1);
    assert_eq!(forge.count("GET", STATUS), 31, "thirty looks, and one that confirms");
    let lost = ran.notes.iter().any(|note| matches!(note, Note::LookFailed { .. }));
    assert!(!lost, "what the client repeats costs no look");
}

#[tokio::test]
async fn s1_11_a_failure_that_outlasts_the_retries_costs_one_tick_and_never_the_run() {
    let forge = Forge::start();
    running(&forge);
    forge.fail("GET", PULL, 7, 4, Fault::Lost);
    forge.fail("GET", STATUS, 12, 4, Fault::proxy(502));
    forge.at("GET", STATUS, 30, |state| state.report("ci / test (pull_request)", "success"));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!((ran.outcome, forge.executed()), (merged(), vec!["merge 7 merge".to_owned()]));
    let failed = ran.notes.iter().filter(|note| matches!(note, Note::LookFailed { .. })).count();
    let again = ran.notes.iter().filter(|note| **note == Note::LooksAgain { failed: 1 }).count();
    assert_eq!((failed, again), (2, 2));
}

#[tokio::test]
async fn s1_11_forty_five_minutes_are_the_end_and_not_a_look_more() {
    let forge = Forge::start();
    running(&forge);
    let ran = net(&forge, Plan::default()).await;
    let counts = Counts { all: 2, green: 1, pending: 1, failed: 0 };
    assert_eq!(ran.outcome, Outcome::TimedOut { standing: Standing::Checks(counts), trouble: None });
    assert_eq!(forge.count("GET", PULL), 45 * 4 + 1, "every 15 s, and once at the end");
    let waited: Duration = ran.clock.waits().iter().sum();
    assert_eq!(waited, Duration::from_mins(45));
}

#[tokio::test]
async fn s1_11_what_turns_green_with_the_last_look_but_one_is_merged() {
    let forge = Forge::start();
    running(&forge);
    forge.at("GET", STATUS, 180, |state| state.report("ci / test (pull_request)", "success"));
    assert_eq!(net(&forge, Plan::default()).await.outcome, merged());
}

#[tokio::test]
async fn a_failed_check_is_the_end_even_while_others_run() {
    let forge = Forge::start();
    running(&forge);
    forge.change(|state| state.report("lint", "failure"));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!(ran.outcome, Outcome::ChecksFailed { contexts: vec!["lint".to_owned()] });
    assert_eq!(forge.executed(), [""; 0]);
}

#[tokio::test]
async fn a_warning_is_no_success() {
    let forge = green();
    forge.change(|state| state.report("audit", "warning"));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!(ran.outcome, Outcome::ChecksFailed { contexts: vec!["audit".to_owned()] });
}

#[tokio::test]
async fn a_state_that_nobody_knows_is_waited_for() {
    let forge = green();
    forge.change(|state| state.report("audit", "blessed"));
    forge.at("GET", STATUS, 4, |state| state.report("audit", "skipped"));
    assert_eq!(net(&forge, Plan::default()).await.outcome, merged());
    assert_eq!(forge.count("GET", STATUS), 5);
}

#[tokio::test]
async fn sixty_contexts_over_two_pages_are_all_seen() {
    let forge = Forge::start();
    forge.change(|state| {
        (0..60).for_each(|number| state.report(&format!("ci / {number:02}"), "success"));
        // The double gives the newest first, so that this is on the second page.
        state.report_of(Forge::HEAD, "ci / 00", "pending");
        (1..60).for_each(|number| state.report(&format!("ci / {number:02}"), "success"));
    });
    forge.at("GET", STATUS, 5, |state| state.report("ci / 00", "failure"));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!(ran.outcome, Outcome::ChecksFailed { contexts: vec!["ci / 00".to_owned()] });
    assert_eq!(forge.executed(), [""; 0]);
}

#[tokio::test]
async fn the_newest_status_of_a_context_counts_in_whatever_order_they_come() {
    let forge = green();
    let row = |id: u64, status: &str| format!(r#"{{"id":{id},"status":"{status}","context":"ci"}}"#);
    let body = |rows: [String; 3]| format!(r#"{{"state":"failure","statuses":[{}]}}"#, rows.join(","));
    let late = body([row(3, "success"), row(1, "pending"), row(2, "failure")]);
    let count = &[("x-total-count", "3")];
    forge.fail("GET", STATUS, 1, 2, Fault::Says(200, count, late));
    assert_eq!(net(&forge, Plan::default()).await.outcome, merged());
    let forge = green();
    let early = body([row(3, "failure"), row(1, "success"), row(2, "success")]);
    forge.fail("GET", STATUS, 1, 2, Fault::Says(200, count, early));
    let failed = Outcome::ChecksFailed { contexts: vec!["ci".to_owned()] };
    assert_eq!(net(&forge, Plan::default()).await.outcome, failed);
}

#[tokio::test]
async fn a_list_of_statuses_shorter_than_announced_is_no_success() {
    let forge = green();
    let body = r#"{"state":"success","statuses":[{"id":1,"status":"success","context":"ci"}]}"#;
    let empty = r#"{"state":"success","statuses":[]}"#;
    for (from, body) in [(1, body), (2, empty)] {
        forge.fail("GET", STATUS, from, 1, Fault::Says(200, &[("x-total-count", "2")], body.to_owned()));
    }
    let ran = net(&forge, Plan::default()).await;
    let reason = "GET /repos/acme/site/commits/1111111111111111111111111111111111111111/status: HTTP 200, but the \
                  answer is a list of 1 statuses that should be 2";
    assert!(ran.notes.contains(&Note::LookFailed { reason: reason.to_owned() }), "{:?}", ran.notes);
    assert_eq!(ran.outcome, merged());
}

#[tokio::test]
async fn no_checks_are_waited_for_and_then_follow_the_rule() {
    let forge = Forge::start();
    let ran = net(&forge, Plan::default()).await;
    assert_eq!((ran.outcome, ran.notes), (Outcome::NoChecks, vec![Note::Now(Standing::NoChecks)]));
    assert_eq!(forge.count("GET", STATUS), 5, "from the first look on, a minute of grace");
    let ran = net(&forge, Plan { allow_no_checks: true, ..Plan::default() }).await;
    assert_eq!(ran.outcome, merged());
}

#[tokio::test]
async fn checks_that_register_late_are_waited_for() {
    let forge = Forge::start();
    forge.at("GET", STATUS, 3, |state| state.report("ci", "success"));
    forge.at("GET", STATUS, 4, |state| state.report("late", "pending"));
    forge.at("GET", STATUS, 6, |state| state.report("late", "success"));
    assert_eq!(net(&forge, Plan::default()).await.outcome, merged());
    assert_eq!(forge.count("GET", STATUS), 7, "green is looked at twice with the same checks");
}

#[tokio::test]
async fn a_push_in_the_middle_starts_the_judgement_anew() {
    let forge = green();
    forge.at("GET", PULL, 2, |state| {
        state.pull().head = Forge::NEXT_HEAD.to_owned();
        state.report("ci", "failure");
    });
    let ran = net(&forge, Plan::default()).await;
    assert_eq!(ran.outcome, Outcome::ChecksFailed { contexts: vec!["ci".to_owned()] });
    assert_eq!(forge.count("POST", "/merge"), 0);
}

#[tokio::test]
async fn merged_closed_or_turned_into_a_draft_by_somebody_else_is_told() {
    let forge = Forge::start();
    running(&forge);
    forge.at("GET", PULL, 3, |state| {
        let pull = state.pull();
        (pull.merged, pull.open) = (true, false);
    });
    let by_somebody = Outcome::Merged { commit: Some("3".repeat(40)), ordered: false, warning: None };
    assert_eq!(net(&forge, Plan::default()).await.outcome, by_somebody);
    let forge = green();
    forge.change(|state| state.pull().open = false);
    assert_eq!(net(&forge, Plan::default()).await.outcome, Outcome::Closed);
    let forge = green();
    forge.change(|state| state.pull().title = "WIP: Add it".to_owned());
    assert_eq!(net(&forge, Plan::default()).await.outcome, Outcome::Draft);
}

#[tokio::test]
async fn null_and_pages_for_people_cost_a_look_each() {
    let forge = green();
    forge.at("GET", PULL, 2, |state| state.pull().null = true);
    forge.at("GET", PULL, 3, |state| state.pull().null = false);
    let page = Fault::Says(200, &[("content-type", "text/html")], "<title>Are you human?</title>".to_owned());
    forge.fail("GET", PULL, 4, 1, page);
    let ran = net(&forge, Plan::default()).await;
    assert_eq!(ran.outcome, merged());
    let failed: Vec<_> = ran
        .notes
        .iter()
        .filter_map(|note| match note {
            Note::LookFailed { reason } => reason.split(" is ").nth(1),
            _ => None,
        })
        .collect();
    assert_eq!(failed, ["null", "a web page (Are you human?)"]);
}

#[tokio::test]
async fn retry_after_is_honoured_up_to_the_deadline() {
    let forge = green();
    forge.fail("GET", PULL, 1, 1, Fault::Says(429, &[("retry-after", "100")], String::new()));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!((ran.outcome, ran.clock.waits()[0]), (merged(), Duration::from_secs(100)));
    let forge = green();
    forge.fail("GET", PULL, 1, 1, Fault::proxy(429));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!((ran.outcome, ran.clock.waits()[0]), (merged(), Duration::from_secs(15)));
    let forge = green();
    forge.fail("GET", PULL, 1, 1, Fault::Says(429, &[("retry-after", "999999")], String::new()));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!(ran.clock.waits(), [Duration::from_mins(45)]);
    let counts = Counts { all: 1, green: 1, pending: 0, failed: 0 };
    let standing = Standing::Confirming(counts);
    assert_eq!(ran.outcome, Outcome::TimedOut { standing, trouble: None });
}

#[tokio::test]
async fn retry_after_of_a_503_is_honoured_between_the_attempts_of_a_look_and_between_looks() {
    let rows: [(&'static [(&'static str, &'static str)], u64); 2] =
        [(&[("retry-after", "7")], 7), (&[("retry-after", "600")], 600)];
    for (headers, waited) in rows {
        let forge = green();
        forge.fail("GET", PULL, 1, 1, Fault::Says(503, headers, String::new()));
        let ran = net(&forge, Plan::default()).await;
        assert_eq!((ran.outcome, ran.clock.waits()[0]), (merged(), Duration::from_secs(waited)));
    }
}

#[tokio::test]
async fn time_that_runs_out_while_nothing_is_seen_tells_why_nothing_is() {
    let forge = Forge::start();
    let page = Fault::Says(200, &[], "<title>Log in</title>".to_owned());
    forge.fail("GET", PULL, 1, usize::MAX / 2, page);
    let ran = net(&forge, Plan::default()).await;
    let reason = "GET /repos/acme/site/pulls/7: HTTP 200, but the answer is a web page (Log in)";
    let (standing, trouble) = (Standing::Beginning, Some(reason.to_owned()));
    assert_eq!(ran.outcome, Outcome::TimedOut { standing, trouble });
}

#[tokio::test]
async fn a_head_that_cannot_be_found_is_waited_for_and_has_no_checks() {
    let forge = green();
    forge.change(|state| state.pull().head = String::new());
    forge.at("GET", PULL, 3, |state| Forge::HEAD.clone_into(&mut state.pull().head));
    let ran = net(&forge, Plan::default()).await;
    assert_eq!((ran.outcome, &ran.notes[0]), (merged(), &Note::Now(Standing::Head)));
    let asked = forge.asked().len();
    let checks = client(&forge).checks(&site(), "").await.unwrap();
    assert_eq!((checks.verdict(), forge.asked().len()), (Verdict::None, asked));
}

#[tokio::test]
async fn a_404_is_believed_at_once_of_what_was_never_seen_and_else_the_third_time() {
    let forge = green();
    forge.fail("GET", PULL, 1, 99, Fault::message(404, "gone"));
    let ran = net(&forge, Plan::default()).await;
    assert!(matches!(ran.outcome, Outcome::Blocked { .. }), "{:?}", ran.outcome);
    assert_eq!(forge.count("GET", PULL), 1);
    let forge = Forge::start();
    running(&forge);
    forge.fail("GET", PULL, 2, 2, Fault::message(404, "starting"));
    forge.at("GET", STATUS, 2, |state| state.report("ci / test (pull_request)", "success"));
    assert_eq!(net(&forge, Plan::default()).await.outcome, merged());
    let forge = Forge::start();
    running(&forge);
    forge.fail("GET", PULL, 2, 99, Fault::message(404, "gone"));
    assert!(matches!(net(&forge, Plan::default()).await.outcome, Outcome::Blocked { .. }));
    assert_eq!(forge.count("GET", PULL), 4);
}

#[tokio::test]
async fn the_check_that_the_run_itself_is_does_not_count() {
    let forge = green();
    forge.change(|state| state.report("automerge / merge (pull_request)", "pending"));
    let ignore = vec!["automerge / *".parse().unwrap()];
    let ran = net(&forge, Plan { ignore: ignore.clone(), ..Plan::default() }).await;
    assert_eq!(ran.outcome, merged());
    let forge = Forge::start();
    forge.change(|state| state.report("automerge / merge (pull_request)", "pending"));
    let ran = net(&forge, Plan { ignore, ..Plan::default() }).await;
    assert_eq!(ran.outcome, Outcome::NoChecks, "nothing else is no success");
}

#[tokio::test]
async fn a_dry_run_looks_once_and_orders_nothing() {
    let dry = Plan { dry_run: true, ..Plan::default() };
    let forge = green();
    let would = Outcome::WouldMerge { method: dry.method, head: Forge::HEAD.to_owned() };
    assert_eq!(net(&forge, dry.clone()).await.outcome, would);
    let forge = Forge::start();
    running(&forge);
    let counts = Counts { all: 2, green: 1, pending: 1, failed: 0 };
    let ran = net(&forge, dry).await;
    assert_eq!(ran.outcome, Outcome::WouldWait(Standing::Checks(counts)));
    assert_eq!((ran.clock.waits().len(), forge.executed().len()), (0, 0));
    assert_eq!(ran.notes, [], "it is said once, at the end");
}

#[tokio::test]
async fn what_is_waited_for_is_told_once_per_change() {
    let forge = Forge::start();
    running(&forge);
    forge.at("GET", STATUS, 5, |state| state.report("ci / test (pull_request)", "success"));
    let ran = net(&forge, Plan::default()).await;
    let counts = |green, pending| Counts { all: 2, green, pending, failed: 0 };
    let ordering = Note::Ordering { method: Plan::default().method, head: Forge::HEAD.to_owned() };
    let told =
        [Note::Now(Standing::Checks(counts(1, 1))), Note::Now(Standing::Confirming(counts(2, 0))), ordering];
    assert_eq!((ran.notes.as_slice(), site().to_string().as_str()), (&told[..], "acme/site"));
}
