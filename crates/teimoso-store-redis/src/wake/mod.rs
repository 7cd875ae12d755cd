//! Waiting without polling: the bell, the connection that hears it, and one jittered check per second.
//!
//! A claim that came back short says what the bell showed. Whoever then waits is listened for: on a tracked connection
//! (`tracked`), or, where something between us and the server knows no tracking, by moving what is pushed to a list of
//! this process's own (`staged`). Deliberately absent: what is claimed, which the next claim finds out.

mod staged;
mod tracked;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use redis::Value;
use tokio::sync::{Notify, watch};

use crate::link::{Backoff, Failure, Trouble};
use crate::reply;
use crate::scripts::PEEK;
use crate::shared::Shared;

/// The check for what a lost push would have said; jittered by a quarter, so that processes do not do it together.
const CHECK: Duration = Duration::from_secs(1);

/// What the bell shows and what the last short claim saw.
pub(crate) struct Wake {
    shows: AtomicI64,
    seen: AtomicI64,
    /// When the first in the public schedule is due, as that claim saw it; -1 when none was.
    seen_waiting: AtomicI64,
    /// Something may be claimable whatever the bell says.
    nudged: AtomicBool,
    /// The public keys have something to adopt.
    ingress: AtomicBool,
    changed: watch::Sender<u64>,
    /// Somebody waits: arm.
    waiting: Notify,
}

impl Wake {
    pub(crate) fn new() -> Self {
        Self {
            shows: AtomicI64::new(0),
            seen: AtomicI64::new(0),
            seen_waiting: AtomicI64::new(-1),
            nudged: AtomicBool::new(true),
            ingress: AtomicBool::new(true),
            changed: watch::Sender::new(0),
            waiting: Notify::new(),
        }
    }

    /// A script said what the bell shows.
    pub(crate) fn hear(&self, bell: i64) {
        if self.shows.fetch_max(bell, Ordering::SeqCst) < bell {
            self.announce();
        }
    }

    /// The server was asked: it may have been emptied and count from zero again.
    fn read(&self, bell: i64) {
        if self.shows.swap(bell, Ordering::SeqCst) != bell {
            self.announce();
        }
    }

    /// What the public keys were read to hold: anybody writes there, and rings no bell.
    fn read_public(&self, ready: &Value, waiting: Value) {
        let waits = flat(waiting).get(1).and_then(|score| reply::number(score).ok().flatten());
        let seen = self.seen_waiting.load(Ordering::SeqCst);
        let earlier = waits.is_some_and(|waits| seen < 0 || waits < seen);
        if reply::number(ready).ok().flatten().unwrap_or(0) > 0 {
            self.note_ingress();
            self.nudge();
        } else if earlier {
            self.nudge();
        }
    }

    /// A claim left nothing behind; whatever is news came after this.
    pub(crate) fn saw_all(&self, bell: i64, waits: i64) {
        self.hear(bell);
        self.seen_waiting.store(waits, Ordering::SeqCst);
        self.seen.store(bell, Ordering::SeqCst);
    }

    /// A claim is about to be made: whoever nudges from now on means the next one. Whether it should adopt first.
    pub(crate) fn begin_claim(&self) -> bool {
        self.nudged.store(false, Ordering::SeqCst);
        self.ingress.swap(false, Ordering::SeqCst)
    }

    /// The next claim adopts first.
    pub(crate) fn note_ingress(&self) {
        self.ingress.store(true, Ordering::SeqCst);
    }

    /// Makes every wait complete until a claim has looked.
    pub(crate) fn nudge(&self) {
        self.nudged.store(true, Ordering::SeqCst);
        self.announce();
    }

    fn announce(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    fn has_news(&self) -> bool {
        self.nudged.load(Ordering::SeqCst)
            || self.shows.load(Ordering::SeqCst) != self.seen.load(Ordering::SeqCst)
    }

    /// Completes when something may have become claimable.
    pub(crate) async fn wait(&self, closed: &AtomicBool) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if self.has_news() || closed.load(Ordering::SeqCst) {
                return;
            }
            self.waiting.notify_one();
            // The sender lives as long as this.
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Listens for ever.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let mut backoff = Backoff::default();
    let who = format!("{:016x}{:016x}", shared.entropy.next_u64(), shared.entropy.next_u64());
    loop {
        let failure = match tracked::Ear::open(&shared).await {
            Ok(mut ear) => {
                backoff.reset();
                ear.hear(&shared).await
            }
            Err(failure) if failure.trouble == Trouble::Away => failure,
            // Without tracking, be it unknown, forbidden, or kept from us by a proxy.
            Err(_) => staged::hear(&shared, &who, &mut backoff).await,
        };
        shared.place.heard(&failure);
        // A push may have been lost with the connection.
        shared.wake.nudge();
        let wait = backoff.next(&*shared.entropy);
        shared.clock.sleep(wait).await;
    }
}

fn jittered(bits: u64) -> Duration {
    CHECK.mul_f64(0.75 + (bits % 1_000) as f64 / 2_000.0)
}

/// A head with its score: RESP3 nests the pair, RESP2 does not; and its score is a number of its own kind.
fn flat(head: Value) -> Vec<Value> {
    let mut values = reply::array(head).unwrap_or_default();
    match values.pop() {
        Some(Value::Array(pair)) => pair,
        Some(last) => {
            values.push(last);
            values
        }
        None => values,
    }
}

/// What a process that died had moved for itself alone is anybody's again.
pub(crate) async fn sweep(shared: &Shared) -> Result<(), Failure> {
    staged::sweep(shared).await
}

/// What no push announces: something came due that nobody took, or a push was lost. One command.
async fn look_for_the_overdue(shared: &Shared) {
    // The next look comes in a second, and claims say by themselves that the server is away.
    let Ok(value) = shared.reads.call(&shared.call(&PEEK)).await else { return };
    let Ok([bell, ingress, due, salt]) = reply::exactly::<4>(value) else { return };
    let is_set = |value| reply::number(value).ok().flatten().is_some_and(|number| number != 0);
    shared.wake.read(reply::number(&bell).ok().flatten().unwrap_or(0));
    if is_set(&ingress) {
        shared.wake.note_ingress();
    }
    if is_set(&ingress) || is_set(&due) {
        shared.wake.nudge();
    }
    if salt == Value::Nil {
        // Somebody emptied the server: whoever comes next must give out the same ids as we do.
        let _ = shared.agree_on_ids().await;
    }
}
