//! What the sink remembers of a request, and the bounded shelf it is kept on.
//! Deliberately absent: reading sockets; a record is made from a request that has arrived whole.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method};
use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::route::Answer;

/// How much of one request's body is kept, 1 MiB; the rest is counted only.
pub const KEPT_BODY_MAX_BYTES: usize = 1 << 20;

/// How much all kept requests may weigh together, 64 MiB, whatever `--keep` says.
pub const KEPT_TOTAL_MAX_BYTES: usize = 64 << 20;

/// What a record costs beside its text: the struct, its `Arc` and its place on the shelf.
const RECORD_OVERHEAD_BYTES: usize = 256;

/// One request as it arrived. Serialises as a line of `GET /_requests`.
#[derive(Debug)]
pub struct Record {
    at: Timestamp,
    method: Method,
    target: Box<str>,
    /// `name: value\n` for each header line: one allocation, and no share of the connection's read buffer.
    headers: Box<[u8]>,
    body: Box<[u8]>,
    body_bytes: u64,
    answer: Answer,
}

impl Record {
    /// Copies what is worth keeping: `body` is the kept beginning, `body_bytes` the length of the whole.
    #[must_use]
    pub fn new(
        at: Timestamp,
        method: Method,
        target: &str,
        headers: &HeaderMap,
        body: &[u8],
        body_bytes: u64,
        answer: Answer,
    ) -> Record {
        Record {
            at,
            method,
            target: target.into(),
            headers: pack(headers),
            body: body.into(),
            body_bytes,
            answer,
        }
    }

    /// When the head of the request had arrived.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The request method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Path and query, as sent.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.target
    }

    /// The value of the first header of that lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        self.header_lines().find(|(found, _)| *found == name.as_bytes()).map(|(_, value)| text(value))
    }

    /// The `webhook-id` header.
    #[must_use]
    pub fn webhook_id(&self) -> Option<Cow<'_, str>> {
        self.header("webhook-id")
    }

    /// The number in the `teimoso-attempt` header.
    #[must_use]
    pub fn attempt(&self) -> Option<u64> {
        self.header("teimoso-attempt")?.parse().ok()
    }

    /// The first [`KEPT_BODY_MAX_BYTES`] of the body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The length of the whole body in bytes.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// What the sink did with it.
    #[must_use]
    pub fn answer(&self) -> Answer {
        self.answer
    }

    fn header_lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.headers.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((&line[..colon], line.get(colon + 2..)?))
        })
    }

    fn weight(&self) -> usize {
        RECORD_OVERHEAD_BYTES + self.target.len() + self.headers.len() + self.body.len()
    }
}

/// Header values hold no line feed (RFC 9110 section 5.5), so one can separate them.
fn pack(headers: &HeaderMap) -> Box<[u8]> {
    let length = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 3).sum();
    let mut packed = Vec::with_capacity(length);
    for (name, value) in headers {
        packed.extend_from_slice(name.as_str().as_bytes());
        packed.extend_from_slice(b": ");
        packed.extend_from_slice(value.as_bytes());
        packed.push(b'\n');
    }
    packed.into_boxed_slice()
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_struct("Record", 10)?;
        line.serialize_field("at", &format_args!("{:.3}", self.at))?;
        line.serialize_field("method", self.method.as_str())?;
        line.serialize_field("path", &self.target)?;
        line.serialize_field("webhook_id", &self.webhook_id())?;
        line.serialize_field("attempt", &self.attempt())?;
        line.serialize_field("headers", &Headers(self))?;
        line.serialize_field("body_base64", &STANDARD.encode(&self.body))?;
        line.serialize_field("body_bytes", &self.body_bytes)?;
        line.serialize_field("body_truncated", &(self.body_bytes > self.body.len() as u64))?;
        line.serialize_field("answered", &self.answer.status())?;
        line.end()
    }
}

