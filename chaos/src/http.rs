//! Just enough HTTP/1.1 of a client: one request after the other on a connection that is kept while it works.
//! Deliberately absent: whatever our own receiver and server do not send, and any repetition.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// As much of the body as came.
    pub body: Vec<u8>,
}

/// A request about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The path with its query.
    pub path: &'a str,
    /// Whole lines, each with its `\r\n`.
    pub headers: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// For the connection, and for each silence.
    pub patience: Duration,
}

/// A way to somebody, connected when it is needed.
#[derive(Debug)]
pub struct Line {
    to: SocketAddr,
    kept: Option<TcpStream>,
}

impl Line {
    /// Nothing is connected yet.
    pub const fn to(to: SocketAddr) -> Self {
        Self { to, kept: None }
    }

    /// Sends a request; its answer may be cut short.
    ///
    /// # Errors
    /// No head came back. The next request connects anew.
    pub fn exchange(&mut self, request: &Request<'_>) -> io::Result<Answer> {
        let mut stream = match self.kept.take() {
            Some(stream) => stream,
            None => TcpStream::connect_timeout(&self.to, request.patience)?,
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(request.patience))?;
        stream.write_all(&written(self.to, request))?;
        let mut all = Vec::new();
        let mut piece = [0; 16 * 1024];
        loop {
            let ended = match stream.read(&mut piece) {
                Ok(0) => io::ErrorKind::UnexpectedEof.into(),
                Ok(read) => {
                    all.extend_from_slice(&piece[..read]);
                    if let Some((answer, true)) = read_answer(&all) {
                        self.kept = Some(stream);
                        return Ok(answer);
                    }
                    continue;
                }
                Err(error) => error,
            };
            return read_answer(&all).map(|(answer, _)| answer).ok_or(ended);
        }
    }
}

fn written(to: SocketAddr, request: &Request<'_>) -> Vec<u8> {
    let Request { method, path, headers, body, .. } = *request;
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {to}\r\n{headers}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// An answer, and whether it is whole.
fn read_answer(all: &[u8]) -> Option<(Answer, bool)> {
    let end = all.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&all[..end]).ok()?.to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &all[end + 4..];
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let (body, whole) = match field("transfer-encoding:") {
        Some(_) => dechunked(body),
        None => (
            body.to_vec(),
            field("content-length:").and_then(|length| length.parse().ok()) == Some(body.len()),
        ),
    };
    Some((Answer { status, body }, whole))
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
    let needed = size.checked_add(2)?;
    (chunk.len() >= needed).then_some((size, chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_framings_are_read_and_a_cut_chunk_is_left_out() {
        let (plain, whole) =
            read_answer(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}").expect("a head");
        assert_eq!((plain, whole), (Answer { status: 202, body: b"{}".to_vec() }, true));
        let cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n9\r\ncu";
        let (chunked, whole) = read_answer(cut).expect("a head");
        assert_eq!((chunked.body, whole), (b"abc".to_vec(), false));
        assert_eq!(dechunked(b"1\r\nx\r\n0\r\n\r\n"), (b"x".to_vec(), true));
        assert_eq!(read_answer(b"HTTP/1.1 200 OK\r\n"), None);
        assert_eq!(dechunked(b"ffffffffffffffff\r\nx"), (Vec::new(), false));
    }
}
