//! What tests of the engine and of stores are made of: time that only a test moves, chance with a
//! seed, a wire that plays a script, and the rules every store must keep.
//!
//! Behind the feature `testkit`. Deliberately absent: sockets, files, sleeping, and tokio's own time.

mod chance;
mod clock;
pub mod conformance;
mod faulty;
pub mod model;
mod offer;
mod watch;
mod wire;

pub use chance::SeededEntropy;
pub use clock::{ManualClock, in_virtual_time};
pub use faulty::{Faults, FaultyStore};
pub use offer::{Offer, offer};
pub use watch::{Seen, Watch};
pub use wire::{Play, ScriptedWire, Sent, report};
