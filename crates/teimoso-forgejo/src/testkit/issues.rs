//! Issues, labels and comments of the double; absent: names of labels in requests, which real servers ignore too.

use serde_json::{Value, json};

use super::content::page;
use super::routes::not_found;
use super::state::State;
use super::wire::{Answer, Asked};

pub(super) fn answer(state: &mut State, asked: &Asked, method: &str, path: &[&str]) -> Answer {
    match (method, path) {
        ("GET", ["labels"]) => page(state, asked, &state.labels, Value::Array),
        ("GET", ["issues"]) => {
            let wanted = asked.parameter("state").unwrap_or("open").to_owned();
            let fits = |issue: &&Value| wanted == "all" || issue["state"] == wanted;
            let newest: Vec<Value> = state.issues.values().rev().filter(fits).cloned().collect();
            page(state, asked, &newest, Value::Array)
        }
        ("POST", ["issues"]) => create(state, asked),
        ("DELETE", ["issues", "comments", id]) => delete_comment(state, id),
        (_, ["issues", number, rest @ ..]) => match number.parse() {
            Ok(number) if state.issues.contains_key(&number) => of_one(state, asked, method, number, rest),
            _ => not_found(),
        },
        _ => not_found(),
    }
}

fn create(state: &mut State, asked: &Asked) -> Answer {
    let body = asked.body.clone().unwrap_or_default();
    let number = state.issues.keys().next_back().map_or(1, |last| last + 1);
    let labels = labels_by_id(state, &body);
    let issue = json!({
        "number": number, "state": "open", "title": body["title"], "body": body["body"], "labels": labels,
        "assignees": null, "user": {"login": "ana"},
        "html_url": format!("{}/acme/site/issues/{number}", state.root_url),
    });
    state.issues.insert(number, issue.clone());
    state.executed.push(format!("create issue {number}"));
    Answer::json(201, &issue)
}

fn of_one(state: &mut State, asked: &Asked, method: &str, number: u64, path: &[&str]) -> Answer {
    match (method, path) {
        ("GET", []) => Answer::json(200, &json!(state.issues.get(&number))),
        ("PATCH", []) => edit(state, asked, number),
        ("POST", ["labels"]) => add_labels(state, asked, number),
        ("DELETE", ["labels", id]) => remove_label(state, number, id),
        ("GET", ["comments"]) => {
            let comments = state.comments.get(&number).cloned().unwrap_or_default();
            Answer::json(200, &Value::Array(comments))
        }
        ("POST", ["comments"]) => comment(state, asked, number),
        _ => not_found(),
    }
}

fn edit(state: &mut State, asked: &Asked, number: u64) -> Answer {
    let body = asked.body.clone().unwrap_or_default();
    let Some(issue) = state.issues.get_mut(&number) else { return not_found() };
    for field in ["title", "body", "state"] {
        if body[field].is_string() {
            issue[field] = body[field].clone();
        }
    }
    if let Some(logins) = body["assignees"].as_array() {
        issue["assignees"] = logins.iter().map(|login| json!({ "login": login })).collect();
    }
    let answer = Answer::json(201, issue);
    state.executed.push(format!("edit issue {number}"));
    answer
}

fn labels_by_id(state: &State, body: &Value) -> Vec<Value> {
    let all = state.labels.iter().chain(state.org_labels.iter().flatten());
    let wanted = body["labels"].as_array().cloned().unwrap_or_default();
    all.filter(|label| wanted.contains(&label["id"])).cloned().collect()
}

/// The scope of an exclusive label.
fn scope(label: &Value) -> Option<String> {
    let name = label["name"].as_str().filter(|_| label["exclusive"] == true)?;
    name.rsplit_once('/').map(|(scope, _)| scope.to_owned())
}

fn add_labels(state: &mut State, asked: &Asked, number: u64) -> Answer {
    let added = labels_by_id(state, &asked.body.clone().unwrap_or_default());
    let Some(issue) = state.issues.get_mut(&number) else { return not_found() };
    let mut labels = issue["labels"].as_array().cloned().unwrap_or_default();
    for label in added {
        labels.retain(|other| {
            other["id"] != label["id"] && (scope(&label).is_none() || scope(other) != scope(&label))
        });
        labels.push(label);
    }
    issue["labels"] = Value::Array(labels.clone());
    state.executed.push(format!("label {number}"));
    Answer::json(200, &Value::Array(labels))
}

fn remove_label(state: &mut State, number: u64, id: &str) -> Answer {
    let Some(issue) = state.issues.get_mut(&number) else { return not_found() };
    let mut labels = issue["labels"].as_array().cloned().unwrap_or_default();
    labels.retain(|label| label["id"] != id.parse::<u64>().unwrap_or_default());
    issue["labels"] = Value::Array(labels);
    state.executed.push(format!("unlabel {number} {id}"));
    Answer::empty(204)
}

fn comment(state: &mut State, asked: &Asked, number: u64) -> Answer {
    let id = state.next_id();
    let body = asked.body.clone().unwrap_or_default()["body"].clone();
    let comment = json!({"id": id, "body": body, "user": {"login": "ana"}});
    state.comments.entry(number).or_default().push(comment.clone());
    state.executed.push(format!("comment {number}"));
    Answer::json(201, &comment)
}

fn delete_comment(state: &mut State, id: &str) -> Answer {
    for comments in state.comments.values_mut() {
        comments.retain(|comment| comment["id"] != id.parse::<u64>().unwrap_or_default());
    }
    state.executed.push(format!("delete comment {id}"));
    Answer::empty(204)
}
