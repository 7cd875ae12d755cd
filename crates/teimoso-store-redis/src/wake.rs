//! Waiting without polling: the bell, the tracked connection that hears it, and one jittered check per second.
//!
//! A claim that came back short says what the bell showed. Whoever then waits has the bell read once on a connection
//! with RESP3 tracking: the read closes the race and arms exactly one push. Scripts never run on that connection,
//! because tracking would record their declared keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ProtocolVersion, PushInfo, PushKind, Value, cmd, pipe};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{Notify, watch};

use crate::link::{Backoff, Failure, connect};
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

struct Ear {
    connection: MultiplexedConnection,
    pushes: UnboundedReceiver<PushInfo>,
    moves: watch::Receiver<u64>,
}

impl Ear {
    async fn open(shared: &Shared) -> Result<Self, Failure> {
        let (sender, pushes) = unbounded_channel();
        let moves = shared.place.moves();
        let target = shared.place.locate().await?;
        let mut connection = connect(target, ProtocolVersion::RESP3, Some(sender)).await?;
        let mut tracking = cmd("CLIENT");
        tracking.arg("TRACKING").arg("ON").arg("NOLOOP");
        let _: Value = tracking.query_async(&mut connection).await?;
        Ok(Self { connection, pushes, moves })
    }

    /// Reads what the bell shows, which arms the next push.
    async fn arm(&mut self, shared: &Shared) -> Result<(), Failure> {
        let mut asked = pipe();
        asked.cmd("GET").arg(shared.keys.bell());
        asked.cmd("LLEN").arg(shared.keys.ready());
        asked.cmd("ZRANGE").arg(shared.keys.waiting()).arg(0).arg(0).arg("WITHSCORES");
        let [bell, ready, waiting]: [Value; 3] = asked
            .query_async::<Vec<Value>>(&mut self.connection)
            .await?
            .try_into()
            .map_err(|_| Failure::gone())?;
        shared.wake.read(reply::number(&bell).ok().flatten().unwrap_or(0));
        shared.wake.read_public(&ready, waiting);
        Ok(())
    }

    /// `false` when the connection is gone, or to a server that lost its place.
    async fn hear_push(&mut self) -> bool {
        loop {
            let push = tokio::select! {
                push = self.pushes.recv() => push,
                _ = self.moves.changed() => return false,
            };
            match push.map(|push| push.kind) {
                Some(PushKind::Invalidate) => return true,
                Some(PushKind::Disconnection) | None => return false,
                Some(_) => {}
            }
        }
    }
}

/// Listens for ever.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let mut backoff = Backoff::default();
    loop {
        let failure = match Ear::open(&shared).await {
            Ok(mut ear) => {
                backoff.reset();
                hear(&mut ear, &shared).await
            }
            Err(failure) => failure,
        };
        shared.place.heard(&failure);
        // A push may have been lost with the connection.
        shared.wake.nudge();
        let wait = backoff.next(&*shared.entropy);
        shared.clock.sleep(wait).await;
    }
}

/// Until the connection is gone; with what.
async fn hear(ear: &mut Ear, shared: &Shared) -> Failure {
    loop {
        shared.wake.waiting.notified().await;
        loop {
            if let Err(failure) = ear.arm(shared).await {
                return failure;
            }
            // Whoever waited is told, and says so when it waits again. A push without news leaves it waiting: our own
            // scripts ring the bell, too.
            if shared.wake.has_news() {
                break;
            }
            if !hear_push_or_news(ear, shared).await {
                return Failure::gone();
            }
        }
    }
}

/// Until something was pushed, or a check found what no push said; `false` when the connection is gone.
async fn hear_push_or_news(ear: &mut Ear, shared: &Shared) -> bool {
    loop {
        let check = shared.clock.sleep(jittered(shared.entropy.next_u64()));
        tokio::select! {
            heard = ear.hear_push() => return heard,
            () = check => {}
        }
        if shared.wake.has_news() {
            return true;
        }
        look_for_the_overdue(shared).await;
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
