//! The writer: one OS thread owns the write connection and commits whatever is queued, together.
//!
//! No artificial delay for anyone who waits: while one commit is being synced the next batch forms by
//! itself. Settlements, which nobody waits for, gather for two milliseconds when they are alone. Accepts,
//! settlements, commands and attempt records share the commit. A failed commit answers an error to its
//! whole batch; settlements are kept and committed first when the disk has room again.

mod accept;
mod batch;
mod command;
mod committed;
mod expire;
mod import;
mod names;
mod refill;
mod replay;
mod room;
mod settle;
mod statements;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use teimoso_delivery::lanes::Taken;
use teimoso_delivery::model::{DeliveryId, Key, Millis, NewEvent, ReplayId};
use teimoso_delivery::store::{
    Accepted, CancelOutcome, NewReplay, Parcel, Rejection, Replay, RetryOutcome, Settlement, StoreError,
    StoreErrorKind,
};
use tokio::sync::oneshot;

use crate::checkpoint::{Checkpointer, Trigger};
use crate::error::{closed, is_fatal, store_error};
use crate::rows;
use crate::shared::{Health, Shared};
use batch::Batch;
use committed::Committed;
pub(crate) use names::{WINDOW_HOURS, event_named, name_tables};
pub(crate) use refill::read_on;
pub(crate) use replay::{COLUMNS as REPLAY_COLUMNS, estimate, find as find_replay, read as read_replay};

/// Most items of one commit …
const BATCH_ITEMS: usize = 4_096;
/// … and most payload bytes.
const BATCH_BYTES: usize = 4 << 20;
/// A claim that is settled sooner than this leaves no row in `leased`.
const JOURNAL_LINGER: Duration = Duration::from_millis(5);
/// Settlements alone wait this long for others: nobody waits for them, and a larger commit is cheaper.
const SETTLE_LINGER: Duration = Duration::from_millis(2);
/// How often a full disk is tried again.
const FULL_RETRY: Duration = Duration::from_secs(1);

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A settlement whose slot is already free.
#[derive(Debug)]
pub(crate) struct Settling {
    pub key: Key,
    pub settlement: Settlement,
    pub lane_changed: bool,
}

/// What the writer is asked.
pub(crate) enum Op {
    Accept(Vec<NewEvent>, Reply<Vec<Result<Accepted, Rejection>>>),
    Settle(Vec<Settling>, Reply<()>),
    /// Durably note that these are leased: at-most-once, and after an unclean end.
    Start(Vec<Key>, Reply<()>),
    /// Leases that ended without a settlement.
    Recover(Vec<Key>, Reply<()>),
    Cancel(DeliveryId, Reply<CancelOutcome>),
    Retry(DeliveryId, bool, Reply<RetryOutcome>),
    StartReplay(NewReplay, u64, Reply<Replay>),
    CancelReplay(ReplayId, Reply<Option<Replay>>),
    /// What another store exported.
    Import(Vec<Parcel>, Reply<()>),
    /// Rows that cannot be read.
    Bury(Vec<Taken<Key>>, Reply<()>),
    /// Lanes that ran dry are read on.
    Refill(Reply<()>),
    /// Something may have to be journaled, read on or replayed.
    Tick,
    Close(oneshot::Sender<()>),
}

impl Op {
    fn items(&self) -> usize {
        match self {
            Self::Accept(events, _) => events.len(),
            Self::Settle(batch, _) => batch.len(),
            Self::Start(keys, _) | Self::Recover(keys, _) => keys.len(),
            Self::Import(parcels, _) => parcels.len(),
            _ => 1,
        }
    }

    /// Nobody waits for its answer: settlements are handed over, not awaited.
    fn can_wait(&self) -> bool {
        matches!(self, Self::Settle(..))
    }

