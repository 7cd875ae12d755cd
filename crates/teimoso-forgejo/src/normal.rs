//! Pull requests and issues in the shape of `gh pr view --json` and `gh issue view --json` (S1.10), so that a script made
//! for the one reads the other; absent: fields that Forgejo has nothing for.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::checks::{Check, Checks, Verdict};
use crate::model::{CheckState, Issue, Label, Milestone, Pull, User};

/// The fields of a pull request, in the order in which they are shown.
pub const PULL_FIELDS: [&str; 31] = [
    "number",
    "title",
    "state",
    "isDraft",
    "headRefName",
    "headRefOid",
    "baseRefName",
    "baseRefOid",
    "mergeable",
    "mergeStateStatus",
    "statusCheckRollup",
    "labels",
    "author",
    "assignees",
    "milestone",
    "body",
    "url",
    "isCrossRepository",
    "maintainerCanModify",
    "additions",
    "deletions",
    "changedFiles",
    "closed",
    "closedAt",
    "createdAt",
    "updatedAt",
    "mergedAt",
    "mergedBy",
    "mergeCommit",
    "id",
    "checks",
];

/// The fields of an issue, in the order in which they are shown.
pub const ISSUE_FIELDS: [&str; 13] = [
    "number",
    "title",
    "state",
    "labels",
    "author",
    "assignees",
    "milestone",
    "body",
    "url",
    "closed",
    "closedAt",
    "createdAt",
    "updatedAt",
];

/// A field that there is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField {
    /// As it was written.
    pub name: String,
    /// The ones there are.
    pub known: &'static [&'static str],
}

/// A pull request with the checks of its head, in the shape of `gh`.
#[must_use]
pub fn pull_fields(pull: &Pull, checks: &Checks) -> Map<String, Value> {
    let value = json!({
        "number": pull.number,
        "title": pull.title,
        "state": if pull.merged { "MERGED".to_owned() } else { pull.state.to_ascii_uppercase() },
        "isDraft": pull.draft,
        "headRefName": pull.head.name,
        "headRefOid": pull.head.sha,
        "baseRefName": pull.base.name,
        "baseRefOid": pull.base.sha,
        "mergeable": mergeable(pull),
        "mergeStateStatus": merge_state(pull, checks),
        "statusCheckRollup": checks.iter().map(rollup).collect::<Vec<_>>(),
        "labels": labels(&pull.labels),
        "author": login(pull.user.as_ref()),
        "assignees": logins(&pull.assignees),
        "milestone": milestone(pull.milestone.as_ref()),
        "body": pull.body,
        "url": pull.html_url,
        "isCrossRepository": pull.head.repo_id != pull.base.repo_id,
        "maintainerCanModify": pull.allow_maintainer_edit.unwrap_or(false),
        "additions": pull.additions,
        "deletions": pull.deletions,
        "changedFiles": pull.changed_files,
        "closed": pull.state == "closed",
        "closedAt": pull.closed_at,
        "createdAt": pull.created_at,
        "updatedAt": pull.updated_at,
        "mergedAt": pull.merged_at,
        "mergedBy": login(pull.merged_by.as_ref()),
        "mergeCommit": pull.merge_commit_sha.as_ref().filter(|_| pull.merged).map(|oid| json!({ "oid": oid })),
        "id": pull.number.to_string(),
        "checks": counts(checks),
    });
    object(value)
}

/// An issue in the shape of `gh`.
#[must_use]
pub fn issue_fields(issue: &Issue) -> Map<String, Value> {
    object(json!({
        "number": issue.number,
        "title": issue.title,
        "state": issue.state.to_ascii_uppercase(),
        "labels": labels(&issue.labels),
        "author": login(issue.user.as_ref()),
        "assignees": logins(&issue.assignees),
        "milestone": milestone(issue.milestone.as_ref()),
        "body": issue.body,
        "url": issue.html_url,
        "closed": issue.state == "closed",
        "closedAt": issue.closed_at,
        "createdAt": issue.created_at,
        "updatedAt": issue.updated_at,
    }))
}

