//! The file's format: tables, settings, version. Persisted names are law.
//!
//! | table | row | key |
//! |---|---|---|
//! | `event` | what was accepted, payload last | time-ordered key |
//! | `delivery` | where it stands, narrow | time-ordered key, right after its event's |
//! | `due` | the schedule of unfinished deliveries | (lane, due, delivery), clustered |
//! | `attempt` | what was tried | (delivery, number), clustered |
//! | `leased` | what was in flight at the last commit | delivery |
//! | `lane`, `application` | names of queues and tenants | small numbers |
//! | `replay` | durable replay jobs | time-ordered key |
//! | `counter` | the conservation counters | one row |
//! | `name_HHHHHHHH` | digests of caller ids and idempotency keys | digest, one table per hour since the epoch |
//!
//! The schedule is a clustered table of its own: a start reads the head of each lane instead of every
//! row, whatever the backlog and the history.

use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

use crate::error::{OpenError, describe};

/// "tmso": tells `file(1)` and us whose file it is.
const APPLICATION_ID: i32 = 0x746d_736f;
/// The newest format this version writes and reads.
pub(crate) const FORMAT: i32 = 1;

/// How long the writer waits for somebody else's lock: a backup, a shell.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The log's file is started over in place. What a lingering reader made it grow to beyond this goes back to
/// the disk: one and a half times the length at which it is started over.
const LOG_BYTES_KEPT: u32 = 96 << 20;

/// States of `delivery` that an index finds: only the ended ones a person looks for. Written on terminal
/// transitions only, so the hot path never touches it.
const FORMAT_1: &str = "
CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE counter(
    id INTEGER PRIMARY KEY CHECK (id = 1), accepted INTEGER NOT NULL, pending INTEGER NOT NULL,
    scheduled INTEGER NOT NULL, delivered INTEGER NOT NULL, dead INTEGER NOT NULL,
    cancelled INTEGER NOT NULL, expunged INTEGER NOT NULL);
INSERT INTO counter VALUES (1, 0, 0, 0, 0, 0, 0, 0);
CREATE TABLE application(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE lane(
    id INTEGER PRIMARY KEY, application INTEGER NOT NULL, address TEXT NOT NULL,
    not_before INTEGER, why INTEGER, allowance INTEGER, openings INTEGER NOT NULL DEFAULT 0,
    UNIQUE (application, address));
CREATE TABLE event(
    id INTEGER PRIMARY KEY, application INTEGER NOT NULL, fanout INTEGER NOT NULL, name TEXT, type TEXT,
    content_type TEXT, headers TEXT, policy TEXT, url TEXT, payload BLOB NOT NULL);
CREATE TABLE delivery(
    id INTEGER PRIMARY KEY, event INTEGER NOT NULL, lane INTEGER NOT NULL, due INTEGER NOT NULL,
    state INTEGER NOT NULL, mode INTEGER NOT NULL, why INTEGER NOT NULL, attempts INTEGER NOT NULL,
    budget_from INTEGER NOT NULL, first_attempt_at INTEGER, recoveries INTEGER NOT NULL,
    reason INTEGER, finished_at INTEGER);
CREATE INDEX delivery_ended ON delivery(state, id) WHERE state >= 4;
CREATE TABLE due(
    lane INTEGER NOT NULL, due INTEGER NOT NULL, delivery INTEGER NOT NULL,
    PRIMARY KEY (lane, due, delivery)) WITHOUT ROWID;
CREATE TABLE leased(delivery INTEGER PRIMARY KEY, cancel INTEGER NOT NULL);
CREATE TABLE attempt(
    delivery INTEGER NOT NULL, number INTEGER NOT NULL, started_at INTEGER NOT NULL,
    total_us INTEGER NOT NULL, fate INTEGER NOT NULL, status INTEGER, decision INTEGER NOT NULL,
    dns_us INTEGER, connect_us INTEGER, tls_us INTEGER, first_byte_us INTEGER, peer TEXT,
    wait_ms INTEGER, wait_source INTEGER, error_kind INTEGER, error TEXT,
    response_headers TEXT, response_body BLOB, response_truncated INTEGER,
    PRIMARY KEY (delivery, number)) WITHOUT ROWID;
CREATE TABLE replay(
    id INTEGER PRIMARY KEY, state INTEGER NOT NULL, reason INTEGER, since INTEGER, until INTEGER,
    rate INTEGER NOT NULL, cursor INTEGER NOT NULL, estimated INTEGER NOT NULL, done INTEGER NOT NULL,
    failed INTEGER NOT NULL, created_at INTEGER NOT NULL, finished_at INTEGER);
";

/// Opens the file for the one writer, creating or migrating it.
pub(crate) fn open_for_writing(path: &Path) -> Result<Connection, OpenError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|e| OpenError::unusable(path, &e))?;
    prepare(&conn, path).map_err(|error| match error {
        Prepare::Sql(error) => OpenError::unusable(path, &error),
        Prepare::Refused(error) => error,
    })?;
    Ok(conn)
}

