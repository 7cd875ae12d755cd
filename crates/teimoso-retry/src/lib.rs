//! Decides whether, when and why an HTTP request may be sent again.
//!
//! Pure on purpose: there is no I/O here, no clock, no random source, no async and no HTTP types. A shell hands in
//! what it knows ([`Try`], [`Outcome`]) and 64 random bits, and [`decide`] answers with a [`Decision`]. The client,
//! the delivery engine, the simulator and `teimoso policy` all ask the same function.
//!
//! Three questions are kept apart, each with its own type:
//!
//! - what is *known* of a request: [`Fate`], and from it [`Effect`];
//! - what is *permitted*: [`RetryPolicy`] and [`Mode`];
//! - what is *decided*: [`Decision`].

mod backoff;
mod budget;
mod decide;
mod fate;
mod jitter;
mod policy;
mod presets;
mod request;
mod retry_after;
mod status;

pub use backoff::{Factor, MAX_WAIT, MIN_WAIT, Schedule};
pub use budget::Budget;
pub use decide::{Decision, GiveUp, Outcome, WaitSource, decide};
pub use fate::{Effect, Fate, Nack, Proof, Refusal, Why};
pub use jitter::{Jitter, PerMille};
pub use policy::{BodyLostRule, PolicyBuilder, PolicyError, RetryPolicy, ScheduleStep, Scope};
pub use presets::{Preset, UnknownPreset};
pub use request::{Method, Mode, Try};
pub use retry_after::{Beyond, Forms, Hint, HintForm, HintWait, RetryAfterRule, Told, parse_retry_after};
pub use status::StatusSet;
