//! The shapes a caller reads. Fields may be added; none is ever renamed or removed.
//!
//! Deliberately absent: how they are filled, which is `convert`'s.

use std::net::SocketAddr;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// The answer to an accepted event.
#[derive(Debug, Serialize)]
pub(crate) struct AcceptedView {
    pub(crate) id: String,
    pub(crate) deliveries: Vec<NewDelivery>,
    /// Only on a batch's line; alone, an event's answer has the header `Idempotent-Replayed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idempotent_replayed: Option<bool>,
}

/// A delivery of an event that was just accepted.
#[derive(Debug, Serialize)]
pub(crate) struct NewDelivery {
    pub(crate) id: String,
    pub(crate) endpoint: Option<String>,
    pub(crate) state: &'static str,
}

/// A page.
#[derive(Debug, Serialize)]
pub(crate) struct List<T> {
    pub(crate) data: Vec<T>,
    pub(crate) next_cursor: Option<String>,
}

/// An event; its payload has a route of its own.
#[derive(Debug, Serialize)]
pub(crate) struct Event {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) application: String,
    pub(crate) created_at: String,
    pub(crate) payload_bytes: u64,
    pub(crate) content_type: String,
    pub(crate) deliveries: Vec<Delivery>,
}

/// A delivery as it stands.
#[derive(Debug, Serialize)]
pub(crate) struct Delivery {
    pub(crate) id: String,
    pub(crate) event_id: String,
    pub(crate) application: String,
    pub(crate) endpoint: Option<String>,
    pub(crate) url: String,
    pub(crate) state: &'static str,
    /// Settled attempts; numbers continue over replays.
    pub(crate) attempts: u32,
    /// The number of the last attempt that the current budget allows.
    pub(crate) max_attempts: u32,
    pub(crate) mode: &'static str,
    pub(crate) policy: Option<String>,
    pub(crate) reason: Option<&'static str>,
    pub(crate) next_attempt_at: Option<String>,
    pub(crate) next_attempt_why: Option<&'static str>,
    pub(crate) created_at: String,
    pub(crate) finished_at: Option<String>,
    pub(crate) last_status: Option<u16>,
    pub(crate) last_error: Option<String>,
}

/// A delivery with its attempts.
#[derive(Debug, Serialize)]
pub(crate) struct DeliveryWithAttempts {
    #[serde(flatten)]
    pub(crate) delivery: Delivery,
    /// Oldest first. `attempts` itself is their number.
    pub(crate) attempt_records: Vec<Attempt>,
}

/// One settled attempt.
#[derive(Debug, Serialize)]
pub(crate) struct Attempt {
    pub(crate) delivery_id: String,
    pub(crate) number: u32,
    pub(crate) started_at: String,
    pub(crate) duration_ms: u64,
    pub(crate) fate: &'static str,
    pub(crate) status: Option<u16>,
    pub(crate) error_kind: Option<&'static str>,
    pub(crate) error: Option<String>,
    pub(crate) decision: &'static str,
    pub(crate) wait_ms: Option<u64>,
    pub(crate) wait_source: Option<&'static str>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) http_version: Option<&'static str>,
    pub(crate) timings_ms: Timings,
    pub(crate) request_headers: HeaderObject,
    pub(crate) response_headers: Option<HeaderObject>,
    /// What is not UTF-8 is replaced; then the bytes are in `response_body_base64`.
    pub(crate) response_body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response_body_base64: Option<String>,
    pub(crate) response_truncated: bool,
}

/// Phases, in whole milliseconds; `null` did not happen.
#[derive(Debug, Serialize)]
pub(crate) struct Timings {
    pub(crate) dns: Option<u64>,
    pub(crate) connect: Option<u64>,
    pub(crate) tls: Option<u64>,
    pub(crate) first_byte: Option<u64>,
    pub(crate) total: u64,
}

/// Names of headers whose values let their reader act as somebody else.
const SECRET: &[&str] = &["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];

/// Headers as an object, in their order; values of one name are joined (RFC 9110 §5.3), those of [`SECRET`] names not
/// shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderObject(Vec<(String, String)>);

impl HeaderObject {
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        let secret = SECRET.iter().any(|known| known.eq_ignore_ascii_case(name));
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some(_) if secret => {}
            Some((_, values)) => {
                values.push_str(", ");
                values.push_str(value);
            }
            None => self.0.push((name.to_owned(), if secret { "[redacted]" } else { value }.to_owned())),
        }
    }
}

impl Serialize for HeaderObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A replay job.
#[derive(Debug, Serialize)]
pub(crate) struct Replay {
    pub(crate) id: Option<String>,
    pub(crate) state: &'static str,
    pub(crate) filter: ReplayFilter,
    pub(crate) rate: u32,
    pub(crate) estimated: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) created_at: String,
    pub(crate) finished_at: Option<String>,
}

/// Which dead letters a replay job takes.
#[derive(Debug, Serialize)]
pub(crate) struct ReplayFilter {
    pub(crate) reason: Option<&'static str>,
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
}

/// What an operator asks first.
#[derive(Debug, Serialize)]
pub(crate) struct Stats {
    pub(crate) deliveries: States,
    pub(crate) accepted: u64,
    pub(crate) expunged: u64,
    pub(crate) oldest_due_age_seconds: Option<f64>,
    pub(crate) lanes: u64,
    pub(crate) store: StoreView,
}

/// Deliveries by state.
#[derive(Debug, Serialize)]
pub(crate) struct States {
    pub(crate) pending: u64,
    pub(crate) in_flight: u64,
    pub(crate) scheduled: u64,
    pub(crate) delivered: u64,
    pub(crate) dead: u64,
    pub(crate) cancelled: u64,
}

/// The store in a few words.
#[derive(Debug, Serialize)]
pub(crate) struct StoreView {
    pub(crate) kind: &'static str,
    pub(crate) bytes: u64,
    /// What `Teimoso-Durability` says.
    pub(crate) durability: &'static str,
    /// For people: where it is, and what was found there when it was opened.
    pub(crate) description: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown_and_other_values_are_joined() {
        let mut headers = HeaderObject::default();
        for name in ["Authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "vary"] {
            headers.push(name, "a");
            headers.push(name, "b");
        }
        let shown: Vec<_> = headers.0.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(shown, ["[redacted]", "[redacted]", "[redacted]", "[redacted]", "[redacted]", "a, b"]);
    }
}
