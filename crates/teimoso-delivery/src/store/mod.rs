//! The Store port: few verbs, each atomic, each taking a batch, so that one fsync or one round trip
//! carries many.
//!
//! `settle` and `claim` are separate verbs: a store must not make a claim wait for a settlement's fsync.
//! Deliberately absent: which engine keeps the rows, and every policy question.

mod accept;
mod checkup;
mod claim;
mod command;
mod error;
mod moving;
mod query;

use crate::model::{DeliveryId, EventId, NewEvent, ReplayId};
pub use crate::ports::BoxFuture;

pub use accept::{Accepted, Rejection};
pub use checkup::{Checkup, Fact, FactValue, Finding, FindingKind, MAX_EXAMPLES};
pub use claim::{
    Claim, ClaimRequest, Claimed, LEASE, LaneNews, LanePause, LeaseRef, Next, Settled, Settlement, Ticket,
};
pub use command::{
    CancelOutcome, MAX_REPLAY_RATE_PER_SECOND, NewReplay, Replay, ReplayFilter, ReplayState, RetryOutcome,
};
pub use error::{StoreError, StoreErrorKind};
pub use moving::{
    Closing, DeliveryParcel, EventName, EventParcel, LaneParcel, NameParcel, Origin, Parcel, ReplayParcel,
    id_digest, key_digest,
};
pub use query::{
    AttemptView, Counts, DeliveryFilter, DeliveryView, EventFilter, EventView, MAX_PAGE, Page, Stats,
    StoreInfo,
};

/// Most settlements that may wait for durability before `settle` makes its caller wait.
pub const MAX_UNSAVED_SETTLEMENTS: usize = 4_096;

/// Where events, deliveries and attempts last.
///
/// Object safe: batches are large enough that one boxed future per call costs nothing.
pub trait Store: Send + Sync + 'static {
    /// Stores events, their names and their fan-out; all of it durable when this returns (G1).
    ///
    /// One answer per event, in order. A repeated name with the same fingerprint answers the first id.
    ///
    /// # Errors
    /// When the store cannot promise durability: nothing of the batch may be reported as accepted.
    fn accept(
        &self,
        batch: Vec<NewEvent>,
    ) -> BoxFuture<'_, Result<Vec<Result<Accepted, Rejection>>, StoreError>>;

    /// Recovers expired leases and takes what is due, under the lanes' allowances, in fair turns.
    ///
    /// At-most-once deliveries are returned only once their start is durable (G4).
    ///
    /// # Errors
    /// When the store cannot read or, for at-most-once, not write.
    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, Result<Claim, StoreError>>;

    /// Ends leases: delivered, scheduled, dead or released, with the attempt's record.
    ///
    /// Atomic and fenced per delivery. The lane's slot is free when this is *called*; durability is the
    /// returned ticket. Waits only while [`MAX_UNSAVED_SETTLEMENTS`] are unsaved. A settlement whose
    /// lease is gone writes nothing.
    ///
    /// # Errors
    /// When the store is closed.
    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Result<Settled, StoreError>>;

    /// Renews leases until `until`; returns those that are lost, whose attempts must be abandoned.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn extend(
        &self,
        leases: Vec<LeaseRef>,
        until: crate::model::Millis,
    ) -> BoxFuture<'_, Result<Vec<LeaseRef>, StoreError>>;

    /// Completes when something may have become claimable since the last `claim`: within 5 ms of an
    /// accept. Timers for known due times are the caller's.
    fn wait(&self) -> BoxFuture<'_, ()>;

    /// Cancels a delivery. In flight: the wish is kept, a 2xx still wins.
    ///
    /// # Errors
    /// When the store cannot promise durability.
    fn cancel(&self, id: DeliveryId) -> BoxFuture<'_, Result<CancelOutcome, StoreError>>;

    /// Makes a dead, scheduled or cancelled delivery due now, with a fresh attempt budget. A delivered
    /// one only when `explicit`.
    ///
    /// # Errors
    /// When the store cannot promise durability.
    fn retry(&self, id: DeliveryId, explicit: bool) -> BoxFuture<'_, Result<RetryOutcome, StoreError>>;

    /// Starts a durable replay job, or (dry run) only estimates it.
    ///
    /// # Errors
    /// When the store cannot promise durability.
    fn start_replay(&self, replay: NewReplay) -> BoxFuture<'_, Result<Replay, StoreError>>;

    /// A replay job's progress.
    ///
    /// # Errors
    /// When the store cannot read.
    fn replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>>;

    /// Stops a replay job; what it already replayed stays replayed. `None`: no such job.
    ///
    /// # Errors
    /// When the store cannot promise durability.
    fn cancel_replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>>;

    /// An event and its deliveries, by our id or the caller's.
    ///
    /// # Errors
    /// When the store cannot read.
    fn event(&self, id: EventId) -> BoxFuture<'_, Result<Option<EventView>, StoreError>>;

    /// The exact payload of an event, with its content type.
    ///
    /// # Errors
    /// When the store cannot read.
    fn payload(
        &self,
        id: EventId,
    ) -> BoxFuture<'_, Result<Option<(crate::model::ContentType, bytes::Bytes)>, StoreError>>;

    /// Events, newest first.
    ///
    /// # Errors
    /// When the store cannot read.
    fn events(&self, filter: EventFilter) -> BoxFuture<'_, Result<Page<EventView>, StoreError>>;

    /// A delivery.
    ///
    /// # Errors
    /// When the store cannot read.
    fn delivery(&self, id: DeliveryId) -> BoxFuture<'_, Result<Option<DeliveryView>, StoreError>>;

    /// Deliveries by filter, in key order of the store's choice, in pages.
    ///
    /// # Errors
    /// When the store cannot read.
    fn deliveries(&self, filter: DeliveryFilter) -> BoxFuture<'_, Result<Page<DeliveryView>, StoreError>>;

    /// A delivery's settled attempts, oldest first, with what their requests carried.
    ///
    /// # Errors
    /// When the store cannot read.
    fn attempts(&self, id: DeliveryId) -> BoxFuture<'_, Result<Vec<AttemptView>, StoreError>>;

    /// The conservation counters (G2) and what an operator asks first. Kept, never scanned.
    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>>;

    /// Everything that is kept, page by page, as parcels for another store; `None` begins. Nobody may be delivering.
    /// What was in flight is as if its lease had ended.
    ///
    /// # Errors
    /// When the store cannot read, or the cursor is none of its own.
    fn export(&self, cursor: Option<String>) -> BoxFuture<'_, Result<Page<Parcel>, StoreError>>;

    /// Keeps what another store exported, in its order; durable when this returns. What is there already stays as it
    /// is.
    ///
    /// # Errors
    /// When the store is neither empty nor in the middle of this very move, or cannot promise durability.
    fn import(&self, parcels: Vec<Parcel>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// What this store is and promises.
    fn info(&self) -> StoreInfo;

    /// Whether it can take work now; the sentence says why not.
    ///
    /// # Errors
    /// When it is full or failed.
    fn health(&self) -> Result<(), StoreError>;

    /// Completes when everything handed over so far is durable, then stops taking more.
    fn close(&self) -> BoxFuture<'_, ()>;
}
