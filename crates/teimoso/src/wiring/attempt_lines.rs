//! The operator's view of the engine on stderr: S2.14's lines, one block per attempt.
//!
//! Written by a thread of its own, so that a slow terminal never slows a delivery; past a rate nobody can
//! read, lines are counted instead of printed, and their number is told with the next line or after a second without
//! one. What was said is on the terminal before the printer is gone. Deliberately absent: polling, at rest.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use teimoso_delivery::model::DeadReason;
use teimoso_delivery::ports::{Clock, Finished, Note, Observer};
use teimoso_delivery::store::Next;
use teimoso_retry::Fate;

use crate::args::AttemptLines;
use crate::messages::{Language, Message};

/// Attempts whose lines are printed in one second; the others are counted.
const BLOCKS_PER_SECOND: u64 = 200;
/// Blocks that may wait for the terminal.
const QUEUE: usize = 1_000;
/// After so much silence the second is over in which anything was left out.
const SILENCE: Duration = Duration::from_secs(1);

/// Prints what the engine does.
#[derive(Debug)]
pub struct AttemptPrinter {
    which: AttemptLines,
    language: Language,
    window: Window,
    /// `None` without the thread: then the lines are lost and nothing else.
    printing: Option<(SyncSender<String>, JoinHandle<()>)>,
}

/// The current second, and what was printed and left out in it.
struct Window {
    clock: Arc<dyn Clock>,
    second: AtomicU64,
    printed: AtomicU64,
    left_out: LeftOut,
}

/// Attempts without a line that were not told yet; shared with the printing thread.
type LeftOut = Arc<AtomicU64>;

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").field("second", &self.second).finish_non_exhaustive()
    }
}

impl Window {
    /// Whether one more block fits; also how many were left out in the second that just ended.
    fn admit(&self) -> (bool, u64) {
        let second = self.clock.monotonic().as_secs();
        let mut left_out = 0;
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.printed.store(0, Ordering::Relaxed);
            left_out = self.left_out.swap(0, Ordering::Relaxed);
        }
        let fits = self.printed.fetch_add(1, Ordering::Relaxed) < BLOCKS_PER_SECOND;
        if !fits {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        (fits, left_out)
    }
}

