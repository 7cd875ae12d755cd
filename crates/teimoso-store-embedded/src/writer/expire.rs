//! Expiry: ended deliveries leave after their retention, in small steps between two batches, and the
//! file gives the space back.
//!
//! Dropping a large table would stall the one writer for a second; 500 rows take a millisecond. Dead
//! letters stay until they are replayed or expunged.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result};
use teimoso_delivery::model::{DeliveryState, Key, Millis};
use teimoso_delivery::store::ReplayState;

use super::batch::Batch;
use super::names::{Names, WINDOW_HOURS, hour_of};
use crate::fault;
use crate::rows;
use crate::shared::Health;

/// Events looked at in one step, or names deleted.
const STEP_EVENTS: usize = 500;
/// Rows deleted in one step, an event's deliveries and attempts counted in.
const STEP_ROWS: usize = 2_000;
/// Payload bytes of one step: every page of a deleted payload is written to the list of free pages.
const STEP_BYTES: u64 = 4 << 20;
/// Pages given back in one step: a few milliseconds when each must first be found in the list of free ones.
const STEP_PAGES: u32 = 64;
/// Between two steps while there is something to expire.
const STEP_PAUSE: Duration = Duration::from_millis(20);
/// How late a step may be for the sake of other work: under load 5 000 events leave per second.
const OVERDUE: Duration = Duration::from_millis(80);
/// Between two looks when there was nothing.
const IDLE_PAUSE: Duration = Duration::from_secs(60);
/// After a full pass, what was skipped (unfinished or dead then) is looked at again.
const PASS_PAUSE: Duration = Duration::from_secs(3600);
/// Free pages that are worth keeping, because new rows take them at once: 4 MB …
const SLACK_PAGES: i64 = 1_024;
/// … or this part of the file.
const SLACK_PART: i64 = 8;

pub(super) struct Expiry {
    retention: Duration,
    next_at: Millis,
    cursor: i64,
    /// All rows of this pass are gone; until then the file gives space back.
    giving_back_until: Option<Millis>,
}

impl Expiry {
    pub(super) fn new(retention: Duration) -> Self {
        Self { retention, next_at: Millis::default(), cursor: -1, giving_back_until: None }
    }

    pub(super) fn next_step(&self, now: Millis) -> Option<Duration> {
        Some(self.next_at.since(now).max(STEP_PAUSE))
    }

    /// Whether a step is due: the moment to tidy up, between two transactions.
    pub(super) fn is_due(&self, now: Millis) -> bool {
        self.next_at <= now
    }

    /// Room is needed: the next step is due, and deletes.
    pub(super) fn hasten(&mut self, now: Millis) {
        self.next_at = self.next_at.min(now);
        self.giving_back_until = None;
    }

    /// One step, if it is time and the writer has nothing better to do (or the step is long overdue).
    pub(super) fn step(&mut self, batch: &mut Batch<'_>, names: &mut Names, idle: bool) -> Result<()> {
        let overdue = self.next_at.after(OVERDUE) <= batch.now;
        if self.next_at > batch.now || !(idle || overdue) {
            return Ok(());
        }
        if let Some(rest_until) = self.giving_back_until.take() {
            // Under load the free pages are taken soon enough.
            return self.give_back(batch, rest_until, idle);
        }
        let retention = i64::try_from(self.retention.as_millis()).unwrap_or(i64::MAX);
        let keep_from = Millis::new(u64::try_from(rows::raw_millis(batch.now) - retention).unwrap_or(0));
        let events = self.expire_events(batch, keep_from)?;
        let keep_names = hour_of(keep_from).min(hour_of(batch.now).saturating_sub(WINDOW_HOURS));
        let old_names = names.has_expired(keep_names);
        if old_names {
            names.expire(batch.conn, STEP_EVENTS)?;
        }
        let pause = match events {
            Pass::Going => STEP_PAUSE,
            Pass::Ended if old_names => STEP_PAUSE,
            Pass::Ended if self.cursor < 0 => IDLE_PAUSE,
            Pass::Ended => PASS_PAUSE,
        };
        if pause == STEP_PAUSE {
            self.next_at = batch.now.after(STEP_PAUSE);
            return Ok(());
        }
        forget_replays(batch, keep_from)?;
        self.cursor = -1;
        self.give_back(batch, batch.now.after(pause), idle)
    }

    /// Gives some pages back to the disk, again soon if there are more, else rests.
    fn give_back(&mut self, batch: &Batch<'_>, rest_until: Millis, idle: bool) -> Result<()> {
        let more = idle && batch.shared.health() == Health::Well && give_pages_back(batch.conn)?;
        self.giving_back_until = more.then_some(rest_until);
        self.next_at = if more { batch.now.after(STEP_PAUSE) } else { rest_until };
        Ok(())
    }

