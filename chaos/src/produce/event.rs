//! An event of the storm: all of it follows from the seed and its number, which its URL carries.

use std::net::SocketAddr;

/// Lanes that events are spread over: what a dead sender held keeps its places in them until the lease ends.
const LANES: u64 = 64;
/// Of a hundred events so many are refused whenever they come.
const REFUSED: u64 = 4;

/// A number that looks drawn, from the seed and two others: the same on every machine.
pub fn chance(seed: u64, number: u64, what: u64) -> u64 {
    fastrand::Rng::with_seed(seed ^ number.rotate_left(20) ^ what.rotate_left(52)).u64(..)
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    seed: u64,
    /// Which one.
    pub number: u64,
}

impl Event {
    /// That event of that storm.
    pub const fn new(seed: u64, number: u64) -> Self {
        Self { seed, number }
    }

    /// Where it goes. The lane is the path; the query tells events apart.
    pub fn url(self, receiver: SocketAddr) -> String {
        format!("http://{receiver}/lane/{}?n={}", self.number % LANES, self.number)
    }

    /// The number in a URL, a path with its query, or a text that holds one.
    pub fn number_in(text: &str) -> Option<u64> {
        let (_, after) = text.split_once("?n=")?;
        let end = after.find(|char: char| !char.is_ascii_digit()).unwrap_or(after.len());
        after[..end].parse().ok()
    }

    /// JSON that no parser would print again as it is.
    pub fn payload(self) -> String {
        let length = chance(self.seed, self.number, 1 << 20) % 400;
        let fill = "\u{2028}x ".repeat(usize::try_from(length).unwrap_or(0) / 5);
        format!(r#"{{"n":  {}.0,"n":1e400, "fill":"{fill}"}}"#, self.number)
    }

    /// Whether its receiver answers 404.
    pub fn is_refused(self) -> bool {
        chance(self.seed, self.number, 0) % 100 < REFUSED
    }

    /// S2's entry, as any program may push it.
    pub fn entry(self, receiver: SocketAddr) -> String {
        let (url, payload) = (self.url(receiver), self.payload());
        format!(r#"{{"id":"evt_chaos_{}","url":"{url}","corpo":{payload},"tentativas":0}}"#, self.number)
    }

    /// The body of `POST /v1/events`, with a key under which it may be sent again.
    pub fn request(self, receiver: SocketAddr) -> String {
        let (url, payload, number) = (self.url(receiver), self.payload(), self.number);
        format!(r#"{{"url":"{url}","payload":{payload},"idempotency_key":"chaos-{number}"}}"#)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_known_by_its_url_wherever_it_stands() {
        let receiver = ([127, 0, 0, 1], 80).into();
        let event = Event::new(1, 1_017);
        assert_eq!(event.url(receiver), "http://127.0.0.1:80/lane/57?n=1017");
        for text in [event.url(receiver), event.entry(receiver), event.request(receiver)] {
            assert_eq!(Event::number_in(&text), Some(1_017), "{text}");
        }
        assert_eq!([Event::number_in("/lane/1"), Event::number_in("/?n=")], [None, None]);
    }

    #[test]
    fn entry_and_request_are_json_with_the_payload_untouched() {
        let receiver = ([127, 0, 0, 1], 80).into();
        for number in 0..50 {
            let event = Event::new(3, number);
            for text in [event.entry(receiver), event.request(receiver)] {
                // The text is judged, the number beyond every range with it.
                let raw: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
                    serde_json::from_str(&text).expect("JSON");
                let payload = raw.get("corpo").or_else(|| raw.get("payload")).expect("a payload");
                assert_eq!(payload.get(), event.payload());
            }
        }
    }

    #[test]
    fn chance_depends_on_all_it_is_given() {
        let one = chance(1, 2, 3);
        assert_eq!(one, chance(1, 2, 3));
        assert!([chance(2, 2, 3), chance(1, 3, 3), chance(1, 2, 4)].iter().all(|other| *other != one));
    }
}
