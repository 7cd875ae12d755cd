//! What senders that wait cost Redis: two that have nothing to do, and two hundred that share fifty events a second.

use std::time::Duration;

use super::Stand;
use crate::event::{self, Events};
use crate::lab::{Lab, Process, Window};
use crate::load::paced;
use crate::report::{Ledger, Measure};
use crate::trouble::Result;
use crate::{clock, procfs};

/// Everybody has come to rest in this time.
const REST: Duration = Duration::from_secs(3);
/// Events per second of the fleet.
const RATE: u32 = 50;

/// Two senders with nothing to do.
///
/// # Errors
/// When one does not start.
pub fn idle(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let scenario = "Redis idle, 2 senders";
    let stand = Stand::start(lab)?;
    let other = stand.another_sender(lab)?;
    let time = Duration::from_secs(lab.sizes.idle.1);
    clock::pause(REST);
    let window = Window::open(&[&stand.server.process, &other, &stand.redis.process])?;
    let before = procfs::threads(stand.redis.process.pid())?;
    clock::pause(time);
    let after = procfs::threads(stand.redis.process.pid())?;
    let spent = window.close()?;
    let per_second = 1.0 / time.as_secs_f64();
    ledger.put(scenario, Measure::StoreCore, (after.cpu - before.cpu) * per_second * 100.0, &spent);
    // Apart from the CPU: whoever watches Redis costs it something.
    let commands = stand.redis.commands_within(time)? as f64;
    ledger.put(scenario, Measure::StoreCommands, commands * per_second / 2.0, &spent);
    Ok(())
}

/// Many senders, each a process of its own, and few events.
///
/// # Errors
/// When one does not start, or an event does not arrive.
pub fn fleet(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let scenario = format!("Redis, {} senders at {RATE}/s", lab.sizes.fleet);
    let Stand { mut server, mut sink, redis } = Stand::start(lab)?;
    let place = super::place(&redis);
    let _others = (1..lab.sizes.fleet).map(|_| lab.worker(&place, &[])).collect::<Result<Vec<Process>>>()?;
    clock::pause(REST);
    let events = Events::new(&event::urls(sink.address, "stamp", event::ENDPOINTS), lab.payload, None)?;
    let window = Window::open(&[&server.process, &sink.process, &redis.process])?;
    let (began, before) = (clock::now(), procfs::threads(redis.process.pid())?);
    let time = Duration::from_secs(lab.sizes.paced_seconds);
    let sent = paced::load(server.address, &events, RATE, time)?;
    server.sent(sent.events)?;
    sink.wait(|report| report.ok >= sent.events)?;
    let (took, after) = (began.elapsed(), procfs::threads(redis.process.pid())?);
    let spent = window.close()?;
    let core = (after.cpu - before.cpu) / took.as_secs_f64() * 100.0;
    ledger.put(&scenario, Measure::StoreCore, core, &spent);
    let latency = sink.report(sent.began_micros)?.latency;
    ledger.put(&scenario, Measure::P99, latency[2] as f64 / 1e3, &spent);
    Ok(())
}