/// Only these fields, in the order of `known`; all of them if none is named.
///
/// # Errors
///
/// The first name that is none of them.
pub fn select(
    mut all: Map<String, Value>,
    names: &[String],
    known: &'static [&'static str],
) -> Result<Map<String, Value>, UnknownField> {
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(UnknownField { name: name.clone(), known });
    }
    let wanted = known.iter().filter(|field| names.is_empty() || names.iter().any(|name| name == *field));
    Ok(wanted.filter_map(|field| Some(((*field).to_owned(), all.remove(*field)?))).collect())
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Forgejo's `false` may mean a conflict, or that it is still looking for one: only `gh`'s word for not knowing says that.
fn mergeable(pull: &Pull) -> &'static str {
    if pull.mergeable && !pull.merged { "MERGEABLE" } else { "UNKNOWN" }
}

/// Which checks a rule requires is not known here, so that a failed one makes it unstable and never blocked.
fn merge_state(pull: &Pull, checks: &Checks) -> &'static str {
    match checks.verdict() {
        _ if pull.draft => "DRAFT",
        _ if pull.merged || pull.state == "closed" => "UNKNOWN",
        Verdict::Failed => "UNSTABLE",
        Verdict::Green | Verdict::None if pull.mergeable => "CLEAN",
        Verdict::Green | Verdict::None | Verdict::Pending => "UNKNOWN",
    }
}

fn rollup(check: &Check) -> Value {
    let state = match &check.state {
        CheckState::Success | CheckState::Skipped => "SUCCESS",
        CheckState::Error => "ERROR",
        // `gh` has no warning, and a warning holds a merge up.
        CheckState::Failure | CheckState::Warning => "FAILURE",
        CheckState::Pending | CheckState::Unknown(_) => "PENDING",
    };
    json!({
        "__typename": "StatusContext",
        "context": check.context,
        "state": state,
        "targetUrl": check.target_url,
        "startedAt": check.created_at,
    })
}

fn counts(checks: &Checks) -> Value {
    let counts = checks.counts();
    json!({ "all": counts.all, "green": counts.green, "pending": counts.pending, "failed": counts.failed })
}

fn labels(labels: &[Label]) -> Vec<Value> {
    let one = |label: &Label| {
        json!({
            "id": label.id.to_string(),
            "name": label.name,
            "description": label.description,
            "color": label.color,
        })
    };
    labels.iter().map(one).collect()
}

fn login(user: Option<&User>) -> Option<Value> {
    user.map(|user| json!({ "login": user.login }))
}

fn logins(users: &[User]) -> Vec<Value> {
    users.iter().filter_map(|user| login(Some(user))).collect()
}

fn milestone(milestone: Option<&Milestone>) -> Option<Value> {
    milestone.map(|milestone| json!({ "title": milestone.title }))
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no field `{}`; the fields are {}", self.name, self.known.join(","))
    }
}

impl std::error::Error for UnknownField {}

#[cfg(test)]
mod tests {
    use super::*;

    fn pull(json: Value) -> Pull {
        let mut whole = json!({
            "number": 7, "state": "open", "title": "T", "mergeable": true, "draft": false,
            "html_url": "http://f.example/o/r/pulls/7",
            "head": {"label": "topic", "ref": "topic", "sha": "aaaa", "repo_id": 1},
            "base": {"label": "main", "ref": "main", "sha": "bbbb", "repo_id": 1},
        });
        for (name, value) in object(json) {
            whole[name] = value;
        }
        serde_json::from_value(whole).unwrap()
    }

    fn checks(states: &[&str]) -> Checks {
        let status = |(id, state): (u64, &&str)| {
            serde_json::from_value(json!({"id": id, "status": state, "context": format!("c{id}")})).unwrap()
        };
        Checks::of((1..).zip(states).map(status))
    }

    fn field(json: Value, states: &[&str], name: &str) -> Value {
        pull_fields(&pull(json), &checks(states)).remove(name).unwrap()
    }

