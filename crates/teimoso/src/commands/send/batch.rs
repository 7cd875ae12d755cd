//! `send --ndjson -`: streams lines from stdin to the server and its answers to stdout, both at once.
//! Deliberately absent: understanding the events; a line goes out as it came in, but for the URL it may lack.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal, Read};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::lost_event;
use crate::api_client::{ApiClient, ApiError, problem_sentence};
use crate::clock;
use crate::commands::{Context, shapes};
use crate::exit::{CliError, Exit};
use crate::messages::Message;

/// The longest line that is read, 256 MiB; the server's own limit is far below.
const LINE_MAX_BYTES: u64 = 256 << 20;

/// How many lines may wait to be sent.
const LINES_WAITING_MAX: usize = 256;

/// The longest line of an answer.
const ANSWER_LINE_MAX_BYTES: usize = 4 << 20;

/// How often progress is told: to a terminal, and to anything else.
const PROGRESS_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Streams stdin to the server.
pub(super) async fn run(
    mut client: ApiClient,
    url: Option<&str>,
    json: bool,
    context: Context,
) -> Result<Exit, CliError> {
    let (sender, lines) = mpsc::channel(LINES_WAITING_MAX);
    // Unbounded in type only: a number leaves with its answer, and the server holds few lines unanswered.
    let (numbering, numbers) = mpsc::unbounded_channel();
    let mut reader = spawn_reader(Outgoing { sender, numbering }, url.map(str::to_owned))?;
    let answers = client.stream("/v1/events/batch", lines).await.map_err(lost_event)?;
    let mut tally = Tally::new(json, context, numbers);
    let ended = tally.read(answers).await;
    if let Err(error) = ended {
        return Err(cut_short(error, &tally));
    }
    match reader.try_recv() {
        Ok(sent) => tally.finish(sent?),
        Err(_) => Err(cut_short(ApiError::Lost("it ended before stdin did".to_owned()).into(), &tally)),
    }
}

/// Reading stdin blocks, so it has a thread; a full channel holds it back. The count comes before the end of the
/// stream: a server that answers to the end finds it there.
fn spawn_reader(
    outgoing: Outgoing,
    url: Option<String>,
) -> Result<oneshot::Receiver<Result<u64, CliError>>, CliError> {
    let (done, reader) = oneshot::channel();
    let thread = std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let sent = send_lines(io::stdin().lock(), &outgoing, url.as_deref());
        let _nobody = done.send(sent);
        drop(outgoing);
    });
    thread.map(|_| reader).map_err(|error| CliError::failure(format!("cannot start a thread: {error}")))
}

/// Where lines go, and beside them their numbers in the input, for the words about those that are refused.
struct Outgoing {
    sender: mpsc::Sender<Bytes>,
    numbering: mpsc::UnboundedSender<u64>,
}

impl Outgoing {
    /// Whether anyone still takes lines.
    fn send(&self, number: u64, line: Vec<u8>) -> bool {
        let _nobody = self.numbering.send(number);
        self.sender.blocking_send(line.into()).is_ok()
    }
}

/// Sends each line that is not blank, and counts them.
fn send_lines(mut source: impl BufRead, outgoing: &Outgoing, url: Option<&str>) -> Result<u64, CliError> {
    let mut sent = 0;
    for number in 1.. {
        let mut line = Vec::new();
        let read = source.by_ref().take(LINE_MAX_BYTES).read_until(b'\n', &mut line);
        let unreadable = |error| CliError::failure(format!("cannot read stdin: {error}"));
        if read.map_err(unreadable)? == 0 {
            return Ok(sent);
        }
        if line.len() as u64 == LINE_MAX_BYTES && !line.ends_with(b"\n") {
            return Err(CliError::failure(format!("line {number} is longer than {LINE_MAX_BYTES} bytes")));
        }
        let content = line.trim_ascii();
        if content.is_empty() {
            continue;
        }
        let mut whole = with_url(content, url).into_owned();
        whole.push(b'\n');
        if !outgoing.send(number, whole) {
            return Ok(sent);
        }
        sent += 1;
    }
    Ok(sent)
}

