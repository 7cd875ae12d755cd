//! The store alone, in this process: the embedded store beside a bare append log, the physical reference.
//!
//! Producers wait for durability before their next event; one consumer claims in batches and ends what it claimed,
//! with a few batches unsaved at a time. Both are driven by the same code on the same runtime, in alternation.
//! Deliberately absent: HTTP.

mod embedded;
mod load;
mod raw_log;

use std::path::PathBuf;

use bytes::Bytes;

use crate::args::StoreArgs;
use crate::lab::{Window, folder, fresh_in};
use crate::report::{self, Ledger, Measure};
use crate::trouble::{Doing, Result};
use crate::{event, stats};
pub use embedded::{Embedded, settlement};
use load::Cycle;
use raw_log::RawLog;

/// Producers of a cycle.
const CYCLE_PRODUCERS: usize = 256;

/// A durable queue, as far as the comparison needs one.
pub trait Subject: 'static {
    /// A claimed event.
    type Item;

    /// Stores one event; durable when it returns.
    async fn enqueue(&self, payload: &Bytes) -> Result<()>;

    /// Takes up to so many due events, payloads read.
    async fn claim(&self, want: usize) -> Result<Vec<Self::Item>>;

    /// Ends them, or with `log` first records an attempt of each and puts every tenth back once.
    async fn end(&self, items: Vec<Self::Item>, log: bool) -> Result<Ended>;

    /// Completes when there may be something to claim.
    async fn wait(&self);
}

/// What became of a batch.
pub struct Ended {
    /// How many will not come back.
    pub count: u64,
    /// Completes when it is durable.
    pub saved: std::pin::Pin<Box<dyn Future<Output = Result<()>>>>,
}

#[derive(Debug, Clone, Copy)]
enum Run {
    Enqueue { producers: usize },
    Cycle { log: bool },
}

const RUNS: [(&str, Run); 4] = [
    ("store: enqueue, 64 producers", Run::Enqueue { producers: 64 }),
    ("store: enqueue, 256 producers", Run::Enqueue { producers: 256 }),
    ("store: cycle", Run::Cycle { log: false }),
    ("store: cycle with attempts", Run::Cycle { log: true }),
];

/// Measures both and reports the ratios.
///
/// # Errors
/// When a store fails.
pub fn run(args: &StoreArgs) -> Result<()> {
    let dir = args.dir.clone().map_or_else(folder, Ok)?;
    let payload = Bytes::from(event::payload(args.payload)?);
    let mut ledger = Ledger::new();
    let bench = Bench { args, dir, payload };
    for round in 0..args.rounds {
        ledger.begin(round);
        for (name, run) in RUNS {
            eprintln!("round {} of {}: {name}", round + 1, args.rounds);
            let (log, ours) = if ledger.is_reference_first() {
                let log = bench.raw_log(&mut ledger, name, run)?;
                (log, bench.embedded(&mut ledger, name, run)?)
            } else {
                let ours = bench.embedded(&mut ledger, name, run)?;
                (bench.raw_log(&mut ledger, name, run)?, ours)
            };
            ledger.put_quietly(name, Measure::OfLog, ours / log);
        }
    }
    report::write(&ledger, report::Files { json: args.json.as_deref(), ..report::Files::default() })
}

struct Bench<'a> {
    args: &'a StoreArgs,
    dir: PathBuf,
    payload: Bytes,
}

impl Bench<'_> {
    fn raw_log(&self, ledger: &mut Ledger, name: &str, run: Run) -> Result<f64> {
        let dir = fresh_in(&self.dir)?;
        let window = Window::open(&[])?;
        let done = self.drive(run, || RawLog::create(&dir.path().join("log")))?;
        ledger.put(name, Measure::LogRate, done.rate(), &window.close()?);
        Ok(done.rate())
    }

    fn embedded(&self, ledger: &mut Ledger, name: &str, run: Run) -> Result<f64> {
        let dir = fresh_in(&self.dir)?;
        let window = Window::open(&[])?;
        let done = self.drive(run, || Embedded::open(dir.path(), self.args.pending, &self.payload))?;
        let spent = window.close()?;
        ledger.put(name, Measure::Rate, done.rate(), &spent);
        if self.args.pending == 0 {
            // Without what parking the pending ones costs.
            ledger.put(name, Measure::Cpu, spent.own * 10_000.0 / done.events as f64, &spent);
        }
        if let Run::Enqueue { .. } = run {
            for (measure, per_mille) in [(Measure::P50, 500), (Measure::P99, 990)] {
                let micros = stats::percentile(&done.latencies, per_mille);
                ledger.put(name, measure, micros as f64 / 1e3, &spent);
            }
        }
        Ok(done.rate())
    }

    fn drive<S: Subject>(&self, run: Run, open: impl FnOnce() -> Result<S>) -> Result<load::Done> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().doing("start a runtime")?;
        let _entered = runtime.enter();
        let (producers, cycle) = match run {
            Run::Enqueue { producers } => (producers, None),
            Run::Cycle { log } => (CYCLE_PRODUCERS, Some(Cycle { log })),
        };
        load::drive(
            &runtime,
            open()?,
            &self.payload,
            load::Load { events: self.args.events, producers, cycle },
        )
    }
}
