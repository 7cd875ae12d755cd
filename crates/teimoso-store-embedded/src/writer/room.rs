//! Room: how large the file may grow, and what is tried when there is none.
//!
//! Settlements may take an eighth more than events: what was accepted can always be delivered and its end
//! recorded, however full the store is. On a disk without a limit of ours, what fails is tried again.

use rusqlite::{Connection, Result};
use teimoso_delivery::model::Millis;

use super::batch::Batch;
use super::{Op, Writer, roll_back};
use crate::shared::Health;

const PAGE_BYTES: u64 = 4_096;
/// Least pages that only settlements and orders may take: 1 MiB.
const LEAST_RESERVE: u32 = 256;
/// Bytes that must be free before events are taken again.
const PROBE_BYTES: u32 = 256 * 1_024;

/// The file's limit in pages, for events and for everything else.
#[derive(Debug)]
pub(super) struct Room {
    for_events: Option<u32>,
    now: Option<u32>,
}

impl Room {
    pub(super) fn of(max_bytes: Option<u64>) -> Self {
        let pages = |bytes: u64| u32::try_from(bytes / PAGE_BYTES).unwrap_or(u32::MAX);
        Self { for_events: max_bytes.map(pages), now: None }
    }

    /// Sets the limit for the next transaction.
    pub(super) fn set(&mut self, conn: &Connection, events: bool) -> Result<()> {
        let Some(limit) = self.for_events else { return Ok(()) };
        let reserve = if events { 0 } else { (limit / 8).max(LEAST_RESERVE) };
        let wanted = limit.saturating_add(reserve);
        if self.now != Some(wanted) {
            conn.execute_batch(&format!("PRAGMA max_page_count = {wanted}"))?;
            self.now = Some(wanted);
        }
        Ok(())
    }
}

impl Writer {
    /// Once a second while there is no room: what has expired leaves, then room is looked for.
    pub(super) fn look_for_room(&mut self, now: Millis) {
        self.make_room(now);
        if self.room.set(&self.conn, true).is_ok() && self.probe().is_ok() {
            self.shared.set_health(Health::Well);
        }
    }

    /// A commit that succeeded shows that there is room for what it held.
    pub(super) fn note_room(&self, events: bool, saves: bool) {
        match self.shared.health() {
            Health::Crowded | Health::Full if events => self.shared.set_health(Health::Well),
            Health::Full if saves => self.shared.set_health(Health::Crowded),
            _ => {}
        }
    }

    /// What has expired leaves in a commit of its own: nothing else fits before it is gone.
    fn make_room(&mut self, now: Millis) {
        self.expiry.hasten(now);
        let mut batch = Batch::new(&self.conn, &self.shared, now);
        let done = (|| {
            self.room.set(&self.conn, false)?;
            self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            self.expiry.step(&mut batch, &mut self.names, true)?;
            batch.save_counts()?;
            self.conn.prepare_cached("COMMIT")?.execute([])
        })();
        match done {
            Ok(_) => batch.committed(Vec::new()).publish(&self.shared, now),
            Err(_) => {
                roll_back(&self.conn);
                batch.undo();
                self.names.rolled_back(&self.conn);
            }
        }
    }

    /// Takes some pages and writes to the log, then gives the pages back.
    fn probe(&self) -> Result<()> {
        let taken = self.conn.execute_batch(&format!(
            "BEGIN IMMEDIATE; CREATE TABLE room(space BLOB); INSERT INTO room VALUES (zeroblob({PROBE_BYTES}));
             DROP TABLE room; UPDATE counter SET id = id; COMMIT;"
        ));
        if taken.is_err() {
            roll_back(&self.conn);
        }
        taken
    }

    /// The batch did not fit. Events are refused; everything else is tried once more without them, because
    /// it may take the reserve. `None` when there was nothing to refuse.
    pub(super) fn without_events(&mut self, ops: &mut Vec<Op>) -> Option<Vec<Op>> {
        let events: Vec<Op> = ops.extract_if(.., |op| matches!(op, Op::Accept(..))).collect();
        if events.is_empty() {
            return None;
        }
        self.shared.set_health(Health::Crowded);
        Some(events)
    }
}
