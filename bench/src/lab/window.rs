//! What everybody used between two moments: the measured, the measurer, and whoever else shares the machine.

use std::time::{Duration, Instant};

use super::Process;
use crate::trouble::Result;
use crate::{clock, procfs};

/// Others may use this much of a core; above it a run gets a note.
pub const QUIET_CORES: f64 = 0.2;
/// How long one look at the others takes.
const GLANCE: Duration = Duration::from_millis(500);
/// How long a quiet moment is waited for.
const PATIENCE: Duration = Duration::from_secs(25);

/// An open measurement.
#[derive(Debug)]
pub struct Window {
    began: Instant,
    load: f64,
    busy: f64,
    own: procfs::Cpu,
    watched: Vec<(u32, f64)>,
}

/// What was used, in CPU seconds.
#[derive(Debug, Clone, Default)]
pub struct Spent {
    /// By the watched processes, in their order.
    pub watched: Vec<f64>,
    /// By this process: producers, as a rule.
    pub own: f64,
    /// By children that ended meanwhile.
    pub ended: f64,
    /// By everybody else, in cores: CPU seconds per second.
    pub others: f64,
    /// The load average of the minute before.
    pub load: f64,
}

impl Window {
    /// Begins to watch these processes.
    ///
    /// # Errors
    /// When one is gone.
    pub fn open(processes: &[&Process]) -> Result<Self> {
        let watch = |process: &&Process| Ok((process.pid(), procfs::cpu(process.pid())?.own));
        let watched = processes.iter().map(watch).collect::<Result<_>>()?;
        let own = procfs::cpu(std::process::id())?;
        Ok(Self { began: clock::now(), load: procfs::load()?, busy: procfs::busy()?, own, watched })
    }

    /// Ends it, while all watched processes are alive.
    ///
    /// # Errors
    /// When one is gone.
    pub fn close(self) -> Result<Spent> {
        let seconds = self.began.elapsed().as_secs_f64();
        let busy = procfs::busy()? - self.busy;
        let spend = |(pid, before): &(u32, f64)| Ok(procfs::cpu(*pid)?.own - before);
        let watched: Vec<f64> = self.watched.iter().map(spend).collect::<Result<_>>()?;
        let now = procfs::cpu(std::process::id())?;
        let (own, ended) = (now.own - self.own.own, now.children - self.own.children);
        let ours = own + ended + watched.iter().sum::<f64>();
        let others = ((busy - ours) / seconds.max(f64::EPSILON)).max(0.0);
        Ok(Spent { watched, own, ended, others, load: self.load })
    }
}

/// Waits, for a while, until others leave the machine alone.
///
/// # Errors
/// When the system does not tell.
pub fn wait_for_quiet() -> Result<()> {
    let began = clock::now();
    while began.elapsed() < PATIENCE {
        let window = Window::open(&[])?;
        clock::pause(GLANCE);
        if window.close()?.others < QUIET_CORES {
            break;
        }
    }
    Ok(())
}
