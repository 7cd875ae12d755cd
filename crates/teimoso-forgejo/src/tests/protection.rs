//! Branch protection: what differs is changed, and a second time nothing.

use serde_json::json;

use super::support::{client, site};
use crate::testkit::{Fault, Forge};
use crate::{Rule, RuleChange, rules_of};

fn rule() -> Rule {
    let json =
        json!({"rule_name": "release/*", "enable_status_check": true, "status_check_contexts": ["ci"]});
    rules_of(json.to_string().as_bytes()).unwrap().remove(0)
}

#[tokio::test]
async fn s1_13_a_rule_is_made_then_left_alone_and_then_changed_where_it_differs() {
    let forge = Forge::start();
    let client = client(&forge);
    assert_eq!(client.apply_rule(&site(), &rule(), true).await.unwrap(), RuleChange::Create);
    assert_eq!(forge.executed(), [""; 0], "a dry run changes nothing");
    assert_eq!(client.apply_rule(&site(), &rule(), false).await.unwrap(), RuleChange::Create);
    assert_eq!(client.apply_rule(&site(), &rule(), false).await.unwrap(), RuleChange::Same);
    forge.change(|state| {
        state
            .protections
            .get_mut("release/*")
            .unwrap()
            .insert("enable_status_check".to_owned(), false.into());
    });
    let change = client.apply_rule(&site(), &rule(), false).await.unwrap();
    assert!(matches!(&change, RuleChange::Edit(changes) if changes.len() == 1), "{change:?}");
    assert_eq!(forge.executed(), ["create protection release/*", "edit protection release/*"]);
    let asked = forge.asked();
    assert_eq!(asked.last().unwrap().body, Some(json!({"enable_status_check": true})));
}

#[tokio::test]
async fn s1_2_a_rule_whose_answer_is_lost_is_looked_at_and_not_made_again() {
    let forge = Forge::start();
    forge.fail("POST", "/branch_protections", 1, 9, Fault::DoneAndLost);
    assert_eq!(client(&forge).apply_rule(&site(), &rule(), false).await.unwrap(), RuleChange::Create);
    assert_eq!(forge.count("POST", "/branch_protections"), 1);
    let forge = Forge::start();
    forge.fail("POST", "/branch_protections", 1, 9, Fault::Lost);
    let error = client(&forge).apply_rule(&site(), &rule(), false).await.unwrap_err();
    assert_eq!((error.may_have_taken_effect(), forge.count("POST", "/branch_protections")), (true, 1));
}
