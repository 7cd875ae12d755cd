//! The scenarios, round by round, each on fresh processes; then the table, the JSON and the plot.

mod drain;
mod idle;
mod isolation;
mod latency;
mod peers;
mod pending;
mod redis;
mod storm;
mod throughput;

use crate::args::{RunArgs, Scenario};
use crate::lab::{Lab, Redis, wait_for_quiet};
use crate::report::{self, Ledger};
use crate::trouble::Result;

use clap::ValueEnum;

/// Measures what was asked for and reports it.
///
/// # Errors
/// When anything that is measured does not do its work: a benchmark of failures says nothing.
pub fn run(args: &RunArgs) -> Result<()> {
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: sink, producers and limit are slow, and no ratio means anything");
    }
    let lab = Lab::new(args)?;
    let mut ledger = Ledger::new();
    let wanted = |scenario: &&Scenario| args.only.is_empty() || args.only.contains(scenario);
    let mut scenarios: Vec<Scenario> = Scenario::value_variants().iter().filter(wanted).copied().collect();
    if scenarios.iter().any(|scenario| scenario.is_on_redis()) && !Redis::is_installed() {
        eprintln!("SKIPPED: there is no redis-server on this machine, so NOTHING is measured on Redis");
        scenarios.retain(|scenario| !scenario.is_on_redis());
    }
    for round in 0..lab.sizes.rounds {
        ledger.begin(round);
        for scenario in &scenarios {
            eprintln!("round {} of {}: {scenario:?}", round + 1, lab.sizes.rounds);
            measure(*scenario, &lab, &mut ledger)?;
        }
        if args.peers {
            peers::measure(&lab, &mut ledger)?;
        }
    }
    let (json, svg, page) = (args.json.as_deref(), args.svg.as_deref(), args.page.as_deref());
    report::write(&ledger, report::Files { json, svg, page })
}

fn measure(scenario: Scenario, lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    if lab.patient {
        wait_for_quiet()?;
    }
    match scenario {
        Scenario::Backlog => throughput::backlog(lab, ledger),
        Scenario::Through => throughput::through(lab, ledger),
        Scenario::Ingest => throughput::ingest(lab, ledger),
        Scenario::Single => throughput::single(lab, ledger),
        Scenario::Payloads => throughput::payloads(lab, ledger),
        Scenario::Latency => latency::measure(lab, ledger),
        Scenario::Storm => storm::measure(lab, ledger),
        Scenario::Pending => pending::measure(lab, ledger),
        Scenario::Isolation => isolation::measure(lab, ledger),
        Scenario::Idle => idle::measure(lab, ledger),
        Scenario::RedisBacklog => redis::rates::backlog(lab, ledger),
        Scenario::RedisThrough => redis::rates::through(lab, ledger),
        Scenario::RedisLatency => redis::latency::measure(lab, ledger),
        Scenario::RedisWake => redis::latency::wake(lab, ledger),
        Scenario::RedisStorm => redis::storm(lab, ledger),
        Scenario::RedisIdle => redis::crowd::idle(lab, ledger),
        Scenario::RedisDue => redis::due::measure(lab, ledger),
        Scenario::RedisFleet => redis::crowd::fleet(lab, ledger),
    }
}