    #[test]
    fn s1_10_every_field_is_mapped_as_gh_has_it() {
        let agit = json!({"head": {"label": "", "ref": "refs/pull/7/head", "sha": "aaaa", "repo_id": -1}});
        let merged = json!({
            "state": "closed", "merged": true, "merge_commit_sha": "cccc",
            "merged_by": {"login": "ana"}, "merged_at": "2026-01-01T00:00:00Z",
        });
        let labelled = json!({"labels": [{"id": 3, "name": "bug", "color": "ff0000", "description": null}]});
        let rows = [
            (json!({}), "state", json!("OPEN")),
            (json!({"state": "closed"}), "state", json!("CLOSED")),
            (merged.clone(), "state", json!("MERGED")),
            (json!({}), "number", json!(7)),
            (json!({}), "title", json!("T")),
            (json!({}), "url", json!("http://f.example/o/r/pulls/7")),
            (json!({"draft": true}), "isDraft", json!(true)),
            (json!({}), "headRefName", json!("topic")),
            (agit.clone(), "headRefName", json!("refs/pull/7/head")),
            (json!({}), "headRefOid", json!("aaaa")),
            (json!({}), "baseRefName", json!("main")),
            (json!({}), "baseRefOid", json!("bbbb")),
            (json!({}), "isCrossRepository", json!(false)),
            (agit, "isCrossRepository", json!(true)),
            (json!({}), "mergeable", json!("MERGEABLE")),
            (json!({"mergeable": false}), "mergeable", json!("UNKNOWN")),
            (merged.clone(), "mergeable", json!("UNKNOWN")),
            (merged.clone(), "mergeCommit", json!({"oid": "cccc"})),
            (json!({"merge_commit_sha": "test merge"}), "mergeCommit", Value::Null),
            (merged.clone(), "mergedBy", json!({"login": "ana"})),
            (merged, "mergedAt", json!("2026-01-01T00:00:00Z")),
            (labelled, "labels", json!([{"id": "3", "name": "bug", "color": "ff0000", "description": ""}])),
            (json!({"labels": null}), "labels", json!([])),
        ];
        for (json, name, expected) in rows {
            assert_eq!(field(json.clone(), &[], name), expected, "{name} of {json}");
        }
    }

    #[test]
    fn s1_10_the_merge_state_comes_of_draft_checks_and_conflicts() {
        let rows: [(Value, &[&str], &str); 7] = [
            (json!({"draft": true}), &["failure"], "DRAFT"),
            (json!({}), &["failure", "pending"], "UNSTABLE"),
            (json!({}), &["warning"], "UNSTABLE"),
            (json!({}), &["success", "skipped"], "CLEAN"),
            (json!({"mergeable": false}), &["success"], "UNKNOWN"),
            (json!({}), &["success", "pending"], "UNKNOWN"),
            (json!({"state": "closed"}), &["success"], "UNKNOWN"),
        ];
        for (json, states, expected) in rows {
            assert_eq!(field(json.clone(), states, "mergeStateStatus"), expected, "{json} {states:?}");
        }
    }

    #[test]
    fn s1_10_each_state_of_a_check_has_gh_s_word() {
        let states = ["success", "skipped", "failure", "error", "warning", "pending", "blessed", ""];
        let rollup = field(json!({}), &states, "statusCheckRollup");
        let words: Vec<&str> =
            rollup.as_array().unwrap().iter().map(|check| check["state"].as_str().unwrap()).collect();
        let expected = ["SUCCESS", "SUCCESS", "FAILURE", "ERROR", "FAILURE", "PENDING", "PENDING", "PENDING"];
        assert_eq!(words, expected);
        assert_eq!(rollup[0]["__typename"], "StatusContext");
    }

    #[test]
    fn fields_are_selected_by_name_and_an_unknown_one_is_told() {
        let all = || pull_fields(&pull(json!({})), &checks(&[]));
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let some = select(all(), &named(&["state", "number"]), &PULL_FIELDS).unwrap();
        assert_eq!(Value::Object(some), json!({"number": 7, "state": "OPEN"}));
        assert_eq!(select(all(), &[], &PULL_FIELDS).unwrap().len(), PULL_FIELDS.len());
        let error = select(all(), &named(&["colour"]), &PULL_FIELDS).unwrap_err();
        assert!(error.to_string().starts_with("there is no field `colour`; the fields are number,title,"));
    }

    #[test]
    fn an_issue_has_the_same_shape() {
        let issue: Issue =
            serde_json::from_value(json!({"number": 1, "state": "open", "user": {"login": "ana"}})).unwrap();
        let fields = issue_fields(&issue);
        assert_eq!((&fields["state"], &fields["author"]), (&json!("OPEN"), &json!({"login": "ana"})));
        assert_eq!(fields.len(), ISSUE_FIELDS.len());
    }
}
