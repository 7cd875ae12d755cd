//! What teimoso is compared with, in the fewest lines that do it: a sender takes an event off the list (BLPOP), sends
//! it, and puts what failed into the waiting set (ZADD); a forwarder moves what is due back (ZREM, then RPUSH).
//!
//! Its Redis may go away: what it holds in memory is kept until Redis is back. What it cannot do anything about is its
//! own death between two commands, and an answer that is lost after the server has popped.

use std::net::SocketAddr;
use std::time::Duration;

use redis::{Cmd, Connection, FromRedisValue, RedisResult};
use serde_json::value::RawValue;

use super::ATTEMPT;
use crate::args::NaiveArgs;
use crate::clock;
use crate::http::{Line, Request};
use crate::trouble::{Result, Trouble};
use crate::world::redis::connection;

const READY: &str = "webhooks:prontos";
const WAITING: &str = "webhooks:espera";
const DEAD: &str = "webhooks:mortos";
/// Attempts before an event is given up (S2.4).
const ATTEMPTS: u64 = 5;
/// Between two tries to reach Redis.
const TRY_AGAIN: Duration = Duration::from_millis(50);
/// Between two looks of the forwarder.
const FORWARD_EVERY: Duration = Duration::from_millis(500);

/// Runs until it is killed.
///
/// # Errors
/// A thread panicked.
pub fn run(args: &NaiveArgs) -> Result<()> {
    std::thread::scope(|scope| {
        let forwarder = scope.spawn(|| forward(&args.redis));
        for _ in 0..args.loops {
            scope.spawn(|| send(&args.redis));
        }
        forwarder.join().map_err(|_| Trouble::new("the forwarder panicked"))
    })
}

/// A connection that is made again when it breaks.
struct Store<'a> {
    url: &'a str,
    live: Option<Connection>,
}

impl Store<'_> {
    fn once<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        let mut live = match self.live.take() {
            Some(live) => live,
            None => connection(self.url, None)?,
        };
        let answer = command.query(&mut live);
        if answer.is_ok() {
            self.live = Some(live);
        }
        answer
    }

    /// Until it is done.
    fn surely(&mut self, command: &Cmd) {
        while self.once::<redis::Value>(command).is_err() {
            clock::pause(TRY_AGAIN);
        }
    }
}

fn send(redis: &str) {
    let mut store = Store { url: redis, live: None };
    loop {
        let popped: RedisResult<Option<(String, String)>> = store.once(redis::cmd("BLPOP").arg(READY).arg(1));
        match popped {
            Ok(Some((_, text))) => deliver(&mut store, &text),
            Ok(None) => {}
            Err(_) => clock::pause(TRY_AGAIN),
        }
    }
}

#[derive(serde::Deserialize)]
struct Entry<'a> {
    url: String,
    #[serde(borrow)]
    corpo: &'a RawValue,
    tentativas: u64,
}

fn deliver(store: &mut Store<'_>, text: &str) {
    let Ok(entry) = serde_json::from_str::<Entry<'_>>(text) else { return };
    let attempts = entry.tentativas + 1;
    let raised = raised(text, entry.tentativas, attempts);
    match attempt(&entry, attempts) {
        Some(200..300) => {}
        Some(status @ 400..500) if status != 429 => store.surely(redis::cmd("RPUSH").arg(DEAD).arg(raised)),
        _ if attempts >= ATTEMPTS => store.surely(redis::cmd("RPUSH").arg(DEAD).arg(raised)),
        _ => store
            .surely(redis::cmd("ZADD").arg(WAITING).arg(clock::wall_millis() + wait(attempts)).arg(raised)),
    }
}

/// S2.3, its jitter from the clock.
fn wait(attempts: u64) -> u64 {
    2_000 * (1 << (attempts - 1).min(8)).min(150) + clock::wall_millis() % 1_000
}

/// The digits of the last field, one higher.
fn raised(text: &str, from: u64, to: u64) -> String {
    let field = "\"tentativas\":";
    match text.rsplit_once(&format!("{field}{from}")) {
        Some((before, after)) => format!("{before}{field}{to}{after}"),
        None => text.to_owned(),
    }
}

fn attempt(entry: &Entry<'_>, number: u64) -> Option<u16> {
    let (to, path) = place(&entry.url)?;
    let headers = format!("content-type: application/json\r\nteimoso-attempt: {number}\r\n");
    let body = entry.corpo.get().as_bytes();
    let request = Request { method: "POST", path, headers: &headers, body, patience: ATTEMPT };
    Line::to(to).exchange(&request).ok().map(|answer| answer.status)
}

/// The receiver's address and the path in a URL of ours.
fn place(url: &str) -> Option<(SocketAddr, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_at(rest.find('/')?);
    Some((host.parse().ok()?, path))
}

fn forward(redis: &str) {
    let mut store = Store { url: redis, live: None };
    loop {
        let mut due = redis::cmd("ZRANGEBYSCORE");
        due.arg(WAITING).arg("-inf").arg(clock::wall_millis()).arg("LIMIT").arg(0).arg(100);
        let due: Vec<String> = store.once(&due).unwrap_or_default();
        for entry in &due {
            // Whoever removed it moves it: two forwarders never both do.
            if store.once(redis::cmd("ZREM").arg(WAITING).arg(entry)).is_ok_and(|removed: u64| removed == 1) {
                store.surely(redis::cmd("RPUSH").arg(READY).arg(entry));
            }
        }
        if due.is_empty() {
            clock::pause(FORWARD_EVERY);
        }
    }
}

/// How much it still has to do, beside what it has on the wire.
///
/// # Errors
/// Redis is down.
pub fn left(connection: &mut Connection) -> RedisResult<u64> {
    let ready: u64 = redis::cmd("LLEN").arg(READY).query(connection)?;
    let waiting: u64 = redis::cmd("ZCARD").arg(WAITING).query(connection)?;
    Ok(ready + waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_3_waits_double_and_stop_at_the_cap() {
        for (attempts, least) in [(1, 2_000), (2, 4_000), (5, 32_000), (9, 300_000), (60, 300_000)] {
            let wait = wait(attempts);
            assert!((least..least + 1_000).contains(&wait), "{attempts}: {wait}");
        }
    }

    #[test]
    fn s2_5_attempts_are_raised_and_nothing_else_changes() {
        let text = r#"{"url":"http://127.0.0.1:1/lane/1?n=1","corpo":{"tentativas":0},"tentativas":0}"#;
        let expected = r#"{"url":"http://127.0.0.1:1/lane/1?n=1","corpo":{"tentativas":0},"tentativas":1}"#;
        assert_eq!(raised(text, 0, 1), expected);
    }

    #[test]
    fn a_url_is_an_address_and_a_path() {
        let (to, path) = place("http://127.0.0.1:80/lane/1?n=1").expect("both");
        assert_eq!((to.port(), path), (80, "/lane/1?n=1"));
        assert_eq!(place("http://127.0.0.1:80"), None);
    }
}
