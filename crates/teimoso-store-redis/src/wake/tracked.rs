//! The tracked connection: a plain read arms exactly one push, and its answer closes the race.
//!
//! Scripts never run here, because tracking would record the keys they declare instead of those they read. Of all
//! processes that wait only those with a seat read here (see `seat`), one after the other: a push wakes all of them, and
//! whoever looks first claims, so the others find nothing.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ProtocolVersion, PushInfo, PushKind, Value, cmd, pipe};
use teimoso_delivery::model::Millis;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use super::jittered;
use super::seat::Seat;
use crate::link::{Failure, connect};
use crate::reply;
use crate::shared::Shared;

/// Between the looks of two who hold seats.
const TURN: Duration = Duration::from_millis(1);
/// Whoever knows when something is due claims it by itself; the others look so much later.
const OVERDUE: Duration = Duration::from_millis(5);

/// The tracked connection.
pub(super) struct Ear {
    connection: MultiplexedConnection,
    pushes: UnboundedReceiver<PushInfo>,
    moves: watch::Receiver<u64>,
    /// What was read stands until a push says otherwise.
    armed: bool,
    /// When to look at the server again, on the monotonic clock.
    peek_at: Option<Duration>,
    check_at: Duration,
}

/// What the ear waits for.
enum Heard {
    /// Something that was read changed; whether it was the ready list.
    Push(bool),
    /// Somebody began to wait.
    Waits,
    Time,
    /// The connection is gone, or to a server that lost its place.
    Gone,
}

impl Ear {
    pub(super) async fn open(shared: &Shared) -> Result<Self, Failure> {
        let (sender, pushes) = unbounded_channel();
        let moves = shared.place.moves();
        let target = shared.place.locate().await?;
        let mut connection = connect(target, ProtocolVersion::RESP3, Some(sender)).await?;
        let mut tracking = cmd("CLIENT");
        tracking.arg("TRACKING").arg("ON").arg("OPTOUT").arg("NOLOOP");
        let _: Value = tracking.query_async(&mut connection).await?;
        let check_at = next_check(shared);
        Ok(Self { connection, pushes, moves, armed: false, peek_at: None, check_at })
    }

    /// Until the connection is gone; with what.
    pub(super) async fn hear(&mut self, shared: &Shared, seat: &mut Seat) -> Failure {
        loop {
            let done = match self.next(shared).await {
                Heard::Push(ready) => {
                    self.pushed(shared, seat, ready);
                    Ok(())
                }
                Heard::Waits => self.sit_down(shared, seat).await,
                Heard::Time => self.look_at_the_clock(shared, seat).await,
                Heard::Gone => Err(Failure::gone()),
            };
            if let Err(failure) = done {
                return failure;
            }
        }
    }

    async fn next(&mut self, shared: &Shared) -> Heard {
        let at = self.peek_at.map_or(self.check_at, |at| at.min(self.check_at));
        let left = at.saturating_sub(shared.clock.monotonic());
        tokio::select! {
            biased;
            push = self.pushes.recv() => heard(push, shared.keys.ready()),
            _ = self.moves.changed() => Heard::Gone,
            () = shared.wake.somebody_waits() => Heard::Waits,
            () = shared.clock.sleep(left) => Heard::Time,
        }
    }

    fn pushed(&mut self, shared: &Shared, seat: &Seat, ready: bool) {
        self.armed = false;
        let Some(rank) = seat.rank().filter(|_| shared.wake.is_waiting()) else { return };
        if ready && rank == 0 {
            shared.wake.note_ingress();
            return shared.wake.nudge();
        }
        // Whoever rang the bell claims what it rang for, unless its slots are full.
        let others_first = if ready { rank } else { rank + 1 };
        self.peek_by(shared.clock.monotonic() + TURN * others_first);
    }

    /// What was read before somebody waits still stands, unless a push said otherwise.
    async fn sit_down(&mut self, shared: &Shared, seat: &mut Seat) -> Result<(), Failure> {
        seat.take(shared).await;
        if self.armed || seat.rank().is_none() {
            return Ok(());
        }
        self.peek(shared, seat).await
    }

