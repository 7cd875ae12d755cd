//! The three shapes, each in a thread of its own. Deliberately absent: blocking commands and anything else that a
//! producer of S2 would not do.

use std::process::{Command, Stdio};
use std::time::Duration;

use redis::{Connection, RedisError};
use serde_json::Value;

use super::event::Event;
use super::{Shape, Work};
use crate::clock;
use crate::http::{Answer, Line, Request};
use crate::world::process::clean;
use crate::world::redis::connection;

/// Lines of a batch.
const BATCH: usize = 20;
/// Between two tries of the same.
const TRY_AGAIN: Duration = Duration::from_millis(10);
/// An answer of the API that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two processes of `send`: each costs more than its event.
const SEND_PAUSE: Duration = Duration::from_millis(100);
/// The exit code of a push that may have been made.
const OUTCOME_UNKNOWN: i32 = 7;

/// One event per request, repeated until it is accepted.
pub(super) fn singles(work: &Work) {
    let Some(mut api) = work.doors.api.map(Line::to) else { return };
    while work.goes_on() {
        let event = work.next();
        let body = event.request(work.doors.receiver);
        loop {
            match post(&mut api, "/v1/events", "application/json", &body) {
                Some(Answer { status: 202, body }) => {
                    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
                    match answer["id"].as_str() {
                        Some(id) => break work.acknowledge(event, Shape::Api, id),
                        // Cut within the body: accepted, and under its key the same when it is sent again.
                        None => clock::pause(TRY_AGAIN),
                    }
                }
                // Shedding, or Redis is away: an answer that says again.
                Some(Answer { status: 503, .. }) | None => clock::pause(TRY_AGAIN),
                Some(other) => break work.complain(format!("event {} got {other:?}", event.number)),
            }
        }
        clock::pause(work.pause);
    }
}

/// Batches, each sent again as a whole until every line is accepted.
pub(super) fn batches(work: &Work) {
    let Some(mut api) = work.doors.api.map(Line::to) else { return };
    while work.goes_on() {
        let mut left: Vec<Event> = (0..BATCH).map(|_| work.next()).collect();
        while !left.is_empty() {
            left = batch(work, &mut api, left);
            if !left.is_empty() {
                clock::pause(TRY_AGAIN);
            }
        }
        clock::pause(work.pause * BATCH as u32);
    }
}

/// Sends a batch once; what of it was not accepted.
fn batch(work: &Work, api: &mut Line, events: Vec<Event>) -> Vec<Event> {
    let body: String = events.iter().map(|event| event.request(work.doors.receiver) + "\n").collect();
    let answer = post(api, "/v1/events/batch", "application/x-ndjson", &body);
    let Some(Answer { status: 200, body }) = answer else { return events };
    let text = String::from_utf8_lossy(&body);
    // A line is an answer once its end is there.
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let mut left = Vec::new();
    for event in events {
        let answer = lines.next().and_then(|line| serde_json::from_str::<Value>(line).ok());
        match answer.as_ref().and_then(|answer| answer["id"].as_str()) {
            Some(id) => work.acknowledge(event, Shape::Api, id),
            None => left.push(event),
        }
    }
    left
}

fn post(api: &mut Line, path: &str, kind: &str, body: &str) -> Option<Answer> {
    let headers = format!("content-type: {kind}\r\n");
    let request =
        Request { method: "POST", path, headers: &headers, body: body.as_bytes(), patience: PATIENCE };
    api.exchange(&request).ok()
}

/// One RPUSH per event, as `redis-cli` makes it.
pub(super) fn pushes(work: &Work) {
    let mut live: Option<Connection> = None;
    while work.goes_on() {
        let Some(connection) = live.as_mut() else {
            live = connection(&work.doors.redis, Some(PATIENCE)).ok();
            clock::pause(TRY_AGAIN);
            continue;
        };
        let event = work.next();
        let mut push = redis::cmd("RPUSH");
        push.arg("webhooks:prontos").arg(event.entry(work.doors.receiver));
        let pushed: Result<i64, RedisError> = push.query(connection);
        match pushed {
            Ok(_length) => work.acknowledge(event, Shape::Push, &format!("evt_chaos_{}", event.number)),
            Err(_lost) => {
                work.leave_open(event);
                live = None;
            }
        }
        clock::pause(work.pause);
    }
}

/// One process of `teimoso send` per event.
pub(super) fn sends(work: &Work) {
    while work.goes_on() {
        let event = work.next();
        let mut command: Command = clean(&work.doors.teimoso);
        command.args(["send", &event.url(work.doors.receiver), "--store", &work.doors.redis]);
        command.args(["--data", &event.payload()]).stdin(Stdio::null()).stderr(Stdio::null());
        match command.output() {
            Ok(ended) if ended.status.success() => {
                let id = String::from_utf8_lossy(&ended.stdout).trim_end().to_owned();
                work.acknowledge(event, Shape::Send, &id);
            }
            Ok(ended) if ended.status.code() == Some(OUTCOME_UNKNOWN) => work.leave_open(event),
            // Redis is away: nothing was pushed.
            Ok(_) => {}
            Err(error) => work.complain(format!("send does not run: {error}")),
        }
        clock::pause(SEND_PAUSE);
    }
}
