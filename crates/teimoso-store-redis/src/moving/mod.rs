//! Moving between stores. Out: the private records, and what waits or is dead in the public keys, as parcels. In: the
//! same records under the same keys, in steps that may be repeated. Deliberately absent: telling whether a fleet is at
//! work, which must not be while it moves.

mod export;
mod import;
mod public;

use teimoso_delivery::model::LaneKey;

pub(crate) use export::page;
pub(crate) use import::import;
pub(crate) use public::Moving;

/// How a lane is called in Redis.
fn lane_name(lane: &LaneKey) -> String {
    format!("{}\n{}", lane.application, lane.address)
}