    async fn look_at_the_clock(&mut self, shared: &Shared, seat: &mut Seat) -> Result<(), Failure> {
        let now = shared.clock.monotonic();
        if now >= self.check_at {
            self.check_at = next_check(shared);
            let waited = shared.wake.has_waited();
            match seat.rank() {
                Some(_) if waited => seat.keep(shared).await,
                Some(_) => seat.leave(shared).await,
                None if shared.wake.is_waiting() => seat.take_if_free(shared).await,
                None => {}
            }
            if !self.armed && seat.rank().is_some() {
                self.peek_by(now);
            }
        }
        if self.peek_at.is_some_and(|at| at <= now) {
            self.peek_at = None;
            return self.peek(shared, seat).await;
        }
        Ok(())
    }

    fn peek_by(&mut self, at: Duration) {
        self.peek_at = Some(self.peek_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Whether there is something to claim; if not, the next push is armed, and it is known when to look again. Whoever
    /// does not wait at present will look when it does.
    async fn peek(&mut self, shared: &Shared, seat: &Seat) -> Result<(), Failure> {
        let Some(rank) = seat.rank().filter(|_| shared.wake.is_waiting()) else { return Ok(()) };
        let [bell, ready, waiting, _, turns, _, timers] = self.read(shared).await?;
        (self.armed, self.peek_at) = (true, None);
        let count = |value: &Value| reply::number(value).ok().flatten().unwrap_or(0);
        let now = shared.at_redis(shared.clock.now());
        let (waiting, timers) = (head(waiting), head(timers));
        let is_due = |head: Option<Millis>| head.is_some_and(|due| due <= now);
        let ingress = count(&ready) > 0 || is_due(waiting);
        if ingress {
            shared.wake.note_ingress();
        }
        shared.wake.peeked(count(&bell), ingress || count(&turns) > 0 || is_due(timers));
        if let Some(due) = waiting.into_iter().chain(timers).filter(|due| *due > now).min() {
            let late = OVERDUE + TURN * rank;
            self.peek_by(shared.clock.monotonic().saturating_add(due.since(now)).saturating_add(late));
        }
        Ok(())
    }

    /// The first three are tracked: whatever changes them is pushed. The others, of which the bell tells, are read after
    /// them, so that nothing comes between.
    async fn read(&mut self, shared: &Shared) -> Result<[Value; 7], Failure> {
        let keys = &shared.keys;
        let mut asked = pipe();
        asked.cmd("GET").arg(keys.bell());
        asked.cmd("LLEN").arg(keys.ready());
        asked.cmd("ZRANGE").arg(keys.waiting()).arg(0).arg(0).arg("WITHSCORES");
        asked.cmd("CLIENT").arg("CACHING").arg("NO");
        asked.cmd("LLEN").arg(keys.own("turns"));
        asked.cmd("CLIENT").arg("CACHING").arg("NO");
        asked.cmd("ZRANGE").arg(keys.own("timers")).arg(0).arg(0).arg("WITHSCORES");
        let answers: Vec<Value> = asked.query_async(&mut self.connection).await?;
        answers.try_into().map_err(|_| Failure::gone())
    }
}

fn next_check(shared: &Shared) -> Duration {
    shared.clock.monotonic() + jittered(shared.entropy.next_u64())
}

fn heard(push: Option<PushInfo>, ready: &str) -> Heard {
    let Some(PushInfo { kind, data }) = push else { return Heard::Gone };
    match kind {
        PushKind::Disconnection => Heard::Gone,
        PushKind::Invalidate => Heard::Push(data.iter().any(|keys| names(keys, ready))),
        _ => Heard::Push(false),
    }
}

fn names(keys: &Value, key: &str) -> bool {
    match keys {
        Value::Array(keys) => keys.iter().any(|name| names(name, key)),
        Value::BulkString(name) => name == key.as_bytes(),
        _ => false,
    }
}

/// When the first of a schedule is due. A pair is nested in RESP3, and its score a number of its own kind; somebody
/// else's may be anything.
fn head(first: Value) -> Option<Millis> {
    let pair = reply::array(first).ok()?.pop()?;
    let score = match pair {
        Value::Array(mut pair) => pair.pop()?,
        score => score,
    };
    let ms = reply::number(&score).ok().flatten()?;
    Some(Millis::new(u64::try_from(ms).unwrap_or(0)))
}
