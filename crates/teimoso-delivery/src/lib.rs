//! The durable delivery engine: what may happen to a delivery, who may work on it and when, and the
//! port through which stores make it last.
//!
//! Data flows one way: accept → store → claim → attempt → decide → settle. The pure part decides
//! ([`machine`], [`lanes`]); one shell does ([`engine`]). Deliberately absent: HTTP, SQL, Redis, clocks
//! and random sources; they come in through ports ([`store::Store`], [`ports`]).

pub mod engine;
pub mod lanes;
pub mod machine;
pub mod memory;
pub mod model;
pub mod ports;
pub mod store;

/// Fates, decisions and hints, which stores keep and the API shows.
pub use teimoso_retry as retry;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