    fn expire_events(&mut self, batch: &mut Batch<'_>, keep_from: Millis) -> Result<Pass> {
        let until = Key::first_at(keep_from).raw();
        let limit = i64::try_from(STEP_EVENTS).unwrap_or(i64::MAX);
        let found: Vec<(i64, i64, i64)> = batch
            .conn
            .prepare_cached(EXPIRED)?
            .query_map((self.cursor, until, limit), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_>>()?;
        let (mut rows, mut bytes, mut last_expunged) = (0, 0, None);
        for (event, fanout, payload) in &found {
            if rows >= STEP_ROWS || bytes >= STEP_BYTES {
                break;
            }
            self.cursor = *event;
            if let Some(deleted) = batch.expire_event(*event, *fanout, keep_from)? {
                rows += deleted;
                bytes += payload.unsigned_abs();
                last_expunged = Some(event.saturating_add(*fanout));
            }
        }
        fault::point("expire-half");
        if let Some(last) = last_expunged {
            note_gone(batch, rows::LAST_EXPUNGED, last)?;
        }
        let all = found.last().is_none_or(|(event, _, _)| *event == self.cursor);
        Ok(if all && found.len() < STEP_EVENTS { Pass::Ended } else { Pass::Going })
    }
}

/// Removes replay jobs that ended before `keep_from`, as many as one step may; their keys are not given out again.
fn forget_replays(batch: &mut Batch<'_>, keep_from: Millis) -> Result<()> {
    let limit = i64::try_from(STEP_EVENTS).unwrap_or(i64::MAX);
    let sql = "SELECT id FROM replay WHERE state <> ?1 AND finished_at < ?2 LIMIT ?3";
    let found: Vec<i64> = batch
        .conn
        .prepare_cached(sql)?
        .query_map((ReplayState::Running.tag(), rows::raw_millis(keep_from), limit), |row| row.get(0))?
        .collect::<Result<_>>()?;
    for id in &found {
        batch.execute("DELETE FROM replay WHERE id = ?1", [*id])?;
    }
    found.iter().max().map_or(Ok(()), |last| note_gone(batch, rows::LAST_REPLAY, *last))
}

/// The largest key that was removed: none up to it is given out again.
fn note_gone(batch: &Batch<'_>, name: &str, last: i64) -> Result<()> {
    let sql = "INSERT INTO meta VALUES (?1, ?2)
        ON CONFLICT DO UPDATE SET value = max(value, excluded.value)";
    batch.execute(sql, (name, last))
}

const EXPIRED: &str =
    "SELECT id, fanout, length(payload) FROM event WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3";

enum Pass {
    Going,
    Ended,
}

/// Shortens the file by a step if more of it is free than worth keeping; whether there is more to do.
fn give_pages_back(conn: &Connection) -> Result<bool> {
    let number = |sql: &str| conn.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
    let (free, pages) = (number("PRAGMA freelist_count")?, number("PRAGMA page_count")?);
    let spare = free - SLACK_PAGES.max(pages / SLACK_PART);
    if spare <= 0 {
        return Ok(false);
    }
    let mut vacuum = conn.prepare_cached(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
    let mut steps = vacuum.query([])?;
    while steps.next()?.is_some() {}
    Ok(spare > i64::from(STEP_PAGES))
}

impl Batch<'_> {
    /// Removes an event with all its deliveries, if all of them ended well or were cancelled before
    /// `keep_from`. How many rows that took; `None` when it stays.
    fn expire_event(&mut self, event: i64, fanout: i64, keep_from: Millis) -> Result<Option<usize>> {
        let mut ended = Vec::new();
        let find = "SELECT state, ifnull(finished_at, 0) FROM delivery WHERE id = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, u8>(0)?, row.get::<_, i64>(1)?));
        for delivery in event + 1..=event.saturating_add(fanout) {
            let found = self.conn.prepare_cached(find)?.query_row([delivery], read).optional()?;
            let Some((state, finished_at)) = found else { continue };
            match DeliveryState::from_tag(state) {
                Some(state @ (DeliveryState::Delivered | DeliveryState::Cancelled))
                    if finished_at < rows::raw_millis(keep_from) =>
                {
                    ended.push((delivery, state));
                }
                _ => return Ok(None),
            }
        }
        let mut rows = 1 + ended.len();
        for (delivery, state) in ended {
            self.execute("DELETE FROM delivery WHERE id = ?1", [delivery])?;
            rows +=
                self.conn.prepare_cached("DELETE FROM attempt WHERE delivery = ?1")?.execute([delivery])?;
            let count = if state == DeliveryState::Delivered {
                &mut self.counts.delivered
            } else {
                &mut self.counts.cancelled
            };
            *count = count.saturating_sub(1);
            self.counts.expunged += 1;
        }
        self.execute("DELETE FROM event WHERE id = ?1", [event])?;
        Ok(Some(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_looks_at_expired_events_only() {
        let plan = crate::schema::plan(EXPIRED);
        assert_eq!(plan, ["SEARCH event USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]);
    }
}
