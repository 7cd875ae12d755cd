//! The destination: answers by the storm's seed, and remembers every request with who sent it.
//!
//! Every answer takes a few hundredths of a second, so that much is on the way at any moment. Most are 200; some 503, some never, some by a closed connection; events of bad fortune get 404 whenever
//! they come. From an event's fourth request on the answer is 200, so that every storm ends.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::listen;
use super::owner::{Registrar, Senders};
use crate::clock;
use crate::produce::event::{Event, chance};
use crate::trouble::{Doing, Result, locked};

/// How long an answer takes is drawn below this; and what it is drawn by.
const LONGEST_MS: u64 = 80;
const TAKES: u64 = 1 << 10;

/// What a request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// 200.
    Ok,
    /// 503.
    Unavailable,
    /// 404.
    Refused,
    /// Nothing, for as long as the sender waits.
    Hang,
    /// The connection's end.
    Cut,
}

impl Answer {
    /// Whether it asks for nothing more.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Ok | Self::Refused)
    }

    /// By the seed: the event's number, and how often it came before.
    fn drawn(seed: u64, number: u64, before: u64) -> Self {
        if Event::new(seed, number).is_refused() {
            return Self::Refused;
        }
        match chance(seed, number, 1 + before) % 100 {
            _ if before >= 3 => Self::Ok,
            0..12 => Self::Unavailable,
            12..16 => Self::Hang,
            16..20 => Self::Cut,
            _ => Self::Ok,
        }
    }
}

/// A request, complete to its last byte.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Which event.
    pub number: u64,
    /// The attempt's number, 0 when the sender gave none.
    pub attempt: u32,
    /// When its last byte was read.
    pub at: Instant,
    /// Whose it was; `None` when the sender was gone before anybody looked.
    pub by: Option<u32>,
    /// What it got.
    pub answer: Answer,
    /// Whether the body is the payload, byte for byte.
    pub intact: bool,
}

/// A receiver that runs until the program ends.
#[derive(Debug, Clone)]
pub struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    arrivals: Vec<Arrival>,
    /// By number.
    times: HashMap<u64, u64>,
}

impl Receiver {
    /// Starts one.
    ///
    /// # Errors
    /// It finds no port.
    pub fn start(seed: u64, senders: Senders) -> Result<Self> {
        let listener = listen()?;
        let address = listener.local_addr().doing("start the receiver")?;
        let receiver = Self { address, seen: Arc::default() };
        let at_the_door = receiver.clone();
        let registrar = Registrar::start(address, senders);
        std::thread::spawn(move || at_the_door.accept(&listener, seed, &registrar));
        Ok(receiver)
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything that arrived so far, in order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        locked(&self.seen).arrivals.clone()
    }

    /// How much arrived so far.
    pub fn count(&self) -> usize {
        locked(&self.seen).arrivals.len()
    }

    fn accept(&self, listener: &TcpListener, seed: u64, registrar: &Registrar) {
        for stream in listener.incoming().flatten() {
            let (receiver, registrar) = (self.clone(), registrar.clone());
            std::thread::spawn(move || receiver.serve(&stream, seed, &registrar));
        }
    }

    /// Until the sender ends it, or an answer does.
    fn serve(&self, stream: &TcpStream, seed: u64, registrar: &Registrar) {
        let _quick = stream.set_nodelay(true);
        let by = stream.peer_addr().ok().and_then(|there| registrar.owner(there));
        let mut reader = BufReader::new(stream);
        while let Some(request) = read(&mut reader) {
            let intact = request.body == Event::new(seed, request.number).payload().as_bytes();
            let (index, answer) = self.note(seed, &request, by, intact);
            clock::pause(Duration::from_millis(chance(seed, request.number, TAKES) % LONGEST_MS));
            if has_left(stream) {
                return self.correct(index);
            }
            let said = match answer {
                Answer::Ok => say(stream, "200 OK"),
                Answer::Unavailable => say(stream, "503 Service Unavailable"),
                Answer::Refused => say(stream, "404 Not Found"),
                Answer::Cut => false,
                Answer::Hang => {
                    let _until_the_sender_gives_up = reader.read(&mut [0]);
                    false
                }
            };
            if !said {
                return;
            }
        }
    }

    fn note(&self, seed: u64, request: &Request, by: Option<u32>, intact: bool) -> (usize, Answer) {
        let mut seen = locked(&self.seen);
        let times = seen.times.entry(request.number).or_default();
        let answer = Answer::drawn(seed, request.number, *times);
        *times += 1;
        let Request { number, attempt, .. } = *request;
        seen.arrivals.push(Arrival { number, attempt, at: clock::now(), by, answer, intact });
        (seen.arrivals.len() - 1, answer)
    }

    /// Whoever gave up before it was answered has heard nothing: a machine that is too busy is no sender's fault.
    fn correct(&self, index: usize) {
        if let Some(arrival) = locked(&self.seen).arrivals.get_mut(index) {
            arrival.answer = Answer::Cut;
        }
    }
}

/// Whether the sender has ended the connection; one that waits has nothing to say.
fn has_left(stream: &TcpStream) -> bool {
    let looked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    let back = stream.set_nonblocking(false);
    match looked {
        Ok(read) => read == 0 || back.is_err(),
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

fn say(mut stream: &TcpStream, status: &str) -> bool {
    stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes()).is_ok()
}

/// What the account needs of a request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    number: u64,
    attempt: u32,
    body: Vec<u8>,
}

/// The next request; `None` when there is none, or none of ours.
fn read(reader: &mut impl BufRead) -> Option<Request> {
    let start = line(reader)?;
    let number = Event::number_in(start.split(' ').nth(1)?)?;
    let (mut length, mut attempt) = (0, 0);
    loop {
        let line = line(reader)?.to_ascii_lowercase();
        match line.split_once(':').map(|(name, value)| (name, value.trim())) {
            None if line.is_empty() => break,
            Some(("content-length", value)) => length = value.parse().ok()?,
            Some(("teimoso-attempt", value)) => attempt = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { number, attempt, body })
}

fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    match reader.read_line(&mut line) {
        Ok(1..) => Some(line.trim_end().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_whole_or_not_at_all() {
        let whole = b"POST /lane/3?n=17 HTTP/1.1\r\nTeimoso-Attempt: 2\r\ncontent-length: 2\r\n\r\n{}";
        let expected = Request { number: 17, attempt: 2, body: b"{}".to_vec() };
        assert_eq!(read(&mut &whole[..]), Some(expected));
        assert_eq!(read(&mut &whole[..whole.len() - 1]), None);
        assert_eq!(read(&mut &b"GET / HTTP/1.1\r\n\r\n"[..]), None);
    }

    #[test]
    fn a_sender_that_has_left_is_seen() {
        let listener = listen().expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let (far, _) = listener.accept().expect("it connected");
        assert!(!has_left(&far));
        drop(near);
        while !has_left(&far) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn every_answer_is_drawn_and_the_fourth_is_the_last() {
        let drawn: Vec<Answer> = (0..1_000).map(|number| Answer::drawn(7, number, 0)).collect();
        for answer in [Answer::Ok, Answer::Unavailable, Answer::Refused, Answer::Hang, Answer::Cut] {
            assert!(drawn.contains(&answer), "{answer:?} is never drawn");
        }
        assert!((0..1_000).all(|number| Answer::drawn(7, number, 3).is_final()));
    }
}
