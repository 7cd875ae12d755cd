//! A store in memory: nothing survives the process, so it carries no at-most-once.
//!
//! It is also the reference model that the other stores are compared with: plain ordered maps behind
//! one lock, every verb one critical section. Deliberately absent: durability, retention, and any
//! cleverness that would have to be believed instead of read.

mod answers;
mod moving;
mod names;
mod query;
mod replays;
mod rows;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::model::{ContentType, DeliveryId, EventId, Millis, NewEvent, ReplayId};
use crate::ports::{BoxFuture, Clock};
use crate::store::{
    Accepted, AttemptView, CancelOutcome, Claim, ClaimRequest, DeliveryFilter, DeliveryView, EventFilter,
    EventView, LeaseRef, NewReplay, Page, Parcel, Rejection, Replay, RetryOutcome, Settled, Settlement,
    Stats, Store, StoreError, StoreErrorKind, StoreInfo,
};
use state::State;

/// How long a caller's event id and an idempotency key are remembered.
pub const NAMES_LAST: std::time::Duration = std::time::Duration::from_secs(24 * 3_600);

/// A [`Store`] in memory. See the module's text.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    work: Notify,
    at_most_once: bool,
}

impl MemoryStore {
    /// An empty store. `salt` is 64 random bits; two stores with the same one give out the same ids.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, salt: u64) -> Self {
        Self { clock, state: Mutex::new(State::new(salt)), work: Notify::new(), at_most_once: false }
    }

    /// A store that accepts at-most-once as if its memory were durable: the reference for those that
    /// are. Not for use: a process that dies takes the record of what it started with it.
    #[cfg(any(test, feature = "testkit"))]
    #[must_use]
    pub fn reference(clock: Arc<dyn Clock>, salt: u64) -> Self {
        Self { at_most_once: true, ..Self::new(clock, salt) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No verb leaves the state half-changed by a panic: none of them calls foreign code.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state();
        if state.closed {
            return Err(StoreError::new(StoreErrorKind::Closed, "the store is being closed"));
        }
        Ok(state)
    }

    /// Runs a verb on the open state, then wakes whoever waits for work if it made any.
    fn verb<T: Send + 'static>(
        &self,
        verb: impl FnOnce(&mut State, Millis) -> T,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let answer = self.open_state().map(|mut state| verb(&mut state, self.clock.now()));
        if self.state().has_news() {
            self.work.notify_waiters();
        }
        Box::pin(std::future::ready(answer))
    }
}

impl Store for MemoryStore {
    fn accept(
        &self,
        batch: Vec<NewEvent>,
    ) -> BoxFuture<'_, Result<Vec<Result<Accepted, Rejection>>, StoreError>> {
        let at_most_once = self.at_most_once;
        self.verb(move |state, now| {
            batch.into_iter().map(|event| state.accept(&event, at_most_once, now)).collect()
        })
    }

    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, Result<Claim, StoreError>> {
        self.verb(|state, _| state.claim(&request))
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Result<Settled, StoreError>> {
        self.verb(|state, _| {
            let paused = state.settle(batch);
            Settled { ticket: Box::pin(std::future::ready(Ok(()))), paused }
        })
    }

    fn extend(
        &self,
        leases: Vec<LeaseRef>,
        until: Millis,
    ) -> BoxFuture<'_, Result<Vec<LeaseRef>, StoreError>> {
        self.verb(|state, _| state.extend(leases, until))
    }

    fn wait(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let mut woken = std::pin::pin!(self.work.notified());
                woken.as_mut().enable();
                if self.state().has_news() {
                    return;
                }
                woken.await;
            }
        })
    }

    fn cancel(&self, id: DeliveryId) -> BoxFuture<'_, Result<CancelOutcome, StoreError>> {
        self.verb(|state, now| state.cancel(id, now))
    }

    fn retry(&self, id: DeliveryId, explicit: bool) -> BoxFuture<'_, Result<RetryOutcome, StoreError>> {
        self.verb(|state, now| state.retry(id, explicit, now))
    }

    fn start_replay(&self, replay: NewReplay) -> BoxFuture<'_, Result<Replay, StoreError>> {
        self.verb(|state, now| state.start_replay(&replay, now))
    }

    fn replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        self.verb(|state, _| state.replay(id))
    }

    fn cancel_replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        self.verb(|state, now| state.cancel_replay(id, now))
    }

    fn event(&self, id: EventId) -> BoxFuture<'_, Result<Option<EventView>, StoreError>> {
        self.verb(|state, now| state.event(&id, now))
    }

    fn payload(&self, id: EventId) -> BoxFuture<'_, Result<Option<(ContentType, bytes::Bytes)>, StoreError>> {
        self.verb(|state, now| state.payload(&id, now))
    }

    fn events(&self, filter: EventFilter) -> BoxFuture<'_, Result<Page<EventView>, StoreError>> {
        let page = self.open_state().and_then(|state| state.list_events(&filter));
        Box::pin(std::future::ready(page))
    }

    fn delivery(&self, id: DeliveryId) -> BoxFuture<'_, Result<Option<DeliveryView>, StoreError>> {
        self.verb(|state, _| state.delivery(id))
    }

    fn deliveries(&self, filter: DeliveryFilter) -> BoxFuture<'_, Result<Page<DeliveryView>, StoreError>> {
        let page = self.open_state().and_then(|state| state.list_deliveries(&filter));
        Box::pin(std::future::ready(page))
    }

    fn attempts(&self, id: DeliveryId) -> BoxFuture<'_, Result<Vec<AttemptView>, StoreError>> {
        self.verb(|state, _| state.attempts(id))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        self.verb(|state, now| state.stats(now))
    }

    fn export(&self, cursor: Option<String>) -> BoxFuture<'_, Result<Page<Parcel>, StoreError>> {
        let now = self.clock.now();
        let page = self.open_state().and_then(|state| state.export(cursor.as_deref(), now));
        Box::pin(std::future::ready(page))
    }

    fn import(&self, parcels: Vec<Parcel>) -> BoxFuture<'_, Result<(), StoreError>> {
        let now = self.clock.now();
        let kept = self.open_state().and_then(|mut state| state.import(parcels, now));
        Box::pin(std::future::ready(kept))
    }

    fn info(&self) -> StoreInfo {
        StoreInfo {
            kind: "memory",
            description: "memory, nothing survives the process".to_owned(),
            durability: "none",
            at_most_once: self.at_most_once,
        }
    }

    fn health(&self) -> Result<(), StoreError> {
        self.open_state().map(drop)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.state().closed = true;
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests;