impl AttemptPrinter {
    /// Starts the printing thread. Dropping the printer waits until it has written everything.
    #[must_use]
    pub fn start(which: AttemptLines, language: Language, clock: Arc<dyn Clock>) -> Self {
        let left_out = LeftOut::default();
        let (lines, queue) = sync_channel(QUEUE);
        let print = Print { left_out: Arc::clone(&left_out), language, silence: SILENCE };
        let thread = std::thread::Builder::new().name("teimoso-lines".into());
        let thread = thread.spawn(move || print.run(&queue, to_stderr));
        let printing = thread.ok().map(|thread| (lines, thread));
        let (second, printed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { which, language, window: Window { clock, second, printed, left_out }, printing }
    }

    /// Queues these lines; if there is no room for them, so many attempts have been left out.
    fn say(&self, messages: &[Message<'_>], attempts: u64) {
        let Some((lines, _)) = &self.printing else { return };
        let text: String = messages.iter().map(|message| message.text(self.language) + "\n").collect();
        if lines.try_send(text).is_err() {
            self.window.left_out.fetch_add(attempts, Ordering::Relaxed);
        }
    }
}

impl Drop for AttemptPrinter {
    fn drop(&mut self) {
        if let Some((lines, thread)) = self.printing.take() {
            drop(lines);
            // A panic there cost lines and nothing else.
            let _printed = thread.join();
        }
    }
}

/// What the printing thread works with.
struct Print {
    left_out: LeftOut,
    language: Language,
    silence: Duration,
}

impl Print {
    /// Prints until nobody can say anything any more.
    fn run(&self, queue: &Receiver<String>, mut out: impl FnMut(&str)) {
        while let Ok(text) = queue.recv() {
            out(&gathered(text, queue));
            loop {
                match queue.recv_timeout(self.silence) {
                    Ok(text) => out(&gathered(text, queue)),
                    Err(end) => {
                        self.tell_left_out(&mut out);
                        match end {
                            RecvTimeoutError::Timeout => break,
                            RecvTimeoutError::Disconnected => return,
                        }
                    }
                }
            }
        }
    }

    fn tell_left_out(&self, out: &mut impl FnMut(&str)) {
        let attempts = self.left_out.swap(0, Ordering::Relaxed);
        if attempts > 0 {
            out(&(Message::LinesLeftOut { attempts }.text(self.language) + "\n"));
        }
    }
}

/// What waits, in one piece.
fn gathered(mut text: String, queue: &Receiver<String>) -> String {
    while text.len() < 64 * 1024 {
        let Ok(more) = queue.try_recv() else { break };
        text.push_str(&more);
    }
    text
}

fn to_stderr(text: &str) {
    // If it cannot be written there is nobody to tell.
    let _nobody = anstream::stderr().lock().write_all(text.as_bytes());
}

impl Observer for AttemptPrinter {
    fn finished(&self, finished: &Finished<'_>) {
        let delivered = matches!(finished.next, Next::Delivered);
        match self.which {
            AttemptLines::Off => return,
            AttemptLines::Failures if delivered => return,
            AttemptLines::Failures | AttemptLines::All => {}
        }
        let (fits, left_out) = self.window.admit();
        if left_out > 0 {
            self.say(&[Message::LinesLeftOut { attempts: left_out }], left_out);
        }
        if !fits {
            return;
        }
        let event = finished.attempt.event.id.to_string();
        let start = Message::AttemptStarts {
            number: finished.attempt.number.get(),
            event: &event,
            url: without_query(&finished.attempt.url),
        };
        let mut messages = vec![start, outcome(finished)];
        messages.extend(sequel(finished));
        self.say(&messages, 1);
    }

    fn note(&self, note: &Note) {
        match note {
            Note::LanePaused { lane, until, why } => {
                let until = crate::clock::rfc3339(*until);
                self.say(&[Message::LanePaused { lane, until: &until, why: why.name() }], 0);
            }
            Note::StoreFailing { sentence } => self.say(&[Message::StoreFailing { sentence }], 0),
            Note::StoreRecovered => self.say(&[Message::StoreRecovered], 0),
        }
    }
}

/// A query may hold a token; lines are read by many.
fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}

fn outcome<'a>(finished: &'a Finished<'_>) -> Message<'a> {
    let report = finished.report;
    let reason = report.error.as_deref().unwrap_or("no response");
    match (report.status, finished.next, report.fate) {
        (Some(status), Next::Delivered, _) => Message::Delivered { status },
        (Some(status @ 300..=399), _, _) => Message::Redirected { status, location: location(finished) },
        (Some(status), Next::Dead(DeadReason::PermanentStatus | DeadReason::EndpointGone), _) => {
            Message::OurError { status }
        }
        (Some(status), _, _) => Message::DestinationFailed { status },
        (None, _, Fate::Refused(_)) => Message::Refused { reason, allow_flag: None },
        (None, _, _) => Message::ConnectionFailed { reason },
    }
}

fn location<'a>(finished: &'a Finished<'_>) -> Option<&'a str> {
    let headers = &finished.report.response.as_ref()?.headers;
    headers.lines().find_map(|line| line.strip_prefix("location: "))
}

fn sequel<'a>(finished: &Finished<'_>) -> Option<Message<'a>> {
    match finished.next {
        Next::Scheduled { .. } => Some(Message::Scheduled {
            wait: finished.wait.unwrap_or_default(),
            next: finished.budget_used.saturating_add(1),
            max: finished.max_attempts,
        }),
        Next::Dead(DeadReason::AttemptsExhausted) => Some(Message::GaveUp { attempts: finished.budget_used }),
        Next::Dead(DeadReason::PermanentStatus | DeadReason::EndpointGone | DeadReason::Redirect) => None,
        Next::Dead(reason) => Some(Message::Buried { reason: reason.name() }),
        Next::Delivered | Next::Released => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_was_left_out_is_told_after_a_silence_and_at_the_end() {
        let left_out = LeftOut::new(AtomicU64::new(3));
        let silence = Duration::from_millis(5);
        let print = Print { left_out: Arc::clone(&left_out), language: Language::English, silence };
        let ((lines, queue), (out, told)) = (sync_channel(4), channel());
        let thread = std::thread::spawn(move || print.run(&queue, |text| out.send(text.to_owned()).unwrap()));
        let next = || told.recv_timeout(Duration::from_secs(20)).unwrap();
        lines.send("a line\n".to_owned()).unwrap();
        assert_eq!([next(), next()], ["a line\n", "(3 more attempts without a line)\n"]);
        assert_eq!(left_out.load(Ordering::Relaxed), 0);
        left_out.store(1, Ordering::Relaxed);
        lines.send("another\n".to_owned()).unwrap();
        drop(lines);
        assert_eq!([next(), next()], ["another\n", "(1 more attempts without a line)\n"]);
        thread.join().unwrap();
    }
}
