//! Questions: a small pool of read-only connections on threads of their own. Short statements, keyset
//! pages, bounded work; the hot path never waits for them.

mod deliveries;
mod events;

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use teimoso_delivery::model::{EventId, IdSpace, Key};
use teimoso_delivery::store::StoreError;
use tokio::sync::oneshot;

use crate::error::{OpenError, closed, store_error};
use crate::{schema, writer};

const READERS: usize = 2;
/// Rows one page may look at: a filter that matches nothing must not read everything.
const MAX_LOOKED_AT: usize = 5_000;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// The pool.
pub(crate) struct Readers {
    jobs: Sender<Job>,
}

impl Readers {
    pub(crate) fn start(path: &Path) -> Result<(Self, Vec<JoinHandle<()>>), OpenError> {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::new();
        for _ in 0..READERS {
            let conn = schema::open_for_reading(path)?;
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new()
                .name("teimoso-reader".into())
                .spawn(move || {
                    while let Some(job) = next(&queue) {
                        job(&conn);
                    }
                })
                .map_err(|error| OpenError::io(path, &error))?;
            threads.push(thread);
        }
        Ok((Self { jobs }, threads))
    }

    /// Asks one question.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |conn| {
            // Whoever asked may have left meanwhile.
            if !reply.is_closed() {
                drop(reply.send(question(conn).map_err(|error| store_error(&error))));
            }
        });
        self.jobs.send(job).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

fn next(queue: &Mutex<Receiver<Job>>) -> Option<Job> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// The key of an event, by our id or the caller's.
fn event_key(conn: &Connection, id: &EventId, ids: IdSpace) -> rusqlite::Result<Option<Key>> {
    if let Some(key) = ids.event_key(id) {
        return Ok(Some(key));
    }
    let EventId::Named(name) = id else { return Ok(None) };
    // The same name in several applications: the newest event is meant.
    let mut applications = conn.prepare_cached("SELECT name FROM application ORDER BY id LIMIT 1000")?;
    let mut rows = applications.query([])?;
    let mut newest = None;
    while let Some(row) = rows.next()? {
        let digest = teimoso_delivery::store::id_digest(&crate::rows::application(row, 0)?, name);
        newest = newest.max(writer::event_named(conn, &digest)?);
    }
    Ok(newest)
}
