//! Replay jobs: durable and resumable. Items and cursor move in one commit, so a crash repeats and skips
//! nothing.

use std::time::Duration;

use rusqlite::{Connection, Result, Row};
use teimoso_delivery::model::{DeadReason, DeliveryState, IdSpace, Key, Millis, ReplayId};
use teimoso_delivery::store::{NewReplay, Replay, ReplayFilter, ReplayState, RetryOutcome};

use super::batch::{Answer, Batch};
use crate::fault;
use crate::rows;

/// Between two steps of a running job.
const STEP_PAUSE: Duration = Duration::from_millis(50);
/// Most deliveries of one step.
const STEP_ROWS: u64 = 500;

/// A running job and how far its rate has let it come.
#[derive(Debug)]
struct Job {
    key: Key,
    filter: ReplayFilter,
    rate: u32,
    cursor: i64,
    last_step: Millis,
    /// Thousandths of a delivery that the rate allows but no step took yet.
    allowance: u64,
}

/// The running jobs.
#[derive(Debug, Default)]
pub(super) struct Replays {
    running: Vec<Job>,
}

/// In the order [`read`] reads.
pub(crate) const COLUMNS: &str =
    "id, state, reason, since, until, rate, cursor, estimated, done, failed, created_at, finished_at";

fn filter(row: &Row<'_>) -> Result<ReplayFilter> {
    let instant =
        |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(rows::millis));
    Ok(ReplayFilter {
        reason: row.get::<_, Option<u8>>(2)?.and_then(DeadReason::from_tag),
        since: instant(3)?,
        until: instant(4)?,
    })
}

/// A job's row.
pub(crate) fn read(row: &Row<'_>, ids: IdSpace) -> Result<Replay> {
    Ok(Replay {
        id: Some(ids.replay(rows::key(row, 0)?)),
        state: ReplayState::from_tag(row.get(1)?).ok_or_else(|| rows::unreadable(1, "an unknown state"))?,
        filter: filter(row)?,
        rate: row.get(5)?,
        estimated: row.get::<_, i64>(7)?.unsigned_abs(),
        done: row.get::<_, i64>(8)?.unsigned_abs(),
        failed: row.get::<_, i64>(9)?.unsigned_abs(),
        created_at: rows::millis(row.get(10)?),
        finished_at: row.get::<_, Option<i64>>(11)?.map(rows::millis),
    })
}

/// A job as it stands. For readers too.
pub(crate) fn find(conn: &Connection, id: ReplayId, ids: IdSpace) -> Result<Option<Replay>> {
    use rusqlite::OptionalExtension;
    let Some(key) = ids.replay_key(id) else { return Ok(None) };
    let sql = format!("SELECT {COLUMNS} FROM replay WHERE id = ?1");
    conn.prepare_cached(&sql)?.query_row([key.raw()], |row| read(row, ids)).optional()
}

// `state >= 4` says nothing new; it is what lets the planner use the index of ended deliveries.
const ESTIMATE: &str =
    "SELECT id, reason FROM delivery WHERE state = ?1 AND state >= 4 AND id >= ?2 AND id < ?3";
const READ_ON: &str = "SELECT id, reason FROM delivery
    WHERE state = ?1 AND state >= 4 AND id > ?2 AND id >= ?3 AND id < ?4 ORDER BY id LIMIT 5000";

/// How many dead letters a filter takes now. A count over the dead only; for readers.
pub(crate) fn estimate(conn: &Connection, filter: &ReplayFilter) -> Result<u64> {
    let mut select = conn.prepare_cached(ESTIMATE)?;
    let (from, until) = bounds(filter);
    let mut rows = select.query((DeliveryState::Dead.tag(), from, until))?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += u64::from(takes(filter, row)?);
    }
    Ok(count)
}

fn bounds(filter: &ReplayFilter) -> (i64, i64) {
    let bound = |at: Option<Millis>, otherwise| at.map_or(otherwise, |at| Key::first_at(at).raw());
    (bound(filter.since, 0), bound(filter.until, i64::MAX))
}

fn takes(filter: &ReplayFilter, row: &Row<'_>) -> Result<bool> {
    let reason = row.get::<_, Option<u8>>(1)?.and_then(DeadReason::from_tag);
    Ok(reason.is_some_and(|reason| {
        Key::from_raw(row.get(0).unwrap_or(-1)).is_some_and(|key| filter.takes(reason, key.at()))
    }))
}

impl Replays {
    pub(super) fn load(conn: &Connection) -> Result<Self> {
        let sql = format!("SELECT {COLUMNS} FROM replay WHERE state = ?1");
        let mut select = conn.prepare(&sql)?;
        let job = |row: &Row<'_>| {
            Ok(Job {
                key: rows::key(row, 0)?,
                filter: filter(row)?,
                rate: row.get(5)?,
                cursor: row.get(6)?,
                last_step: Millis::default(),
                allowance: 0,
            })
        };
        let running = select.query_map([ReplayState::Running.tag()], job)?.collect::<Result<_>>()?;
        Ok(Self { running })
    }

    /// Takes over a job that runs.
    pub(super) fn reload(&mut self, conn: &Connection) -> Result<()> {
        *self = Self::load(conn)?;
        Ok(())
    }

    pub(super) fn next_step(&self) -> Option<Duration> {
        (!self.running.is_empty()).then_some(STEP_PAUSE)
    }

    /// Lets every running job go on as far as its rate allows.
    pub(super) fn step(&mut self, batch: &mut Batch<'_>) -> Result<()> {
        let mut still = Vec::new();
        for mut job in std::mem::take(&mut self.running) {
            if job.step(batch)? {
                still.push(job);
            }
        }
        self.running = still;
        Ok(())
    }
}

