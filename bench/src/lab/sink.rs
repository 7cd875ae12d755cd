//! The sink's process and what it counted.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use super::process::{Process, pinned};
use crate::clock;
use crate::sink::{READY, Report};
use crate::talk::Talk;
use crate::trouble::{Doing, Result, Trouble};

/// Between two looks at a counter: 0.1 % of a core, and no more than that late.
const LOOK: Duration = Duration::from_millis(10);
/// Counters that stand still for so long will not move again.
const STILL: Duration = Duration::from_secs(40);

/// A sink of its own.
#[derive(Debug)]
pub struct Sink {
    /// Its process.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    talk: Talk,
}

impl Sink {
    /// Starts one on a free port, pinned to the last core.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start() -> Result<Self> {
        let program = std::env::current_exe().doing("find this program")?;
        let mut command = pinned(program);
        let mut process = Process::start("the sink", command.arg("sink").stdout(Stdio::piped()))?;
        let mut said = String::new();
        if let Some(output) = process.child().stdout.take() {
            BufReader::new(output).read_line(&mut said).doing("hear the sink")?;
        }
        let address = said.trim().strip_prefix(READY).and_then(|address| address.parse().ok());
        let address = address.ok_or_else(|| Trouble::new(format!("the sink said {said:?}")))?;
        Ok(Self { process, address, talk: Talk::to(address)? })
    }

    /// Forgets what it counted.
    ///
    /// # Errors
    /// When it is gone.
    pub fn reset(&mut self) -> Result<()> {
        self.talk.get("/_reset").map(drop)
    }

    /// What it counted, with the latencies of stamps from `after` on.
    ///
    /// # Errors
    /// When it is gone.
    pub fn report(&mut self, after: u64) -> Result<Report> {
        let answer = self.talk.get(&format!("/_report?after={after}"))?;
        serde_json::from_slice(&answer.body).doing("read the sink's report")
    }

    /// Waits until `done` is true of what it counted.
    ///
    /// # Errors
    /// When nothing more arrives.
    pub fn wait(&mut self, done: impl Fn(&Report) -> bool) -> Result<Report> {
        let (mut before, mut moved) = (Report::default(), clock::now());
        loop {
            // A stamp of the far future: no percentiles are computed while it is at work.
            let report = self.report(u64::MAX)?;
            if done(&report) {
                return Ok(report);
            }
            if report != before {
                (before, moved) = (report, clock::now());
            } else if moved.elapsed() > STILL {
                return Err(Trouble::new(format!("nothing more arrives at the sink: {report:?}")));
            }
            clock::pause(LOOK);
        }
    }
}
