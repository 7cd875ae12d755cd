//! From the moment before an event is sent to the API until its delivery arrives, at fixed rates. The acceptance with
//! its fsync is in it.

use std::time::Duration;

use crate::event;
use crate::event::Events;
use crate::lab::{Lab, Server, Sink, Window};
use crate::load::paced;
use crate::report::{Ledger, Measure};
use crate::sink::Report;
use crate::trouble::{Result, Trouble};

/// Connections are made and caches filled in this time, which is not counted.
const WARM_UP: Duration = Duration::from_secs(1);

/// Every rate on a fresh server.
///
/// # Errors
/// When an event does not arrive.
pub fn measure(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    for rate in &lab.sizes.rates {
        let scenario = format!("latency at {rate}/s");
        let (store, mut sink) = (lab.fresh()?, Sink::start()?);
        let mut server = lab.server(store.path(), &[])?;
        let events = Events::new(&event::urls(sink.address, "stamp", event::ENDPOINTS), lab.payload, None)?;
        let window = Window::open(&[&server.process, &sink.process])?;
        let paced = Paced { rate: *rate, seconds: lab.sizes.paced_seconds, events: &events };
        let (count, report) = send(&mut server, &mut sink, &paced)?;
        let spent = window.close()?;
        let measures = [Measure::P50, Measure::P90, Measure::P99, Measure::P999, Measure::Longest];
        for (measure, micros) in measures.into_iter().zip(report.latency) {
            ledger.put(&scenario, measure, micros as f64 / 1e3, &spent);
        }
        let used = spent.watched.first().copied().unwrap_or_default();
        ledger.put(&scenario, Measure::Cpu, used * 10_000.0 / count as f64, &spent);
    }
    Ok(())
}

/// A paced run.
#[derive(Debug)]
pub struct Paced<'a> {
    /// Events per second.
    pub rate: u32,
    /// For so long, the warm-up aside.
    pub seconds: u64,
    /// Which ones; they go to paths whose stamps the sink looks at.
    pub events: &'a Events,
}

/// Sends, waits until all have arrived, and returns how many there were and their latencies after the warm-up.
///
/// # Errors
/// When an event does not arrive.
pub fn send(server: &mut Server, sink: &mut Sink, paced: &Paced<'_>) -> Result<(u64, Report)> {
    let duration = WARM_UP + Duration::from_secs(paced.seconds);
    let before = sink.report(u64::MAX)?.ok;
    let sent = paced::load(server.address, paced.events, paced.rate, duration)?;
    server.sent(sent.events)?;
    sink.wait(|report| report.ok >= before + sent.events)?;
    server.settled(sent.events)?;
    let warm_up = u64::try_from(WARM_UP.as_micros()).unwrap_or(0);
    let report = sink.report(sent.began_micros + warm_up)?;
    if report.stamped == 0 {
        return Err(Trouble::new("no stamp arrived after the warm-up"));
    }
    Ok((sent.events, report))
}
