//! What is left when all is quiet, as anybody can see it: the API's listing, and the three public keys.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use redis::{Connection, RedisResult};
use serde_json::Value;

use crate::clock;
use crate::http::{Line, Request};
use crate::produce::event::Event;
use crate::trouble::{Doing, Result, Trouble};

/// An answer that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries, and how many there are: the server may just be dead.
const TRY_AGAIN: Duration = Duration::from_millis(50);
const TRIES: u32 = 400;
/// The states that an end is.
const ENDS: [&str; 3] = ["delivered", "dead", "cancelled"];

/// What is left.
#[derive(Debug, Default)]
pub struct Left {
    /// Given up and kept.
    pub dead: BTreeSet<u64>,
    /// Due now or later.
    pub waiting: BTreeSet<u64>,
    /// What the API lists, with each event's number.
    pub deliveries: Vec<(u64, Value)>,
}

impl Left {
    /// The public keys, and, where there is an API, its listing.
    ///
    /// # Errors
    /// Redis or the API does not answer.
    pub fn look(connection: &mut Connection, api: Option<SocketAddr>) -> Result<Self> {
        let mut left = Self::default();
        let asked = |result: RedisResult<Vec<String>>| result.doing("read the public keys");
        let list = |key: &str| redis::cmd("LRANGE").arg(key).arg(0).arg(-1).to_owned();
        let numbers = |texts: Vec<String>| texts.into_iter().filter_map(|text| Event::number_in(&text));
        left.dead.extend(numbers(asked(list("webhooks:mortos").query(connection))?));
        left.waiting.extend(numbers(asked(list("webhooks:prontos").query(connection))?));
        let waiting = redis::cmd("ZRANGE").arg("webhooks:espera").arg(0).arg(-1).query(connection);
        left.waiting.extend(numbers(asked(waiting)?));
        for delivery in api.map_or_else(|| Ok(Vec::new()), deliveries)? {
            let number = delivery["url"].as_str().and_then(Event::number_in);
            let number = number.ok_or_else(|| Trouble::new(format!("a delivery of nobody's: {delivery}")))?;
            match delivery["state"].as_str() {
                Some("dead") => _ = left.dead.insert(number),
                Some("pending" | "in_flight" | "scheduled") => _ = left.waiting.insert(number),
                _ => {}
            }
            left.deliveries.push((number, delivery));
        }
        Ok(left)
    }
}

/// The JSON at a path, from a server that may be dead for a moment.
///
/// # Errors
/// It stays dead.
pub fn get(api: SocketAddr, path: &str) -> Result<Value> {
    let request = Request { method: "GET", path, headers: "", body: b"", patience: PATIENCE };
    let mut line = Line::to(api);
    for _ in 0..TRIES {
        match line.exchange(&request) {
            Ok(answer) if answer.status == 200 => {
                if let Ok(value) = serde_json::from_slice(&answer.body) {
                    return Ok(value);
                }
            }
            Ok(answer) if answer.status < 500 => {
                return Err(Trouble::new(format!("{path} was answered {}", answer.status)));
            }
            Ok(_) | Err(_) => {}
        }
        clock::pause(TRY_AGAIN);
    }
    Err(Trouble::new(format!("{path} is not answered")))
}

/// Every delivery that the API lists.
fn deliveries(api: SocketAddr) -> Result<Vec<Value>> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let mut page = get(api, &format!("/v1/deliveries?limit=200{cursor}"))?;
        let data = page["data"].as_array_mut().ok_or_else(|| Trouble::new("a listing without its data"))?;
        all.append(data);
        let Some(next) = page["next_cursor"].as_str() else { return Ok(all) };
        cursor = format!("&cursor={next}");
    }
}

/// The deliveries that have ended, by id.
///
/// # Errors
/// The API does not answer.
pub fn ended(api: SocketAddr) -> Result<HashMap<String, Value>> {
    let ended = |delivery: &Value| delivery["state"].as_str().is_some_and(|state| ENDS.contains(&state));
    let named = |delivery: Value| Some((delivery["id"].as_str()?.to_owned(), delivery));
    Ok(deliveries(api)?.into_iter().filter(ended).filter_map(named).collect())
}

/// The counters of conservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Events taken on.
    pub accepted: u64,
    /// Of them, not at their end.
    pub open: u64,
    /// At an end, or removed after it.
    pub ended: u64,
}

impl Counts {
    /// What the API counts.
    ///
    /// # Errors
    /// It does not answer.
    pub fn look(api: SocketAddr) -> Result<Self> {
        let stats = get(api, "/v1/stats")?;
        let state = |name: &str| stats["deliveries"][name].as_u64().unwrap_or(0);
        Ok(Self {
            accepted: stats["accepted"].as_u64().unwrap_or(0),
            open: ["pending", "in_flight", "scheduled"].map(state).iter().sum(),
            ended: ENDS.map(state).iter().sum::<u64>() + stats["expunged"].as_u64().unwrap_or(0),
        })
    }

    /// Whether every event is in exactly one state.
    pub const fn conserve(self) -> bool {
        self.accepted == self.open + self.ended
    }
}