/// The headers as one object; lines of one name are joined with a comma (RFC 9110 section 5.3).
struct Headers<'a>(&'a Record);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut joined: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
        for (name, value) in self.0.header_lines() {
            // A header map hands out all lines of a name together.
            match joined.last_mut() {
                Some((last, values)) if last.as_bytes() == name => {
                    *values = format!("{values}, {}", text(value)).into();
                }
                _ => joined.push((text(name), text(value))),
            }
        }
        let mut object = serializer.serialize_map(Some(joined.len()))?;
        for (name, value) in &joined {
            object.serialize_entry(name, value)?;
        }
        object.end()
    }
}

/// The last records, bounded in number and in weight; what falls off is gone.
#[derive(Debug)]
pub struct Shelf {
    kept: VecDeque<Arc<Record>>,
    keep: usize,
    weight: usize,
    weight_max: usize,
}

impl Shelf {
    /// An empty shelf for at most `keep` records that weigh at most `weight_max` bytes together.
    #[must_use]
    pub fn new(keep: usize, weight_max: usize) -> Shelf {
        Shelf { kept: VecDeque::new(), keep, weight: 0, weight_max }
    }

    /// Puts a record at the end; the oldest make room.
    pub fn push(&mut self, record: Arc<Record>) {
        self.weight += record.weight();
        self.kept.push_back(record);
        while self.kept.len() > self.keep || self.weight > self.weight_max {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.weight -= oldest.weight();
        }
    }

    /// What is kept, oldest first.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Arc<Record>> {
        self.kept.iter().cloned().collect()
    }

    /// Throws everything away.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.weight = 0;
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue, header};

    use super::*;

    fn record(target: &str, body: &[u8]) -> Arc<Record> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("webhook-id"), HeaderValue::from_static("evt_1"));
        headers.insert(HeaderName::from_static("teimoso-attempt"), HeaderValue::from_static("3"));
        headers.append(header::ACCEPT, HeaderValue::from_static("a: b"));
        headers.append(header::ACCEPT, HeaderValue::from_static(""));
        let at = "2026-01-02T03:04:05.678Z".parse().expect("a valid instant");
        let length = body.len() as u64;
        Arc::new(Record::new(at, Method::POST, target, &headers, body, length, Answer::Status(503)))
    }

    #[test]
    fn a_record_is_one_json_object_of_the_documented_shape() {
        let line = serde_json::to_value(&*record("/teimoso?x=1", b"{}")).expect("serialisable");
        let expected = serde_json::json!({
            "at": "2026-01-02T03:04:05.678Z", "method": "POST", "path": "/teimoso?x=1", "webhook_id": "evt_1",
            "attempt": 3, "headers": {"webhook-id": "evt_1", "teimoso-attempt": "3", "accept": "a: b, "},
            "body_base64": "e30=", "body_bytes": 2, "body_truncated": false, "answered": 503,
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn the_oldest_fall_off_by_number() {
        let mut shelf = Shelf::new(2, usize::MAX);
        for target in ["/1", "/2", "/3"] {
            shelf.push(record(target, b""));
        }
        let kept: Vec<_> = shelf.snapshot().iter().map(|record| record.path().to_owned()).collect();
        assert_eq!(kept, ["/2", "/3"]);
    }

    #[test]
    fn the_oldest_fall_off_by_weight() {
        let mut shelf = Shelf::new(1000, 10_000);
        for _ in 0..100 {
            shelf.push(record("/ok", &[0; 4_000]));
        }
        assert_eq!(shelf.snapshot().len(), 2);
        assert_eq!(shelf.weight, shelf.snapshot().iter().map(|record| record.weight()).sum::<usize>());
        shelf.push(record("/ok", &[0; 20_000]));
        assert_eq!((shelf.snapshot().len(), shelf.weight), (0, 0), "heavier than the shelf: not kept");
    }

    #[test]
    fn keep_zero_keeps_nothing() {
        let mut shelf = Shelf::new(0, usize::MAX);
        shelf.push(record("/ok", b""));
        assert_eq!(shelf.snapshot().len(), 0);
    }
}
