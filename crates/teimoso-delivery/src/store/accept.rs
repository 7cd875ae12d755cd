//! What a producer is told.

use crate::model::{DeliveryId, DeliveryState, EventId};

/// An accepted event: durable, with its deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The event's id, the same when the request is repeated.
    pub event: EventId,
    /// Its deliveries as they stood when the answer was made. Empty when no endpoint matched.
    pub deliveries: Vec<(DeliveryId, DeliveryState)>,
    /// Whether a name was repeated and this is the first request's answer.
    pub replayed: bool,
}

/// Why one event of a batch is not accepted, while its siblings may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The caller's id was used for another event (409).
    #[error("this id was already used for an event with another content")]
    IdTaken,
    /// The idempotency key was used for another request (422).
    #[error("this idempotency key was already used for a request with another content")]
    KeyReused,
    /// The store cannot carry at-most-once (422).
    #[error("this store cannot carry the mode at_most_once")]
    ModeUnavailable,
    /// More lanes than the store keeps (503).
    #[error("too many lanes: more than {} different destinations have deliveries", crate::lanes::MAX_LANES)]
    TooManyLanes,
}
