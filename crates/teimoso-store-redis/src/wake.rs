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
use crate::shared::Shared;

/// The check for what a lost push would have said; jittered by a quarter, so that processes do not do it together.
const CHECK: Duration = Duration::from_secs(1);

/// What the bell shows and what the last short claim saw.
pub(crate) struct Wake {
    shows: AtomicI64,
    seen: AtomicI64,
    /// Something may be claimable whatever the bell says.
    nudged: AtomicBool,
    changed: watch::Sender<u64>,
    /// Somebody waits: arm.
    waiting: Notify,
}

impl Wake {
    pub(crate) fn new() -> Self {
        Self {
            shows: AtomicI64::new(0),
            seen: AtomicI64::new(0),
            nudged: AtomicBool::new(true),
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

    /// A claim left nothing behind; whatever is news came after this.
    pub(crate) fn saw_all(&self, bell: i64) {
        self.hear(bell);
        self.seen.store(bell, Ordering::SeqCst);
    }

    /// A claim is about to be made: whoever nudges from now on means the next one.
    pub(crate) fn begin_claim(&self) {
        self.nudged.store(false, Ordering::SeqCst);
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
}

impl Ear {
    async fn open(shared: &Shared) -> Result<Self, Failure> {
        let (sender, pushes) = unbounded_channel();
        let info = shared.place.locate().await?;
        let mut connection = connect(info, ProtocolVersion::RESP3, Some(sender)).await?;
        let mut tracking = cmd("CLIENT");
        tracking.arg("TRACKING").arg("ON").arg("NOLOOP");
        let _: Value = tracking.query_async(&mut connection).await?;
        Ok(Self { connection, pushes })
    }

    /// Reads what the bell shows, which arms the next push.
    async fn arm(&mut self, shared: &Shared) -> Result<(), Failure> {
        let mut asked = pipe();
        asked.cmd("GET").arg(shared.keys.bell());
        asked.cmd("LLEN").arg(shared.keys.ready());
        let [bell, ready]: [Value; 2] = asked
            .query_async::<Vec<Value>>(&mut self.connection)
            .await?
            .try_into()
            .map_err(|_| Failure::gone())?;
        shared.wake.read(reply::number(&bell).ok().flatten().unwrap_or(0));
        if reply::number(&ready).ok().flatten().unwrap_or(0) > 0 {
            shared.wake.nudge();
        }
        Ok(())
    }

    /// `false` when the connection is gone.
    async fn hear_push(&mut self) -> bool {
        while let Some(push) = self.pushes.recv().await {
            match push.kind {
                PushKind::Invalidate => return true,
                PushKind::Disconnection => return false,
                _ => {}
            }
        }
        false
    }
}

/// Listens for ever.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let mut backoff = Backoff::default();
    loop {
        if let Ok(mut ear) = Ear::open(&shared).await {
            backoff.reset();
            hear(&mut ear, &shared).await;
        }
        // A push may have been lost with the connection.
        shared.wake.nudge();
        let wait = backoff.next(&*shared.entropy);
        shared.clock.sleep(wait).await;
    }
}

/// Until the connection is gone.
async fn hear(ear: &mut Ear, shared: &Shared) {
    loop {
        shared.wake.waiting.notified().await;
        if ear.arm(shared).await.is_err() {
            return;
        }
        loop {
            let check = shared.clock.sleep(jittered(shared.entropy.next_u64()));
            tokio::select! {
                heard = ear.hear_push() => {
                    if !heard || ear.arm(shared).await.is_err() {
                        return;
                    }
                    break;
                }
                () = check => {
                    if !shared.wake.has_news() {
                        look_for_the_overdue(shared).await;
                    }
                }
            }
        }
    }
}

fn jittered(bits: u64) -> Duration {
    CHECK.mul_f64(0.75 + (bits % 1_000) as f64 / 2_000.0)
}

/// What no push announces: something came due that nobody took, or a push was lost.
async fn look_for_the_overdue(shared: &Shared) {
    let mut asked = pipe();
    asked.cmd("GET").arg(shared.keys.bell());
    for order in ["timers", "leases", "jobs_due"] {
        asked.cmd("ZRANGE").arg(shared.keys.own(order)).arg(0).arg(0).arg("WITHSCORES");
    }
    asked.cmd("LLEN").arg(shared.keys.own("turns"));
    let Ok(answers) = shared.reads.pipeline(&asked).await else { return };
    let Ok([bell, timers, leases, jobs, turns]) = <[Value; 5]>::try_from(answers) else { return };
    shared.wake.read(reply::number(&bell).ok().flatten().unwrap_or(0));
    let now = i64::try_from(shared.clock.now().get()).unwrap_or(i64::MAX);
    let heads = [timers, leases, jobs].into_iter().filter_map(|head| reply::array(head).ok());
    let overdue = heads.filter_map(|head| reply::number(head.get(1)?).ok().flatten()).any(|at| at <= now);
    if overdue || reply::number(&turns).ok().flatten().unwrap_or(0) > 0 {
        shared.wake.nudge();
    }
}
