//! The client's contract with its callers: retries, errors, redirects, pages.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::support::{Bits, TestClock, builder, client, millis, site};
use crate::testkit::{Fault, Forge};
use crate::{IssueFilter, NewIssue, PullFilter, StateFilter};

const PULL: &str = "/pulls/7";

#[tokio::test]
async fn s1_1_every_read_is_repeated_at_the_one_choke_point() {
    let (forge, clock) = (Forge::start(), TestClock::default());
    forge.fail("GET", PULL, 1, 3, Fault::Lost);
    let client = builder(&forge, &clock).build().unwrap();
    assert_eq!(client.pull(&site(), 7).await.unwrap().number, 7);
    assert_eq!((forge.count("GET", PULL), clock.waits()), (4, millis(&[300, 600, 1200])));
}

#[tokio::test]
async fn s1_6_waits_are_spread_by_a_fifth() {
    for (bits, first) in [(0, 240), (u64::MAX, 360)] {
        let (forge, clock) = (Forge::start(), TestClock::default());
        forge.fail("GET", PULL, 1, 1, Fault::Lost);
        let client = builder(&forge, &clock).jitter(true).entropy(Bits(bits)).build().unwrap();
        client.pull(&site(), 7).await.unwrap();
        let waited = clock.waits()[0].as_millis().abs_diff(first);
        assert!(waited <= 1, "{:?}", clock.waits());
    }
}

#[tokio::test]
async fn s1_7_retries_can_be_turned_off_and_slowed_down() {
    let (forge, clock) = (Forge::start(), TestClock::default());
    forge.fail("GET", PULL, 1, 9, Fault::Lost);
    let client = builder(&forge, &clock).retries(0).build().unwrap();
    client.pull(&site(), 7).await.unwrap_err();
    assert_eq!((forge.count("GET", PULL), clock.waits()), (1, vec![]));
    let client = builder(&forge, &clock).retries(2).first_wait(Duration::from_secs(1)).build().unwrap();
    client.pull(&site(), 7).await.unwrap_err();
    assert_eq!((forge.count("GET", PULL), clock.waits()), (4, millis(&[1000, 2000])));
}

#[tokio::test]
async fn s1_8_each_retry_is_told_once_with_the_path_and_without_the_token() {
    let (forge, clock) = (Forge::start(), TestClock::default());
    forge.fail("GET", PULL, 1, 1, Fault::proxy(502));
    let told = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&told);
    let client = builder(&forge, &clock)
        .observer(move |retry| {
            let line = format!("{} {} {} {:?}", retry.method, retry.path(), retry.reason, retry.wait);
            hear.lock().unwrap().push(line);
        })
        .build()
        .unwrap();
    client.pull(&site(), 7).await.unwrap();
    let expected = ["GET /api/v1/repos/acme/site/pulls/7 http 502 300ms"];
    assert_eq!(*told.lock().unwrap(), expected);
}

#[tokio::test]
async fn s1_3_a_body_that_breaks_off_is_read_again() {
    let forge = Forge::start();
    forge.fail("GET", PULL, 1, 1, Fault::DoneAndCut);
    assert_eq!(client(&forge).pull(&site(), 7).await.unwrap().number, 7);
    assert_eq!(forge.count("GET", PULL), 2);
}

#[tokio::test]
async fn s1_3_a_write_whose_answer_breaks_off_fails_closed() {
    let forge = Forge::start();
    forge.fail("POST", "/issues", 1, 9, Fault::DoneAndCut);
    let error = client(&forge).create_issue(&site(), &NewIssue::default()).await.unwrap_err();
    assert!(error.may_have_taken_effect());
    assert_eq!(forge.count("POST", "/issues"), 1);
}

