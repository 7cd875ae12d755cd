//! A `redis-server` of the test's own: a free port, a temporary directory; stopped by its own handle. Never one that
//! somebody else started.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::until;

/// An append-only file, synced once a second.
pub const SOUND: &[&str] = &["--appendonly", "yes", "--appendfsync", "everysec"];

/// A running server.
pub struct Server {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    directory: TempDir,
}

/// A server started with these arguments; `None`, said loudly, where there is no program to start.
pub fn start(arguments: &[&str]) -> Option<Server> {
    if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED: there is no redis-server on this machine, so NOTHING was tested on Redis");
        return None;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    // A port that was free may be taken a moment later.
    (0..20)
        .find_map(|_| {
            let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
            spawn(port, &directory, &arguments).map(|child| (child, port))
        })
        .map(|(child, port)| Server { child, port, arguments, directory })
        .or_else(|| panic!("redis-server finds no port"))
}

impl Server {
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// With these words before the host, such as `ana:segredo`.
    pub fn url_with(&self, credentials: &str) -> String {
        format!("redis://{credentials}@127.0.0.1:{}/0", self.port)
    }

    /// A connection that knows nothing of us.
    pub fn raw(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("the url is right");
        client.get_connection_with_timeout(Duration::from_secs(5)).expect("the server answers")
    }

    /// A file beside its own, and its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).expect("written");
        path.display().to_string()
    }

    /// Ends it in order: what was answered is in the file.
    pub fn stop(&mut self) {
        let order = format!("kill -TERM {}", self.child.id());
        let status = Command::new("sh").args(["-c", &order]).status();
        assert!(status.expect("a shell runs").success());
        until("redis-server ends", || self.child.try_wait().expect("a child"));
    }

    /// Starts it again, on the same port and directory.
    pub fn start_again(&mut self) {
        let child = until("the port is ours again", || spawn(self.port, &self.directory, &self.arguments));
        self.child = child;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been ended before.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
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
    let _ended = child.wait();
    None
}
