//! A backlog and its end: events stored for one instant, then delivered as fast as it goes.
//!
//! Stored with `deliver_at` a little ahead, so that storing and delivering do not overlap; the rate is from the first
//! to the last arrival on the sink's own clock, so that no start-up is in it.

use std::time::Duration;

use crate::clock;
use crate::lab::{Lab, Process, Server, Sink, Spent, Window};
use crate::trouble::{Result, Trouble};

/// Payload bytes per second that storing is expected to reach at least.
const STORED_BYTES_PER_SECOND: f64 = 50e6;
/// The window opens this long before the instant.
const BEFORE: Duration = Duration::from_millis(100);
/// How often a longer lead is tried when storing takes longer than expected.
const TRIES: u32 = 3;

/// What is to be drained.
#[derive(Debug)]
pub struct Backlog<'a> {
    /// Events.
    pub count: u64,
    /// Events per second that storing is expected to reach at least.
    pub stored_per_second: f64,
    /// Who works beside the server.
    pub beside: &'a [&'a Process],
}

impl Backlog<'_> {
    /// For a server that stores and delivers alone.
    pub const fn embedded(count: u64) -> Self {
        Self { count, stored_per_second: 20_000.0, beside: &[] }
    }
}

/// How a drain went.
#[derive(Debug)]
pub struct Drained {
    /// Deliveries per second.
    pub rate: f64,
    /// By server, sink, and whoever worked beside them, in this order, until every settlement was durable.
    pub spent: Spent,
}

/// Stores the events and watches them being delivered.
///
/// # Errors
/// When they are not all delivered, or storing them takes much longer than expected.
pub fn drain(lab: &Lab, server: &mut Server, sink: &mut Sink, backlog: &Backlog<'_>) -> Result<Drained> {
    let count = backlog.count;
    let bytes = count as f64 * lab.payload as f64;
    let mut lead = 1.0 + count as f64 / backlog.stored_per_second + bytes / STORED_BYTES_PER_SECOND;
    for _ in 0..TRIES {
        sink.reset()?;
        let due = clock::now() + Duration::from_secs_f64(lead);
        let events = lab.events(sink, Some(clock::wall().after(Duration::from_secs_f64(lead))))?;
        server.load(&events, count, false)?;
        if clock::now() + BEFORE < due {
            clock::pause_until(due - BEFORE);
            return watch(server, sink, backlog);
        }
        server.settled(count)?;
        lead *= 3.0;
    }
    Err(Trouble::new("storing a backlog took longer than three times the expected time"))
}

fn watch(server: &mut Server, sink: &mut Sink, backlog: &Backlog<'_>) -> Result<Drained> {
    let count = backlog.count;
    let window = Window::open(&[&[&server.process, &sink.process], backlog.beside].concat())?;
    let arrived = sink.wait(|report| report.ok >= count)?;
    server.settled(count)?;
    Ok(Drained { rate: arrived.rate(), spent: window.close()? })
}
