//! The examination of a store's file: the conservation law, what belongs to nothing, the disk.
//!
//! It looks through a connection of its own that only reads, in chunks, so that it may run beside a server: each
//! chunk is one short snapshot, in which file and counters agree. Only the recount and SQLite's own check take one
//! snapshot each over everything, during which the log cannot be started over (about a second per million
//! deliveries). It heals only while it holds the store's lock: then what it saw is what it changes. Deliberately
//! absent: leases, which live in the server's memory; in the file what is in flight rests.

mod counters;
mod disk;
mod rows;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Result};
use teimoso_delivery::model::IdSpace;
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::Checkup;

use crate::error::OpenError;
use crate::lock::Lock;
use crate::open::FILE;
use crate::schema;

/// How a store is examined.
#[derive(Debug, Clone, Copy)]
pub struct Examination {
    /// Whether what can be healed is healed: only while no process has the store open.
    pub heal: bool,
    /// How long the disk is asked to sync, one small write after the other; at least once.
    pub sync_for: Duration,
}

/// Told how many rows were looked at, and of about how many.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64);

impl Examination {
    /// Looks at the store in `directory`.
    ///
    /// # Errors
    /// One sentence: there is no store, it cannot be opened, or it is in use and should be healed.
    pub fn run(
        self,
        directory: &Path,
        clock: &dyn Clock,
        watch: Watch<'_>,
    ) -> std::result::Result<Checkup, OpenError> {
        let path = directory.join(FILE);
        if !path.exists() {
            return Err(OpenError::absent(directory));
        }
        let _lock = if self.heal { Some(Lock::take(directory)?) } else { None };
        let conn =
            if self.heal { schema::open_for_writing(&path)? } else { schema::open_for_looking(&path)? };
        let unusable = |error: rusqlite::Error| OpenError::unusable(&path, &error);
        let mut checkup = Checkup::default();
        disk::look(directory, self.sync_for, clock, &mut checkup);
        let server = if self.heal { None } else { Lock::holder(directory) };
        if let Some(server) = server {
            checkup.text("in_use_by", server);
        }
        if disk::quick_check(&conn, &mut checkup).map_err(unusable)? {
            let mut visit = Visit { conn: &conn, heal: self.heal, ids: ids(&conn).map_err(unusable)? };
            visit.all(&mut checkup, watch).map_err(unusable)?;
        }
        Ok(checkup)
    }
}

fn ids(conn: &Connection) -> Result<IdSpace> {
    Ok(IdSpace::new(crate::rows::meta(conn, "salt")?.unwrap_or_default().cast_unsigned()))
}

/// One examination under way.
struct Visit<'a> {
    conn: &'a Connection,
    heal: bool,
    ids: IdSpace,
}

impl Visit<'_> {
    fn all(&mut self, checkup: &mut Checkup, watch: Watch<'_>) -> Result<()> {
        let counts = counters::kept(self.conn)?;
        let of = counts.accepted.saturating_sub(counts.expunged);
        self.counters(checkup)?;
        self.deliveries(checkup, &mut |done| watch(done, of))?;
        self.queue(checkup)?;
        self.leases(checkup)?;
        self.attempts(checkup)?;
        self.events(checkup)?;
        self.names(checkup)?;
        // Healing moves deliveries from one state to another, so the counters come last.
        if self.heal { self.recount(checkup) } else { Ok(()) }
    }

    /// One snapshot, or one transaction when something may be healed.
    fn step<T>(&self, look: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let begin = if self.heal { "BEGIN IMMEDIATE" } else { "BEGIN" };
        self.conn.execute_batch(begin)?;
        let seen = look(self.conn);
        let end = if seen.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.conn.execute_batch(end);
        let seen = seen?;
        ended?;
        Ok(seen)
    }
}
