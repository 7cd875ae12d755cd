//! Every operation once, for what it gives back and for the specification.

use super::support::{client, green, net, site};
use crate::automerge::Plan;
use crate::testkit::{Asked, Forge};
use crate::{
    Claimant, Client, IssueEdit, IssueFilter, IssueState, Marker, NewIssue, PullEdit, PullFilter, Scope,
    UpdateStyle, rules_of,
};

/// The requests of every operation that there is.
pub async fn everything() -> Vec<Asked> {
    let forge = green();
    let client = client(&forge);
    pulls(&client).await;
    issues(&client).await;
    protections(&client).await;
    client.version().await.unwrap();
    client.user().await.unwrap();
    net(&forge, Plan { delete_branch: true, ..Plan::default() }).await;
    forge.asked()
}

async fn pulls(client: &Client) {
    let site = site();
    client.pull(&site, 7).await.unwrap();
    client.find_pull(&site, "main", "topic").await.unwrap();
    let filter =
        PullFilter { base: Some("main".to_owned()), head: Some("topic".to_owned()), ..PullFilter::default() };
    client.pulls(&site, &filter).await.unwrap();
    let edit = PullEdit {
        title: Some("Add it all".to_owned()),
        body: Some("It".to_owned()),
        state: Some(IssueState::Open),
        base: Some("main".to_owned()),
    };
    client.edit_pull(&site, 7, &edit).await.unwrap();
    client.update_pull(&site, 7, UpdateStyle::Rebase).await.unwrap();
    assert!(!client.cancel_scheduled_merge(&site, 7).await.unwrap());
    client.checks(&site, Forge::HEAD).await.unwrap();
    client.statuses(&site, Forge::HEAD).await.unwrap();
}

async fn issues(client: &Client) {
    let site = site();
    let filter = IssueFilter {
        labels: vec!["bug".to_owned(), "status/ready".to_owned()],
        created_by: Some("ana".to_owned()),
        ..IssueFilter::default()
    };
    client.issues(&site, &filter, 100).await.unwrap();
    client.org_labels("acme").await.unwrap();
    let label = client.label(&site, "bug").await.unwrap().unwrap();
    let new = NewIssue {
        title: "New".to_owned(),
        body: "Text".to_owned(),
        labels: vec![label.id],
        assignees: vec!["ana".to_owned()],
    };
    client.file_issue(&site, new, &Marker::random(client), true).await;
    let edit = IssueEdit {
        title: Some("Title".to_owned()),
        body: Some("Body".to_owned()),
        state: Some(IssueState::Open),
        assignees: Some(vec!["ana".to_owned()]),
    };
    client.edit_issue(&site, 3, &edit).await.unwrap();
    client.remove_label(&site, 3, &label).await.unwrap();
    let (claimant, scope): (Claimant, Scope) = ("agent".parse().unwrap(), "status".parse().unwrap());
    client.claim(&site, 3, &claimant, (&scope, "in-progress"), Some("bo")).await.unwrap();
    client.release(&site, 3).await.unwrap();
    let comment = client.create_comment(&site, 3, "hello").await.unwrap();
    // The double knows no such request; what counts is that it was made.
    client.edit_comment(&site, comment.id, "hello again").await.unwrap_err();
    client.delete_comment(&site, comment.id).await.unwrap();
}

async fn protections(client: &Client) {
    let json = br#"{"rule_name": "release/*", "required_approvals": 1, "merge_whitelist_teams": ["a"]}"#;
    let rule = rules_of(json).unwrap().remove(0);
    client.apply_rule(&site(), &rule, false).await.unwrap();
    let json = br#"{"rule_name": "release/*", "required_approvals": 2, "protected_file_patterns": "*.md"}"#;
    let rule = rules_of(json).unwrap().remove(0);
    client.apply_rule(&site(), &rule, false).await.unwrap();
    assert_eq!(client.protections(&site()).await.unwrap().len(), 1);
    client.delete_protection(&site(), "release/*").await.unwrap();
}

#[tokio::test]
async fn every_kind_of_request_is_made_once_at_least() {
    let asked = everything().await;
    let mut kinds: Vec<String> =
        asked.iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds.len(), 28, "{kinds:#?}");
}
