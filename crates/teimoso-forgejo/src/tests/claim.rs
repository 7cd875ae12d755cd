//! Claims: who was first holds, and nobody claims twice.

use serde_json::json;

use super::support::{Bits, TestClock, builder, client, site};
use crate::testkit::{Fault, Forge};
use crate::{Claim, Claimant, Client, Scope, Transition};

async fn claim(client: &Client, name: &str) -> Claim {
    let (claimant, scope): (Claimant, Scope) = (name.parse().unwrap(), "status".parse().unwrap());
    client.claim(&site(), 3, &claimant, (&scope, "in-progress"), Some("ana")).await.unwrap()
}

fn comments(forge: &Forge) -> usize {
    forge.see(|state| state.comments.get(&3).map_or(0, Vec::len))
}

fn taken(by: &str) -> Claim {
    Claim::Taken { by: by.to_owned() }
}

#[tokio::test]
async fn s1_13_a_claim_is_a_comment_a_label_and_an_assignee() {
    let forge = Forge::start();
    let client = client(&forge);
    let ours = Claim::Ours { already: false, status: Transition::Moved { from: vec![] } };
    assert_eq!(claim(&client, "agent-1").await, ours);
    assert_eq!(forge.executed(), ["comment 3", "label 3", "edit issue 3"]);
    assert_eq!(claim(&client, "agent-1").await, Claim::Ours { already: true, status: Transition::Already });
    assert_eq!(claim(&client, "agent-2").await, taken("agent-1"));
    assert_eq!((forge.executed().len(), comments(&forge)), (3, 1));
}

#[tokio::test]
async fn of_two_claims_at_once_the_one_with_the_lower_id_holds_and_the_other_goes() {
    let forge = Forge::start();
    // Seen by nobody before our own claim is there.
    forge.at("GET", "/comments", 3, |state| {
        let rival = json!({"id": 50, "body": "<!-- teimoso:claim rival 0f -->\nClaimed by rival."});
        state.comments.get_mut(&3).unwrap().insert(0, rival);
    });
    assert_eq!(claim(&client(&forge), "agent-1").await, taken("rival"));
    assert_eq!(forge.executed(), ["comment 3", "delete comment 101"]);
    assert_eq!(comments(&forge), 1);
}

#[tokio::test]
async fn s1_2_a_claim_whose_answer_is_lost_is_looked_up_and_not_made_again() {
    let forge = Forge::start();
    forge.fail("POST", "/comments", 1, 9, Fault::DoneAndLost);
    let claimed = claim(&client(&forge), "agent-1").await;
    assert!(matches!(claimed, Claim::Ours { already: false, .. }), "{claimed:?}");
    assert_eq!((forge.count("POST", "/comments"), comments(&forge)), (1, 1));
}

#[tokio::test]
async fn a_claim_that_nobody_finds_is_no_claim() {
    let forge = Forge::start();
    forge.fail("POST", "/comments", 1, 9, Fault::Lost);
    let (claimant, scope): (Claimant, Scope) = ("agent-1".parse().unwrap(), "status".parse().unwrap());
    let client = client(&forge);
    let error = client.claim(&site(), 3, &claimant, (&scope, "in-progress"), None).await.unwrap_err();
    assert!(error.may_have_taken_effect());
    assert_eq!((forge.count("POST", "/comments"), forge.executed().len()), (1, 0));
}

#[tokio::test]
async fn what_is_released_can_be_claimed_again() {
    let forge = Forge::start();
    let clock = TestClock::default();
    let first = client(&forge);
    let second = builder(&forge, &clock).entropy(Bits(8)).build().unwrap();
    claim(&first, "agent-1").await;
    assert_eq!(second.release(&site(), 3).await.unwrap().as_deref(), Some("agent-1"));
    assert_eq!(second.release(&site(), 3).await.unwrap(), None);
    let claimed = claim(&second, "agent-2").await;
    assert!(matches!(claimed, Claim::Ours { already: false, .. }), "{claimed:?}");
    assert_eq!(first.holder(&site(), 3).await.unwrap().as_deref(), Some("agent-2"));
}

#[tokio::test]
async fn a_closed_issue_is_not_claimed() {
    let forge = Forge::start();
    forge.change(|state| state.issues.get_mut(&3).unwrap()["state"] = "closed".into());
    assert_eq!(claim(&client(&forge), "agent-1").await, Claim::Closed);
    assert_eq!(forge.executed(), [""; 0]);
}
