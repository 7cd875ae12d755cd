//! Events as NDJSON batches, a few at a time. Deliberately absent: pacing; the server's answers are the only brake.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::Duration;

use crate::clock;
use crate::event::Events;
use crate::talk::Talk;
use crate::trouble::{Doing, Result, Trouble};

/// Batches that stream at once.
const BATCHES: u64 = 4;
/// What is written in one piece.
const PIECE_BYTES: usize = 64 * 1024;

/// What loading took and brought.
#[derive(Debug)]
pub struct Loaded {
    /// From the first byte to the last answer.
    pub took: Duration,
    /// The answers' lines, if they were to be kept.
    pub answers: Vec<u8>,
}

/// Sends events 0 to `count` and waits until every one is answered. `keep` keeps the answers.
///
/// Whether they were accepted is the server's statistics to say: see [`crate::lab::Server::sent`].
///
/// # Errors
/// When the server does not take a batch.
pub fn load(server: SocketAddr, events: &Events, count: u64, keep: bool) -> Result<Loaded> {
    let began = clock::now();
    let batches = std::thread::scope(|scope| {
        let batch = |n| {
            scope.spawn(move || batch(server, events, count * n / BATCHES..count * (n + 1) / BATCHES, keep))
        };
        let batches: Vec<_> = (0..BATCHES).map(batch).collect();
        batches
            .into_iter()
            .map(|batch| batch.join().unwrap_or_else(|_| Err(panicked())))
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(Loaded { took: began.elapsed(), answers: batches.concat() })
}

fn panicked() -> Trouble {
    Trouble::new("a producer panicked")
}

fn batch(server: SocketAddr, events: &Events, numbers: Range<u64>, keep: bool) -> Result<Vec<u8>> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let mut talk = Talk::to(server)?;
    let writer = talk.writer()?;
    std::thread::scope(|scope| {
        let written = scope.spawn(|| write(writer, events, numbers));
        let mut answers = Vec::new();
        let status = talk.stream(|piece| {
            if keep {
                answers.extend_from_slice(piece);
            }
        });
        written.join().unwrap_or_else(|_| Err(panicked()))?;
        match status? {
            200 => Ok(answers),
            status => Err(Trouble::new(format!("a batch was answered {status}"))),
        }
    })
}

fn write(mut to: TcpStream, events: &Events, numbers: Range<u64>) -> Result<()> {
    let length: usize = numbers.clone().map(|number| events.len(number) + 1).sum();
    let mut piece = format!(
        "POST /v1/events/batch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ncontent-length: {length}\r\n\r\n"
    )
    .into_bytes();
    for number in numbers {
        events.write(number, 0, &mut piece);
        piece.push(b'\n');
        if piece.len() >= PIECE_BYTES {
            to.write_all(&piece).doing("send a batch")?;
            piece.clear();
        }
    }
    to.write_all(&piece).doing("send a batch")
}