#[tokio::test]
async fn s1_4_a_read_that_is_answered_5xx_is_repeated_until_the_retries_are_used_up() {
    for status in [502, 503, 504] {
        let forge = Forge::start();
        forge.fail("GET", PULL, 1, 9, Fault::proxy(status));
        let error = client(&forge).pull(&site(), 7).await.unwrap_err();
        assert_eq!((error.status(), forge.count("GET", PULL)), (Some(status), 4));
    }
    let forge = Forge::start();
    forge.fail("GET", PULL, 1, 9, Fault::message(500, ""));
    client(&forge).pull(&site(), 7).await.unwrap_err();
    assert_eq!(forge.count("GET", PULL), 1);
}

#[tokio::test]
async fn s1_4_a_write_that_is_answered_502_is_sent_once() {
    let forge = Forge::start();
    forge.fail("POST", "/issues", 1, 9, Fault::proxy(502));
    let error = client(&forge).create_issue(&site(), &NewIssue::default()).await.unwrap_err();
    assert_eq!((error.status(), error.may_have_taken_effect()), (Some(502), true));
    assert_eq!(forge.count("POST", "/issues"), 1);
}

#[tokio::test]
async fn s1_2_a_write_that_is_repeatable_by_value_is_sent_again_when_the_connection_is_lost() {
    let forge = Forge::start();
    forge.fail("POST", "/labels", 1, 1, Fault::DoneAndLost);
    let client = client(&forge);
    let label = client.label(&site(), "bug").await.unwrap().unwrap();
    client.add_labels(&site(), 3, &[label]).await.unwrap();
    assert_eq!(forge.count("POST", "/labels"), 2);
}

#[tokio::test]
async fn s1_2_a_write_that_is_not_is_sent_once() {
    let forge = Forge::start();
    forge.fail("POST", "/comments", 1, 9, Fault::DoneAndLost);
    let error = client(&forge).create_comment(&site(), 3, "hello").await.unwrap_err();
    assert!(error.may_have_taken_effect());
    assert_eq!(forge.executed(), ["comment 3"]);
    assert_eq!(forge.count("POST", "/comments"), 1);
}

#[tokio::test]
async fn s1_5_s1_9_a_403_is_one_request_and_the_api_s_own_message() {
    let forge = Forge::start();
    forge.fail("GET", PULL, 1, 9, Fault::message(403, "token scope is limited to public repos"));
    let error = client(&forge).pull(&site(), 7).await.unwrap_err();
    let sentence = "GET /repos/acme/site/pulls/7: HTTP 403: token scope is limited to public repos";
    assert_eq!((error.to_string().as_str(), forge.count("GET", PULL)), (sentence, 1));
    for status in [400, 401, 404, 409, 422, 429] {
        let forge = Forge::start();
        forge.fail("GET", PULL, 1, 9, Fault::empty(status));
        let error = client(&forge).pull(&site(), 7).await.unwrap_err();
        assert_eq!((error.status(), forge.count("GET", PULL)), (Some(status), 1));
    }
}

#[tokio::test]
async fn the_token_is_in_one_header_and_nowhere_else() {
    let forge = Forge::start();
    let client = client(&forge);
    client.pull(&site(), 7).await.unwrap();
    let asked = &forge.asked()[0];
    let token = crate::testkit::TOKEN;
    assert_eq!(asked.header("authorization"), Some(format!("token {token}").as_str()));
    assert!(!asked.path.contains(token) && !asked.query.contains(token));
    assert!(!format!("{client:?}").contains(token));
    let others = asked.headers.iter().filter(|(name, _)| name != "authorization");
    assert_eq!(others.filter(|(_, value)| value.contains(token)).count(), 0);
}

#[tokio::test]
async fn a_renamed_repository_is_followed_with_method_body_and_token() {
    let forge = Forge::start();
    forge.change(|state| state.former_name = Some("old".to_owned()));
    let old = "acme/old".parse().unwrap();
    let client = client(&forge);
    assert_eq!(client.pull(&old, 7).await.unwrap().number, 7);
    client.create_comment(&old, 3, "hello").await.unwrap();
    assert_eq!(forge.executed(), ["comment 3"]);
    assert_eq!(forge.see(|state| state.comments[&3][0]["body"].clone()), "hello");
}

