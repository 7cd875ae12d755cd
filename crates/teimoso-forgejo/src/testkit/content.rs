//! What the double answers as the API writes it; absent: fields that the client does not read.

use serde_json::{Value, json};

use super::state::{PullState, State};
use super::wire::{Answer, Asked};

pub(super) fn pull(state: &State, number: u64, pull: &PullState) -> Value {
    if pull.null {
        return Value::Null;
    }
    let merged = pull.merged;
    json!({
        "id": 1000 + number, "number": number, "title": pull.title, "body": "", "draft": pull.draft(),
        "state": if pull.open { "open" } else { "closed" },
        "merged": merged,
        "merged_at": merged.then_some("2026-01-01T00:00:00Z"),
        "merged_by": pull.merged_by.as_ref().map(|login| json!({ "login": login })),
        "merge_commit_sha": merged.then_some("3333333333333333333333333333333333333333"),
        // As on the server: false for drafts.
        "mergeable": pull.mergeable && !pull.draft() && !merged,
        "html_url": format!("{}/acme/site/pulls/{number}", state.root_url),
        "user": {"login": "ana"}, "labels": [], "assignees": null, "milestone": null,
        "head": {"label": "topic", "ref": "topic", "sha": pull.head, "repo_id": 1},
        "base": {"label": "main", "ref": "main", "sha": "0".repeat(40), "repo_id": 1},
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "closed_at": null,
        "additions": 3, "deletions": 1, "changed_files": 1, "allow_maintainer_edit": false,
    })
}

/// One page of a list, with the headers that say how long it is.
pub(super) fn page(
    state: &State,
    asked: &Asked,
    all: &[Value],
    wrap: impl FnOnce(Vec<Value>) -> Value,
) -> Answer {
    let number = |name, otherwise: usize| {
        asked.parameter(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let limit = number("limit", 30).min(state.page_max).max(1);
    let from = number("page", 1).saturating_sub(1).saturating_mul(limit);
    let items: Vec<Value> = all.iter().skip(from).take(limit).cloned().collect();
    let next = format!("<{}/api/v1{}?page=2>; rel=\"next\"", state.root_url, asked.path);
    let more = from + items.len() < all.len();
    let answer = Answer::json(200, &wrap(items)).with("x-total-count", &all.len().to_string());
    if more { answer.with("link", &next) } else { answer }
}