    /// Payload bytes, for the bounds of a commit and of the queue.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Accept(events, _) => events.iter().map(|event| event.payload.len() + 256).sum(),
            _ => 0,
        }
    }

    fn refuse(self, shared: &Shared, error: StoreError) {
        match self {
            Self::Accept(_, reply) => drop(reply.send(Err(error))),
            Self::Settle(batch, reply) => {
                shared.note_saved(batch.len());
                drop(reply.send(Err(error)));
            }
            Self::Start(_, reply) | Self::Recover(_, reply) | Self::Bury(_, reply) | Self::Refill(reply) => {
                drop(reply.send(Err(error)));
            }
            Self::Cancel(_, reply) => drop(reply.send(Err(error))),
            Self::Retry(_, _, reply) => drop(reply.send(Err(error))),
            Self::StartReplay(_, _, reply) => drop(reply.send(Err(error))),
            Self::CancelReplay(_, reply) => drop(reply.send(Err(error))),
            Self::Import(_, reply) => drop(reply.send(Err(error))),
            Self::Tick => {}
            Self::Close(done) => {
                let _ = done.send(());
            }
        }
    }
}

/// Starts the thread.
pub(crate) fn start(
    conn: Connection,
    shared: Arc<Shared>,
    checkpointer: Checkpointer,
) -> Result<(Sender<Op>, JoinHandle<()>), StartError> {
    let (sender, receiver) = channel();
    let writer = Writer::new(conn, shared, checkpointer).map_err(StartError::Sql)?;
    let thread = std::thread::Builder::new().name("teimoso-writer".into());
    let thread = thread.spawn(move || writer.run(&receiver)).map_err(StartError::Thread)?;
    Ok((sender, thread))
}

/// Why the thread did not start.
pub(crate) enum StartError {
    /// Names or replay jobs could not be read: without them promises would be broken.
    Sql(rusqlite::Error),
    /// The system gave no thread.
    Thread(std::io::Error),
}

struct Writer {
    conn: Connection,
    shared: Arc<Shared>,
    checkpoints: Trigger,
    names: names::Names,
    expiry: expire::Expiry,
    room: room::Room,
    replays: replay::Replays,
    /// Settlements that a full disk refused. Committed first, as soon as there is room.
    unsaved: Vec<Op>,
    /// Claims that may still have to be journaled, with the time of their claim.
    journal: std::collections::VecDeque<(Millis, Key)>,
}

impl Writer {
    fn new(mut conn: Connection, shared: Arc<Shared>, checkpointer: Checkpointer) -> rusqlite::Result<Self> {
        let checkpoints = Trigger::install(&mut conn, checkpointer);
        let names = names::Names::load(&conn)?;
        let replays = replay::Replays::load(&conn)?;
        let expiry = expire::Expiry::new(shared.options.retention);
        let room = room::Room::of(shared.options.max_bytes);
        let (unsaved, journal) = (Vec::new(), std::collections::VecDeque::new());
        Ok(Self { conn, shared, checkpoints, names, expiry, room, replays, unsaved, journal })
    }

    fn run(mut self, queue: &Receiver<Op>) {
        loop {
            let Some(mut ops) = self.next_ops(queue) else { break };
            let close = take_close(&mut ops);
            self.commit(ops);
            if let Some(done) = close {
                self.finish(queue);
                // The connection must be gone when the closer goes on: it may open the file again.
                drop(self);
                let _ = done.send(());
                return;
            }
        }
        self.finish(queue);
    }

    /// Waits for work or for the next thing that is due by itself; `None` when every sender is gone.
    fn next_ops(&mut self, queue: &Receiver<Op>) -> Option<Vec<Op>> {
        let first = match self.next_timer() {
            None => queue.recv().ok()?,
            Some(wait) => match queue.recv_timeout(wait) {
                Ok(op) => op,
                Err(RecvTimeoutError::Timeout) => Op::Tick,
                Err(RecvTimeoutError::Disconnected) => return None,
            },
        };
        let (mut items, mut bytes) = (first.items(), first.bytes());
        let mut patient = first.can_wait();
        let mut ops = vec![first];
        let until = self.shared.clock.monotonic() + SETTLE_LINGER;
        while items < BATCH_ITEMS && bytes < BATCH_BYTES {
            let more = queue.try_recv().ok();
            let wait = until.saturating_sub(self.shared.clock.monotonic());
            let more = more.or_else(|| if patient { queue.recv_timeout(wait).ok() } else { None });
            let Some(op) = more else { break };
            items += op.items();
            bytes += op.bytes();
            patient &= op.can_wait();
            ops.push(op);
        }
        self.shared.note_taken(bytes);
        Some(ops)
    }

