//! How long one event takes: from before its request to its arrival at a fixed rate, and from a stranger's push to its
//! arrival at a sender that was waiting.

use std::time::Duration;

use super::Stand;
use crate::clock;
use crate::event::{self, Events};
use crate::lab::{Lab, Window};
use crate::report::{Ledger, Measure};
use crate::run::latency::{Paced, send};
use crate::trouble::{Doing, Result};

/// Events per second.
const RATE: u32 = 500;
/// Between two pushes: the sender has long been waiting again.
const WAITING: Duration = Duration::from_millis(50);

/// From the API.
///
/// # Errors
/// When an event does not arrive.
pub fn measure(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let scenario = format!("Redis latency at {RATE}/s");
    let Stand { mut server, mut sink, redis } = Stand::start(lab)?;
    let events = Events::new(&event::urls(sink.address, "stamp", event::ENDPOINTS), lab.payload, None)?;
    let window = Window::open(&[&server.process, &sink.process, &redis.process])?;
    let paced = Paced { rate: RATE, seconds: lab.sizes.paced_seconds, events: &events };
    let (count, report) = send(&mut server, &mut sink, &paced)?;
    let spent = window.close()?;
    let measures = [Measure::P50, Measure::P90, Measure::P99, Measure::P999, Measure::Longest];
    for (measure, micros) in measures.into_iter().zip(report.latency) {
        ledger.put(&scenario, measure, micros as f64 / 1e3, &spent);
    }
    let used = spent.watched.get(2).copied().unwrap_or_default();
    ledger.put(&scenario, Measure::StoreMicros, used * 1e6 / count as f64, &spent);
    Ok(())
}

/// From a bare RPUSH, which rings no bell: what wakes the sender is the tracked read of the list.
///
/// # Errors
/// When an event does not arrive.
pub fn wake(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let scenario = "Redis wake by RPUSH";
    let Stand { server, mut sink, redis } = Stand::start(lab)?;
    let url = event::urls(sink.address, "stamp", 1).concat();
    let mut connection = redis.connection()?;
    let window = Window::open(&[&server.process, &sink.process, &redis.process])?;
    // The first one makes the connection to the sink.
    for number in 0..=lab.sizes.wakes {
        clock::pause(WAITING);
        let entry = event::entry(&url, lab.payload, number, clock::wall_micros(), 0)?;
        let push = redis::cmd("RPUSH").arg("webhooks:prontos").arg(entry).exec(&mut connection);
        push.doing("push an event")?;
        sink.wait(|report| report.ok >= number.max(1))?;
        if number == 0 {
            sink.reset()?;
        }
    }
    let spent = window.close()?;
    let report = sink.report(0)?;
    for (measure, rank) in [(Measure::P50, 0), (Measure::P99, 2), (Measure::Longest, 4)] {
        ledger.put(scenario, measure, report.latency[rank] as f64 / 1e3, &spent);
    }
    Ok(())
}
