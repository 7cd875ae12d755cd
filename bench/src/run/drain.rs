//! A backlog and its end: events stored for one instant, then delivered as fast as it goes.
//!
//! Stored with `deliver_at` a little ahead, so that storing and delivering do not overlap; the rate is from the first
//! to the last arrival on the sink's own clock, so that no start-up is in it.

use std::time::Duration;

use crate::clock;
use crate::lab::{Lab, Server, Sink, Spent, Window};
use crate::trouble::{Result, Trouble};

/// Events per second that storing is expected to reach at least, and payload bytes.
const STORED_PER_SECOND: f64 = 20_000.0;
const STORED_BYTES_PER_SECOND: f64 = 50e6;
/// The window opens this long before the instant.
const BEFORE: Duration = Duration::from_millis(100);
/// How often a longer lead is tried when storing takes longer than expected.
const TRIES: u32 = 3;

/// How a drain went.
#[derive(Debug)]
pub struct Drained {
    /// Deliveries per second.
    pub rate: f64,
    /// By server and sink, in this order, until every settlement was durable.
    pub spent: Spent,
}

/// Stores `count` events and watches them being delivered.
///
/// # Errors
/// When they are not all delivered, or storing them takes much longer than expected.
pub fn drain(lab: &Lab, server: &mut Server, sink: &mut Sink, count: u64) -> Result<Drained> {
    let bytes = count as f64 * lab.payload as f64;
    let mut lead = 1.0 + count as f64 / STORED_PER_SECOND + bytes / STORED_BYTES_PER_SECOND;
    for _ in 0..TRIES {
        sink.reset()?;
        let due = clock::now() + Duration::from_secs_f64(lead);
        let events = lab.events(sink, Some(clock::wall().after(Duration::from_secs_f64(lead))))?;
        server.load(&events, count, false)?;
        if clock::now() + BEFORE < due {
            clock::pause_until(due - BEFORE);
            return watch(server, sink, count);
        }
        server.settled(count)?;
        lead *= 3.0;
    }
    Err(Trouble::new("storing a backlog took longer than three times the expected time"))
}

fn watch(server: &mut Server, sink: &mut Sink, count: u64) -> Result<Drained> {
    let window = Window::open(&[&server.process, &sink.process])?;
    let arrived = sink.wait(|report| report.ok >= count)?;
    server.settled(count)?;
    Ok(Drained { rate: arrived.rate(), spent: window.close()? })
}
