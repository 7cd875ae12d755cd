//! As much of HTTP/1.1 as one client of one server needs; absent: everything else of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A request as it came. Names of headers are in lower case.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// The path below `/api/v1`, escaped as it came; the whole path if it is not below.
    pub path: String,
    /// The query, escaped as it came, without the question mark.
    pub query: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body, if it is JSON.
    pub body: Option<Value>,
}

/// An answer as it will go.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Asked {
    /// Whether it has this method and its path ends so.
    #[must_use]
    pub fn is(&self, method: &str, ends: &str) -> bool {
        self.method == method && self.path.ends_with(ends)
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter, as it came.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

impl Answer {
    /// An answer with these headers, written in lower case.
    pub(super) fn of(status: u16, headers: &[(&str, &str)], body: String) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { status, headers, body }
    }

    /// An answer with a JSON body.
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::of(status, &[("content-type", "application/json")], body.to_string())
    }

    /// An answer without a body.
    pub(super) fn empty(status: u16) -> Self {
        Self::of(status, &[], String::new())
    }

    /// The API's own message.
    pub(super) fn message(status: u16, message: &str) -> Self {
        let url = "http://forge.example/api/swagger";
        Self::json(status, &serde_json::json!({ "message": message, "url": url }))
    }

    /// With one more header.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

pub(super) fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let line = next_line(&mut reader)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, query) = (path.strip_prefix("/api/v1").unwrap_or(path).to_owned(), query.to_owned());
    let mut headers = Vec::new();
    while let Some((name, value)) = next_line(&mut reader)?.split_once(": ") {
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, query, headers, body: serde_json::from_slice(&body).ok() })
}

fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    matches!(reader.read_line(&mut line), Ok(1..)).then(|| line.trim_end().to_owned())
}

/// Writes all but the last `missing` bytes of the body; `false` if the client has left.
pub(super) fn write(mut stream: &TcpStream, answer: &Answer, missing: usize) -> bool {
    let Answer { status, headers, body } = answer;
    let mut head = format!("HTTP/1.1 {status} X\r\n");
    if *status != 204 {
        head += &format!("content-length: {}\r\n", body.len().max(missing));
    }
    headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    let kept = body.len().saturating_sub(missing);
    let bytes = [head.as_bytes(), b"\r\n", &body.as_bytes()[..kept]].concat();
    stream.write_all(&bytes).is_ok()
}
