//! Checkpoints off the commit path: a thread copies the log into the file, the writer only starts a log
//! over that has grown past its cap.
//!
//! The log is started over in place, not cut off: a sync of a file that does not grow needs no metadata.
//! Just before, the thread has made a pass, so that next to nothing is left for the writer to copy.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use crate::error::OpenError;
use crate::{fault, schema};

/// Pages of log past which the thread is woken: 4 MB.
const PASSIVE_PAGES: u32 = 1_024;
/// Pages of log past which the writer starts it over between two commits: 64 MB.
const RESTART_PAGES: u32 = 16_384;
/// Pages of log after which a restart that a reader refused is tried again: 1 MB.
const RETRY_PAGES: u32 = 256;

/// The thread, and how it is woken.
pub(crate) struct Checkpointer {
    wake: Sender<()>,
    /// A pass was asked for and has not ended.
    at_work: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The writer's side: knows the log's length, wakes the thread.
pub(crate) struct Trigger {
    pages: Arc<AtomicU32>,
    asked_at: u32,
    /// The pass that was asked for is the one before a restart.
    restart_next: bool,
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
        Self { pages, asked_at: 0, restart_next: false, checkpointer: Some(checkpointer) }
    }

    /// Between two commits: wakes the thread every 4 MB. Past the cap, the log is started over after one
    /// more pass, without waiting for a reader. While the thread is at work, nobody else may.
    pub(crate) fn before_commit(&mut self, conn: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.asked_at {
            self.asked_at = 0;
        }
        let Some(checkpointer) = &self.checkpointer else { return };
        if checkpointer.at_work.load(Ordering::Acquire) {
            return;
        }
        if std::mem::take(&mut self.restart_next) {
            self.restart(conn);
            return;
        }
        let step = if pages < RESTART_PAGES { PASSIVE_PAGES } else { RETRY_PAGES };
        if pages >= self.asked_at + step {
            self.asked_at = pages;
            self.restart_next = pages >= RESTART_PAGES;
            checkpointer.ask();
        }
    }

    fn restart(&mut self, conn: &Connection) {
        drop(conn.busy_timeout(Duration::ZERO));
        let busy = conn.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i64>(0));
        drop(conn.busy_timeout(schema::BUSY_TIMEOUT));
        if busy == Ok(0) {
            self.pages.store(0, Ordering::Relaxed);
            self.asked_at = 0;
        }
    }

    /// Ends the thread, copies what is left of the log and empties it. While the thread is at work
    /// nobody else may.
    pub(crate) fn end(&mut self, conn: &Connection) {
        if let Some(Checkpointer { wake, thread, .. }) = self.checkpointer.take() {
            drop(wake);
            drop(thread.join());
        }
        drop(conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"));
    }
}

impl Checkpointer {
    fn ask(&self) {
        self.at_work.store(true, Ordering::Release);
        if self.wake.send(()).is_err() {
            self.at_work.store(false, Ordering::Release);
        }
    }
}

/// Starts the thread.
pub(crate) fn start(path: &Path) -> Result<Checkpointer, OpenError> {
    let conn = schema::open_for_checkpoints(path)?;
    let (wake, receiver) = channel();
    let at_work = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&at_work);
    let thread = std::thread::Builder::new()
        .name("teimoso-checkpoint".into())
        .spawn(move || run(&conn, &receiver, &done))
        .map_err(|error| OpenError::io(path, &error))?;
    Ok(Checkpointer { wake, at_work, thread })
}

fn run(conn: &Connection, wake: &Receiver<()>, at_work: &AtomicBool) {
    while wake.recv().is_ok() {
        fault::point("checkpoint");
        // A busy log is tried again at the next wake; nothing depends on this one.
        drop(conn.execute_batch("PRAGMA wal_checkpoint(PASSIVE)"));
        at_work.store(false, Ordering::Release);
    }
}
