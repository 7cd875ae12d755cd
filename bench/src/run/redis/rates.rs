//! How many per second, and what each costs Redis: a backlog by one sender and by two, and the way through.

use super::Stand;
use crate::clock;
use crate::lab::{Lab, Process, Spent, Window};
use crate::report::{Ledger, Measure};
use crate::run::drain::{Backlog, drain};
use crate::run::throughput::{beside_limit, cpu};
use crate::trouble::Result;

/// Events per second that storing is expected to reach at least.
const STORED_PER_SECOND: f64 = 6_000.0;

/// A stored backlog, delivered by one sender and by two.
///
/// # Errors
/// When a delivery fails.
pub fn backlog(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    for (scenario, senders) in [("Redis backlog", 1), ("Redis backlog, 2 senders", 2)] {
        beside_limit(lab, ledger, scenario, |lab, ledger| rate(lab, ledger, scenario, senders))?;
    }
    Ok(())
}

fn rate(lab: &Lab, ledger: &mut Ledger, scenario: &str, senders: usize) -> Result<f64> {
    let mut stand = Stand::start(lab)?;
    let others = (1..senders).map(|_| stand.another_sender(lab)).collect::<Result<Vec<Process>>>()?;
    let beside: Vec<&Process> = [&stand.redis.process].into_iter().chain(&others).collect();
    let count = lab.sizes.events;
    let backlog = Backlog { count, stored_per_second: STORED_PER_SECOND, beside: &beside };
    let drained = drain(lab, &mut stand.server, &mut stand.sink, &backlog)?;
    ledger.put(scenario, Measure::Rate, drained.rate, &drained.spent);
    costs(ledger, scenario, count, &drained.spent);
    Ok(drained.rate)
}

/// CPU of all senders, the sink and the producers, and Redis's per event; the watched are server, sink, Redis, others.
fn costs(ledger: &mut Ledger, scenario: &str, count: u64, spent: &Spent) {
    let [server, sink, redis, others @ ..] = spent.watched.as_slice() else { return };
    let senders = server + others.iter().sum::<f64>();
    cpu(ledger, scenario, count, &Spent { watched: vec![senders, *sink], ..spent.clone() });
    ledger.put(scenario, Measure::StoreMicros, redis * 1e6 / count as f64, spent);
}

/// Batches accepted and delivered at once.
///
/// # Errors
/// When a delivery fails.
pub fn through(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let scenario = "Redis through";
    beside_limit(lab, ledger, scenario, |lab, ledger| {
        let Stand { mut server, mut sink, redis } = Stand::start(lab)?;
        let count = lab.sizes.events;
        let events = lab.events(&sink, None)?;
        let window = Window::open(&[&server.process, &sink.process, &redis.process])?;
        let began = clock::wall_micros();
        server.load(&events, count, false)?;
        let arrived = sink.wait(|report| report.ok >= count)?;
        server.settled(count)?;
        let spent = window.close()?;
        let rate = count as f64 / (arrived.last.saturating_sub(began).max(1) as f64 / 1e6);
        ledger.put(scenario, Measure::Rate, rate, &spent);
        costs(ledger, scenario, count, &spent);
        Ok(rate)
    })
}
