//! A wire that plays a script instead of connecting.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use teimoso_retry::{Fate, Hint, HintForm, HintWait, Proof, Why};

use super::ManualClock;
use crate::model::{ErrorKind, EventId, Millis, PhaseTimings};
use crate::ports::{BoxFuture, Clock, Dispatch, Dispatched, Report};

/// A report of this fate and status, with nothing else in it.
#[must_use]
pub fn report(fate: Fate, status: Option<u16>) -> Report {
    let error_kind = match status {
        Some(300..=399) => Some(ErrorKind::Http3xx),
        Some(400..=499) => Some(ErrorKind::Http4xx),
        Some(500..=599) => Some(ErrorKind::Http5xx),
        _ => None,
    };
    let timings = PhaseTimings::default();
    Report { fate, status, hint: None, error_kind, error: None, peer: None, timings, response: None }
}

/// What the wire does with one request.
#[derive(Debug, Clone)]
pub enum Play {
    /// Reports at once.
    Report(Report),
    /// Plays on after this long.
    After(Duration, Box<Play>),
    /// Nothing comes back: times out, as the transport would.
    Hang,
    /// Never ends, not even by its time-out.
    Forever,
    /// Panics.
    Panic,
}

impl Play {
    /// Answers this status.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Report(report(Fate::Answered, Some(status)))
    }

    /// Answers this status with `Retry-After: seconds`.
    #[must_use]
    pub fn retry_after(status: u16, seconds: u64) -> Self {
        let hint = Hint { wait: HintWait::For(Duration::from_secs(seconds)), form: HintForm::Seconds };
        Self::Report(Report { hint: Some(hint), ..report(Fate::Answered, Some(status)) })
    }

    /// Nobody listens.
    #[must_use]
    pub fn refused() -> Self {
        let refused = report(Fate::NeverSent(Proof::Connect), None);
        Self::Report(Report { error_kind: Some(ErrorKind::ConnectRefused), ..refused })
    }

    /// The peer closes without an answer.
    #[must_use]
    pub fn reset() -> Self {
        let reset = report(Fate::Ambiguous(Why::Reset), None);
        Self::Report(Report { error_kind: Some(ErrorKind::Reset), ..reset })
    }

    /// The same after `wait`.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self::After(wait, Box::new(self))
    }
}

/// A request as it went out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Millis,
    /// The event.
    pub event: EventId,
    /// Where to.
    pub url: Arc<str>,
    /// The attempt's number.
    pub number: u32,
    /// What.
    pub payload: Bytes,
}

type Script = dyn Fn(&Dispatched) -> Play + Send + Sync;

/// A [`Dispatch`] that asks a script what to do with each request, and remembers the requests.
#[derive(Clone)]
pub struct ScriptedWire {
    clock: ManualClock,
    script: Arc<Script>,
    sent: Arc<Mutex<Vec<Sent>>>,
    open: Arc<AtomicUsize>,
    abandoned: Arc<AtomicUsize>,
}

impl ScriptedWire {
    /// A wire that plays `script`.
    pub fn new(clock: &ManualClock, script: impl Fn(&Dispatched) -> Play + Send + Sync + 'static) -> Self {
        Self {
            clock: clock.clone(),
            script: Arc::new(script),
            sent: Arc::default(),
            open: Arc::default(),
            abandoned: Arc::default(),
        }
    }

    /// Every request so far, in order.
    #[must_use]
    pub fn sent(&self) -> Vec<Sent> {
        self.log().clone()
    }

    /// How many requests went to this URL.
    #[must_use]
    pub fn sent_to(&self, url: &str) -> usize {
        self.log().iter().filter(|sent| &*sent.url == url).count()
    }

    /// Attempts under way.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Attempts that were dropped before their end.
    #[must_use]
    pub fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }

    fn log(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dispatch for ScriptedWire {
    fn attempt(&self, request: Dispatched) -> BoxFuture<'static, Report> {
        self.log().push(Sent {
            at: request.at,
            event: request.event.id.clone(),
            url: request.url.clone(),
            number: request.number.get(),
            payload: request.event.payload.clone(),
        });
        let play = (self.script)(&request);
        let open = Open::new(self);
        let clock = self.clock.clone();
        Box::pin(async move {
            let report = play_out(play, &clock, request.total_timeout).await;
            open.end();
            report
        })
    }
}

async fn play_out(mut play: Play, clock: &ManualClock, timeout: Duration) -> Report {
    loop {
        play = match play {
            Play::Report(report) => return report,
            Play::After(wait, then) => {
                clock.sleep(wait).await;
                *then
            }
            Play::Hang => {
                clock.sleep(timeout).await;
                let timed_out = report(Fate::Ambiguous(Why::Timeout), None);
                return Report { error_kind: Some(ErrorKind::Timeout), ..timed_out };
            }
            Play::Forever => std::future::pending().await,
            Play::Panic => panic!("a scripted panic"),
        };
    }
}

struct Open {
    open: Arc<AtomicUsize>,
    abandoned: Arc<AtomicUsize>,
    ended: bool,
}

impl Open {
    fn new(wire: &ScriptedWire) -> Self {
        wire.open.fetch_add(1, Ordering::SeqCst);
        Self { open: wire.open.clone(), abandoned: wire.abandoned.clone(), ended: false }
    }

    fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
        self.abandoned.fetch_add(usize::from(!self.ended), Ordering::SeqCst);
    }
}
