//! Labels, transitions, and issues that must not exist twice.

use super::support::{TestClock, builder_to, client, millis, nowhere, site};
use crate::testkit::{Fault, Forge};
use crate::{Created, Filed, Marker, NewIssue, Scope, Transition};

fn scope() -> Scope {
    "status".parse().unwrap()
}

fn labels(forge: &Forge) -> Vec<String> {
    let labels = forge.see(|state| state.issues[&3]["labels"].clone());
    let names = labels.as_array().unwrap().iter();
    names.map(|label| label["name"].as_str().unwrap().to_owned()).collect()
}

fn new_issue() -> NewIssue {
    NewIssue { title: "Register".to_owned(), body: "Agent 7.".to_owned(), ..NewIssue::default() }
}

#[tokio::test]
async fn s1_13_a_transition_is_one_label_that_drives_the_others_out() {
    let forge = Forge::start();
    let client = client(&forge);
    let moved =
        |from: &[&str]| Transition::Moved { from: from.iter().map(|name| (*name).to_owned()).collect() };
    assert_eq!(client.transition(&site(), 3, &scope(), "ready").await.unwrap(), moved(&[]));
    assert_eq!(client.transition(&site(), 3, &scope(), "ready").await.unwrap(), Transition::Already);
    assert_eq!(client.transition(&site(), 3, &scope(), "in-progress").await.unwrap(), moved(&["ready"]));
    assert_eq!(
        (labels(&forge), forge.executed()),
        (vec!["status/in-progress".to_owned()], vec!["label 3".to_owned(); 2])
    );
}

#[tokio::test]
async fn labels_that_are_not_exclusive_are_taken_off_after_the_new_one_is_there() {
    let forge = Forge::start();
    forge.change(|state| {
        state.labels.iter_mut().for_each(|label| label["exclusive"] = false.into());
        let ready = state.labels[0].clone();
        state.issues.get_mut(&3).unwrap()["labels"] = vec![ready].into();
    });
    client(&forge).transition(&site(), 3, &scope(), "in-progress").await.unwrap();
    assert_eq!(labels(&forge), ["status/in-progress"]);
    assert_eq!(forge.executed(), ["label 3", "unlabel 3 11"]);
}

#[tokio::test]
async fn a_label_of_the_organisation_counts_and_an_unknown_one_is_told() {
    let forge = Forge::start();
    let client = client(&forge);
    client.transition(&site(), 3, &scope(), "done").await.unwrap();
    assert_eq!(labels(&forge), ["status/done"]);
    let known = ["done", "in-progress", "ready"].map(str::to_owned).to_vec();
    let unknown = client.transition(&site(), 3, &scope(), "frozen").await.unwrap();
    assert_eq!(unknown, Transition::NoSuchState { known });
}

#[tokio::test]
async fn a_token_that_may_not_see_the_organisation_will_do_for_labels_of_the_repository() {
    let forge = Forge::start();
    let scope_missing = "token does not have at least one of required scope(s): [read:organization]";
    forge.fail("GET", "/orgs/acme/labels", 1, 9, Fault::message(403, scope_missing));
    let client = client(&forge);
    client.transition(&site(), 3, &scope(), "ready").await.unwrap();
    let error = client.transition(&site(), 3, &scope(), "done").await.unwrap_err();
    assert_eq!(error.to_string(), format!("GET /orgs/acme/labels: HTTP 403: {scope_missing}"));
    let forge = Forge::start();
    forge.change(|state| state.org_labels = None);
    let moved = super::support::client(&forge).transition(&site(), 3, &scope(), "done").await.unwrap();
    let known = vec!["in-progress".to_owned(), "ready".to_owned()];
    assert_eq!(moved, Transition::NoSuchState { known }, "a user has no labels of an organisation");
}

