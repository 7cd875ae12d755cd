//! Checkpoints off the commit path: a thread copies the log into the file, the writer only resets a log
//! that has grown past its cap.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use crate::error::OpenError;
use crate::{fault, schema};

/// Pages of log past which the thread is woken: 4 MB.
const PASSIVE_PAGES: u32 = 1_024;
/// Pages of log past which the writer resets it between two commits: 64 MB.
const RESET_PAGES: u32 = 16_384;
/// Pages of log after which a reset that was refused, by a reader or by the thread, is tried again: 1 MB.
const RETRY_PAGES: u32 = 256;

/// The thread, and how it is woken.
pub(crate) struct Checkpointer {
    wake: Sender<()>,
    thread: JoinHandle<()>,
}

/// The writer's side: knows the log's length, wakes the thread.
pub(crate) struct Trigger {
    pages: Arc<AtomicU32>,
    asked_at: u32,
    /// `None` once it has ended.
    checkpointer: Option<Checkpointer>,
}

impl Trigger {
    pub(crate) fn install(conn: &mut Connection, checkpointer: Checkpointer) -> Self {
        let pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&pages);
        let hook = move |_: &mut rusqlite::hooks::Wal, length: std::ffi::c_int| {
            seen.store(u32::try_from(length).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        // Without the hook the log would only grow: better a slow commit now and then.
        if conn.wal_hook(Some(hook)).is_err() {
            drop(conn.execute_batch(&format!("PRAGMA wal_autocheckpoint = {PASSIVE_PAGES}")));
        }
        Self { pages, asked_at: 0, checkpointer: Some(checkpointer) }
    }

    /// Between two commits: wakes the thread every 4 MB, and past the cap resets the log here, without
    /// waiting for a reader. Past the cap the thread is left asleep: while it works, nobody else may.
    pub(crate) fn before_commit(&mut self, conn: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.asked_at {
            self.asked_at = 0;
        }
        let step = if pages < RESET_PAGES { PASSIVE_PAGES } else { RETRY_PAGES };
        if pages < self.asked_at + step {
            return;
        }
        self.asked_at = pages;
        if pages >= RESET_PAGES {
            self.reset(conn);
        } else {
            let _ = self.checkpointer.as_ref().map(|checkpointer| checkpointer.wake.send(()));
        }
    }

    fn reset(&mut self, conn: &Connection) {
        drop(conn.busy_timeout(Duration::ZERO));
        let busy = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        drop(conn.busy_timeout(schema::BUSY_TIMEOUT));
        if busy == Ok(0) {
            self.pages.store(0, Ordering::Relaxed);
            self.asked_at = 0;
        }
    }

    /// Ends the thread, copies what is left of the log and empties it. While the thread is at work
    /// nobody else may.
    pub(crate) fn end(&mut self, conn: &Connection) {
        if let Some(Checkpointer { wake, thread }) = self.checkpointer.take() {
            drop(wake);
            drop(thread.join());
        }
        drop(conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"));
    }
}

/// Starts the thread.
pub(crate) fn start(path: &Path) -> Result<Checkpointer, OpenError> {
    let conn = schema::open_for_checkpoints(path)?;
    let (wake, receiver) = channel();
    let thread = std::thread::Builder::new()
        .name("teimoso-checkpoint".into())
        .spawn(move || run(&conn, &receiver))
        .map_err(|error| OpenError::io(path, &error))?;
    Ok(Checkpointer { wake, thread })
}

fn run(conn: &Connection, wake: &Receiver<()>) {
    while wake.recv().is_ok() {
        while wake.try_recv().is_ok() {}
        fault::point("checkpoint");
        // A busy log is tried again at the next wake; nothing depends on this one.
        drop(conn.execute_batch("PRAGMA wal_checkpoint(PASSIVE)"));
    }
}
