//! What may happen to a delivery, decided without doing anything.
//!
//! ```text
//! accept ─▶ pending ─claim─▶ in_flight ─2xx──────────────▶ delivered
//!              ▲                │  ├──retry in──▶ scheduled ─claim─▶ in_flight
//!              │                │  └──give up───▶ dead ─replay─▶ scheduled
//!              └──released──────┘
//! pending, scheduled ─cancel─▶ cancelled        in_flight + cancel: at its end, unless 2xx or dead
//! in_flight ─process dies─▶ due again, the third time dead `poison`; at-most-once: dead `ambiguous`
//! ```
//!
//! One file per question: [`conclude`] after an attempt, [`recover`] after a death, `command` when a
//! person asks. Deliberately absent: stores, clocks, sockets.

mod command;
mod conclude;
mod recover;

pub use command::{Resting, may_retry, replayed, resting};
pub use conclude::{Attempted, Conclusion, conclude};
pub use recover::{MAX_RECOVERIES, Recovery, recover};
