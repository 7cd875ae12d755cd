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

/// The writer's side: knows the log's length, wakes the thread.
pub(crate) struct Trigger {
    pages: Arc<AtomicU32>,
    asked_at: u32,
    wake: Sender<()>,
}

impl Trigger {
    pub(crate) fn install(conn: &mut Connection, wake: Sender<()>) -> Self {
        let pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&pages);
        let hook = move |_: &mut rusqlite::hooks::Wal, length: std::ffi::c_int| {
            seen.store(u32::try_from(length).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        // Without the hook the log would only grow; then every commit asks for a checkpoint.
        if conn.wal_hook(Some(hook)).is_err() {
            pages.store(RESET_PAGES, Ordering::Relaxed);
        }
        Self { pages, asked_at: 0, wake }
    }

    /// Between two commits: wakes the thread every 4 MB, and past the cap resets the log here, without
    /// waiting for a reader.
    pub(crate) fn before_commit(&mut self, conn: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.asked_at {
            self.asked_at = 0;
        }
        if pages >= self.asked_at + PASSIVE_PAGES {
            self.asked_at = pages;
            let _ = self.wake.send(());
        }
        if pages >= RESET_PAGES {
            let wait = conn.busy_timeout(Duration::ZERO);
            drop(wait.and_then(|()| conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")));
            drop(conn.busy_timeout(Duration::from_secs(5)));
            self.pages.store(0, Ordering::Relaxed);
            self.asked_at = 0;
        }
    }
}

/// Starts the thread.
pub(crate) fn start(path: &Path) -> Result<(Sender<()>, JoinHandle<()>), OpenError> {
    let conn = schema::open_for_checkpoints(path)?;
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new()
        .name("teimoso-checkpoint".into())
        .spawn(move || run(&conn, &receiver))
        .map_err(|error| OpenError::io(path, &error))?;
    Ok((sender, thread))
}

fn run(conn: &Connection, wake: &Receiver<()>) {
    while wake.recv().is_ok() {
        while wake.try_recv().is_ok() {}
        fault::point("checkpoint");
        // A busy log is tried again at the next wake; nothing depends on this one.
        drop(conn.execute_batch("PRAGMA wal_checkpoint(PASSIVE)"));
    }
}
