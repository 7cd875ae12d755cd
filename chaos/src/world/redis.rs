//! A `redis-server` of the storm's own, with an append-only file synced once a second; killed as the kernel kills, and
//! started again on the same port and directory.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use redis::{Client, Connection, RedisResult};
use tempfile::TempDir;

use super::free_port;
use crate::clock;
use crate::trouble::{Doing, Result, Trouble, locked};

/// Between two tries.
const AGAIN: Duration = Duration::from_millis(5);
/// How often something is tried.
const TRIES: u32 = 400;
/// Connections and answers take no longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server that may be down for a moment.
#[derive(Debug)]
pub struct Redis {
    child: Mutex<Option<Child>>,
    port: u16,
    directory: TempDir,
}

impl Redis {
    /// Whether there is a program to start.
    pub fn is_installed() -> bool {
        Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok()
    }

    /// Starts one.
    ///
    /// # Errors
    /// It does not start.
    pub fn start() -> Result<Self> {
        let server = Self { child: Mutex::default(), port: free_port()?, directory: directory()? };
        server.start_again()?;
        Ok(server)
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// A connection that knows nothing of us.
    ///
    /// # Errors
    /// It is down.
    pub fn connection(&self) -> RedisResult<Connection> {
        connection(&self.url(), Some(PATIENCE))
    }

    /// Ends it at once: no handler runs, nothing is flushed.
    ///
    /// What was written to its file survives, as after every death of a process. While an fsync runs, though, a Redis
    /// with `everysec` answers before it writes, and what was answered then is lost by its own rules; so it is not
    /// killed within one.
    ///
    /// # Errors
    /// It cannot be killed.
    pub fn kill(&self) -> Result<()> {
        for _ in 0..TRIES {
            if !self.is_syncing() {
                break;
            }
            clock::pause(AGAIN);
        }
        if let Some(mut child) = locked(&self.child).take() {
            child.kill().doing("kill redis-server")?;
            child.wait().doing("wait for redis-server")?;
        }
        Ok(())
    }

    fn is_syncing(&self) -> bool {
        let info: RedisResult<String> = self
            .connection()
            .and_then(|mut connection| redis::cmd("INFO").arg("persistence").query(&mut connection));
        info.is_ok_and(|info| !info.contains("aof_pending_bio_fsync:0"))
    }

    /// Starts it again on what it left.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_again(&self) -> Result<()> {
        for _ in 0..TRIES {
            if let Some(child) = spawn(self.port, self.directory.path())? {
                *locked(&self.child) = Some(child);
                return Ok(());
            }
            clock::pause(AGAIN);
        }
        Err(Trouble::new("redis-server does not start"))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(mut child) = locked(&self.child).take() {
            let _gone = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// Connects, with this patience for every answer; without one an answer is waited for as long as it takes.
///
/// # Errors
/// It is down.
pub fn connection(url: &str, patience: Option<Duration>) -> RedisResult<Connection> {
    let connection = Client::open(url)?.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(patience)?;
    connection.set_write_timeout(patience)?;
    Ok(connection)
}

/// In memory where that is possible: what a death of the process leaves is the same there as on a disk, and an fsync
/// takes no time in which Redis could answer before it writes.
fn directory() -> Result<TempDir> {
    let builder = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix("teimoso-chaos-");
        builder
    };
    builder().tempdir_in("/dev/shm").or_else(|_| builder().tempdir()).doing("make a folder for redis")
}

/// `None` when it could not listen.
fn spawn(port: u16, directory: &Path) -> Result<Option<Child>> {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"]);
    command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"]).arg(directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().doing("start redis-server")?;
    let output = child.stdout.take().ok_or_else(|| Trouble::new("redis-server has no output"))?;
    let mut log = BufReader::new(output);
    let mut line = String::new();
    while log.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if line.contains("Ready to accept connections") {
            // A full pipe would stop it.
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return Ok(Some(child));
        }
        line.clear();
    }
    child.wait().doing("wait for redis-server")?;
    Ok(None)
}
