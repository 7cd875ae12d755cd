//! Which request of the double does what; absent: the doing, which is in `pulls` and `issues`.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::content::page;
use super::state::{State, TOKEN};
use super::wire::{Answer, Asked};
use super::{issues, pulls};

pub(super) fn answer(state: &mut State, asked: &Asked) -> Answer {
    if asked.header("authorization") != Some(&format!("token {TOKEN}")) {
        return Answer::message(401, "user does not exist [uid: 0, name: ]");
    }
    let path: Vec<String> = asked
        .path
        .split('/')
        .skip(1)
        .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
        .collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (asked.method.as_str(), path.as_slice()) {
        ("GET", ["version"]) => Answer::json(200, &json!({ "version": "12.0.1+gitea-1.22.0" })),
        ("GET", ["user"]) => Answer::json(200, &json!({ "id": 1, "login": "ana" })),
        ("GET", ["orgs", "acme", "labels"]) => match &state.org_labels {
            Some(labels) => page(state, asked, labels, Value::Array),
            None => not_found(),
        },
        (_, ["repos", "acme", former, ..]) if state.former_name.as_deref() == Some(*former) => {
            renamed(state, asked, former)
        }
        (method, ["repos", "acme", "site", rest @ ..]) => in_repository(state, asked, method, rest),
        _ => not_found(),
    }
}

fn in_repository(state: &mut State, asked: &Asked, method: &str, path: &[&str]) -> Answer {
    match (method, path) {
        (_, ["pulls" | "commits", ..]) => pulls::answer(state, asked, method, path),
        (_, ["issues" | "labels", ..]) => issues::answer(state, asked, method, path),
        (_, ["branch_protections", rest @ ..]) => protections(state, asked, method, rest),
        _ => not_found(),
    }
}

pub(super) fn not_found() -> Answer {
    Answer::json(404, &json!({ "message": "The target couldn't be found.", "url": "u", "errors": [] }))
}

/// As a renamed repository is answered: on the same host, with the same method.
fn renamed(state: &State, asked: &Asked, former: &str) -> Answer {
    let path = asked.path.replacen(&format!("/acme/{former}"), "/acme/site", 1);
    let mark = if asked.query.is_empty() { "" } else { "?" };
    let location = format!("{}/api/v1{path}{mark}{}", state.root_url, asked.query);
    Answer::empty(307).with("location", &location)
}

fn protections(state: &mut State, asked: &Asked, method: &str, path: &[&str]) -> Answer {
    let fields: Map<String, Value> =
        asked.body.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    match (method, path) {
        ("GET", []) => {
            let rules: Vec<Value> = state.protections.values().cloned().map(Value::Object).collect();
            Answer::json(200, &Value::Array(rules))
        }
        ("POST", []) => {
            let name = fields.get("rule_name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if state.protections.contains_key(&name) {
                return Answer::message(403, "Branch protection already exist");
            }
            state.executed.push(format!("create protection {name}"));
            state.protections.insert(name, fields.clone());
            Answer::json(201, &Value::Object(fields))
        }
        (_, [name]) => match state.protections.get_mut(*name) {
            None => not_found(),
            Some(rule) => {
                match method {
                    "PATCH" => {
                        rule.extend(fields);
                        state.executed.push(format!("edit protection {name}"));
                    }
                    "DELETE" => {
                        state.protections.remove(*name);
                        state.executed.push(format!("delete protection {name}"));
                        return Answer::empty(204);
                    }
                    _ => {}
                }
                Answer::json(200, &json!(state.protections.get(*name)))
            }
        },
        _ => not_found(),
    }
}
