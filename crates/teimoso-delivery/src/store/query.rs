//! What can be asked: views, filters, keyset pages, counters. Never on the hot path.

use std::sync::Arc;

use crate::model::{
    Application, AttemptRecord, ContentType, DeadReason, DeliveryId, DeliveryState, EventId, EventType,
    Headers, Millis, Mode, NextWhy, PolicyName,
};

/// Most rows of one page.
pub const MAX_PAGE: u32 = 250;

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows. May be fewer than asked for even when more follow: pages bound work, not only size.
    pub data: Vec<T>,
    /// Where the next page starts; `None` at the end. Opaque.
    pub next_cursor: Option<String>,
}

/// Which deliveries.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// In this state.
    pub state: Option<DeliveryState>,
    /// Dead for this reason.
    pub reason: Option<DeadReason>,
    /// Of events of this type.
    pub kind: Option<EventType>,
    /// Accepted at or after.
    pub since: Option<Millis>,
    /// Accepted before.
    pub until: Option<Millis>,
    /// Where to go on.
    pub cursor: Option<String>,
    /// Rows wanted, 1 to [`MAX_PAGE`].
    pub limit: u32,
}

/// Which events.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Of this type.
    pub kind: Option<EventType>,
    /// Accepted at or after.
    pub since: Option<Millis>,
    /// Accepted before.
    pub until: Option<Millis>,
    /// Where to go on.
    pub cursor: Option<String>,
    /// Rows wanted, 1 to [`MAX_PAGE`].
    pub limit: u32,
}

/// An event without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventView {
    /// Its id.
    pub id: EventId,
    /// The tenant.
    pub application: Application,
    /// Its type.
    pub kind: Option<EventType>,
    /// The payload's media type.
    pub content_type: ContentType,
    /// The payload's length in bytes.
    pub payload_bytes: u64,
    /// When it was accepted.
    pub created_at: Millis,
    /// Its deliveries.
    pub deliveries: Vec<DeliveryView>,
}

/// A delivery as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryView {
    /// Its id.
    pub id: DeliveryId,
    /// Its event.
    pub event_id: EventId,
    /// The tenant.
    pub application: Application,
    /// Where it goes.
    pub url: Arc<str>,
    /// Where it stands.
    pub state: DeliveryState,
    /// Attempts settled.
    pub attempts: u32,
    /// Attempts settled before the current budget began.
    pub budget_from: u32,
    /// The event's own policy; `None` is the server's.
    pub policy: Option<PolicyName>,
    /// What repeating may cost.
    pub mode: Mode,
    /// Why it is dead.
    pub reason: Option<DeadReason>,
    /// When the next attempt may start (a paused lane counted in), and why then.
    pub next_attempt: Option<(Millis, NextWhy)>,
    /// When it was accepted.
    pub created_at: Millis,
    /// When it ended.
    pub finished_at: Option<Millis>,
    /// The last attempt's status.
    pub last_status: Option<u16>,
    /// The last attempt's error.
    pub last_error: Option<Box<str>>,
}

/// An attempt with what its request carried besides the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptView {
    /// What was recorded.
    pub record: AttemptRecord,
    /// The event's id: the `webhook-id` header.
    pub event_id: EventId,
    /// The `content-type` header.
    pub content_type: ContentType,
    /// The event's own headers.
    pub headers: Headers,
}

/// The conservation counters, in deliveries (G2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Ever accepted.
    pub accepted: u64,
    /// Never attempted.
    pub pending: u64,
    /// Leased.
    pub in_flight: u64,
    /// Waiting to be attempted again.
    pub scheduled: u64,
    /// Delivered and still kept.
    pub delivered: u64,
    /// Dead letters.
    pub dead: u64,
    /// Cancelled and still kept.
    pub cancelled: u64,
    /// Ended and removed by retention or by a person.
    pub expunged: u64,
}

impl Counts {
    /// Whether every accepted delivery is accounted for exactly once.
    #[must_use]
    pub const fn conserved(&self) -> bool {
        let kept =
            self.pending + self.in_flight + self.scheduled + self.delivered + self.dead + self.cancelled;
        self.accepted == kept + self.expunged
    }
}

/// What an operator asks first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// The conservation counters.
    pub counts: Counts,
    /// The due time of the delivery that is overdue longest, lanes that are paused counted in.
    pub oldest_due: Option<Millis>,
    /// Lanes known.
    pub lanes: u64,
    /// Bytes the store takes.
    pub bytes: u64,
}

/// What a store is and promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreInfo {
    /// `embedded`, `memory`, `redis`.
    pub kind: &'static str,
    /// For the ready line: "embedded at ./teimoso-data".
    pub description: String,
    /// For the answer header `Teimoso-Durability`: `fsync`, `none`, …
    pub durability: &'static str,
    /// Whether it can carry at-most-once (G4).
    pub at_most_once: bool,
}