    fn next_timer(&self) -> Option<Duration> {
        let now = self.shared.clock.now();
        let linger = |claimed: Millis| claimed.after(JOURNAL_LINGER).since(now).min(JOURNAL_LINGER);
        let journal = self.journal.front().map(|(claimed, _)| linger(*claimed));
        if self.is_short_of_room() || !self.unsaved.is_empty() {
            return Some(FULL_RETRY);
        }
        let replay = self.replays.next_step();
        let expiry = self.expiry.next_step(now);
        [journal, replay, expiry].into_iter().flatten().min()
    }

    fn commit(&mut self, ops: Vec<Op>) {
        if let Health::Failed(error) = self.shared.health() {
            ops.into_iter().for_each(|op| op.refuse(&self.shared, error.clone()));
            return;
        }
        self.checkpoints.before_commit(&self.conn);
        if self.expiry.is_due(self.shared.clock.now()) {
            self.shared.core().close_idle_lanes();
        }
        let now = self.shared.clock.now();
        if self.is_short_of_room() && ops.iter().all(|op| matches!(op, Op::Tick)) {
            self.look_for_room(now);
        }
        let mut ops: Vec<Op> = std::mem::take(&mut self.unsaved).into_iter().chain(ops).collect();
        let events = ops.iter().any(|op| matches!(op, Op::Accept(..)));
        let saves = ops.iter().any(|op| matches!(op, Op::Settle(..) | Op::Recover(..)));
        match self.transact(&mut ops, now) {
            Ok(batch) => {
                self.note_room(events, saves);
                batch.fault_points();
                batch.publish(&self.shared, now);
            }
            Err(error) => self.fail(ops, &error),
        }
    }

    fn is_short_of_room(&self) -> bool {
        matches!(self.shared.health(), Health::Crowded | Health::Full)
    }

    /// One transaction over all of `ops`; their answers wait in the returned batch.
    fn transact(&mut self, ops: &mut Vec<Op>, now: Millis) -> rusqlite::Result<Committed> {
        let mut batch = Batch::new(&self.conn, &self.shared, now);
        self.room.set(&self.conn, ops.iter().any(|op| matches!(op, Op::Accept(..))))?;
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let done = (|| {
            for op in ops.iter_mut() {
                apply(&mut batch, &mut self.names, &mut self.replays, op)?;
            }
            batch.journal(&mut self.journal, JOURNAL_LINGER)?;
            // What moves stays as it is.
            if !self.shared.options.moving {
                self.replays.step(&mut batch)?;
                self.expiry.step(&mut batch, &mut self.names, ops.len() <= 1)?;
            }
            batch.refill()?;
            batch.save_counts()?;
            batch.fault_points(ops);
            self.conn.prepare_cached("COMMIT")?.execute([])?;
            Ok(())
        })();
        match done {
            Ok(()) => Ok(batch.committed(std::mem::take(ops))),
            Err(error) => {
                roll_back(&self.conn);
                batch.undo();
                self.names.rolled_back(&self.conn);
                Err(error)
            }
        }
    }

