//! The account at the end: what was acknowledged, what the store says of it, and what the destination saw.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use teimoso::sink::record::Record;

use super::produce::{Acknowledged, Fortune, Offered, lines};
use super::shown;
use crate::support::api::{Api, Counts};

/// A kill happened between these instants.
#[derive(Debug)]
pub struct Kill {
    pub begin: Timestamp,
    pub end: Timestamp,
}

pub struct Account {
    pub acknowledged: Acknowledged,
    pub kills: Vec<Kill>,
    pub deliveries: Vec<Value>,
}

fn text<'a>(delivery: &'a Value, field: &str) -> &'a str {
    delivery[field].as_str().unwrap_or_default()
}

impl Account {
    /// Every offer was acknowledged in the end, and each is one event with one delivery: none lost, none twice.
    pub fn the_counters_agree(&self, counts: &Counts) {
        let all = self.acknowledged.len();
        assert_eq!((counts.accepted, self.deliveries.len()), (all as u64, all));
        assert_eq!((counts.cancelled, counts.expunged), (0, 0));
        assert!(all > 100, "{all} events are no load");
        eprintln!("{all} events: {counts:?}");
    }

    /// Offered once more, every key still names its event, and nothing new comes of it (G1).
    pub fn the_same_keys_are_the_same_events(&self, api: Api) {
        let all: Vec<&(Offered, String)> = self.acknowledged.values().collect();
        for part in all.chunks(200) {
            let body = lines(part.iter().map(|(offered, _)| offered));
            let kind = "content-type: application/x-ndjson\r\n";
            let answer = api.request("POST", "/v1/events/batch", kind, body.as_bytes()).expect("answered");
            let answers = String::from_utf8(answer.body).expect("UTF-8");
            assert_eq!(answers.lines().count(), part.len());
            for (line, (offered, id)) in answers.lines().zip(part) {
                let answer: Value = serde_json::from_str(line).expect("JSON");
                assert_eq!(
                    (text(&answer, "id"), &answer["idempotent_replayed"]),
                    (&**id, &true.into()),
                    "{}",
                    offered.key
                );
            }
        }
        assert_eq!(api.counts().accepted, all.len() as u64);
    }

    pub fn every_event_is_where_it_belongs(&self, arrivals: Vec<Arc<Record>>) {
        let mut seen: HashMap<String, Vec<Arc<Record>>> = HashMap::new();
        for record in arrivals {
            let event = record.webhook_id().expect("an event").into_owned();
            seen.entry(event).or_default().push(record);
        }
        let stored: HashMap<&str, &Value> =
            self.deliveries.iter().map(|delivery| (text(delivery, "event_id"), delivery)).collect();
        let mut repeated = 0;
        for (offered, event) in self.acknowledged.values() {
            let delivery = stored.get(&**event).unwrap_or_else(|| panic!("lost: {event} {}", offered.key));
            let arrived = seen.remove(event).unwrap_or_default();
            belongs(offered, delivery, &arrived);
            for request in &arrived {
                assert!(request.body() == offered.payload.as_bytes(), "G7: {event} arrived changed");
            }
            repeated += self.repetitions_are_of_kills(event, &arrived);
        }
        assert_eq!(
            seen.keys().collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "delivered, but never acknowledged"
        );
        eprintln!("{} kills, {repeated} requests repeated", self.kills.len());
    }

    /// An attempt's number goes up by one after an answer that asks for it; the same number comes again only
    /// where a kill lies between the two requests (G3, G6). Returns how many came again.
    fn repetitions_are_of_kills(&self, event: &str, arrived: &[Arc<Record>]) -> usize {
        let mut again = 0;
        for pair in arrived.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            let numbers = (first.attempt().expect("a number"), second.attempt().expect("a number"));
            let answered = first.answer().status();
            if numbers.1 == numbers.0 {
                again += 1;
                // The first was sent in the second it says, and may have been read from its socket when its sender
                // was dead already; the second cannot have been read before it was sent.
                let sent = sent_at(first);
                let between = |kill: &Kill| sent <= kill.end && kill.begin <= second.at();
                assert!(
                    self.kills.iter().any(between),
                    "{event}: attempt {} at {} and at {}, and no kill between",
                    numbers.0,
                    shown(first.at()),
                    shown(second.at())
                );
            } else {
                assert_eq!(numbers.1, numbers.0 + 1, "{event}: a number left out");
                assert!(answered != Some(200), "{event}: attempted again after it was delivered durably");
            }
        }
        again
    }
}

/// When the sender started the attempt, to the second.
fn sent_at(request: &Record) -> Timestamp {
    let second = request.header("webhook-timestamp").expect("a timestamp").parse().expect("a number");
    Timestamp::from_second(second).expect("in our time")
}

/// Where this event must be, given what its destination does.
fn belongs(offered: &Offered, delivery: &Value, arrived: &[Arc<Record>]) {
    let (state, reason) = (text(delivery, "state"), text(delivery, "reason"));
    let answered = |status| arrived.iter().any(|request| request.answer().status() == Some(status));
    let fits = match (offered.fortune, state, reason) {
        (Fortune::Delivered, "delivered", _) => answered(200),
        (Fortune::Refused, "dead", "permanent_status") => answered(404),
        (Fortune::Hopeless, "scheduled", _) | (Fortune::Hopeless, "dead", "attempts_exhausted") => {
            answered(500)
        }
        (Fortune::Once, "delivered", _) => answered(200) && arrived.len() == 1,
        (Fortune::Once, "dead", "ambiguous") => arrived.len() <= 1,
        // In flight at three kills it counts as their cause (G6). It was on the wire at two of them, at least.
        (_, "dead", "poison") => offered.fortune != Fortune::Once && arrived.len() >= 2,
        _ => false,
    };
    assert!(fits, "{delivery} after {} requests: {}", arrived.len(), offered.key);
}
