//! One transaction being built: what it changes in the file now, and in memory once it is durable.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rusqlite::{Connection, Result};
use teimoso_delivery::lanes::{Horizon, LaneId, Taken, Thirst};
use teimoso_delivery::machine::{Recovery, Resting, recover};
use teimoso_delivery::model::{
    DeadReason, DeliveryState, IdSpace, Key, LaneKey, LaneRecord, Millis, Progress,
};
use teimoso_delivery::store::{Accepted, CancelOutcome, Counts, Rejection, Replay, RetryOutcome, StoreError};

use super::Op;
use super::committed::Committed;
use super::statements::Statements;
use crate::core::{Fresh, resting_count};
use crate::fault;
use crate::rows::{self, lane_columns, progress_columns};
use crate::shared::Shared;

/// What becomes true in memory when the commit is durable.
pub(super) enum Effect {
    OpenLane(LaneId, LaneKey, LaneRecord),
    Ids(IdSpace),
    Due(LaneId, Millis, Key),
    Fresh(Key, Fresh, Millis),
    Settled(Key),
    Forget(Key),
    Journaled(Key),
    Refill(Thirst<Key>, Vec<(Millis, Key)>),
}

/// An operation's answer, in the order of the operations.
pub(super) enum Answer {
    Accepted(Vec<std::result::Result<Accepted, Rejection>>),
    Cancelled(CancelOutcome),
    Retried(RetryOutcome),
    Replay(Replay),
    FoundReplay(Option<Replay>),
    /// Why nothing was kept, if nothing was.
    Imported(std::result::Result<(), StoreError>),
}

/// A delivery's row, as commands need it.
pub(super) struct DeliveryRow {
    pub state: DeliveryState,
    pub lane: LaneId,
    pub due: Millis,
    pub progress: Progress,
}

/// See the module's documentation.
pub(super) struct Batch<'a> {
    pub conn: &'a Connection,
    statements: Statements<'a>,
    pub shared: &'a Shared,
    pub now: Millis,
    pub counts: Counts,
    pub effects: Vec<Effect>,
    pub answers: VecDeque<Answer>,
    pub new_lanes: HashMap<LaneKey, LaneId>,
    pub applications: HashMap<teimoso_delivery::model::Application, i64>,
    /// Taken out of the due index ahead of the commit; put back if it fails.
    taken_out: Vec<(LaneId, Millis, Key)>,
    /// Leases told of a wish to cancel ahead of the commit, with `cancel_wished` and `journaled` before.
    wished: Vec<(Key, bool, bool)>,
    counted: Counts,
}

impl<'a> Batch<'a> {
    pub(super) fn new(conn: &'a Connection, shared: &'a Shared, now: Millis) -> Self {
        let counts = shared.core().counts;
        Self {
            conn,
            statements: Statements::new(conn),
            shared,
            now,
            counts,
            effects: Vec::new(),
            answers: VecDeque::new(),
            new_lanes: HashMap::new(),
            applications: HashMap::new(),
            taken_out: Vec::new(),
            wished: Vec::new(),
            counted: counts,
        }
    }

