//! Names: digests of caller ids and idempotency keys, one table per hour.
//!
//! An index on random keys over all time costs nine times the WAL and four times the CPU; a table that
//! lives an hour stays small and hot. No key, no row. A key or id is recognised for the configured window;
//! the rows stay as long as events do, so that an event is found by its caller's id.

use rusqlite::{Connection, OptionalExtension, Result};
use teimoso_delivery::model::{EventId, Key, Millis, NewEvent};
use teimoso_delivery::store::{Rejection, id_digest, key_digest};

use crate::fault;

/// Hours in which a name is recognised, the current one included: 24 h at least.
pub(crate) const WINDOW_HOURS: u64 = 25;

/// What a name says about an event.
pub(super) enum Named {
    /// It is new, or has no names.
    No,
    /// It is the same request again; perhaps with one more name, which is to be remembered, too.
    Same { key: Key, new_name: bool },
    /// The name belongs to something else.
    Other(Rejection),
}

/// The hours that have a table, newest last.
#[derive(Debug, Default)]
pub(super) struct Names {
    hours: Vec<u64>,
}

/// Whole hours since the epoch.
pub(crate) const fn hour_of(at: Millis) -> u64 {
    at.get() / 3_600_000
}

/// Hours are counted from the epoch: no calendar is needed to order them.
fn table(hour: u64) -> String {
    format!("name_{hour:08}")
}

fn hour_of_table(name: &str) -> Option<u64> {
    name.strip_prefix("name_")?.parse().ok()
}

fn digests(event: &NewEvent) -> impl Iterator<Item = ([u8; 16], Rejection)> {
    let key = event.idempotency_key.as_ref();
    let key = key.map(|key| (key_digest(&event.application, key.as_str()), Rejection::KeyReused));
    let id = match &event.id {
        Some(EventId::Named(id)) => Some((id_digest(&event.application, id), Rejection::IdTaken)),
        Some(EventId::Own(_)) | None => None,
    };
    // The id is the stronger claim: it is the event's own name.
    id.into_iter().chain(key)
}

impl Names {
    pub(super) fn load(conn: &Connection) -> Result<Self> {
        let mut hours = hours(conn)?;
        hours.sort_unstable();
        Ok(Self { hours })
    }

    /// A rolled-back transaction may have taken a new hour's table with it.
    pub(super) fn rolled_back(&mut self, conn: &Connection) {
        if let Ok(names) = Self::load(conn) {
            *self = names;
        }
    }

    pub(super) fn find(&self, conn: &Connection, event: &NewEvent, now: Millis) -> Result<Named> {
        let (mut same, mut new_name) = (None, false);
        for (digest, rejection) in digests(event) {
            match self.known(conn, &digest, now)? {
                Some((fingerprint, key)) if fingerprint == event.fingerprint => same = same.or(Some(key)),
                Some(_) => return Ok(Named::Other(rejection)),
                None => new_name = true,
            }
        }
        Ok(same.map_or(Named::No, |key| Named::Same { key, new_name }))
    }

    fn known(&self, conn: &Connection, digest: &[u8; 16], now: Millis) -> Result<Option<([u8; 16], Key)>> {
        let oldest = hour_of(now).saturating_sub(WINDOW_HOURS - 1);
        for hour in self.hours.iter().rev().take_while(|hour| **hour >= oldest) {
            let known = look_up(conn, *hour, digest)?;
            if known.is_some() {
                return Ok(known);
            }
        }
        Ok(None)
    }

    pub(super) fn remember(
        &mut self,
        conn: &Connection,
        event: &NewEvent,
        key: Key,
        now: Millis,
    ) -> Result<()> {
        for (digest, _) in digests(event) {
            self.remember_digest(conn, &digest, &event.fingerprint, key, hour_of(now))?;
        }
        Ok(())
    }

    /// Remembers one digest as of this hour.
    pub(super) fn remember_digest(
        &mut self,
        conn: &Connection,
        digest: &[u8; 16],
        fingerprint: &[u8; 16],
        key: Key,
        hour: u64,
    ) -> Result<()> {
        if self.hours.last() != Some(&hour) && !self.hours.contains(&hour) {
            conn.execute_batch(&format!(
                    "CREATE TABLE IF NOT EXISTS {}(
                        digest BLOB PRIMARY KEY, fingerprint BLOB NOT NULL, event INTEGER NOT NULL) WITHOUT ROWID",
                    table(hour)
                ))?;
            self.hours.push(hour);
            self.hours.sort_unstable();
        }
        let sql = format!("INSERT OR REPLACE INTO {} VALUES (?1, ?2, ?3)", table(hour));
        conn.prepare_cached(&sql)?.execute((digest, fingerprint, key.raw()))?;
        Ok(())
    }

    /// Whether the oldest hour is older than `keep_from`.
    pub(super) fn has_expired(&self, keep_from: u64) -> bool {
        self.hours.first().is_some_and(|hour| *hour < keep_from)
    }

    /// Deletes up to `rows` names of the oldest hour, and the hour with its last row.
    pub(super) fn expire(&mut self, conn: &Connection, rows: usize) -> Result<()> {
        let Some(hour) = self.hours.first().copied() else { return Ok(()) };
        let table = table(hour);
        let sql = format!("DELETE FROM {table} WHERE digest IN (SELECT digest FROM {table} LIMIT {rows})");
        let deleted = conn.execute(&sql, [])?;
        fault::point("expire-half");
        if deleted < rows {
            conn.execute_batch(&format!("DROP TABLE {table}"))?;
            self.hours.remove(0);
        }
        Ok(())
    }
}

/// The tables of all hours, oldest first, each with its hour. For those that look at all of them.
pub(crate) fn name_tables(conn: &Connection) -> Result<Vec<(u64, String)>> {
    let mut hours = hours(conn)?;
    hours.sort_unstable();
    Ok(hours.into_iter().map(|hour| (hour, table(hour))).collect())
}

fn hours(conn: &Connection) -> Result<Vec<u64>> {
    let mut names = conn.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'name\\_%' ESCAPE '\\'",
    )?;
    let names = names.query_map([], |row| row.get::<_, String>(0))?;
    Ok(names.collect::<Result<Vec<_>>>()?.iter().filter_map(|name| hour_of_table(name)).collect())
}

fn look_up(conn: &Connection, hour: u64, digest: &[u8; 16]) -> Result<Option<([u8; 16], Key)>> {
    let sql = format!("SELECT fingerprint, event FROM {} WHERE digest = ?1", table(hour));
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, crate::rows::key(row, 1)?));
    conn.prepare_cached(&sql)?.query_row([digest], read).optional()
}

/// The event that a caller's id names, over all hours that are kept. For readers.
pub(crate) fn event_named(conn: &Connection, digest: &[u8; 16]) -> Result<Option<Key>> {
    // One snapshot: expiry drops whole hours.
    let snapshot = conn.unchecked_transaction()?;
    let found = event_named_in(&snapshot, digest)?;
    snapshot.commit()?;
    Ok(found)
}

fn event_named_in(conn: &Connection, digest: &[u8; 16]) -> Result<Option<Key>> {
    let mut hours = hours(conn)?;
    hours.sort_unstable();
    for hour in hours.into_iter().rev() {
        if let Some((_, key)) = look_up(conn, hour, digest)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_one_table_and_its_name_leads_back() {
        assert_eq!(table(hour_of(Millis::new(1_798_761_599_000))), "name_00499655");
        for hour in (0..1_000_000).step_by(997) {
            assert_eq!(hour_of_table(&table(hour)), Some(hour));
        }
        assert_eq!(hour_of_table("name_x"), None);
    }
}
