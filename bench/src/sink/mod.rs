//! The destination: answers and counts, on one thread, keeping no bodies. Its own cost is printed beside every
//! result, because it shares the machine with what it measures.
//!
//! | path | answer |
//! |---|---|
//! | `/ok/…` | 200 |
//! | `/stamp/…` | 200, and the time since the payload's stamp is kept |
//! | `/storm/…` | 503, 503, 200 by `webhook-id` |
//! | `/hang/…` | none |
//! | `/_reset` | 200, everything is forgotten |
//! | `/_report?after=MICROS` | what was counted since, with the latencies of stamps from then on |
//!
//! Deliberately absent: strictness. Whatever it cannot read ends the connection.

mod request;
mod state;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::args::SinkArgs;
use crate::clock;
use crate::trouble::{Doing, Result};
use request::Request;
pub use state::Report;
use state::State;

/// Before the address in the line that says the sink is up.
pub const READY: &str = "listening on ";

/// A request fits into this as a rule; the buffer grows for those that do not.
const BUFFER_BYTES: usize = 8 * 1024;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const UNAVAILABLE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";

/// What a request gets.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Ok,
    Unavailable,
    None,
    Text(String),
}

/// Serves until it is killed.
///
/// # Errors
/// When the address is taken.
pub fn run(args: &SinkArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    runtime.doing("start a runtime")?.block_on(serve(args.listen))
}

async fn serve(listen: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen).await.doing("listen")?;
    println!("{READY}{}", listener.local_addr().doing("listen")?);
    let state = Arc::new(Mutex::new(State::new(clock::now(), clock::wall_micros())));
    loop {
        // Out of descriptors: the connection is lost, the others go on.
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(connection(stream, Arc::clone(&state)));
    }
}

async fn connection(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let _slower = stream.set_nodelay(true);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]).await {
            Ok(read @ 1..) => filled += read,
            Ok(0) | Err(_) => return,
        }
        let mut used = 0;
        while let Some(request) = request::read(&buffer[used..filled]) {
            let answer = state.lock().unwrap_or_else(PoisonError::into_inner).take(&request, clock::now());
            used += request.bytes;
            let sent = match answer {
                Answer::Ok => stream.write_all(OK).await,
                Answer::Unavailable => stream.write_all(UNAVAILABLE).await,
                Answer::Text(text) => stream.write_all(reply(&text).as_bytes()).await,
                Answer::None => Ok(()),
            };
            if sent.is_err() {
                return;
            }
        }
        buffer.copy_within(used..filled, 0);
        filled -= used;
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
    }
}

fn reply(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

impl State {
    /// Counts a request and says what it gets.
    fn take(&mut self, request: &Request<'_>, now: std::time::Instant) -> Answer {
        match request.path.split(|byte| *byte == b'/').nth(1).unwrap_or_default() {
            b"ok" => {
                self.count(now, true);
                Answer::Ok
            }
            b"stamp" => {
                self.count(now, true);
                self.keep_stamp(request.body, now);
                Answer::Ok
            }
            b"storm" => {
                let done = self.third_time(request.id);
                self.count(now, done);
                if done { Answer::Ok } else { Answer::Unavailable }
            }
            b"hang" => {
                self.hang();
                Answer::None
            }
            b"_reset" => {
                *self = Self::new(now, clock::wall_micros());
                Answer::Ok
            }
            command => {
                match std::str::from_utf8(command).ok().and_then(|text| text.strip_prefix("_report")) {
                    Some(query) => {
                        let after = query.strip_prefix("?after=").and_then(|after| after.parse().ok());
                        Answer::Text(self.report(after.unwrap_or(0)))
                    }
                    None => Answer::None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(state: &mut State, path: &str, id: &[u8]) -> Answer {
        let request = Request { path: path.as_bytes(), id, body: b"{}", bytes: 0 };
        state.take(&request, clock::now())
    }

    #[test]
    fn a_storm_is_503_twice_and_then_200_for_each_id() {
        let mut state = State::new(clock::now(), 0);
        let answers: Vec<Answer> = (0..3).map(|_| ask(&mut state, "/storm/00", b"a")).collect();
        assert_eq!(answers, [Answer::Unavailable, Answer::Unavailable, Answer::Ok]);
        assert_eq!(ask(&mut state, "/storm/01", b"b"), Answer::Unavailable);
    }

    #[test]
    fn a_report_says_what_was_counted_since_the_reset() {
        let mut state = State::new(clock::now(), 0);
        ask(&mut state, "/ok/00", b"");
        ask(&mut state, "/_reset", b"");
        for path in ["/ok/00", "/ok/01", "/hang/00", "/storm/00"] {
            ask(&mut state, path, b"a");
        }
        let Answer::Text(text) = ask(&mut state, "/_report?after=0", b"") else { panic!("a report") };
        let report: Report = serde_json::from_str(&text).unwrap();
        assert_eq!((report.requests, report.ok, report.hanging), (3, 2, 1));
    }
}