enum Prepare {
    Sql(rusqlite::Error),
    Refused(OpenError),
}

impl From<rusqlite::Error> for Prepare {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

fn prepare(conn: &Connection, path: &Path) -> Result<(), Prepare> {
    let application: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let format: i32 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let fresh = application == 0 && format == 0 && tables == 0;
    if !fresh && (application != APPLICATION_ID || format < 1) {
        return Err(Prepare::Refused(OpenError::foreign(path)));
    }
    if format > FORMAT {
        return Err(Prepare::Refused(OpenError::newer(path, format)));
    }
    // Must be set before the first page is written; it lets expiry give space back to the disk.
    conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA page_size = 4096;")?;
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(Prepare::Refused(OpenError::without_wal(path)));
    }
    conn.execute_batch("PRAGMA synchronous = FULL;")?;
    // Checkpoints run off the commit path. A short busy time covers their last moment.
    conn.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -8192;")?;
    conn.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF;")?;
    conn.execute_batch(&format!("PRAGMA journal_size_limit = {LOG_BYTES_KEPT};"))?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    // About forty statements, and one more for every hour in which a name is recognised.
    conn.set_prepared_statement_cache_capacity(128);
    if fresh {
        let version = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};");
        conn.execute_batch(&format!("BEGIN IMMEDIATE; {FORMAT_1} {version} COMMIT;"))?;
    }
    // A directory that cannot be written must be found now, not at the first event.
    conn.execute_batch("BEGIN IMMEDIATE; UPDATE counter SET id = id; COMMIT;")?;
    Ok(())
}

/// Opens the file for reading only. Statements must stay short: a reader holds the WAL back.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -4096;")?;
        conn.busy_timeout(Duration::from_secs(1))?;
        conn.set_prepared_statement_cache_capacity(64);
        Ok(conn)
    };
    open().map_err(|error: rusqlite::Error| OpenError::unusable(path, &error))
}

/// Opens the file for an examination: what is not ours, or is of a newer format, is refused.
pub(crate) fn open_for_looking(path: &Path) -> Result<Connection, OpenError> {
    let conn = open_for_reading(path)?;
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i32>(0));
    let unusable = |error: rusqlite::Error| OpenError::unusable(path, &error);
    let application = number("PRAGMA application_id").map_err(unusable)?;
    let format = number("PRAGMA user_version").map_err(unusable)?;
    if application != APPLICATION_ID || format < 1 {
        return Err(OpenError::foreign(path));
    }
    if format > FORMAT { Err(OpenError::newer(path, format)) } else { Ok(conn) }
}

/// Opens the file for checkpoints.
pub(crate) fn open_for_checkpoints(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -256;",
        )?;
        Ok(conn)
    };
    open().map_err(|error: rusqlite::Error| OpenError::new(describe(path, &error)))
}

/// How SQLite answers a statement on an empty file of this format: one step a line.
#[cfg(test)]
pub(crate) fn plan(sql: &str) -> Vec<String> {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(FORMAT_1).unwrap();
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    explain.raw_query().mapped(|row| row.get(3)).collect::<Result<_, rusqlite::Error>>().unwrap()
}
