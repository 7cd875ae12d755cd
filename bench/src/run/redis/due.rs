//! Fresh events while half a million retries of other receivers are due at once: how long they take, and how long a
//! script keeps Redis from everybody else. In a retry's own lane what is due first goes first.
//!
//! The retries stand in the waiting set where anybody may read them, with one attempt made; so they are adopted, claimed
//! and delivered while the fresh ones come in over the API.

use std::time::Duration;

use super::Stand;
use crate::clock;
use crate::event::{self, Events};
use crate::lab::{Lab, Redis, Sink, Window};
use crate::load::paced::{self, Sent};
use crate::report::{Ledger, Measure};
use crate::trouble::{Doing, Result, Trouble};

/// Fresh events per second.
const RATE: u32 = 50;
/// Entries of one step of filling.
const STEP: u64 = 1_000;
/// Between two looks, and how long the last fresh event may take.
const LOOK: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(60);

/// With as many as the sizes say.
///
/// # Errors
/// When a fresh event does not arrive.
pub fn measure(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let scenario = format!("Redis, {} retries due", lab.sizes.due);
    let redis = Redis::start(lab)?;
    let mut sink = Sink::start()?;
    let urls = event::urls(sink.address, "stamp", 2 * event::ENDPOINTS);
    let (failing, others) = urls.split_at(event::ENDPOINTS);
    fill(&redis, failing, lab)?;
    redis.note_slow_commands()?;
    let server = lab.server(&super::place(&redis), &[])?;
    let events = Events::new(others, lab.payload, None)?;
    let window = Window::open(&[&server.process, &sink.process, &redis.process])?;
    let sent = paced::load(server.address, &events, RATE, Duration::from_secs(lab.sizes.paced_seconds))?;
    let latency = arrived(&mut sink, sent)?;
    let spent = window.close()?;
    for (measure, rank) in [(Measure::P50, 0), (Measure::P99, 2), (Measure::Longest, 4)] {
        ledger.put(&scenario, measure, latency[rank] as f64 / 1e3, &spent);
    }
    ledger.put(&scenario, Measure::LongestScript, redis.longest_script()?, &spent);
    ledger.put(&scenario, Measure::Rate, sink.report(u64::MAX)?.rate(), &spent);
    drop(Stand { server, sink, redis });
    Ok(())
}

/// The waiting set, with everything due.
fn fill(redis: &Redis, urls: &[String], lab: &Lab) -> Result<()> {
    let mut connection = redis.connection()?;
    let due = clock::wall().get();
    for from in (0..lab.sizes.due).step_by(usize::try_from(STEP).unwrap_or(1)) {
        let mut add = redis::cmd("ZADD");
        add.arg("webhooks:espera");
        for number in from..(from + STEP).min(lab.sizes.due) {
            let turn = usize::try_from(number % urls.len() as u64).unwrap_or(0);
            add.arg(due).arg(event::entry(&urls[turn], lab.payload, number, 0, 1)?);
        }
        add.exec(&mut connection).doing("fill the waiting set")?;
    }
    Ok(())
}

/// The latencies of the fresh events, once all are there: theirs are the stamps that are not zero.
fn arrived(sink: &mut Sink, sent: Sent) -> Result<[u64; 5]> {
    let began = clock::now();
    while began.elapsed() < PATIENCE {
        let report = sink.report(sent.began_micros)?;
        if report.stamped >= sent.events {
            return Ok(report.latency);
        }
        clock::pause(LOOK);
    }
    Err(Trouble::new("fresh events do not arrive while retries are due"))
}
