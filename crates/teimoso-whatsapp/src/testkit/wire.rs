//! HTTP/1.1 as far as a double needs it; absent: any HTTP library, which would not misbehave on demand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A request as it arrived; names of headers are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Asked {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers, but for the length.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// JSON.
    pub fn json(status: u16, body: &str) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status, headers, body: body.as_bytes().to_vec() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The bytes on the wire. Beyond them `promised` more are announced.
    pub(super) fn bytes(&self, promised: usize) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} X\r\n", self.status);
        // A 204 has no body and no length (RFC 9110 §8.6).
        if self.status != 204 {
            head += &format!("content-length: {}\r\n", self.body.len() + promised);
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// Reads one request; `None` when the other side ended or broke the connection first.
pub(super) fn read(reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
    let line = next_line(reader)?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    while let Some((name, value)) = next_line(reader)?.split_once(": ") {
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(Some(0), |(_, value)| value.parse().ok())?];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, headers, body })
}

fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    matches!(reader.read_line(&mut line), Ok(1..)).then(|| line.trim_end().to_owned())
}

/// Writes; whether the other side is still there.
pub(super) fn write(mut stream: &TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}
