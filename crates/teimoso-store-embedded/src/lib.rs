//! The delivery store on SQLite: one file, one writer thread, group commit.
//!
//! | thread | owns | does |
//! |---|---|---|
//! | writer | the write connection | drains its queue, commits once, then answers (`writer`) |
//! | claims | a read connection | reads claimed events back that are no longer in memory (`read_back`) |
//! | readers | two read connections | answer the API's questions (`query`) |
//! | checkpoint | a connection | copies the log into the file, off the commit path (`checkpoint`) |
//!
//! Beside them, `doctor` examines a file through a connection of its own.
//!
//! The due index is in memory up to a horizon per lane, so claims touch no B-tree; leases live in memory
//! only. Deliberately absent: retry policy, HTTP, and any way for two processes to share the file.

mod checkpoint;
mod claim;
mod core;
mod doctor;
mod error;
mod fault;
mod lock;
mod moving;
mod open;
mod query;
mod read_back;
mod rows;
mod schema;
mod settle;
mod shared;
#[cfg(test)]
mod testing;
mod writer;

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use teimoso_delivery::model::{ContentType, DeliveryId, EventId, Millis, NewEvent, ReplayId};
use teimoso_delivery::store::{
    Accepted, AttemptView, BoxFuture, CancelOutcome, Claim, ClaimRequest, DeliveryFilter, DeliveryView,
    EventFilter, EventView, LeaseRef, NewReplay, Page, Parcel, Rejection, Replay, ReplayState, RetryOutcome,
    Settled, Settlement, Stats, Store, StoreError, StoreErrorKind, StoreInfo,
};
use tokio::sync::oneshot;

pub use doctor::{Examination, Watch};
pub use error::OpenError;
use error::closed;
pub use shared::Options;
use shared::Shared;
use writer::Op;

/// Most payload bytes that may wait for the writer; past it a request is answered "busy".
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// See the crate's documentation. Dropping it commits what is queued and closes the file.
pub struct EmbeddedStore {
    shared: Arc<Shared>,
    writer: Sender<Op>,
    read_backs: Sender<read_back::ReadBack>,
    readers: query::Readers,
    directory: PathBuf,
    /// Monotonic time until which every claim is journaled before it is returned.
    cautious_until: Duration,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Released last, when the writer is gone.
    _lock: lock::Lock,
}

impl std::fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedStore").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl EmbeddedStore {
    fn send(&self, op: Op) -> Result<(), StoreError> {
        // Only payloads are refused: a settlement that nobody took would leave its delivery in flight.
        let bytes = op.bytes();
        if bytes > 0 && !self.shared.note_queued(bytes, MAX_QUEUED_BYTES) {
            return Err(StoreError::new(
                StoreErrorKind::Busy,
                "more is waiting for the disk than it takes; try again",
            ));
        }
        self.writer.send(op).map_err(|_| closed())
    }

    async fn ask<T>(&self, op: impl FnOnce(writer::Reply<T>) -> Op) -> Result<T, StoreError> {
        self.shared.check()?;
        let (reply, answer) = oneshot::channel();
        self.send(op(reply))?;
        answer.await.map_err(|_| closed())?
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        let (done, _) = oneshot::channel();
        drop(self.writer.send(Op::Close(done)));
        let threads = self.threads.get_mut().map(std::mem::take).unwrap_or_default();
        for thread in threads {
            drop(thread.join());
        }
    }
}

