//! The same on Redis: rates beside the limit of the same run, latencies, what waiting costs, and what half a million
//! retries or two hundred senders do to it. Every measurement has a `redis-server` of its own on the same cores.

pub mod crowd;
pub mod due;
pub mod latency;
pub mod rates;

use std::path::PathBuf;

use super::storm;
use crate::lab::{Lab, Process, Redis, Server, Sink};
use crate::report::Ledger;
use crate::trouble::Result;

/// A Redis, a server on it, a sink.
struct Stand {
    // Dropped in this order: whoever outlives Redis would only complain.
    server: Server,
    sink: Sink,
    redis: Redis,
}

impl Stand {
    fn start(lab: &Lab) -> Result<Self> {
        let redis = Redis::start(lab)?;
        let server = lab.server(&place(&redis), &[])?;
        Ok(Self { server, sink: Sink::start()?, redis })
    }

    fn another_sender(&self, lab: &Lab) -> Result<Process> {
        lab.worker(&place(&self.redis), &[])
    }
}

fn place(redis: &Redis) -> PathBuf {
    redis.url().into()
}

/// How late a due retry starts.
///
/// # Errors
/// When an event is not delivered at the third attempt.
pub fn storm(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let redis = Redis::start(lab)?;
    storm::on(&place(&redis), lab, ledger, "Redis retry storm")
}
