//! Reading claimed deliveries and their events back from the file, on a thread and a connection of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};
use teimoso_delivery::lanes::Taken;
use teimoso_delivery::model::{Event, IdSpace, Key, Progress};
use teimoso_delivery::store::StoreError;
use tokio::sync::oneshot;

use crate::error::{OpenError, is_fatal, store_error};
use crate::rows::{self, EVENT_HEAD_COLUMNS, EventHead, event_columns, progress_columns};
use crate::schema;

/// Keys to read back, and where the rows go.
pub(crate) struct ReadBack {
    pub(crate) taken: Vec<Taken<Key>>,
    pub(crate) ids: IdSpace,
    pub(crate) reply: oneshot::Sender<Result<Rows, StoreError>>,
}

/// What was found for each.
pub(crate) type Rows = Vec<(Taken<Key>, Found)>;

/// What the file says of a delivery that was due.
pub(crate) enum Found {
    /// All of it.
    Whole(Loaded),
    /// It is no longer unfinished.
    Ended,
    /// Its row or its event's is damaged, or of a newer writer.
    Unreadable,
}

/// A delivery and its event as the file has them.
pub(crate) struct Loaded {
    pub(crate) event: Arc<Event>,
    pub(crate) url: Option<Arc<str>>,
    pub(crate) progress: Progress,
}

/// Starts the thread.
pub(crate) fn start(path: &Path) -> Result<(Sender<ReadBack>, JoinHandle<()>), OpenError> {
    let conn = schema::open_for_reading(path)?;
    let (sender, receiver) = channel::<ReadBack>();
    let thread = std::thread::Builder::new()
        .name("teimoso-claims".into())
        .spawn(move || {
            while let Ok(read_back) = receiver.recv() {
                let rows = load(&conn, &read_back.taken, read_back.ids).map_err(|error| store_error(&error));
                drop(read_back.reply.send(rows));
            }
        })
        .map_err(|error| OpenError::io(path, &error))?;
    Ok((sender, thread))
}

const SQL: &str = concat!(
    "SELECT ",
    event_columns!(),
    ", e.payload, ",
    progress_columns!(),
    " FROM delivery d JOIN event e ON e.id = d.event JOIN application a ON a.id = e.application",
    " WHERE d.id = ?1 AND d.state < 3"
);

fn load(conn: &Connection, taken: &[Taken<Key>], ids: IdSpace) -> rusqlite::Result<Rows> {
    // One read transaction for the batch: one snapshot, one lock.
    conn.prepare_cached("BEGIN")?.execute([])?;
    let rows = load_in_snapshot(conn, taken, ids);
    conn.prepare_cached("COMMIT")?.execute([])?;
    rows
}

fn load_in_snapshot(conn: &Connection, taken: &[Taken<Key>], ids: IdSpace) -> rusqlite::Result<Rows> {
    let mut select = conn.prepare_cached(SQL)?;
    let mut rows = Vec::with_capacity(taken.len());
    for taken in taken {
        let found = match select.query_row([taken.key.raw()], |row| read(row, ids)).optional() {
            Ok(Some(loaded)) => Found::Whole(loaded),
            Ok(None) => Found::Ended,
            // One damaged row must not hold up every other delivery.
            Err(error) if !is_fatal(&error) => Found::Unreadable,
            Err(error) => return Err(error),
        };
        rows.push((*taken, found));
    }
    Ok(rows)
}

fn read(row: &Row<'_>, ids: IdSpace) -> rusqlite::Result<Loaded> {
    let payload = row.get_ref(EVENT_HEAD_COLUMNS)?.as_blob()?;
    let head = EventHead::read(row, 0, ids)?;
    let url = head.url.clone();
    let event = Arc::new(head.with_payload(Bytes::copy_from_slice(payload)));
    Ok(Loaded { event, url, progress: rows::progress(row, EVENT_HEAD_COLUMNS + 1)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_back_by_keys_alone() {
        let steps = schema::plan(SQL);
        let by_key = |table: &&str| format!("SEARCH {table} USING INTEGER PRIMARY KEY (rowid=?)");
        assert_eq!(steps, ["d", "e", "a"].iter().map(by_key).collect::<Vec<_>>());
    }
}
