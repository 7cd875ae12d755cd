//! Child processes that do not outlive their handle. Deliberately absent: what they say.

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};

use crate::procfs;
use crate::trouble::{Doing, Result, Trouble};

/// A running process; dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts it. Its input is empty.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        let child = command.stdin(Stdio::null()).spawn().doing(&format!("start {name}"))?;
        Ok(Self { child, name: name.to_owned() })
    }

    /// Its handle, to take its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory now, in MiB.
    ///
    /// # Errors
    /// When it is gone.
    pub fn memory(&self) -> Result<f64> {
        Ok(procfs::status(self.pid(), "VmRSS")? / 1_024.0)
    }

    /// The most resident memory it ever had, in MiB.
    ///
    /// # Errors
    /// When it is gone.
    pub fn peak_memory(&self) -> Result<f64> {
        Ok(procfs::status(self.pid(), "VmHWM")? / 1_024.0)
    }

    /// Ends it as a power cut would: no signal handler runs.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().doing(&format!("kill {}", self.name))?;
        self.child.wait().doing(&format!("wait for {}", self.name))?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// Runs a process to its end.
///
/// # Errors
/// When it fails.
pub fn run_to_end(name: &str, command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().doing(&format!("start {name}"))?;
    if status.success() { Ok(()) } else { Err(Trouble::new(format!("{name} ended with {status}"))) }
}

/// The program on the last core alone, where `taskset` is present and there is more than one core.
pub fn pinned(program: impl AsRef<OsStr>) -> Command {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let asked = Command::new("taskset").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if cores < 2 || !asked.is_ok_and(|status| status.success()) {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &(cores - 1).to_string()]).arg(program);
    command
}
