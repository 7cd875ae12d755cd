//! How many per second: each way of sending beside the limit, the one that goes first changing from round to round.

use std::process::Command;
use std::time::Duration;

use super::drain::{Backlog, drain};
use crate::lab::{Lab, Server, Sink, Spent, Window, run_to_end};
use crate::load::single;
use crate::report::{Ledger, Measure};
use crate::trouble::{Doing, Result};
use crate::{clock, event};

/// Producers that send one by one.
const PRODUCERS: usize = 64;
/// The payload at which a throughput run has its usual number of events; larger ones have fewer.
const SMALL_BYTES: usize = 4 * 1_024;
/// When events are due that nobody is to deliver now.
const LATER: Duration = Duration::from_secs(3_600);

/// A stored backlog, delivered.
///
/// # Errors
/// When a delivery fails.
pub fn backlog(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    beside_limit(lab, ledger, "backlog", |lab, ledger| backlog_rate(lab, ledger, "backlog"))
}

/// Backlogs of other payloads.
///
/// # Errors
/// When a delivery fails.
pub fn payloads(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    for bytes in &lab.sizes.payloads {
        let mut lab = Lab { payload: *bytes, ..lab.clone() };
        if *bytes > SMALL_BYTES {
            lab.sizes.events = (lab.sizes.events / 10).max(100);
        }
        let scenario = format!("backlog, {}", in_bytes(*bytes));
        beside_limit(&lab, ledger, &scenario, |lab, ledger| backlog_rate(lab, ledger, &scenario))?;
    }
    Ok(())
}

fn in_bytes(bytes: usize) -> String {
    if bytes >= 1_024 { format!("{} KiB", bytes / 1_024) } else { format!("{bytes} B") }
}

fn backlog_rate(lab: &Lab, ledger: &mut Ledger, scenario: &str) -> Result<f64> {
    let (store, mut sink) = (lab.fresh()?, Sink::start()?);
    let mut server = lab.server(store.path(), &[])?;
    let count = lab.sizes.events;
    let drained = drain(lab, &mut server, &mut sink, &Backlog::embedded(count))?;
    ledger.put(scenario, Measure::Rate, drained.rate, &drained.spent);
    cpu(ledger, scenario, count, &drained.spent);
    ledger.put(scenario, Measure::PeakMemory, server.process.peak_memory()?, &drained.spent);
    Ok(drained.rate)
}

/// CPU of server, sink and producers for ten thousand.
pub(super) fn cpu(ledger: &mut Ledger, scenario: &str, count: u64, spent: &Spent) {
    let per_10k = 10_000.0 / count as f64;
    for (measure, used) in [Measure::Cpu, Measure::SinkCpu].into_iter().zip(&spent.watched) {
        ledger.put(scenario, measure, used * per_10k, spent);
    }
    ledger.put(scenario, Measure::ProducerCpu, spent.own * per_10k, spent);
}

/// Batches accepted and delivered at once.
///
/// # Errors
/// When a delivery fails.
pub fn through(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let scenario = "through";
    beside_limit(lab, ledger, scenario, |lab, ledger| {
        let (store, mut sink) = (lab.fresh()?, Sink::start()?);
        let mut server = lab.server(store.path(), &[])?;
        let count = lab.sizes.events * 2;
        let events = lab.events(&sink, None)?;
        let window = Window::open(&[&server.process, &sink.process])?;
        let began = clock::wall_micros();
        server.load(&events, count, false)?;
        let arrived = sink.wait(|report| report.ok >= count)?;
        server.settled(count)?;
        let spent = window.close()?;
        // From the first byte to the API: the way through is longer than the way out.
        let rate = count as f64 / (arrived.last.saturating_sub(began).max(1) as f64 / 1e6);
        ledger.put(scenario, Measure::Rate, rate, &spent);
        cpu(ledger, scenario, count, &spent);
        Ok(rate)
    })
}

/// Batches accepted, nothing due.
///
/// # Errors
/// When an event is not accepted.
pub fn ingest(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let count = lab.sizes.events * 2;
    beside_limit(lab, ledger, "batch ingest", |lab, ledger| {
        accept(lab, ledger, "batch ingest", count, |server, events| {
            Ok(server.load(events, count, false)?.took)
        })
    })
}

/// One event per request, nothing due.
///
/// # Errors
/// When an event is not accepted.
pub fn single(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let count = lab.sizes.single;
    beside_limit(lab, ledger, "single ingest", |lab, ledger| {
        accept(lab, ledger, "single ingest", count, |server, events| {
            let took = single::load(server.address, events, count, PRODUCERS)?;
            server.sent(count)?;
            Ok(took)
        })
    })
}

fn accept(
    lab: &Lab,
    ledger: &mut Ledger,
    scenario: &str,
    count: u64,
    load: impl FnOnce(&mut Server, &event::Events) -> Result<Duration>,
) -> Result<f64> {
    let (store, sink) = (lab.fresh()?, Sink::start()?);
    let mut server = lab.server(store.path(), &[])?;
    let events = lab.events(&sink, Some(clock::wall().after(LATER)))?;
    let window = Window::open(&[&server.process, &sink.process])?;
    let took = load(&mut server, &events)?;
    let spent = window.close()?;
    let rate = count as f64 / took.as_secs_f64();
    ledger.put(scenario, Measure::Rate, rate, &spent);
    cpu(ledger, scenario, count, &spent);
    Ok(rate)
}

/// Measures both and their ratio. Even rounds begin with the limit, odd ones with ours: a machine that gets slower
/// or faster favours neither.
///
/// # Errors
/// When either fails.
pub(super) fn beside_limit(
    lab: &Lab,
    ledger: &mut Ledger,
    scenario: &str,
    ours: impl Fn(&Lab, &mut Ledger) -> Result<f64>,
) -> Result<()> {
    let (limit, ours) = if ledger.is_reference_first() {
        let limit = limit(lab, ledger)?;
        (limit, ours(lab, ledger)?)
    } else {
        let ours = ours(lab, ledger)?;
        (limit(lab, ledger)?, ours)
    };
    ledger.put_quietly(scenario, Measure::OfLimit, ours / limit);
    Ok(())
}

fn limit(lab: &Lab, ledger: &mut Ledger) -> Result<f64> {
    let mut sink = Sink::start()?;
    let requests = lab.sizes.events * 2;
    let mut command = Command::new(std::env::current_exe().doing("find this program")?);
    command.args(["limit", "--sink", &sink.address.to_string(), "--requests", &requests.to_string()]);
    command.args(["--payload", &lab.payload.to_string()]);
    let window = Window::open(&[&sink.process])?;
    run_to_end("the limit", &mut command)?;
    let spent = window.close()?;
    let rate = sink.report(u64::MAX)?.rate();
    let scenario = if lab.payload == event::PAYLOAD_BYTES {
        "limit".to_owned()
    } else {
        format!("limit, {}", in_bytes(lab.payload))
    };
    let per_10k = 10_000.0 / requests as f64;
    ledger.put(&scenario, Measure::Rate, rate, &spent);
    ledger.put(&scenario, Measure::Cpu, spent.ended * per_10k, &spent);
    ledger.put(&scenario, Measure::SinkCpu, spent.watched.iter().sum::<f64>() * per_10k, &spent);
    Ok(rate)
}
