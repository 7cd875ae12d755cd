//! The `teimoso` binary's own parts: arguments, commands, messages and the test destination, as a library so that
//! the tests can drive them. Deliberately absent: delivery, storage and the wire, which are crates of their own;
//! and any promise of stability, because the interface of this package is the command line.

pub mod api_client;
pub mod args;
pub mod clock;
pub mod commands;
pub mod exit;
pub mod messages;
pub mod output;
pub mod sink;
pub mod units;
pub mod wiring;
