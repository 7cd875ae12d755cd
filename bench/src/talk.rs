//! The benchmark's own HTTP client: one blocking connection, one request after another, bodies streamed or kept.
//!
//! Hand-written because it shares the cores with what it measures. Deliberately absent: whatever our own sink and
//! server do not send.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::trouble::{Doing, Result, Trouble};

/// Nothing that is asked here takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// How an answer's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
}

/// A connection.
#[derive(Debug)]
pub struct Talk {
    reader: BufReader<TcpStream>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Talk {
    /// Connects.
    pub fn to(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).doing("connect")?;
        stream.set_nodelay(true).doing("set up a connection")?;
        stream.set_read_timeout(Some(PATIENCE)).doing("set up a connection")?;
        Ok(Self { reader: BufReader::with_capacity(64 * 1024, stream) })
    }

    /// A second handle to write with while this one reads.
    pub fn writer(&self) -> Result<TcpStream> {
        self.reader.get_ref().try_clone().doing("write and read at once")
    }

    /// Asks for a path.
    pub fn get(&mut self, path: &str) -> Result<Answer> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        self.reader.get_mut().write_all(request.as_bytes()).doing("send a request")?;
        self.answer()
    }

    /// Asks for JSON and reads it.
    pub fn json(&mut self, path: &str) -> Result<serde_json::Value> {
        let Answer { status, body } = self.get(path)?;
        if status != 200 {
            return Err(Trouble::new(format!("{path} was answered {status}")));
        }
        serde_json::from_slice(&body).doing("read an answer")
    }

    fn answer(&mut self) -> Result<Answer> {
        let mut body = Vec::new();
        let status = self.stream(|piece| body.extend_from_slice(piece))?;
        Ok(Answer { status, body })
    }

    /// Reads an answer, handing its body on piece by piece; returns the status.
    pub fn stream(&mut self, mut each: impl FnMut(&[u8])) -> Result<u16> {
        let (status, framing) = head(&mut self.reader)?;
        match framing {
            Framing::Length(length) => copy(&mut self.reader, length, &mut each)?,
            Framing::Chunked => loop {
                let size = line(&mut self.reader)?;
                let size = u64::from_str_radix(&size, 16).doing("read a chunk's size")?;
                copy(&mut self.reader, size, &mut each)?;
                line(&mut self.reader)?;
                if size == 0 {
                    break;
                }
            },
        }
        Ok(status)
    }
}

fn head(reader: &mut impl BufRead) -> Result<(u16, Framing)> {
    let first = line(reader)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| Trouble::new(format!("no answer but {first:?}")))?;
    let mut framing = Framing::Length(0);
    loop {
        let line = line(reader)?.to_ascii_lowercase();
        match line.split_once(": ") {
            _ if line.is_empty() => return Ok((status, framing)),
            Some(("content-length", value)) => {
                framing = Framing::Length(value.parse().doing("read a length")?);
            }
            Some(("transfer-encoding", _)) => framing = Framing::Chunked,
            _ => {}
        }
    }
}

fn line(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    match reader.read_line(&mut line).doing("read an answer")? {
        0 => Err(Trouble::new("the connection was closed within an answer")),
        _ => Ok(line.trim_end().to_owned()),
    }
}

fn copy(reader: &mut impl BufRead, length: u64, each: &mut impl FnMut(&[u8])) -> Result<()> {
    let mut rest = reader.take(length);
    loop {
        let piece = rest.fill_buf().doing("read an answer")?;
        if piece.is_empty() {
            break;
        }
        each(piece);
        let used = piece.len();
        rest.consume(used);
    }
    if rest.limit() > 0 {
        return Err(Trouble::new("the connection was closed within an answer"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_framings_are_read() {
        let mut input: &[u8] = b"HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(head(&mut input).unwrap(), (202, Framing::Length(3)));
        let mut seen = Vec::new();
        copy(&mut input, 3, &mut |piece| seen.extend_from_slice(piece)).unwrap();
        assert_eq!(seen, b"abc");
        let mut input: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(head(&mut input).unwrap(), (200, Framing::Chunked));
    }

    #[test]
    fn a_cut_answer_is_told() {
        let mut input: &[u8] = b"ab";
        assert!(copy(&mut input, 3, &mut |_| {}).is_err());
    }
}
