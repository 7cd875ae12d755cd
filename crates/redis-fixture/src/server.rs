//! One `redis-server`: a process, a port, a directory.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{free_port, until};

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

/// What a server says when it can be talked to.
pub(crate) const READY: &str = "Ready to accept connections";

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
    start: Start,
    directory: TempDir,
}

/// How it is started, every time.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    /// For `port` on the command line, in which `{port}` is the port and `{dir}` the directory.
    pub(crate) arguments: Vec<String>,
    /// Its word that it is ready.
    pub(crate) ready: &'static str,
}

impl Start {
    fn plain(arguments: &[&str]) -> Self {
        let fixed = ["--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--dir", "{dir}"];
        let arguments = fixed.iter().chain(arguments).map(|argument| (*argument).to_owned()).collect();
        Self { arguments, ready: READY }
    }

    /// `None` when it could not listen.
    fn spawn(&self, port: u16, directory: &TempDir) -> Option<Child> {
        let directory = directory.path().display().to_string();
        let filled =
            |argument: &String| argument.replace("{port}", &port.to_string()).replace("{dir}", &directory);
        let mut child = Command::new("redis-server")
            .args(self.arguments.iter().map(filled))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is not installed, and nothing of Redis can be tested without it: run .ci/install");
        let log = child.stdout.take().expect("its output is ours");
        if has_said(log, self.ready) {
            return Some(child);
        }
        child.wait().expect("it has ended");
        None
    }
}

/// Reads until the word comes, and the rest on a thread: a full pipe would stop the server.
fn has_said(log: ChildStdout, word: &str) -> bool {
    let mut log = BufReader::new(log);
    let mut line = String::new();
    while log.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if line.contains(word) {
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return true;
        }
        line.clear();
    }
    false
}

impl Server {
    /// Starts one with an append-only file that syncs like this.
    #[must_use]
    pub fn start(fsync: Fsync) -> Self {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", fsync.name()])
    }

    /// Starts one with these arguments beside port, address and directory, and without snapshots.
    #[must_use]
    pub fn start_with(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self::launch(Start::plain(arguments), directory, |_, _| {})
    }

    /// Starts one in this directory, in which `prepare` may write for the chosen port.
    pub(crate) fn launch(start: Start, directory: TempDir, prepare: impl Fn(&TempDir, u16)) -> Self {
        // A port that was free may be taken a moment later.
        for _ in 0..20 {
            let port = free_port();
            prepare(&directory, port);
            if let Some(child) = start.spawn(port, &directory) {
                return Self { child, port, start, directory };
            }
        }
        panic!("redis-server finds no port");
    }

    /// For the store and for raw connections.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// With these words before the host, such as `ana:segredo`.
    #[must_use]
    pub fn url_with(&self, credentials: &str) -> String {
        format!("redis://{credentials}@127.0.0.1:{}/0", self.port)
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A connection that knows nothing of ours.
    #[must_use]
    pub fn raw(&self) -> redis::Connection {
        self.try_raw().expect("the server answers")
    }

    /// The same, if it answers.
    #[must_use]
    pub fn try_raw(&self) -> Option<redis::Connection> {
        let client = redis::Client::open(self.url()).expect("the url is right");
        let connection = client.get_connection_with_timeout(Duration::from_secs(5)).ok()?;
        connection.set_read_timeout(Some(Duration::from_secs(10))).expect("it takes a time-out");
        Some(connection)
    }

    /// Sends one command.
    ///
    /// # Panics
    /// When it is refused.
    pub fn command(&self, words: &[&str]) -> redis::Value {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut self.raw()).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// What `INFO` says under this name.
    pub fn info(&self, name: &str) -> Option<String> {
        let info: String = redis::cmd("INFO").query(&mut self.try_raw()?).ok()?;
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(|value| value.trim().to_owned())
    }

    /// Writes a file beside its own; its path.
    #[must_use]
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).expect("written");
        path.display().to_string()
    }

    /// Kills it as a crash does, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process ends");
    }

    /// Ends it in order: what was answered is in the file.
    pub fn stop(&mut self) {
        self.signal("TERM");
        until("redis-server ends", || self.child.try_wait().expect("a child"));
    }

    /// Holds it still: it neither answers nor closes a connection.
    pub fn suspend(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let order = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &order]).status();
        assert!(status.expect("a shell runs").success(), "{order}");
    }

    /// Starts it again on the same port and directory.
    pub fn start_again(&mut self) {
        self.child = until("the port is ours again", || self.start.spawn(self.port, &self.directory));
    }

    /// Kills it and starts it again.
    pub fn restart(&mut self) {
        self.kill();
        self.start_again();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended before.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
