//! The answer of a batch, which reads its request as it goes. Deliberately absent: anything that runs
//! while nobody asks for the answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::BodyDataStream;
use bytes::Bytes;
use futures_util::stream::{FuturesOrdered, Stream, StreamExt};
use teimoso_delivery::ports::BoxFuture;

use super::group::{Answered, Group, Urls, write_line};
use super::lines::{Line, Lines};
use super::{GROUP_LINES, IDLE_FACTOR, UNANSWERED_BYTES, UNANSWERED_LINES};
use crate::App;
use crate::admission::Hold;
use crate::api::problem::{Code, Problem};

/// Groups that may be with the store at once.
const GROUPS: usize = UNANSWERED_LINES / GROUP_LINES;

/// A running batch.
pub(crate) struct Batch {
    app: App,
    _holds: (Hold, Hold),
    /// `None`: nothing more is read.
    input: Option<BodyDataStream>,
    lines: Lines,
    urls: Urls,
    group: Group,
    answers: FuturesOrdered<BoxFuture<'static, Answered>>,
    unanswered_lines: usize,
    unanswered_bytes: usize,
    /// Completes when the server drains, and ends the input; not asked again then.
    drained: BoxFuture<'static, ()>,
    idle: Option<BoxFuture<'static, ()>>,
    last_words: Option<Problem>,
}

/// What a look at the input brought.
#[derive(PartialEq, Eq)]
enum Progress {
    /// Something: there may be more at once.
    Some,
    /// Nothing for now.
    None,
}

impl Batch {
    /// A batch that reads `input`; `first` was read from it already. `holds` end with it.
    pub(crate) fn new(app: App, holds: (Hold, Hold), first: Option<Bytes>, input: BodyDataStream) -> Self {
        let mut lines = Lines::new(app.config().max_event_bytes());
        lines.push(first.unwrap_or_default());
        Self {
            drained: Box::pin(app.clone().drained()),
            app,
            _holds: holds,
            input: Some(input),
            lines,
            urls: Urls::default(),
            group: Group::default(),
            answers: FuturesOrdered::new(),
            unanswered_lines: 0,
            unanswered_bytes: 0,
            idle: None,
            last_words: None,
        }
    }

    fn has_room(&self) -> bool {
        self.unanswered_lines < UNANSWERED_LINES && self.unanswered_bytes < UNANSWERED_BYTES
    }

    /// Reads what is there, one chunk at most, so that a flood leaves other connections their turn.
    fn read(&mut self, context: &mut Context<'_>) -> Progress {
        if self.input.is_some() && self.drained.as_mut().poll(context).is_ready() {
            self.input = None;
        }
        if !self.take_lines() {
            return Progress::None;
        }
        let Some(input) = &mut self.input else {
            self.submit();
            return Progress::None;
        };
        match input.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(chunk))) => {
                self.idle = None;
                self.lines.push(chunk);
                Progress::Some
            }
            // A body that is cut short ends where it was cut: half a line is no line.
            Poll::Ready(Some(Err(_))) => self.end(None),
            Poll::Ready(None) => {
                let last = self.lines.finish();
                self.end(last)
            }
            Poll::Pending => {
                if self.answers.len() < GROUPS {
                    self.submit();
                }
                self.watch_idleness(context)
            }
        }
    }

    /// Turns what was read into groups, also when nothing more is read; `false` when too much waits for its answer.
    fn take_lines(&mut self) -> bool {
        while self.has_room() {
            let Some(line) = self.lines.next() else { return true };
            self.take(line);
        }
        self.submit();
        false
    }

    fn take(&mut self, line: Line) {
        self.unanswered_bytes += self.group.take(&self.app, &mut self.urls, line);
        self.unanswered_lines += 1;
        if self.group.is_full() {
            self.submit();
        }
    }

    fn submit(&mut self) {
        if !self.group.is_empty() {
            let group = std::mem::take(&mut self.group);
            self.answers.push_back(Box::pin(group.answer(self.app.clone())));
        }
    }

    fn end(&mut self, last: Option<Line>) -> Progress {
        self.input = None;
        if let Some(line) = last {
            self.take(line);
        }
        self.submit();
        Progress::Some
    }

    /// A client that has all its answers and says nothing is waited for, but not for ever.
    fn watch_idleness(&mut self, context: &mut Context<'_>) -> Progress {
        if self.unanswered_lines > 0 {
            return Progress::None;
        }
        let patience = self.app.config().body_read_timeout.saturating_mul(IDLE_FACTOR);
        let clock = self.app.clock();
        let idle = self.idle.get_or_insert_with(|| clock.sleep(patience));
        if idle.as_mut().poll(context).is_pending() {
            return Progress::None;
        }
        let detail = format!("no line came for {} s; nothing before it is lost", patience.as_secs_f32());
        self.last_words = Some(Problem::new(Code::RequestTimeout, detail).on_line(self.lines.number()));
        self.end(None)
    }

    fn answered(&mut self, answered: Answered) -> Bytes {
        self.unanswered_lines -= answered.lines;
        self.unanswered_bytes -= answered.bytes;
        answered.answer
    }
}

impl Stream for Batch {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let progress = this.read(context);
        match this.answers.poll_next_unpin(context) {
            Poll::Ready(Some(answered)) => return Poll::Ready(Some(Ok(this.answered(answered)))),
            Poll::Ready(None) if this.input.is_none() => {
                let last_words = this.last_words.take().map(|problem| {
                    let mut line = Vec::new();
                    write_line(&mut line, &problem.body());
                    Ok(line.into())
                });
                return Poll::Ready(last_words);
            }
            Poll::Ready(None) | Poll::Pending => {}
        }
        if progress == Progress::Some {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