#[tokio::test]
async fn a_redirect_to_another_host_never_sees_the_token() {
    let (forge, other) = (Forge::start(), Forge::start());
    let old = "acme/old".parse().unwrap();
    let elsewhere = other.url().to_owned();
    forge.change(|state| {
        state.former_name = Some("old".to_owned());
        state.root_url = elsewhere;
    });
    let error = client(&forge).pull(&old, 7).await.unwrap_err();
    let sentence = format!(
        "GET /repos/acme/old/pulls/7: HTTP 307: it leads to {}, where the token must not go",
        other.url()
    );
    assert_eq!((error.to_string(), other.asked().len()), (sentence, 0));
}

#[tokio::test]
async fn pages_are_counted_and_the_address_of_the_next_one_is_not_followed() {
    let (forge, other) = (Forge::start(), Forge::start());
    let elsewhere = other.url().to_owned();
    forge.change(|state| {
        // A wrong ROOT_URL, and a server that gives less per page than is asked for.
        (state.root_url, state.page_max) = (elsewhere, 20);
        let first = state.labels[2].clone();
        for id in 1000..1055 {
            let mut label = first.clone();
            (label["id"], label["name"]) = (id.into(), format!("l{id}").into());
            state.labels.push(label);
        }
    });
    let labels = client(&forge).repo_labels(&site()).await.unwrap();
    assert_eq!(labels.len(), 3 + 55);
    assert_eq!(forge.count("GET", "/site/labels"), 3);
    assert_eq!(other.asked().len(), 0);
}

#[tokio::test]
async fn a_list_without_marks_ends_with_an_empty_page() {
    let forge = Forge::start();
    let full = r#"[{"id":1,"name":"a"},null]"#;
    forge.fail("GET", "/site/labels", 1, 1, Fault::Says(200, &[], full.to_owned()));
    forge.fail("GET", "/site/labels", 2, 1, Fault::Says(200, &[], "[]".to_owned()));
    let labels = client(&forge).repo_labels(&site()).await.unwrap();
    assert_eq!((labels.len(), forge.count("GET", "/site/labels")), (1, 2));
}

#[tokio::test]
async fn filters_that_an_old_server_ignores_are_applied_here() {
    let forge = Forge::start();
    forge.change(|state| {
        let mut other = state.pulls[&7].clone();
        other.open = false;
        state.pulls.insert(8, other);
    });
    let client = client(&forge);
    let numbers = async |filter: &PullFilter| {
        let pulls = client.pulls(&site(), filter).await.unwrap();
        pulls.iter().map(|pull| pull.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&PullFilter::default()).await, [7]);
    let all = PullFilter { state: StateFilter::All, ..PullFilter::default() };
    assert_eq!(numbers(&all).await, [7, 8]);
    let none = PullFilter { base: Some("release".to_owned()), ..all };
    assert_eq!(numbers(&none).await, [0_u64; 0]);
}

#[tokio::test]
async fn a_list_is_cut_where_the_caller_has_enough() {
    let forge = Forge::start();
    let filter = IssueFilter { state: StateFilter::All, ..IssueFilter::default() };
    assert_eq!(client(&forge).issues(&site(), &filter, 0).await.unwrap(), []);
    assert_eq!(client(&forge).issues(&site(), &filter, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_keeps_to_its_time() {
    let (forge, clock) = (Forge::start(), TestClock::default());
    forge.fail("GET", PULL, 1, 9, Fault::Lost);
    let client = builder(&forge, &clock).build().unwrap().within(Duration::from_millis(500));
    client.pull(&site(), 7).await.unwrap_err();
    assert_eq!((forge.count("GET", PULL), clock.waits()), (2, millis(&[300])));
}
