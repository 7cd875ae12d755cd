//! What a user would take instead, on the same sink and in the same alternation: the plain sender of S2 (a list, a
//! sorted set and one request at a time) and BullMQ with undici, both on Redis with `appendfsync everysec`.
//!
//! Off unless asked for, and skipped with a word where Node, Redis or the packages are absent.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::event;
use crate::lab::{Lab, Process, Redis, Sink, Window, run_to_end};
use crate::report::{Ledger, Measure};
use crate::trouble::Result;

/// Name, script, and the share of the events it gets: the slow one would take minutes.
const PEERS: [(&str, &str, u64); 2] =
    [("peer: plain sender on Redis", "plain.mjs", 10), ("peer: BullMQ and undici", "bullmq.mjs", 1)];

/// All of them, or a word why not.
///
/// # Errors
/// When a peer that is present fails.
pub fn measure(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/peers"));
    if let Some(missing) = missing(&folder) {
        eprintln!("peers are skipped: {missing}");
        return Ok(());
    }
    for (name, script, share) in PEERS {
        backlog(lab, ledger, name, &folder.join(script), lab.sizes.events / share)?;
    }
    Ok(())
}

fn missing(folder: &Path) -> Option<&'static str> {
    let runs = |program: &str| {
        let asked =
            Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    if !runs("node") {
        return Some("there is no node");
    }
    if !Redis::is_installed() {
        return Some("there is no redis-server");
    }
    let installed = folder.join("node_modules/bullmq").exists();
    (!installed).then_some("the packages are not installed: npm ci --prefix bench/peers")
}

fn backlog(lab: &Lab, ledger: &mut Ledger, name: &str, script: &Path, count: u64) -> Result<()> {
    let (redis, mut sink) = (Redis::start(lab)?, Sink::start()?);
    let port = redis.port();
    let node = |what: &str| {
        let mut command = Command::new("node");
        command.arg(script).args([what, &port.to_string(), &sink.address.to_string(), &count.to_string()]);
        command.arg(event::payload(lab.payload).unwrap_or_default());
        command
    };
    run_to_end(name, &mut node("fill"))?;
    let mut send = node("send");
    let window = Window::open(&[&redis.process, &sink.process])?;
    let sender = Process::start(name, &mut send)?;
    let report = sink.wait(|report| report.ok >= count)?;
    sender.kill()?;
    let spent = window.close()?;
    let per_10k = 10_000.0 / count as f64;
    ledger.put(name, Measure::Rate, report.rate(), &spent);
    ledger.put(name, Measure::Cpu, spent.ended * per_10k, &spent);
    ledger.put(name, Measure::StoreCpu, spent.watched.first().copied().unwrap_or_default() * per_10k, &spent);
    Ok(())
}