#[derive(Deserialize)]
struct MayHaveUrl {
    url: Option<IgnoredAny>,
}

/// The line with the URL as its last field, unless it has one or is no JSON object: then the server has its say.
/// The rest of the line stays as it is (G7), and where it is: the server's columns are the line's own.
fn with_url<'a>(line: &'a [u8], url: Option<&str>) -> Cow<'a, [u8]> {
    let (Some(url), Some(start)) = (url, line.strip_suffix(b"}")) else { return line.into() };
    match serde_json::from_slice(line) {
        Ok(MayHaveUrl { url: None }) => {}
        _ => return line.into(),
    }
    let comma = if start.trim_ascii_end() == b"{" { "" } else { "," };
    let mut whole = start.to_vec();
    whole.extend_from_slice(format!("{comma}\"url\":{}}}", Value::from(url)).as_bytes());
    whole.into()
}

/// What the server has answered so far.
struct Tally {
    json: bool,
    context: Context,
    numbers: mpsc::UnboundedReceiver<u64>,
    accepted: u64,
    failed: u64,
    told: Instant,
    every: Duration,
}

impl Tally {
    fn new(json: bool, context: Context, numbers: mpsc::UnboundedReceiver<u64>) -> Tally {
        let every = if io::stderr().is_terminal() { PROGRESS_EVERY.0 } else { PROGRESS_EVERY.1 };
        Tally { json, context, numbers, accepted: 0, failed: 0, told: clock::monotonic_now(), every }
    }

    async fn read(&mut self, mut answers: Incoming) -> Result<(), CliError> {
        let mut pending = BytesMut::new();
        while let Some(frame) = answers.frame().await {
            let frame = frame.map_err(|error| ApiError::Lost(error.to_string()))?;
            if let Ok(data) = frame.into_data() {
                pending.extend_from_slice(&data);
            }
            self.take(&mut pending)?;
            if pending.len() > ANSWER_LINE_MAX_BYTES {
                return Err(ApiError::NotOurs.into());
            }
        }
        match pending.trim_ascii() {
            [] => Ok(()),
            last => {
                let text = self.line(last)?;
                self.context.output.data(&text)
            }
        }
    }

    /// Takes every whole line, and prints them with one write.
    fn take(&mut self, pending: &mut BytesMut) -> Result<(), CliError> {
        let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let whole = pending.split_to(end + 1);
        let mut text = String::new();
        for line in whole.chunk().split(|byte| *byte == b'\n') {
            if !line.trim_ascii().is_empty() {
                text += &self.line(line)?;
            }
        }
        self.context.output.data(&text)?;
        if self.told.elapsed() >= self.every {
            self.told = clock::monotonic_now();
            self.progress();
        }
        Ok(())
    }

    /// Counts an answer, and returns what it puts on stdout.
    fn line(&mut self, line: &[u8]) -> Result<String, CliError> {
        let answer: Value = serde_json::from_slice(line).map_err(|_| ApiError::NotOurs)?;
        let id = shapes::text(&answer, "id");
        let number = self.numbers.try_recv();
        if id.is_empty() {
            self.failed += 1;
            let reason = problem_sentence(&answer).unwrap_or_else(|| "refused".to_owned());
            let line = number.unwrap_or(self.accepted + self.failed);
            self.context.output.say(&Message::LineRefused { line, reason: &reason });
        } else {
            self.accepted += 1;
        }
        Ok(match (self.json, id.is_empty()) {
            (true, _) => format!("{}\n", String::from_utf8_lossy(line).trim()),
            (false, true) => String::new(),
            (false, false) => format!("{id}\n"),
        })
    }

    fn progress(&self) {
        self.context.output.say(&Message::BatchProgress { accepted: self.accepted, failed: self.failed });
    }

    fn answered(&self) -> u64 {
        self.accepted + self.failed
    }

