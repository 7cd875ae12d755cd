//! The words of the contract as types that cannot be wrong: validated once, at the edge, then trusted.

mod attempt;
mod delivery;
mod event;
pub mod fate_tag;
mod ids;
mod lane;
mod lease;
mod time;

pub use attempt::{AttemptNumber, AttemptRecord, DecisionName, ErrorKind, PhaseTimings, ResponseRecord};
pub(crate) use delivery::named;
pub use delivery::{DeadReason, DeliveryState, Mode, NextWhy, Progress};
pub use event::{
    Application, ContentType, Destination, Event, EventType, Header, Headers, IdempotencyKey, InvalidValue,
    MAX_HEADER_BYTES, MAX_HEADERS, NewEvent, PolicyName,
};
pub use ids::{DeliveryId, EventId, IdSpace, Key, KeyClock, ReplayId, UnknownId};
pub use lane::{LaneKey, LaneRecord, PauseWhy};
pub use lease::{Lease, Nonce};
pub use time::Millis;