#[tokio::test]
async fn s1_2_an_issue_that_provably_never_left_is_sent_again_and_is_no_unknown_outcome() {
    let (forge, clock) = (Forge::start(), TestClock::default());
    let client = builder_to(&nowhere(), &clock).build().unwrap();
    let filed = client.file_issue(&site(), new_issue(), &Marker::random(&client), false).await;
    let Filed::Failed(error) = filed else { panic!("{filed:?}") };
    assert!(!error.may_have_taken_effect());
    assert_eq!((clock.waits(), forge.asked().len()), (millis(&[300, 600, 1200]), 0));
}

#[tokio::test]
async fn s1_13_a_success_that_left_the_label_out_is_a_failure() {
    let forge = Forge::start();
    forge.fail("POST", "/labels", 1, 9, Fault::Says(200, &[], "[]".to_owned()));
    let error = client(&forge).transition(&site(), 3, &scope(), "ready").await.unwrap_err();
    let sentence = "POST /repos/acme/site/issues/3/labels: the server reported a success, and the label \
                    `status/ready` is not there";
    assert_eq!(error.to_string(), sentence);
}

#[tokio::test]
async fn s1_13_a_403_without_a_body_fails_the_transition() {
    let forge = Forge::start();
    forge.fail("POST", "/labels", 1, 9, Fault::empty(403));
    let error = client(&forge).transition(&site(), 3, &scope(), "ready").await.unwrap_err();
    assert_eq!((error.status(), error.may_have_taken_effect()), (Some(403), false));
}

#[tokio::test]
async fn s1_2_an_issue_that_was_made_before_the_connection_broke_is_found_and_not_made_again() {
    for fault in [Fault::DoneAndLost, Fault::DoneAndCut, Fault::done_and_message(500, "")] {
        let forge = Forge::start();
        forge.fail("POST", "/issues", 1, 9, fault);
        let client = client(&forge);
        let filed = client.file_issue(&site(), new_issue(), &Marker::random(&client), false).await;
        let Filed::There(created) = filed else { panic!("{filed:?}") };
        assert!(matches!(*created, Created::Found(ref issue) if issue.number == 4), "{created:?}");
        assert_eq!(forge.executed(), ["create issue 4"]);
        assert_eq!(forge.count("POST", "/issues"), 1);
    }
}

#[tokio::test]
async fn s1_2_an_issue_that_nobody_finds_is_an_unknown_outcome_and_never_made_again() {
    for fault in [Fault::Lost, Fault::proxy(502)] {
        let forge = Forge::start();
        forge.fail("POST", "/issues", 1, 9, fault);
        let client = client(&forge);
        let filed = client.file_issue(&site(), new_issue(), &Marker::random(&client), false).await;
        assert!(matches!(filed, Filed::Unknown(_)), "{filed:?}");
        assert_eq!((forge.executed().len(), forge.count("POST", "/issues")), (0, 1));
    }
}

#[tokio::test]
async fn a_marker_that_was_used_before_finds_its_issue() {
    let forge = Forge::start();
    let client = client(&forge);
    let marker: Marker = "register-7".parse().unwrap();
    let filed = client.file_issue(&site(), new_issue(), &marker, true).await;
    assert!(matches!(&filed, Filed::There(made) if matches!(**made, Created::Made(_))), "{filed:?}");
    let again = client.file_issue(&site(), new_issue(), &marker, true).await;
    assert!(matches!(&again, Filed::There(found) if matches!(**found, Created::WasThere(_))), "{again:?}");
    assert_eq!(forge.executed(), ["create issue 4"]);
    let body = forge.see(|state| state.issues[&4]["body"].clone());
    assert_eq!(body, "Agent 7.\n\n<!-- teimoso:op register-7 -->");
}

#[tokio::test]
async fn an_issue_that_is_refused_is_a_failure_in_the_api_s_words() {
    let forge = Forge::start();
    forge.fail("POST", "/issues", 1, 9, Fault::message(422, "[Title]: Required"));
    let client = client(&forge);
    let filed = client.file_issue(&site(), new_issue(), &Marker::random(&client), false).await;
    let Filed::Failed(error) = filed else { panic!("{filed:?}") };
    assert_eq!(error.to_string(), "POST /repos/acme/site/issues: HTTP 422: [Title]: Required");
}
