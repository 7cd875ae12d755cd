//! Expiry: ended deliveries leave after their retention, in small steps between two batches.
//!
//! Dropping a large table would stall the one writer for a second; 500 rows take a millisecond. Dead
//! letters stay until they are replayed or expunged.

use std::time::Duration;

use rusqlite::{OptionalExtension, Result};
use teimoso_delivery::model::{DeliveryState, Key, Millis};

use super::accept::hour_of;
use super::batch::Batch;
use super::names::{Names, WINDOW_HOURS};
use crate::fault;
use crate::rows;

/// Rows of one step.
const STEP_ROWS: usize = 500;
/// Between two steps while there is something to expire.
const STEP_PAUSE: Duration = Duration::from_millis(20);
/// Between two looks when there was nothing.
const IDLE_PAUSE: Duration = Duration::from_secs(60);
/// After a full pass, what was skipped (unfinished or dead then) is looked at again.
const PASS_PAUSE: Duration = Duration::from_secs(3600);

pub(super) struct Expiry {
    retention: Duration,
    next_at: Millis,
    cursor: i64,
}

impl Expiry {
    pub(super) fn new(retention: Duration) -> Self {
        Self { retention, next_at: Millis::default(), cursor: -1 }
    }

    pub(super) fn next_step(&self, now: Millis) -> Option<Duration> {
        Some(self.next_at.since(now).max(STEP_PAUSE))
    }

    /// One step, if it is time and the writer has nothing better to do (or the step is long overdue).
    pub(super) fn step(&mut self, batch: &mut Batch<'_>, names: &mut Names, idle: bool) -> Result<()> {
        let overdue = self.next_at.after(Duration::from_secs(1)) <= batch.now;
        if self.next_at > batch.now || !(idle || overdue) {
            return Ok(());
        }
        let retention = i64::try_from(self.retention.as_millis()).unwrap_or(i64::MAX);
        let keep_from = Millis::new(u64::try_from(rows::raw_millis(batch.now) - retention).unwrap_or(0));
        let events = self.expire_events(batch, keep_from)?;
        let keep_names = hour_of(keep_from).min(hour_of(batch.now).saturating_sub(WINDOW_HOURS));
        let old_names = names.has_expired(keep_names);
        if old_names {
            names.expire(batch.conn, STEP_ROWS)?;
        }
        let pause = match events {
            Pass::Going => STEP_PAUSE,
            Pass::Ended if old_names => STEP_PAUSE,
            Pass::Ended if self.cursor < 0 => IDLE_PAUSE,
            Pass::Ended => PASS_PAUSE,
        };
        if matches!(events, Pass::Ended) && pause == PASS_PAUSE {
            self.cursor = -1;
        }
        self.next_at = batch.now.after(pause);
        Ok(())
    }

    fn expire_events(&mut self, batch: &mut Batch<'_>, keep_from: Millis) -> Result<Pass> {
        let sql = "SELECT id, fanout FROM event WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3";
        let until = Key::first_at(keep_from).raw();
        let limit = i64::try_from(STEP_ROWS).unwrap_or(i64::MAX);
        let found: Vec<(i64, i64)> = batch
            .conn
            .prepare_cached(sql)?
            .query_map((self.cursor, until, limit), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_>>()?;
        for (event, fanout) in &found {
            batch.expire_event(*event, *fanout)?;
        }
        fault::point("expire-half");
        let Some((last, _)) = found.last() else { return Ok(Pass::Ended) };
        self.cursor = *last;
        Ok(if found.len() < STEP_ROWS { Pass::Ended } else { Pass::Going })
    }
}

enum Pass {
    Going,
    Ended,
}

impl Batch<'_> {
    /// Removes an event with all its deliveries, if all of them ended well or were cancelled.
    fn expire_event(&mut self, event: i64, fanout: i64) -> Result<()> {
        let mut ended = Vec::new();
        let find = "SELECT state FROM delivery WHERE id = ?1";
        for delivery in event + 1..=event.saturating_add(fanout) {
            let state: Option<u8> =
                self.conn.prepare_cached(find)?.query_row([delivery], |row| row.get(0)).optional()?;
            match state.and_then(DeliveryState::from_tag) {
                None => {}
                Some(state @ (DeliveryState::Delivered | DeliveryState::Cancelled)) => ended.push((delivery, state)),
                Some(_) => return Ok(()),
            }
        }
        for (delivery, state) in ended {
            self.execute("DELETE FROM delivery WHERE id = ?1", [delivery])?;
            self.execute("DELETE FROM attempt WHERE delivery = ?1", [delivery])?;
            let count =
                if state == DeliveryState::Delivered { &mut self.counts.delivered } else { &mut self.counts.cancelled };
            *count = count.saturating_sub(1);
            self.counts.expunged += 1;
        }
        self.execute("DELETE FROM event WHERE id = ?1", [event])
    }
}