    fn finish(&self, sent: u64) -> Result<Exit, CliError> {
        self.progress();
        if self.answered() < sent {
            let error = ApiError::Lost(format!("{} of {sent} lines have no answer", sent - self.answered()));
            return Err(lost_event(error));
        }
        Ok(match (self.accepted, self.failed) {
            (_, 0) => Exit::OK,
            (0, _) => Exit::FAILURE,
            _ => Exit::PARTLY_FAILED,
        })
    }
}

/// The answers broke off: what was answered stands, the rest is unknown.
fn cut_short(error: CliError, tally: &Tally) -> CliError {
    if error.sentence.is_empty() {
        return error;
    }
    tally.progress();
    let sentence = format!("{} (after {} answers)", error.sentence, tally.answered());
    CliError::new(Exit::UNKNOWN_OUTCOME, sentence)
        .with_next_step("lines that were not answered may have been accepted: `teimoso events list` tells")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Language;
    use crate::output::Output;

    fn spliced(line: &str) -> String {
        let line = with_url(line.as_bytes(), Some("http://x/\"")).into_owned();
        String::from_utf8(line).expect("text")
    }

    #[test]
    fn g7_a_missing_url_is_added_and_nothing_else_touched() {
        assert_eq!(spliced("{\"payload\": 1.0}"), "{\"payload\": 1.0,\"url\":\"http://x/\\\"\"}");
        assert_eq!(spliced("{ }"), "{ \"url\":\"http://x/\\\"\"}");
        for as_it_is in ["{\"url\":\"http://y\"}", "{\"a\":", "[1]", "nonsense"] {
            assert_eq!(spliced(as_it_is), as_it_is);
        }
        assert_eq!(with_url(b"{}", None).into_owned(), b"{}");
    }

    #[test]
    fn blank_lines_are_skipped_and_the_last_needs_no_line_end() {
        let (sender, mut lines) = mpsc::channel(10);
        let (numbering, mut numbers) = mpsc::unbounded_channel();
        let outgoing = Outgoing { sender, numbering };
        let sent = send_lines(&b"{\"a\":1}\r\n\n  \n{\"a\":2}"[..], &outgoing, None);
        assert_eq!(sent, Ok(2));
        drop(outgoing);
        assert_eq!([numbers.blocking_recv(), numbers.blocking_recv()], [Some(1), Some(4)]);
        assert_eq!(lines.blocking_recv().as_deref(), Some(&b"{\"a\":1}\n"[..]));
        assert_eq!(lines.blocking_recv().as_deref(), Some(&b"{\"a\":2}\n"[..]));
        assert_eq!(lines.blocking_recv(), None);
    }

    fn tally(json: bool) -> Tally {
        let (_numbering, numbers) = mpsc::unbounded_channel();
        Tally::new(json, Context { output: Output { language: Language::English } }, numbers)
    }

    #[test]
    fn answers_are_ids_or_problems() {
        let mut tally = tally(false);
        assert_eq!(tally.line(b"{\"id\":\"evt_1\",\"deliveries\":[]}"), Ok("evt_1\n".to_owned()));
        assert_eq!(tally.finish(1), Ok(Exit::OK));
        assert_eq!(tally.line(b"{\"status\":422,\"detail\":\"no\"}"), Ok(String::new()));
        assert_eq!((tally.accepted, tally.failed), (1, 1));
        assert_eq!(tally.finish(2), Ok(Exit::PARTLY_FAILED));
        assert_eq!(tally.finish(3).expect_err("one is missing").code, Exit::UNKNOWN_OUTCOME);
        assert!(tally.line(b"<html>").is_err());
    }

    #[test]
    fn json_answers_are_printed_as_they_came() {
        let line = b"{\"status\":422,\"detail\":\"no\"}";
        let mut tally = tally(true);
        assert_eq!(tally.line(line), Ok("{\"status\":422,\"detail\":\"no\"}\n".to_owned()));
        assert_eq!(tally.finish(1), Ok(Exit::FAILURE));
    }
}