    /// The whole batch failed: nothing of it happened. If the fault lies in a row and not in the file,
    /// each operation gets a transaction of its own, and only the one that meets that row is refused.
    fn fail(&mut self, mut ops: Vec<Op>, fault: &rusqlite::Error) {
        let error = store_error(fault);
        if error.kind() == StoreErrorKind::Full
            && let Some(events) = self.without_events(&mut ops)
        {
            events.into_iter().for_each(|op| op.refuse(&self.shared, error.clone()));
            self.reload_replays();
            return self.commit(ops);
        }
        let of_a_row = error.kind() == StoreErrorKind::Failed && !is_fatal(fault);
        if of_a_row && ops.len() > 1 {
            self.reload_replays();
            ops.into_iter().for_each(|op| self.commit(vec![op]));
            return;
        }
        let of_an_order = of_a_row && !matches!(ops.as_slice(), [Op::Settle(..)]);
        if !of_an_order {
            self.shared.failed(&error);
        }
        self.reload_replays();
        let keep = error.kind() != StoreErrorKind::Failed;
        for op in ops {
            match op {
                Op::Settle(..) | Op::Recover(..) if keep => self.unsaved.push(op),
                other => other.refuse(&self.shared, error.clone()),
            }
        }
    }

    /// A rolled-back step did not happen in the file.
    fn reload_replays(&mut self) {
        match replay::Replays::load(&self.conn) {
            Ok(replays) => self.replays = replays,
            Err(error) => self.shared.failed(&store_error(&error)),
        }
    }

    /// Commits what is still queued and leaves the file tidy.
    fn finish(&mut self, queue: &Receiver<Op>) {
        let mut rest = Vec::new();
        while let Ok(op) = queue.try_recv() {
            match op {
                Op::Settle(..) | Op::Recover(..) => rest.push(op),
                other => other.refuse(&self.shared, closed()),
            }
        }
        if !rest.is_empty() || !self.unsaved.is_empty() {
            self.commit(rest);
        }
        // A start after anything but this is cautious: something in flight may have gone uncounted.
        let clean = self.unsaved.is_empty() && self.shared.health() == Health::Well;
        for op in std::mem::take(&mut self.unsaved) {
            op.refuse(&self.shared, closed());
        }
        self.shared.failed(&closed());
        if clean && rows::set_meta(&self.conn, "clean", 1).is_ok() {
            self.checkpoints.end(&self.conn);
        }
    }
}

/// Some errors have rolled back already, others leave that to us.
fn roll_back(conn: &Connection) {
    if !conn.is_autocommit() {
        drop(conn.execute_batch("ROLLBACK"));
    }
}

fn take_close(ops: &mut Vec<Op>) -> Option<oneshot::Sender<()>> {
    let at = ops.iter().position(|op| matches!(op, Op::Close(_)))?;
    match ops.remove(at) {
        Op::Close(done) => Some(done),
        _ => None,
    }
}

fn apply(
    batch: &mut Batch<'_>,
    names: &mut names::Names,
    replays: &mut replay::Replays,
    op: &mut Op,
) -> rusqlite::Result<()> {
    match op {
        Op::Accept(events, _) => batch.accept(names, events),
        Op::Settle(settlings, _) => batch.settle(settlings),
        Op::Start(keys, _) => batch.start(keys),
        Op::Recover(keys, _) => batch.recover(keys),
        Op::Bury(unreadable, _) => batch.bury(unreadable),
        Op::Cancel(id, _) => batch.cancel(*id),
        Op::Retry(id, explicit, _) => batch.retry(*id, *explicit),
        Op::StartReplay(replay, estimated, _) => batch.start_replay(replays, *replay, *estimated),
        Op::CancelReplay(id, _) => batch.cancel_replay(replays, *id),
        Op::Import(parcels, _) => batch.import(names, replays, parcels),
        Op::Refill(_) | Op::Tick | Op::Close(_) => Ok(()),
    }
}

/// What was in flight when the last process died: decided and committed before anything is claimed.
pub(crate) fn recover_leased(conn: &Connection, shared: &Shared) -> rusqlite::Result<()> {
    let now = shared.clock.now();
    let mut batch = Batch::new(conn, shared, now);
    conn.execute_batch("BEGIN IMMEDIATE")?;
    batch.recover_leased()?;
    batch.save_counts()?;
    conn.execute_batch("COMMIT")?;
    batch.committed(Vec::new()).publish(shared, now);
    Ok(())
}

#[cfg(test)]
mod tests;
