//! A tunnel through a forward proxy (`CONNECT`, RFC 9110 §9.3.6); absent: what goes through it.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::proxy::Proxy;

/// The largest answer head of a proxy that is read, in bytes, with any interim answers before it.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Asks the proxy for a tunnel to `authority`, which is host and port. On return nothing was read beyond the proxy's
/// answer: in some protocols it is the server that speaks first.
///
/// # Errors
///
/// Words for a person: the proxy's status, or how it failed to answer.
pub(super) async fn open(tcp: &mut TcpStream, proxy: &Proxy, authority: &str) -> Result<(), String> {
    tcp.write_all(&request(proxy, authority)).await.map_err(|error| words(&error))?;
    let mut room = ANSWER_BYTES_MAX;
    loop {
        let head = read_head(tcp, &mut room).await?;
        match status(&head) {
            Some(100..=199) => {}
            Some(200..=299) => return Ok(()),
            Some(status) => return Err(format!("it answered {status}")),
            None => return Err("what it answered is not http".to_owned()),
        }
    }
}

fn request(proxy: &Proxy, authority: &str) -> Vec<u8> {
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").into_bytes();
    if let Some(value) = proxy.authorization() {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(value.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request
}

/// Reads one head and nothing beyond it: looks first, then takes.
async fn read_head(tcp: &mut TcpStream, room: &mut usize) -> Result<Vec<u8>, String> {
    let mut head = Vec::new();
    let mut seen = [0; 1024];
    loop {
        let there = tcp.peek(&mut seen).await.map_err(|error| words(&error))?;
        if there == 0 {
            return Err("it closed the connection".to_owned());
        }
        let before = head.len();
        head.extend_from_slice(&seen[..there]);
        let end = head_end(&head, before);
        let taken = end.unwrap_or(head.len()) - before;
        head.truncate(before + taken);
        tcp.read_exact(&mut seen[..taken]).await.map_err(|error| words(&error))?;
        *room = room.checked_sub(taken).ok_or("its answer has no end")?;
        if end.is_some() {
            return Ok(head);
        }
    }
}

/// Where the head ends, if it does; its end may have begun among the bytes that were there `before`.
fn head_end(head: &[u8], before: usize) -> Option<usize> {
    let from = before.saturating_sub(3);
    head[from..].windows(4).position(|window| window == b"\r\n\r\n").map(|at| from + at + 4)
}

/// The status of an answer's first line, `HTTP/1.x NNN …`.
fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.0 ").or_else(|| head.strip_prefix(b"HTTP/1.1 "))?;
    let digits = rest.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let ends = matches!(rest.get(3), Some(b' ' | b'\r'));
    ends.then(|| digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0')))
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "it reset the connection".to_owned(),
        _ => "the connection broke".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read_strictly() {
        assert_eq!(status(b"HTTP/1.1 200 Connection established\r\n\r\n"), Some(200));
        assert_eq!(status(b"HTTP/1.0 407\r\n\r\n"), Some(407));
        for nonsense in
            [&b"HTTP/2 200 OK\r\n"[..], b"HTTP/1.1 20", b"HTTP/1.1 2000 \r\n", b"HTTP/1.1 +20 ", b"SSH-2.0"]
        {
            assert_eq!(status(nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn the_end_of_a_head_is_found_across_reads() {
        assert_eq!(head_end(b"HTTP/1.1 200\r\n\r\nX", 0), Some(16));
        assert_eq!(head_end(b"HTTP/1.1 200\r\n\r\nX", 15), Some(16));
        assert_eq!(head_end(b"HTTP/1.1 200\r\n\r", 0), None);
    }
}
