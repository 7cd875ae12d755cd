//! The server that is measured: the released binary on a store and a port of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::time::Duration;

use super::{Lab, Process, Sink};
use crate::clock;
use crate::event::{self, Events};
use crate::load::batch::{self, Loaded};
use crate::talk::Talk;
use crate::trouble::{Doing, Result, Trouble};

/// Between two looks at the statistics.
const LOOK: Duration = Duration::from_millis(10);
/// Statistics that stand still for so long will not move again.
const STILL: Duration = Duration::from_secs(40);
/// Before the address in the line that says it is ready; and the same of one that has no API.
const READY: &str = "listening on http://";
const WORKERS_READY: &str = "teimoso: workers only";
/// When parked events are due: not while anybody measures.
const PARKED_FOR: Duration = Duration::from_secs(24 * 3_600);

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// Its process.
    pub process: Process,
    /// Where its API listens.
    pub address: SocketAddr,
    /// From its start to the line that says it is ready.
    pub ready_after: Duration,
    sent: u64,
    delivered: u64,
}

/// Where events for later go.
#[derive(Debug, Clone, Copy)]
pub enum Parked {
    /// Lanes of their own.
    Elsewhere,
    /// The lanes that are measured.
    Here,
}

impl Lab {
    /// Starts a server on this store with these flags beside the usual ones.
    ///
    /// # Errors
    /// When it does not become ready; with what it said.
    pub fn server(&self, store: &Path, flags: &[&str]) -> Result<Server> {
        let began = clock::now();
        let (process, line) = self.serve(store, flags, READY)?;
        let ready_after = began.elapsed();
        let address = line.split([',', '\n']).next().unwrap_or_default().parse().doing("read an address")?;
        Ok(Server { process, address, ready_after, sent: 0, delivered: 0 })
    }

    /// Starts a server that only delivers.
    ///
    /// # Errors
    /// When it does not become ready; with what it said.
    pub fn worker(&self, store: &Path, flags: &[&str]) -> Result<Process> {
        let flags = [&["--workers-only"], flags].concat();
        Ok(self.serve(store, &flags, WORKERS_READY)?.0)
    }

    /// Starts one; with what follows `ready` in the line that says it is.
    fn serve(&self, store: &Path, flags: &[&str], ready: &str) -> Result<(Process, String)> {
        let mut command = Command::new(&self.teimoso);
        command.args(["serve", "--listen", "127.0.0.1:0", "--allow-net", "127.0.0.0/8"]);
        command.args(["--attempt-lines", "off", "--store"]).arg(store).args(flags);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TEIMOSO_") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = Process::start("teimoso", &mut command)?;
        let said = process.child().stderr.take().ok_or_else(|| Trouble::new("teimoso has no stderr"))?;
        let line = hear(said, ready)?;
        Ok((process, line))
    }
}

/// What follows `ready` in its line. What it says later is read and thrown away, so that it never waits for a reader.
fn hear(said: ChildStderr, ready: &str) -> Result<String> {
    let mut said = BufReader::new(said);
    let mut heard = String::new();
    loop {
        let begin = heard.len();
        if said.read_line(&mut heard).doing("hear teimoso")? == 0 {
            return Err(Trouble::new(format!("teimoso did not start: {}", heard.trim())));
        }
        let Some((_, follows)) = heard[begin..].split_once(ready) else { continue };
        let follows = follows.to_owned();
        std::thread::spawn(move || {
            let mut thrown_away = [0; 4 * 1024];
            while said.read(&mut thrown_away).is_ok_and(|read| read > 0) {}
        });
        return Ok(follows);
    }
}

impl Server {
    /// Asks the API for JSON, on a connection of its own: between two questions may lie minutes, and a server closes
    /// what is idle.
    ///
    /// # Errors
    /// When it does not answer 200.
    pub fn json(&self, path: &str) -> Result<serde_json::Value> {
        Talk::to(self.address)?.json(path)
    }

    /// Sends so many events as batches and waits for the answers.
    ///
    /// # Errors
    /// When not every one was accepted.
    pub fn load(&mut self, events: &Events, count: u64, keep: bool) -> Result<Loaded> {
        let loaded = batch::load(self.address, events, count, keep)?;
        self.sent(count)?;
        Ok(loaded)
    }

    /// Counts events that were sent by other means.
    ///
    /// # Errors
    /// When not every one was accepted: producers that do not look at their answers are checked here.
    pub fn sent(&mut self, count: u64) -> Result<()> {
        self.sent += count;
        let expected = self.sent;
        match self.json("/v1/stats")?["accepted"].as_u64() {
            Some(accepted) if accepted == expected => Ok(()),
            accepted => Err(Trouble::new(format!("accepted {accepted:?} events, not {expected}"))),
        }
    }

    /// Waits until so many more deliveries are settled as delivered.
    ///
    /// # Errors
    /// When they do not become so many.
    pub fn settled(&mut self, more: u64) -> Result<()> {
        self.delivered += more;
        let (mut before, mut moved) = (0, clock::now());
        loop {
            let delivered = self.json("/v1/stats")?["deliveries"]["delivered"].as_u64().unwrap_or(0);
            if delivered >= self.delivered {
                return Ok(());
            }
            if delivered != before {
                (before, moved) = (delivered, clock::now());
            } else if moved.elapsed() > STILL {
                let expected = self.delivered;
                return Err(Trouble::new(format!(
                    "{delivered} of {expected} events were delivered, no more"
                )));
            }
            clock::pause(LOOK);
        }
    }

    /// Stores so many events that are due tomorrow.
    ///
    /// # Errors
    /// When they are not accepted.
    pub fn park(&mut self, lab: &Lab, sink: &Sink, count: u64, lanes: Parked) -> Result<Duration> {
        let path = match lanes {
            Parked::Elsewhere => "ok/parked",
            Parked::Here => "ok",
        };
        let urls = event::urls(sink.address, path, event::ENDPOINTS);
        let events = Events::new(&urls, lab.payload, Some(clock::wall().after(PARKED_FOR)))?;
        Ok(self.load(&events, count, false)?.took)
    }
}
