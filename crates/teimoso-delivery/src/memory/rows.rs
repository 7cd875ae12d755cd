//! What is kept, row by row, and the counters that move with every change of a state.

use std::sync::Arc;

use crate::lanes::LaneId;
use crate::model::{AttemptRecord, DeadReason, DeliveryState, Event, Key, Millis, Nonce, Progress};
use crate::store::Counts;

/// An accepted event and its deliveries.
#[derive(Debug)]
pub(super) struct EventRow {
    pub(super) event: Arc<Event>,
    pub(super) deliveries: Vec<Key>,
}

/// A lease as the store sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseRow {
    pub(super) nonce: Nonce,
    pub(super) until: Millis,
}

/// A delivery.
#[derive(Debug)]
pub(super) struct DeliveryRow {
    pub(super) event: Key,
    pub(super) lane: LaneId,
    pub(super) url: Arc<str>,
    pub(super) created_at: Millis,
    pub(super) due: Millis,
    pub(super) state: DeliveryState,
    pub(super) progress: Progress,
    pub(super) lease: Option<LeaseRow>,
    pub(super) cancel_wished: bool,
    pub(super) reason: Option<DeadReason>,
    pub(super) finished_at: Option<Millis>,
    pub(super) attempts: Vec<AttemptRecord>,
}

impl DeliveryRow {
    /// Moves to another state; the counters follow.
    pub(super) fn go(&mut self, state: DeliveryState, counts: &mut Counts) {
        *counter(counts, self.state) -= 1;
        *counter(counts, state) += 1;
        self.state = state;
    }
}

/// The counter of the deliveries in this state.
pub(super) const fn counter(counts: &mut Counts, state: DeliveryState) -> &mut u64 {
    match state {
        DeliveryState::Pending => &mut counts.pending,
        DeliveryState::InFlight => &mut counts.in_flight,
        DeliveryState::Scheduled => &mut counts.scheduled,
        DeliveryState::Delivered => &mut counts.delivered,
        DeliveryState::Dead => &mut counts.dead,
        DeliveryState::Cancelled => &mut counts.cancelled,
    }
}
