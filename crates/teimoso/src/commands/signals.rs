//! SIGINT and SIGTERM, as the exit codes they lead to. Deliberately absent: what a command still does before it ends.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{CliError, Exit};

/// The two signals that ask a process to end. While this lives they do not end it by themselves.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// The system has no room for the listener.
    pub(super) fn new() -> Result<Self, CliError> {
        let cannot = |error| CliError::failure(format!("cannot listen to signals: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
            terminate: signal(SignalKind::terminate()).map_err(cannot)?,
        })
    }

    /// The exit code of the next signal.
    pub(super) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::INTERRUPTED,
            _ = self.terminate.recv() => Exit::TERMINATED,
        }
    }
}