impl Store for EmbeddedStore {
    fn accept(
        &self,
        batch: Vec<NewEvent>,
    ) -> BoxFuture<'_, Result<Vec<Result<Accepted, Rejection>>, StoreError>> {
        Box::pin(self.ask(|reply| Op::Accept(batch, reply)))
    }

    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, Result<Claim, StoreError>> {
        Box::pin(self.claim_now(request))
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Result<Settled, StoreError>> {
        Box::pin(self.settle_now(batch))
    }

    fn extend(
        &self,
        leases: Vec<LeaseRef>,
        until: Millis,
    ) -> BoxFuture<'_, Result<Vec<LeaseRef>, StoreError>> {
        Box::pin(std::future::ready(Ok(self.extend_now(&leases, until))))
    }

    fn wait(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shared.changed.notified())
    }

    fn cancel(&self, id: DeliveryId) -> BoxFuture<'_, Result<CancelOutcome, StoreError>> {
        Box::pin(self.ask(move |reply| Op::Cancel(id, reply)))
    }

    fn retry(&self, id: DeliveryId, explicit: bool) -> BoxFuture<'_, Result<RetryOutcome, StoreError>> {
        Box::pin(self.ask(move |reply| Op::Retry(id, explicit, reply)))
    }

    fn start_replay(&self, replay: NewReplay) -> BoxFuture<'_, Result<Replay, StoreError>> {
        Box::pin(async move {
            let filter = replay.filter;
            let estimated = self.readers.ask(move |conn| writer::estimate(conn, &filter)).await?;
            if replay.dry_run {
                let created_at = self.shared.clock.now();
                return Ok(Replay {
                    id: None,
                    state: ReplayState::Finished,
                    filter,
                    rate: replay.rate,
                    estimated,
                    done: 0,
                    failed: 0,
                    created_at,
                    finished_at: Some(created_at),
                });
            }
            self.ask(|reply| Op::StartReplay(replay, estimated, reply)).await
        })
    }

    fn replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        let ids = self.shared.ids();
        Box::pin(self.readers.ask(move |conn| writer::find_replay(conn, id, ids)))
    }

    fn cancel_replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        Box::pin(self.ask(move |reply| Op::CancelReplay(id, reply)))
    }

    fn event(&self, id: EventId) -> BoxFuture<'_, Result<Option<EventView>, StoreError>> {
        Box::pin(self.find_event(id))
    }

    fn payload(&self, id: EventId) -> BoxFuture<'_, Result<Option<(ContentType, Bytes)>, StoreError>> {
        Box::pin(self.find_payload(id))
    }

    fn events(&self, filter: EventFilter) -> BoxFuture<'_, Result<Page<EventView>, StoreError>> {
        Box::pin(self.list_events(filter))
    }

    fn delivery(&self, id: DeliveryId) -> BoxFuture<'_, Result<Option<DeliveryView>, StoreError>> {
        Box::pin(self.find_delivery(id))
    }

    fn deliveries(&self, filter: DeliveryFilter) -> BoxFuture<'_, Result<Page<DeliveryView>, StoreError>> {
        Box::pin(self.list_deliveries(filter))
    }

    fn attempts(&self, id: DeliveryId) -> BoxFuture<'_, Result<Vec<AttemptView>, StoreError>> {
        Box::pin(self.find_attempts(id))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        let core = self.shared.core();
        let (counts, oldest_due, lanes) = (core.counts(), core.lanes.oldest_due(), core.lanes.len());
        drop(core);
        let size = |name| std::fs::metadata(self.directory.join(name)).map_or(0, |file| file.len());
        let bytes = size(open::FILE) + size(open::LOG);
        let stats = Stats { counts, oldest_due, lanes: lanes as u64, bytes };
        Box::pin(std::future::ready(Ok(stats)))
    }

    fn export(&self, cursor: Option<String>) -> BoxFuture<'_, Result<Page<Parcel>, StoreError>> {
        Box::pin(self.export_page(cursor))
    }

    fn import(&self, parcels: Vec<Parcel>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.ask(|reply| Op::Import(parcels, reply)))
    }

    fn info(&self) -> StoreInfo {
        StoreInfo {
            kind: "embedded",
            description: format!("embedded at {}", self.directory.display()),
            durability: "fsync",
            at_most_once: true,
        }
    }

    fn health(&self) -> Result<(), StoreError> {
        self.shared.check_room()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let (done, closed) = oneshot::channel();
            if self.writer.send(Op::Close(done)).is_ok() {
                drop(closed.await);
            }
        })
    }
}
