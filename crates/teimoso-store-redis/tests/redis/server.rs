//! A `redis-server` of the test's own: a free port, a temporary directory, an append-only file; stopped by its own
//! handle. Never one that somebody else started.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// When an append-only file is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    /// Once a second, beside the answers.
    EverySecond,
    /// Before every answer.
    Always,
}

impl Fsync {
    const fn name(self) -> &'static str {
        match self {
            Self::EverySecond => "everysec",
            Self::Always => "always",
        }
    }
}

/// A running server.
pub struct Server {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    directory: TempDir,
}

/// Whether there is a server to test with; says so loudly when there is none.
pub fn is_installed() -> bool {
    let found = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        eprintln!(
            "SKIPPED: there is no redis-server on this machine, so NOTHING of the Redis store was tested"
        );
    }
    found
}

impl Server {
    /// Starts one that syncs like this.
    pub fn start(fsync: Fsync) -> Self {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", fsync.name()])
    }

    /// Starts one with these arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        // A port that was free may be taken a moment later.
        for _ in 0..20 {
            let port = free_port();
            if let Some(child) = spawn(port, &directory, &arguments) {
                return Self { child, port, arguments, directory };
            }
        }
        panic!("redis-server finds no port");
    }

    /// For the store and for raw connections.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// For a replica of it.
    pub fn port(&self) -> String {
        self.port.to_string()
    }

    /// A connection that knows nothing of the store.
    pub fn raw(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("the url is right");
        let connection = client.get_connection_with_timeout(Duration::from_secs(5));
        connection.expect("the server answers")
    }

    /// Kills it as a crash does, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process ends");
    }

    /// Starts it again on the same port and directory.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.port, &self.directory, &self.arguments).expect("the port is still ours");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

/// `None` when it could not listen.
fn spawn(port: u16, directory: &TempDir, arguments: &[String]) -> Option<Child> {
    let mut child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
        .arg("--dir")
        .arg(directory.path())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server starts");
    let mut log = BufReader::new(child.stdout.take().expect("its output is ours"));
    let mut line = String::new();
    while log.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if line.contains("Ready to accept connections") {
            // A full pipe would stop it.
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return Some(child);
        }
        line.clear();
    }
    let _ = child.wait();
    None
}
