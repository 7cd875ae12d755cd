//! The events that are sent: templates of fixed length in which only two numbers change, so that a producer costs
//! next to nothing. Deliberately absent: JSON libraries.

use std::net::SocketAddr;

use teimoso_delivery::model::Millis;

use crate::trouble::{Doing, Result, Trouble};

/// Digits of an event's number.
const NUMBER_DIGITS: usize = 10;
/// Digits of a time in microseconds since the epoch, until the year 2286.
const STAMP_DIGITS: usize = 16;
/// What stands before the stamp in every payload: the sink looks for it.
pub const STAMP_MARK: &[u8] = b"\"at\":\"";
/// The smallest payload that holds both numbers.
pub const PAYLOAD_MIN_BYTES: usize = 64;
/// The payload unless something else is asked for.
pub const PAYLOAD_BYTES: usize = 200;
/// Endpoints that events are spread over; 16 in flight each make 64 connections.
pub const ENDPOINTS: usize = 4;

/// The destinations `http://sink/PATH/0` …
pub fn urls(sink: SocketAddr, path: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://{sink}/{path}/{n:02}")).collect()
}

/// A JSON payload of exactly this many bytes, both numbers zero.
pub fn payload(bytes: usize) -> Result<String> {
    let fill = bytes.checked_sub(PAYLOAD_MIN_BYTES);
    let fill =
        fill.ok_or_else(|| Trouble::new(format!("a payload has at least {PAYLOAD_MIN_BYTES} bytes")))?;
    let before = format!(r#"{{"n":"{:0NUMBER_DIGITS$}","at":"{:0STAMP_DIGITS$}","fill":""#, 0, 0);
    let fill = "x".repeat(fill + PAYLOAD_MIN_BYTES - before.len() - 2);
    Ok(format!("{before}{fill}\"}}"))
}

/// S2's entry as anybody may push it: that many attempts made, and a payload with both numbers.
pub fn entry(
    url: &str,
    payload_bytes: usize,
    number: u64,
    stamp_micros: u64,
    attempts: u32,
) -> Result<String> {
    let mut payload = payload(payload_bytes)?;
    let number_at = r#"{"n":""#.len();
    let stamp_at = number_at + NUMBER_DIGITS + r#"","at":""#.len();
    payload.replace_range(number_at..number_at + NUMBER_DIGITS, &format!("{number:0NUMBER_DIGITS$}"));
    payload.replace_range(stamp_at..stamp_at + STAMP_DIGITS, &format!("{stamp_micros:0STAMP_DIGITS$}"));
    Ok(format!(r#"{{"id":"evt_bench_{number}","url":"{url}","corpo":{payload},"tentativas":{attempts}}}"#))
}

/// One endpoint's event as the API takes it, with the places of its numbers.
#[derive(Debug, Clone)]
struct Body {
    bytes: Vec<u8>,
    number_at: usize,
    stamp_at: usize,
}

impl Body {
    fn new(url: &str, payload: &str, deliver_at: Option<Millis>) -> Result<Self> {
        let due = deliver_at.map(rfc3339).transpose()?;
        let due = due.map_or_else(String::new, |due| format!(r#""deliver_at":"{due}","#));
        let head = format!(r#"{{"url":"{url}",{due}"payload":"#);
        let number_at = head.len() + r#"{"n":""#.len();
        let stamp_at = number_at + NUMBER_DIGITS + r#"","at":""#.len();
        Ok(Self { bytes: format!("{head}{payload}}}").into_bytes(), number_at, stamp_at })
    }
}

/// Bodies of events for `POST /v1/events`, taking turns between their endpoints.
#[derive(Debug, Clone)]
pub struct Events {
    bodies: Vec<Body>,
}

impl Events {
    /// Events for these URLs, at least one.
    pub fn new(urls: &[String], payload_bytes: usize, deliver_at: Option<Millis>) -> Result<Self> {
        let payload = payload(payload_bytes)?;
        let bodies =
            urls.iter().map(|url| Body::new(url, &payload, deliver_at)).collect::<Result<Vec<_>>>()?;
        if bodies.is_empty() {
            return Err(Trouble::new("events need an endpoint"));
        }
        Ok(Self { bodies })
    }

    fn of(&self, number: u64) -> &Body {
        let turn = usize::try_from(number % self.bodies.len() as u64).unwrap_or(0);
        &self.bodies[turn]
    }

    /// How long an event's body is.
    pub fn len(&self, number: u64) -> usize {
        self.of(number).bytes.len()
    }

    /// Appends an event's body.
    pub fn write(&self, number: u64, stamp_micros: u64, to: &mut Vec<u8>) {
        let body = self.of(number);
        let start = to.len();
        to.extend_from_slice(&body.bytes);
        digits(&mut to[start + body.number_at..][..NUMBER_DIGITS], number);
        digits(&mut to[start + body.stamp_at..][..STAMP_DIGITS], stamp_micros);
    }
}

/// Writes a number into a field of digits, from the right; what does not fit is cut off.
fn digits(field: &mut [u8], mut number: u64) {
    for digit in field.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The stamp of a payload, if it has one.
pub fn stamp(payload: &[u8]) -> Option<u64> {
    let at = payload.windows(STAMP_MARK.len()).position(|window| window == STAMP_MARK)? + STAMP_MARK.len();
    let field = payload.get(at..at + STAMP_DIGITS)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn rfc3339(at: Millis) -> Result<String> {
    let millis = i64::try_from(at.get()).doing("write a time")?;
    let at = jiff::Timestamp::from_millisecond(millis).doing("write a time")?;
    Ok(format!("{at:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(number: u64, stamp: u64) -> serde_json::Value {
        let urls = urls(([127, 0, 0, 1], 80).into(), "ok", 2);
        let events = Events::new(&urls, 200, Some(Millis::new(1_700_000_000_007))).unwrap();
        let mut line = Vec::new();
        events.write(number, stamp, &mut line);
        assert_eq!(line.len(), events.len(number));
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn an_event_is_json_with_its_numbers_in_place() {
        let event = written(31, 1_700_000_000_123_456);
        assert_eq!(event["url"], "http://127.0.0.1:80/ok/01");
        assert_eq!(event["deliver_at"], "2023-11-14T22:13:20.007Z");
        assert_eq!(event["payload"]["n"], "0000000031");
        assert_eq!(event["payload"]["at"], "1700000000123456");
    }

    #[test]
    fn s2_2_an_entry_has_its_four_fields_and_its_numbers_in_place() {
        let entry = entry("http://127.0.0.1:80/stamp/00", 200, 31, 1_700_000_000_123_456, 1).unwrap();
        let entry: serde_json::Value = serde_json::from_str(&entry).unwrap();
        assert_eq!((&entry["tentativas"], &entry["corpo"]["n"]), (&1.into(), &"0000000031".into()));
        assert_eq!(stamp(entry["corpo"].to_string().as_bytes()), Some(1_700_000_000_123_456));
    }

    #[test]
    fn a_payload_has_the_length_that_was_asked_for() {
        for bytes in [PAYLOAD_MIN_BYTES, 200, 2_048, 65_536] {
            assert_eq!(payload(bytes).unwrap().len(), bytes);
        }
        assert!(payload(PAYLOAD_MIN_BYTES - 1).is_err());
    }

    #[test]
    fn the_sink_finds_the_stamp() {
        assert_eq!(stamp(br#"{"n":"1","at":"1700000000123456"}"#), Some(1_700_000_000_123_456));
        assert_eq!(stamp(b"{}"), None);
    }
}
