//! A batch: events in as lines, answers out as lines, both at once on one connection.
//!
//! Lines are cut out of whatever the network brings ([`lines`]), read, gathered into groups of at most
//! [`GROUP_LINES`] and handed to the store, several groups at a time; each group becomes one piece of the
//! answer once it is durable, and the pieces keep the order of the lines ([`stream`]).
//!
//! Everything happens when the answer is polled. A client that does not read its answers is therefore not
//! read from either, and a client that leaves takes with it only what it had no answer for.
//! Deliberately absent: a task, a channel, a queue without an end.

mod group;
mod lines;
mod stream;

pub(crate) use stream::Batch;

/// Events handed to the store in one call.
const GROUP_LINES: usize = 256;
/// Lines that may wait for their answer.
const UNANSWERED_LINES: usize = 4096;
/// Bytes of lines that may wait for their answer; one line is always allowed.
const UNANSWERED_BYTES: usize = 4 * 1024 * 1024;
/// A silent client is waited for this many times as long as a body may take.
const IDLE_FACTOR: u32 = 10;
