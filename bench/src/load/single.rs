//! One event per request, from producers that each wait for their answer: the usual web application.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::clock;
use crate::event::Events;
use crate::trouble::{Doing, Result, Trouble};

/// Sends events 0 to `count` from so many producers on kept connections; returns how long it took.
///
/// # Errors
/// When an event is not accepted.
pub fn load(server: SocketAddr, events: &Events, count: u64, producers: usize) -> Result<Duration> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().doing("start a runtime")?;
    let events = Rc::new(events.clone());
    let next = Rc::new(Cell::new(0));
    let began = clock::now();
    LocalSet::new().block_on(&runtime, async {
        let producer =
            |_| tokio::task::spawn_local(produce(server, Rc::clone(&events), Rc::clone(&next), count));
        let producers: Vec<_> = (0..producers).map(producer).collect();
        for producer in producers {
            producer.await.doing("wait for a producer")??;
        }
        Ok(began.elapsed())
    })
}

async fn produce(server: SocketAddr, events: Rc<Events>, next: Rc<Cell<u64>>, count: u64) -> Result<()> {
    let mut stream = TcpStream::connect(server).await.doing("connect")?;
    stream.set_nodelay(true).doing("set up a connection")?;
    let (mut request, mut answer) = (Vec::new(), Vec::new());
    loop {
        let number = next.get();
        if number >= count {
            return Ok(());
        }
        next.set(number + 1);
        request.clear();
        write_request(&events, number, 0, &mut request);
        stream.write_all(&request).await.doing("send an event")?;
        answer.clear();
        while !is_complete(&answer) {
            if stream.read_buf(&mut answer).await.doing("read an answer")? == 0 {
                return Err(Trouble::new("the server closed a connection"));
            }
        }
        if !answer.starts_with(b"HTTP/1.1 202 ") {
            let answer = String::from_utf8_lossy(&answer);
            return Err(Trouble::new(format!("an event was answered {answer}")));
        }
    }
}

/// An event as a whole request.
pub fn write_request(events: &Events, number: u64, stamp_micros: u64, to: &mut Vec<u8>) {
    to.extend_from_slice(
        b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ",
    );
    to.extend_from_slice(events.len(number).to_string().as_bytes());
    to.extend_from_slice(b"\r\n\r\n");
    events.write(number, stamp_micros, to);
}

/// Whether an answer with a `content-length` is there to its end.
fn is_complete(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let lines = answer[..head].split(|byte| *byte == b'\n');
    let length = lines.filter_map(|line| line.strip_prefix(b"content-length: ")).next().unwrap_or_default();
    let length = std::str::from_utf8(length).ok().and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    answer.len() >= head + 4 + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_its_body() {
        let whole = b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\ndate: x\r\n\r\n{}";
        assert!(is_complete(whole));
        assert!(!is_complete(&whole[..whole.len() - 1]));
        assert!(!is_complete(b"HTTP/1.1 202"));
    }
}
