//! The API as a client sees it: one connection per request, answers read to their end.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::until;

/// An answer that takes longer is a failure of the connection.
const SILENCE: Duration = Duration::from_secs(20);
/// The largest page the API gives.
const PAGE: &str = "limit=200";

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header of that lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("JSON, not {self:?}"))
    }
}

/// An accepted event with its only delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub event: String,
    pub delivery: String,
}

impl Sent {
    pub fn read(answer: &Value) -> Sent {
        let text = |value: &Value| value.as_str().expect("an id").to_owned();
        Sent { event: text(&answer["id"]), delivery: text(&answer["deliveries"][0]["id"]) }
    }
}

/// A server's API.
#[derive(Debug, Clone, Copy)]
pub struct Api(pub SocketAddr);

impl Api {
    /// One request. Headers are whole lines, each with its `\r\n`.
    pub fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> io::Result<Answer> {
        let (all, end) = self.exchange(method, path, headers, body);
        end?;
        let answer = read_answer(&all).filter(|(_, whole)| *whole).map(|(answer, _)| answer);
        answer.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "half an answer"))
    }

    /// The same, for who can use half an answer: `None` when there is not even a head.
    pub fn request_in_part(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Option<Answer> {
        let (all, _end) = self.exchange(method, path, headers, body);
        read_answer(&all).map(|(answer, _)| answer)
    }

    /// What came back until the end of the connection, and what end that was.
    fn exchange(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (Vec<u8>, io::Result<()>) {
        let mut all = Vec::new();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
        );
        let end = TcpStream::connect(self.0).and_then(|mut stream| {
            stream.set_read_timeout(Some(SILENCE))?;
            stream.write_all(head.as_bytes())?;
            stream.write_all(body)?;
            stream.read_to_end(&mut all).map(drop)
        });
        (all, end)
    }

    /// `POST` of a JSON text.
    pub fn post(&self, path: &str, json: &str) -> io::Result<Answer> {
        self.request("POST", path, "content-type: application/json\r\n", json.as_bytes())
    }

    /// The JSON at a path that must be there.
    pub fn get(&self, path: &str) -> Value {
        let answer = self.request("GET", path, "", b"").expect("the server answers");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// Hands an event over; `members` are the other members of its object, each with its comma before it.
    pub fn send(&self, url: &str, members: &str) -> Sent {
        let event = format!("{{\"url\":\"{url}\",\"payload\":{{\"pedido\": 1.0}}{members}}}");
        let answer = self.post("/v1/events", &event).expect("the server answers");
        assert_eq!(answer.status, 202, "{answer:?}");
        Sent::read(&answer.json())
    }

    pub fn delivery(&self, id: &str) -> Value {
        self.get(&format!("/v1/deliveries/{id}"))
    }

    /// Waits until the delivery is in this state, and returns it.
    pub fn until_state(&self, id: &str, state: &str) -> Value {
        until(&format!("{id} becomes {state}"), || {
            Some(self.delivery(id)).filter(|delivery| delivery["state"] == state)
        })
    }

    /// The bytes of an event's payload.
    pub fn payload(&self, event: &str) -> Vec<u8> {
        let answer =
            self.request("GET", &format!("/v1/events/{event}/payload"), "", b"").expect("it answers");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// Every delivery that a query such as `&state=dead` chooses; all of them for an empty one.
    pub fn deliveries(&self, query: &str) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let mut page = self.get(&format!("/v1/deliveries?{PAGE}{query}{cursor}"));
            all.append(page["data"].as_array_mut().expect("a list"));
            let Some(next) = page["next_cursor"].as_str() else { return all };
            cursor = format!("&cursor={next}");
        }
    }

    pub fn counts(&self) -> Counts {
        let stats = self.get("/v1/stats");
        let number = |value: &Value| value.as_u64().expect("a number");
        let state = |name: &str| number(&stats["deliveries"][name]);
        Counts {
            accepted: number(&stats["accepted"]),
            pending: state("pending"),
            in_flight: state("in_flight"),
            scheduled: state("scheduled"),
            delivered: state("delivered"),
            dead: state("dead"),
            cancelled: state("cancelled"),
            expunged: number(&stats["expunged"]),
        }
    }
}

/// The conservation counters (G2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub accepted: u64,
    pub pending: u64,
    pub in_flight: u64,
    pub scheduled: u64,
    pub delivered: u64,
    pub dead: u64,
    pub cancelled: u64,
    pub expunged: u64,
}

impl Counts {
    /// G2: every accepted delivery is in exactly one state, or was expunged.
    pub fn assert_conserved(&self) {
        let kept =
            self.pending + self.in_flight + self.scheduled + self.delivered + self.dead + self.cancelled;
        assert_eq!(self.accepted, kept + self.expunged, "{self:?}");
    }
}

/// An answer, and whether it is whole.
fn read_answer(all: &[u8]) -> Option<(Answer, bool)> {
    let end = all.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(all[..end].to_vec()).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: all[end + 4..].to_vec() };
    let mut whole = true;
    if answer.header("transfer-encoding").is_some() {
        (answer.body, whole) = dechunked(&answer.body);
    } else if let Some(length) = answer.header("content-length") {
        whole = length.parse() == Ok(answer.body.len());
    }
    Some((answer, whole))
}

/// The whole chunks put together (RFC 9112 section 7.1), and whether the last one was there.
fn dechunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some((size, chunk)) = chunk(rest) {
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&chunk[..size]);
        rest = &chunk[size + 2..];
    }
    (body, false)
}

/// A chunk's size, and everything from its data on; `None` when it is not all there.
fn chunk(rest: &[u8]) -> Option<(usize, &[u8])> {
    let end = rest.windows(2).position(|window| window == b"\r\n")?;
    let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
    let chunk = &rest[end + 2..];
    (chunk.len() >= size + 2).then_some((size, chunk))
}
