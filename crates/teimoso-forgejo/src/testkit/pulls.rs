//! Pull requests, merging and statuses of the double; absent: conflicts, which tests play as faults.

use serde_json::{Value, json};

use super::content::{page, pull as pull_json};
use super::routes::not_found;
use super::state::State;
use super::wire::{Answer, Asked};

pub(super) fn answer(state: &mut State, asked: &Asked, method: &str, path: &[&str]) -> Answer {
    match (method, path) {
        ("GET", ["commits", commit, "status"]) => combined(state, asked, commit),
        ("GET", ["commits", commit, "statuses"]) => {
            let rows = state.statuses.get(*commit).cloned().unwrap_or_default();
            page(state, asked, &rows, Value::Array)
        }
        ("GET", ["pulls"]) => {
            let all: Vec<Value> =
                state.pulls.iter().map(|(number, pull)| pull_json(state, *number, pull)).collect();
            page(state, asked, &all, Value::Array)
        }
        ("GET", ["pulls", "main", "topic"]) => one(state, 7, 200),
        (_, ["pulls", number, rest @ ..]) => match number.parse() {
            Ok(number) if state.pulls.contains_key(&number) => of_one(state, asked, method, number, rest),
            _ => not_found(),
        },
        _ => not_found(),
    }
}

fn of_one(state: &mut State, asked: &Asked, method: &str, number: u64, path: &[&str]) -> Answer {
    match (method, path) {
        ("GET", []) => one(state, number, 200),
        ("PATCH", []) => {
            let body = asked.body.clone().unwrap_or_default();
            let Some(pull) = state.pulls.get_mut(&number) else { return not_found() };
            if let Some(title) = body["title"].as_str() {
                title.clone_into(&mut pull.title);
            }
            if let Some(word) = body["state"].as_str() {
                pull.open = word == "open";
            }
            state.executed.push(format!("edit pull {number}"));
            one(state, number, 201)
        }
        ("POST", ["merge"]) => merge(state, asked, number),
        ("DELETE", ["merge"]) => not_found(),
        ("POST", ["update"]) => {
            state.executed.push(format!("update {number}"));
            Answer::empty(200)
        }
        _ => not_found(),
    }
}

fn one(state: &State, number: u64, status: u16) -> Answer {
    match state.pulls.get(&number) {
        Some(pull) => Answer::json(status, &pull_json(state, number, pull)),
        None => not_found(),
    }
}

/// The newest row of each context, in an order of its own.
fn combined(state: &State, asked: &Asked, commit: &str) -> Answer {
    let rows = state.statuses.get(commit).cloned().unwrap_or_default();
    if rows.is_empty() {
        let empty = json!({"state": "", "sha": "", "total_count": 0, "statuses": null, "repository": null});
        return Answer::json(200, &empty).with("x-total-count", "0");
    }
    let is_newest =
        |(at, row): &(usize, &Value)| !rows[at + 1..].iter().any(|other| other["context"] == row["context"]);
    let mut newest: Vec<Value> =
        rows.iter().enumerate().filter(is_newest).map(|(_, row)| row.clone()).collect();
    newest.reverse();
    page(
        state,
        asked,
        &newest,
        |statuses| json!({"state": "success", "sha": commit, "total_count": statuses.len(), "statuses": statuses}),
    )
}

fn merge(state: &mut State, asked: &Asked, number: u64) -> Answer {
    let order = asked.body.clone().unwrap_or_default();
    let Some(pull) = state.pulls.get_mut(&number) else { return not_found() };
    if pull.merged {
        return Answer::message(405, "");
    }
    if !pull.open {
        return not_found();
    }
    if pull.draft() {
        return Answer::message(405, "Work in progress PRs cannot be merged");
    }
    if order["head_commit_id"].as_str().is_some_and(|head| head != pull.head) {
        return Answer::message(409, "head out of date");
    }
    if !pull.mergeable {
        return Answer::message(405, "Please try again later");
    }
    (pull.merged, pull.open, pull.merged_by) = (true, false, Some("ana".to_owned()));
    state.executed.push(format!("merge {number} {}", order["Do"].as_str().unwrap_or_default()));
    Answer::empty(200)
}
