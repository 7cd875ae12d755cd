//! A store that a test can make fail, stall, or lose leases; everything else goes through.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::ManualClock;
use crate::model::{ContentType, DeliveryId, EventId, Millis, NewEvent, ReplayId};
use crate::ports::{BoxFuture, Clock};
use crate::store::{
    Accepted, AttemptView, CancelOutcome, Claim, ClaimRequest, DeliveryFilter, DeliveryView, EventFilter,
    EventView, LeaseRef, NewReplay, Page, Parcel, Rejection, Replay, RetryOutcome, Settled, Settlement,
    Stats, Store, StoreError, StoreErrorKind, StoreInfo,
};

/// What goes wrong at present.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Claims fail with this.
    pub claim_error: Option<StoreErrorKind>,
    /// Claims answer this late.
    pub claim_delay: Duration,
    /// Settlements are handed on but not answered.
    pub settle_stalls: bool,
    /// Settlements fail with this.
    pub settle_error: Option<StoreErrorKind>,
    /// Renewals answer that everything is lost.
    pub extend_loses: bool,
    /// Renewals fail with this.
    pub extend_error: Option<StoreErrorKind>,
    /// Waits for work never complete.
    pub deaf: bool,
    /// Tickets fail with this.
    pub ticket_error: Option<StoreErrorKind>,
    /// Tickets complete only once this is over, as on a full disk.
    pub ticket_stalls: bool,
    /// Claims panic.
    pub claim_panics: bool,
}

/// A [`Store`] with [`Faults`] in front of another. Settlements and
/// renewals do nothing before they are polled, claims do everything at once: the order an engine must not rely on.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    clock: ManualClock,
    faults: Mutex<Faults>,
    settles_stalled: watch::Sender<bool>,
    tickets_stalled: watch::Sender<bool>,
    claims: AtomicUsize,
    extends: AtomicUsize,
}

impl FaultyStore {
    /// No faults yet.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, clock: &ManualClock) -> Self {
        Self {
            inner,
            clock: clock.clone(),
            faults: Mutex::default(),
            settles_stalled: watch::Sender::new(false),
            tickets_stalled: watch::Sender::new(false),
            claims: AtomicUsize::new(0),
            extends: AtomicUsize::new(0),
        }
    }

    /// Changes what goes wrong.
    pub fn set(&self, faults: Faults) {
        *self.lock() = faults;
        self.settles_stalled.send_replace(faults.settle_stalls);
        self.tickets_stalled.send_replace(faults.ticket_stalls);
    }

    /// How many claims were made.
    #[must_use]
    pub fn claims(&self) -> usize {
        self.claims.load(Ordering::SeqCst)
    }

    /// How many renewals were made.
    #[must_use]
    pub fn extends(&self) -> usize {
        self.extends.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> Faults {
        *self.lock()
    }
}

fn fault(kind: Option<StoreErrorKind>) -> Result<(), StoreError> {
    kind.map_or(Ok(()), |kind| Err(StoreError::new(kind, "a scripted fault")))
}

impl Store for FaultyStore {
    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, Result<Claim, StoreError>> {
        self.claims.fetch_add(1, Ordering::SeqCst);
        let faults = self.faults();
        assert!(!faults.claim_panics, "a scripted panic");
        if let Err(error) = fault(faults.claim_error) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let claim = self.inner.claim(request);
        Box::pin(async move {
            let claim = claim.await;
            if !faults.claim_delay.is_zero() {
                self.clock.sleep(faults.claim_delay).await;
            }
            claim
        })
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Result<Settled, StoreError>> {
        let faults = self.faults();
        let mut stalled = self.settles_stalled.subscribe();
        let mut unsaved = self.tickets_stalled.subscribe();
        Box::pin(async move {
            fault(faults.settle_error)?;
            let Settled { ticket, paused } = self.inner.settle(batch).await?;
            // The sender lives as long as this store, which this future borrows.
            let _ = stalled.wait_for(|stalled| !stalled).await;
            let ticket = Box::pin(async move {
                // A store that is gone saves nothing any more.
                let _ = unsaved.wait_for(|unsaved| !unsaved).await;
                fault(faults.ticket_error)?;
                ticket.await
            });
            Ok(Settled { ticket, paused })
        })
    }

    fn extend(
        &self,
        leases: Vec<LeaseRef>,
        until: Millis,
    ) -> BoxFuture<'_, Result<Vec<LeaseRef>, StoreError>> {
        self.extends.fetch_add(1, Ordering::SeqCst);
        let faults = self.faults();
        Box::pin(async move {
            fault(faults.extend_error)?;
            if faults.extend_loses { Ok(leases) } else { self.inner.extend(leases, until).await }
        })
    }

    fn accept(
        &self,
        batch: Vec<NewEvent>,
    ) -> BoxFuture<'_, Result<Vec<Result<Accepted, Rejection>>, StoreError>> {
        self.inner.accept(batch)
    }

    fn wait(&self) -> BoxFuture<'_, ()> {
        if self.faults().deaf { Box::pin(std::future::pending()) } else { self.inner.wait() }
    }

    fn cancel(&self, id: DeliveryId) -> BoxFuture<'_, Result<CancelOutcome, StoreError>> {
        self.inner.cancel(id)
    }

    fn retry(&self, id: DeliveryId, explicit: bool) -> BoxFuture<'_, Result<RetryOutcome, StoreError>> {
        self.inner.retry(id, explicit)
    }

    fn start_replay(&self, replay: NewReplay) -> BoxFuture<'_, Result<Replay, StoreError>> {
        self.inner.start_replay(replay)
    }

    fn replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        self.inner.replay(id)
    }

    fn cancel_replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        self.inner.cancel_replay(id)
    }

    fn event(&self, id: EventId) -> BoxFuture<'_, Result<Option<EventView>, StoreError>> {
        self.inner.event(id)
    }

    fn payload(&self, id: EventId) -> BoxFuture<'_, Result<Option<(ContentType, Bytes)>, StoreError>> {
        self.inner.payload(id)
    }

    fn events(&self, filter: EventFilter) -> BoxFuture<'_, Result<Page<EventView>, StoreError>> {
        self.inner.events(filter)
    }

    fn delivery(&self, id: DeliveryId) -> BoxFuture<'_, Result<Option<DeliveryView>, StoreError>> {
        self.inner.delivery(id)
    }

    fn deliveries(&self, filter: DeliveryFilter) -> BoxFuture<'_, Result<Page<DeliveryView>, StoreError>> {
        self.inner.deliveries(filter)
    }

    fn attempts(&self, id: DeliveryId) -> BoxFuture<'_, Result<Vec<AttemptView>, StoreError>> {
        self.inner.attempts(id)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        self.inner.stats()
    }

    fn export(&self, cursor: Option<String>) -> BoxFuture<'_, Result<Page<Parcel>, StoreError>> {
        self.inner.export(cursor)
    }

    fn import(&self, parcels: Vec<Parcel>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.import(parcels)
    }

    fn info(&self) -> StoreInfo {
        self.inner.info()
    }

    fn health(&self) -> Result<(), StoreError> {
        self.inner.health()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
