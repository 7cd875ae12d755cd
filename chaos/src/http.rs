//! Just enough HTTP/1.1 of a client: one request, one connection, the answer read to its end.
//! Deliberately absent: whatever our own receiver and server do not send.

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

/// Sends it; an answer may be cut short.
///
/// # Errors
/// No head came back.
pub fn exchange(to: SocketAddr, request: &Request<'_>) -> io::Result<Answer> {
    let Request { method, path, headers, body, patience } = *request;
    let mut stream = TcpStream::connect_timeout(&to, patience)?;
    stream.set_read_timeout(Some(patience))?;
    let length = body.len();
    let mut whole = format!(
        "{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
    )
    .into_bytes();
    whole.extend_from_slice(body);
    stream.write_all(&whole)?;
    let mut all = Vec::new();
    let ended = stream.read_to_end(&mut all);
    match read(&all) {
        Some(answer) => Ok(answer),
        None => Err(ended.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())),
    }
}

fn read(all: &[u8]) -> Option<Answer> {
    let end = all.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&all[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &all[end + 4..];
    let chunked = head.to_ascii_lowercase().contains("\r\ntransfer-encoding:");
    Some(Answer { status, body: if chunked { dechunked(body) } else { body.to_vec() } })
}

/// The whole chunks put together (RFC 9112 section 7.1).
fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some((size, chunk)) = chunk(rest).filter(|(size, _)| *size > 0) {
        body.extend_from_slice(&chunk[..size]);
        rest = &chunk[size + 2..];
    }
    body
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
        let plain = read(b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}").expect("a head");
        assert_eq!(plain, Answer { status: 202, body: b"{}".to_vec() });
        let chunked = read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n9\r\ncu");
        assert_eq!(chunked.expect("a head").body, b"abc");
        assert_eq!(read(b"HTTP/1.1 200 OK\r\n"), None);
        assert_eq!(dechunked(b"ffffffffffffffff\r\nx"), b"");
    }
}
