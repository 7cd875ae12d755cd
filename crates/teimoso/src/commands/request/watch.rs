//! Watches a call from beside it: prints a line per retry, and knows at any moment what a signal would interrupt.
//! Deliberately absent: evidence of an attempt under way. What became of its bytes is known only once it ends, so that
//! until then it counts as one that may have taken effect.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use teimoso_http::{Clock, RetryEvent, Sleeping, SystemClock};
use teimoso_retry::{Effect, Fate};

use super::TAG;
use super::plan::Plan;
use crate::messages::{FailedAttempt, Interrupted, Message, Requesting};
use crate::output::Output;

/// What is known of a call while it runs.
pub(super) struct Watch {
    /// Where lines go; `None` for none.
    lines: Option<Output>,
    effective: bool,
    now: Mutex<Now>,
}

#[derive(Debug, Clone, Copy)]
struct Now {
    when: Interrupted,
    number: u32,
    tainted: bool,
}

impl Watch {
    /// Watches the call that is about to begin.
    pub(super) fn new(plan: &Plan, lines: Option<Output>) -> Arc<Watch> {
        Arc::new(Watch::with(plan.is_effective(), lines))
    }

    fn with(effective: bool, lines: Option<Output>) -> Watch {
        let now = Now { when: Interrupted::During, number: 1, tainted: false };
        Watch { lines, effective, now: Mutex::new(now) }
    }

    /// An attempt failed, and the wait for the next begins.
    pub(super) fn retry(&self, event: &RetryEvent) {
        let taints = may_have_taken_effect(event);
        self.change(|now| Now {
            when: Interrupted::Before,
            number: event.number.get().saturating_add(1),
            tainted: now.tainted || taints,
        });
        let Some(output) = self.lines else { return };
        let attempt = FailedAttempt {
            tag: TAG,
            method: event.method.as_str(),
            path: event.path(),
            number: event.number.get(),
            max: event.max_attempts.get(),
            fate: event.fate,
            status: event.status,
            reason: (event.fate != Fate::Answered).then_some(event.reason.as_str()),
            may_have_taken_effect: taints,
        };
        output.say(&Message::Request(Requesting::Retry { attempt, wait: event.wait, source: event.source }));
    }

    /// What is said when a signal ends the call now.
    pub(super) fn parting<'a>(&self, key: Option<&'a str>) -> Requesting<'a> {
        let Now { when, number, tainted } = *self.now.lock().unwrap_or_else(PoisonError::into_inner);
        Requesting::Interrupted { when, number, effective: self.effective, tainted, key }
    }

    fn waited(&self) {
        self.change(|now| Now { when: Interrupted::During, ..now });
    }

    fn change(&self, change: impl FnOnce(Now) -> Now) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = change(*now);
    }
}

fn may_have_taken_effect(event: &RetryEvent) -> bool {
    !event.method.is_safe() && event.fate.may_have_taken_effect(event.status) != Effect::No
}

/// The machine's clock, which tells the watch when a wait is over.
pub(super) struct WatchedClock {
    clock: SystemClock,
    watch: Arc<Watch>,
}

impl WatchedClock {
    /// A clock that begins now.
    pub(super) fn new(watch: Arc<Watch>) -> WatchedClock {
        WatchedClock { clock: SystemClock::new(), watch }
    }
}

impl Clock for WatchedClock {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn unix_now(&self) -> Duration {
        self.clock.unix_now()
    }

    fn sleep(&self, duration: Duration) -> Sleeping {
        let (sleeping, watch) = (self.clock.sleep(duration), Arc::clone(&self.watch));
        Box::pin(async move {
            sleeping.await;
            watch.waited();
        })
    }
}
