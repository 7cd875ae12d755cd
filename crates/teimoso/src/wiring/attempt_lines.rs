//! The operator's view of the engine on stderr: S2.14's lines, one block per attempt.
//!
//! Written by a thread of its own, so that a slow terminal never slows a delivery; past a rate nobody can
//! read, lines are counted instead of printed. What was said is on the terminal before the printer is gone.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

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

/// Prints what the engine does.
#[derive(Debug)]
pub struct AttemptPrinter {
    which: AttemptLines,
    language: Language,
    clock: Arc<Window>,
    /// `None` without the thread: then the lines are lost and nothing else.
    printing: Option<(SyncSender<String>, JoinHandle<()>)>,
}

/// The current second, and what was printed and left out in it.
struct Window {
    clock: Arc<dyn Clock>,
    second: AtomicU64,
    printed: AtomicU64,
    left_out: AtomicU64,
}

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
        let (lines, queue) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("teimoso-lines".into()).spawn(move || print(&queue));
        let printing = thread.ok().map(|thread| (lines, thread));
        let window = Window {
            clock,
            second: AtomicU64::new(0),
            printed: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        };
        Self { which, language, clock: Arc::new(window), printing }
    }

    fn say(&self, messages: &[Message<'_>]) {
        let Some((lines, _)) = &self.printing else { return };
        let text: String = messages.iter().map(|message| message.text(self.language) + "\n").collect();
        if lines.try_send(text).is_err() {
            self.clock.left_out.fetch_add(1, Ordering::Relaxed);
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

fn print(queue: &Receiver<String>) {
    while let Ok(mut text) = queue.recv() {
        while text.len() < 64 * 1024 {
            let Ok(more) = queue.try_recv() else { break };
            text.push_str(&more);
        }
        let _nobody = anstream::stderr().lock().write_all(text.as_bytes());
    }
}

impl Observer for AttemptPrinter {
    fn finished(&self, finished: &Finished<'_>) {
        let delivered = matches!(finished.next, Next::Delivered);
        match self.which {
            AttemptLines::Off => return,
            AttemptLines::Failures if delivered => return,
            AttemptLines::Failures | AttemptLines::All => {}
        }
        let (fits, left_out) = self.clock.admit();
        if left_out > 0 {
            self.say(&[Message::LinesLeftOut { attempts: left_out }]);
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
        self.say(&messages);
    }

    fn note(&self, note: &Note) {
        match note {
            Note::LanePaused { lane, until, why } => {
                let until = crate::clock::rfc3339(*until);
                self.say(&[Message::LanePaused { lane, until: &until, why: why.name() }]);
            }
            Note::StoreFailing { sentence } => self.say(&[Message::StoreFailing { sentence }]),
            Note::StoreRecovered => self.say(&[Message::StoreRecovered]),
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