impl Job {
    /// Whether the job still runs.
    fn step(&mut self, batch: &mut Batch<'_>) -> Result<bool> {
        let elapsed = batch.now.since(self.last_step).min(Duration::from_secs(1));
        self.last_step = batch.now;
        let earned = u64::try_from(elapsed.as_millis()).unwrap_or(1_000) * u64::from(self.rate);
        self.allowance = (self.allowance + earned).min(u64::from(self.rate) * 1_000);
        let want = (self.allowance / 1_000).min(STEP_ROWS);
        if want == 0 {
            return Ok(true);
        }
        let (found, ended) = self.read_on(batch.conn, want)?;
        let (mut done, mut failed) = (0i64, 0i64);
        for key in &found {
            match batch.retry_now(*key, false)? {
                RetryOutcome::Due => done += 1,
                RetryOutcome::NotAllowed(_) | RetryOutcome::NotFound => failed += 1,
            }
        }
        fault::point("replay-half");
        self.allowance -= u64::try_from(found.len()).unwrap_or(want).min(want) * 1_000;
        let (state, at) = match ended {
            true => (ReplayState::Finished, Some(rows::raw_millis(batch.now))),
            false => (ReplayState::Running, None),
        };
        let sql = "UPDATE replay SET state = ?2, cursor = ?3, done = done + ?4, failed = failed + ?5,
            finished_at = ?6 WHERE id = ?1";
        batch.execute(sql, (self.key.raw(), state.tag(), self.cursor, done, failed, at))?;
        Ok(!ended)
    }

    /// The next deliveries the filter takes, and whether the end was reached. Bounded work either way.
    fn read_on(&mut self, conn: &Connection, want: u64) -> Result<(Vec<Key>, bool)> {
        let (from, until) = bounds(&self.filter);
        let mut select = conn.prepare_cached(READ_ON)?;
        let mut rows = select.query((DeliveryState::Dead.tag(), self.cursor, from, until))?;
        let (mut found, mut looked) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            self.cursor = row.get(0)?;
            looked += 1;
            if takes(&self.filter, row)? {
                found.extend(Key::from_raw(self.cursor));
            }
            if found.len() as u64 == want {
                return Ok((found, false));
            }
        }
        Ok((found, looked < 5_000))
    }
}

impl Batch<'_> {
    pub(super) fn start_replay(
        &mut self,
        replays: &mut Replays,
        order: NewReplay,
        estimated: u64,
    ) -> Result<()> {
        let key = self.shared.keys.next(self.now);
        let filter = order.filter;
        let sql =
            format!("INSERT INTO replay({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, -1, ?7, 0, 0, ?8, NULL)");
        self.conn.prepare_cached(&sql)?.execute((
            key.raw(),
            ReplayState::Running.tag(),
            filter.reason.map(DeadReason::tag),
            filter.since.map(rows::raw_millis),
            filter.until.map(rows::raw_millis),
            order.rate,
            i64::try_from(estimated).unwrap_or(i64::MAX),
            rows::raw_millis(self.now),
        ))?;
        let allowance = u64::from(order.rate) * 1_000 / 20;
        replays.running.push(Job {
            key,
            filter,
            rate: order.rate,
            cursor: -1,
            last_step: self.now,
            allowance: allowance.max(1_000),
        });
        let id = Some(self.shared.ids().replay(key));
        self.answers.push_back(Answer::Replay(Replay {
            id,
            state: ReplayState::Running,
            filter,
            rate: order.rate,
            estimated,
            done: 0,
            failed: 0,
            created_at: self.now,
            finished_at: None,
        }));
        Ok(())
    }

    pub(super) fn cancel_replay(&mut self, replays: &mut Replays, id: ReplayId) -> Result<()> {
        if let Some(key) = self.shared.ids().replay_key(id) {
            let sql = "UPDATE replay SET state = ?2, finished_at = ?3 WHERE id = ?1 AND state = ?4";
            let (cancelled, running) = (ReplayState::Cancelled.tag(), ReplayState::Running.tag());
            self.execute(sql, (key.raw(), cancelled, rows::raw_millis(self.now), running))?;
            replays.running.retain(|job| job.key != key);
        }
        let found = find(self.conn, id, self.shared.ids())?;
        self.answers.push_back(Answer::FoundReplay(found));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::plan;

    #[test]
    fn a_job_looks_at_the_dead_only() {
        let index = "SEARCH delivery USING INDEX delivery_ended (state=? AND id>? AND id<?)";
        assert_eq!((plan(ESTIMATE), plan(READ_ON)), (vec![index.to_owned()], vec![index.to_owned()]));
    }
}