    pub(super) fn delivery(&self, key: Key) -> Result<Option<DeliveryRow>> {
        use rusqlite::OptionalExtension;
        let sql = concat!(
            "SELECT d.state, d.lane, d.due, ",
            progress_columns!(),
            " FROM delivery d WHERE d.id = ?1"
        );
        let read = |row: &rusqlite::Row<'_>| {
            let state = DeliveryState::from_tag(row.get(0)?);
            Ok(DeliveryRow {
                state: state.ok_or_else(|| rows::unreadable(0, "an unknown state"))?,
                lane: LaneId(row.get(1)?),
                due: rows::millis(row.get(2)?),
                progress: rows::progress(row, 3)?,
            })
        };
        self.conn.prepare_cached(sql)?.query_row([key.raw()], read).optional()
    }

    /// Moves a delivery to where it rests: file now, counters and due index with the commit.
    pub(super) fn rest(
        &mut self,
        key: Key,
        was: &DeliveryRow,
        resting: Resting,
        progress: Progress,
        at: Millis,
    ) -> Result<()> {
        if !was.state.is_final() {
            self.execute(
                "DELETE FROM due WHERE lane = ?1 AND due = ?2 AND delivery = ?3",
                (was.lane.0, rows::raw_millis(was.due), key.raw()),
            )?;
        }
        self.uncount(was);
        match resting {
            Resting::Delivered => self.end(key, DeliveryState::Delivered, None, progress, at),
            Resting::Dead(reason) => self.end(key, DeliveryState::Dead, Some(reason.tag()), progress, at),
            Resting::Cancelled => self.end(key, DeliveryState::Cancelled, None, progress, at),
            Resting::Due(due, why) => {
                self.open_again(was.lane)?;
                self.due_again(key, was.lane, due, Progress { why, ..progress })?;
                self.effects.push(Effect::Due(was.lane, due, key));
                Ok(())
            }
        }
    }

    /// Opens a lane that was closed while it was idle.
    fn open_again(&mut self, id: LaneId) -> Result<()> {
        if self.shared.core().lanes.is_open(id) || self.new_lanes.values().any(|new| *new == id) {
            return Ok(());
        }
        let sql = concat!("SELECT ", lane_columns!(), " WHERE l.id = ?1");
        let (id, key, record) = self.conn.prepare_cached(sql)?.query_row([id.0], rows::lane)?;
        self.new_lanes.insert(key.clone(), id);
        self.effects.push(Effect::OpenLane(id, key, record));
        Ok(())
    }

    fn uncount(&mut self, was: &DeliveryRow) {
        let count = match was.state {
            DeliveryState::Delivered => &mut self.counts.delivered,
            DeliveryState::Dead => &mut self.counts.dead,
            DeliveryState::Cancelled => &mut self.counts.cancelled,
            _ => resting_count(&mut self.counts, &was.progress),
        };
        *count = count.saturating_sub(1);
    }

    fn end(
        &mut self,
        key: Key,
        state: DeliveryState,
        reason: Option<u8>,
        progress: Progress,
        at: Millis,
    ) -> Result<()> {
        match state {
            DeliveryState::Delivered => self.counts.delivered += 1,
            DeliveryState::Cancelled => self.counts.cancelled += 1,
            _ => self.counts.dead += 1,
        }
        let sql = "UPDATE delivery SET state = ?2, reason = ?3, attempts = ?4, first_attempt_at = ?5,
            recoveries = ?6, finished_at = ?7 WHERE id = ?1";
        self.execute(
            sql,
            (
                key.raw(),
                state.tag(),
                reason,
                progress.attempts,
                progress.first_attempt_at.map(rows::raw_millis),
                progress.recoveries,
                rows::raw_millis(at),
            ),
        )
    }

    fn due_again(&mut self, key: Key, lane: LaneId, due: Millis, progress: Progress) -> Result<()> {
        *resting_count(&mut self.counts, &progress) += 1;
        let sql = "UPDATE delivery SET state = ?2, due = ?3, why = ?4, attempts = ?5, budget_from = ?6,
            first_attempt_at = ?7, recoveries = ?8, reason = NULL, finished_at = NULL WHERE id = ?1";
        self.execute(
            sql,
            (
                key.raw(),
                progress.resting_state().tag(),
                rows::raw_millis(due),
                progress.why.tag(),
                progress.attempts,
                progress.budget_from,
                progress.first_attempt_at.map(rows::raw_millis),
                progress.recoveries,
            ),
        )?;
        self.insert_due(lane, due, key)
    }

    pub(super) fn insert_due(&self, lane: LaneId, due: Millis, key: Key) -> Result<()> {
        self.execute("INSERT INTO due VALUES (?1, ?2, ?3)", (lane.0, rows::raw_millis(due), key.raw()))
    }

    pub(super) fn execute(&self, sql: &'static str, params: impl rusqlite::Params) -> Result<()> {
        self.statements.execute(sql, params)
    }

    /// Takes a delivery out of the due index before the commit, so that nobody claims it meanwhile.
    /// `false`: somebody works on it.
    pub(super) fn take_out(&mut self, row: &DeliveryRow, key: Key) -> bool {
        if self.in_flight(key) {
            return false;
        }
        // What this very transaction made due is not in the index yet, and must not get there.
        self.effects.retain(|effect| !matches!(effect, Effect::Due(_, _, due) if *due == key));
        let core = &mut *self.shared.core();
        if core.lanes.remove(row.lane, row.due, key, self.now) {
            self.taken_out.push((row.lane, row.due, key));
        }
        true
    }

    /// Whether somebody works on it, and still will when this transaction is committed.
    pub(super) fn in_flight(&self, key: Key) -> bool {
        let ended = |effect: &Effect| matches!(effect, Effect::Settled(settled) if *settled == key);
        self.shared.core().leases.contains_key(&key) && !self.effects.iter().any(ended)
    }

    /// Tells whoever works on it that it shall be cancelled. Not with the commit: a settlement later in
    /// this transaction must know already.
    pub(super) fn wish(&mut self, key: Key) {
        if let Some(leased) = self.shared.core().leases.get_mut(&key) {
            self.wished.push((key, leased.cancel_wished, leased.journaled));
            leased.cancel_wished = true;
            leased.journaled = true;
        }
    }

    /// Durably notes that these are leased.
    pub(super) fn start(&mut self, keys: &[Key]) -> Result<()> {
        for key in keys {
            self.execute("INSERT OR IGNORE INTO leased VALUES (?1, 0)", [key.raw()])?;
            self.effects.push(Effect::Journaled(*key));
        }
        Ok(())
    }

    /// Notes what was claimed a while ago and is still being worked on (G6).
    pub(super) fn journal(&mut self, waiting: &mut VecDeque<(Millis, Key)>, linger: Duration) -> Result<()> {
        let (mut keys, let_go) = (Vec::new(), std::mem::take(&mut self.shared.core().unjournal));
        {
            let core = &mut *self.shared.core();
            waiting.extend(core.journal.drain(..).map(|key| (self.now, key)));
            while let Some((claimed, key)) = waiting.front().copied() {
                // A claim from the future was made before the wall clock stepped back.
                if claimed <= self.now && self.now.since(claimed) < linger {
                    break;
                }
                waiting.pop_front();
                let unwritten = core.leases.get(&key).is_some_and(|l| !l.journaled && !l.settling);
                if unwritten {
                    keys.push(key);
                }
            }
        }
        for key in let_go {
            self.execute("DELETE FROM leased WHERE delivery = ?1", [key.raw()])?;
        }
        self.start(&keys)
    }

    /// Deliveries whose rows cannot be read: dead letters, found and untouched otherwise.
    pub(super) fn bury(&mut self, unreadable: &[Taken<Key>]) -> Result<()> {
        for taken in unreadable {
            let key = taken.key.raw();
            let pending = "SELECT attempts IS 0 FROM delivery WHERE id = ?1";
            let pending =
                self.conn.prepare_cached(pending)?.query_row([key], |row| row.get(0)).unwrap_or(true);
            let resting = if pending { &mut self.counts.pending } else { &mut self.counts.scheduled };
            *resting = resting.saturating_sub(1);
            self.counts.dead += 1;
            // What a view must be able to read is made readable; the payload stays as it is.
            let sql = "UPDATE delivery SET state = ?2, reason = ?3, finished_at = ?4,
                mode = CASE WHEN mode IN (0, 1) THEN mode ELSE 0 END,
                why = CASE WHEN why BETWEEN 0 AND 8 THEN why ELSE 0 END WHERE id = ?1";
            let (dead, malformed) = (DeliveryState::Dead.tag(), DeadReason::Malformed.tag());
            self.execute(sql, (key, dead, malformed, rows::raw_millis(self.now)))?;
            self.execute(
                "DELETE FROM due WHERE lane = ?1 AND due = ?2 AND delivery = ?3",
                (taken.lane.0, rows::raw_millis(taken.due), key),
            )?;
            self.execute("DELETE FROM leased WHERE delivery = ?1", [key])?;
            self.effects.push(Effect::Settled(taken.key));
        }
        Ok(())
    }

    /// Leases that ended without a settlement, in this process: the same rule as after a death.
    pub(super) fn recover(&mut self, keys: &[Key]) -> Result<()> {
        for key in keys {
            let wished = self.shared.core().leases.get(key).is_some_and(|leased| leased.cancel_wished);
            self.recover_one(*key, wished)?;
        }
        Ok(())
    }

    /// Everything that the last process left in flight.
    pub(super) fn recover_leased(&mut self) -> Result<()> {
        let mut select = self.conn.prepare("SELECT delivery, cancel FROM leased")?;
        let leased = select.query_map([], |row| Ok((rows::key(row, 0)?, row.get(1)?)))?;
        let leased: Vec<(Key, bool)> = leased.collect::<Result<_>>()?;
        for (key, wished) in leased {
            self.recover_one(key, wished)?;
        }
        self.execute("DELETE FROM leased", [])
    }

    fn recover_one(&mut self, key: Key, cancel_wished: bool) -> Result<()> {
        self.execute("DELETE FROM leased WHERE delivery = ?1", [key.raw()])?;
        self.effects.push(Effect::Settled(key));
        let Some(row) = self.delivery(key)?.filter(|row| !row.state.is_final()) else { return Ok(()) };
        let (resting, progress) = match recover(row.progress) {
            Recovery::Due(progress) if cancel_wished => (Resting::Cancelled, progress),
            Recovery::Due(progress) => (Resting::Due(row.due, progress.why), progress),
            Recovery::Dead(reason, progress) => (Resting::Dead(reason), progress),
        };
        self.rest(key, &row, resting, progress, self.now)
    }

    pub(super) fn save_lane(&self, lane: LaneId, record: LaneRecord) -> Result<()> {
        let sql = "UPDATE lane SET not_before = ?2, why = ?3, allowance = ?4, openings = ?5 WHERE id = ?1";
        self.execute(
            sql,
            (
                lane.0,
                record.not_before.map(|(at, _)| rows::raw_millis(at)),
                record.not_before.map(|(_, why)| pause_tag(why)),
                record.allowance.map(std::num::NonZeroU32::get),
                record.openings,
            ),
        )
    }

    pub(super) fn save_counts(&mut self) -> Result<()> {
        if self.counts == self.counted {
            return Ok(());
        }
        let c = &self.counts;
        let raw = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let sql = "UPDATE counter SET accepted = ?1, pending = ?2, scheduled = ?3, delivered = ?4, dead = ?5,
            cancelled = ?6, expunged = ?7 WHERE id = 1";
        self.execute(
            sql,
            (
                raw(c.accepted),
                raw(c.pending),
                raw(c.scheduled),
                raw(c.delivered),
                raw(c.dead),
                raw(c.cancelled),
                raw(c.expunged),
            ),
        )
    }

    /// The crash windows just before the commit.
    pub(super) fn fault_points(&self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Accept(..) => fault::point("accept-before-commit"),
                Op::Settle(..) => fault::point("settle-before-commit"),
                Op::Start(..) => fault::point("start-before-commit"),
                _ => {}
            }
        }
    }

    /// The commit failed: what memory was told early is taken back, and what memory asked for once is
    /// asked for again.
    pub(super) fn undo(self) {
        let core = &mut *self.shared.core();
        for (lane, due, key) in self.taken_out {
            core.lanes.push(lane, due, key, self.now);
        }
        core.refilling = false;
        for (key, cancel_wished, journaled) in self.wished.into_iter().rev() {
            if let Some(leased) = core.leases.get_mut(&key) {
                (leased.cancel_wished, leased.journaled) = (cancel_wished, journaled);
            }
        }
        for effect in self.effects {
            match effect {
                // An answer for another horizon is ignored, and the lane is thirsty again.
                Effect::Refill(thirst, _) => {
                    let thirst = Thirst { horizon: Horizon::All, ..thirst };
                    core.lanes.refill(&thirst, &[], None, self.now);
                }
                Effect::Journaled(key) => core.journal.push(key),
                _ => {}
            }
        }
    }

    /// The commit is durable.
    pub(super) fn committed(self, ops: Vec<Op>) -> Committed {
        Committed { counts: self.counts, effects: self.effects, answers: self.answers, ops }
    }
}

pub(super) fn pause_tag(why: teimoso_delivery::model::PauseWhy) -> u8 {
    match why {
        teimoso_delivery::model::PauseWhy::RetryAfter => 1,
        teimoso_delivery::model::PauseWhy::Breaker => 2,
    }
}
