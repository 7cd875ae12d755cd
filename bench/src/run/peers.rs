//! What a user would take instead, on the same sink and in the same alternation: the plain sender of S2 (a list, a
//! sorted set and one request at a time) and BullMQ with undici, both on Redis with `appendfsync everysec`.
//!
//! Off unless asked for, and skipped with a word where Node, Redis or the packages are absent.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::lab::{Lab, Process, Sink, Window, run_to_end};
use crate::report::{Ledger, Measure};
use crate::trouble::{Doing, Result, Trouble};
use crate::{clock, event};

/// Name, script, and the share of the events it gets: the slow one would take minutes.
const PEERS: [(&str, &str, u64); 2] =
    [("peer: plain sender on Redis", "plain.mjs", 10), ("peer: BullMQ and undici", "bullmq.mjs", 1)];
/// Redis is up within this.
const PATIENCE: Duration = Duration::from_secs(5);

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
    if !runs("redis-server") {
        return Some("there is no redis-server");
    }
    let installed = folder.join("node_modules/bullmq").exists();
    (!installed).then_some("the packages are not installed: npm ci --prefix bench/peers")
}

fn backlog(lab: &Lab, ledger: &mut Ledger, name: &str, script: &Path, count: u64) -> Result<()> {
    let (data, mut sink) = (lab.fresh()?, Sink::start()?);
    let (redis, port) = redis(data.path())?;
    let node = |what: &str| {
        let mut command = Command::new("node");
        command.arg(script).args([what, &port.to_string(), &sink.address.to_string(), &count.to_string()]);
        command.arg(event::payload(lab.payload).unwrap_or_default());
        command
    };
    run_to_end(name, &mut node("fill"))?;
    let mut send = node("send");
    let window = Window::open(&[&redis, &sink.process])?;
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

fn redis(data: &Path) -> Result<(Process, u16)> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address: SocketAddr = free.doing("find a free port")?;
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", ""]);
    command
        .args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"])
        .arg(data)
        .stdout(Stdio::null());
    let process = Process::start("redis-server", &mut command)?;
    let began = clock::now();
    while TcpStream::connect(address).is_err() {
        if began.elapsed() > PATIENCE {
            return Err(Trouble::new("redis-server does not listen"));
        }
        clock::pause(Duration::from_millis(20));
    }
    Ok((process, address.port()))
}
