//! The real process: started on a free port, told apart by its words, ended by a signal.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::api::Api;
use super::until;

/// The binary with these arguments and nothing of this machine's environment that could change its words.
pub fn teimoso(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teimoso"));
    command.args(args);
    clean(&mut command);
    command
}

fn clean(command: &mut Command) {
    command.stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TEIMOSO_") {
            command.env_remove(name);
        }
    }
    for name in ["LC_ALL", "LC_MESSAGES", "LANG"] {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1").env("COLUMNS", "100");
}

/// How a process ended, and what it had said.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` when a signal killed it.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The fault point was reached: the process aborted.
    pub fn assert_aborted(&self) {
        assert_eq!(self.signal, Some(6), "{self:?}");
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Ended {
            code: output.status.code(),
            signal: output.status.signal(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Runs a client command against a server, to its end.
pub fn command(api: Api, args: &[&str]) -> Ended {
    let mut command = teimoso(args);
    command.env("TEIMOSO_SERVER", format!("http://{}", api.0));
    command.output().expect("the binary runs").into()
}

/// A `serve` about to be started.
pub struct Launch {
    command: Command,
}

/// The arguments of a `serve` on a free port: deliveries to loopback allowed, policy `webhook`.
fn arguments(command: &mut Command, store: &Path) {
    command.args(["serve", "--listen", "127.0.0.1:0", "--store"]).arg(store);
    command.args(["--allow-net", "127.0.0.0/8", "--policy", "webhook"]);
}

/// `serve` on this store.
pub fn serve(store: &Path) -> Launch {
    let mut command = teimoso(&[]);
    arguments(&mut command, store);
    Launch { command }
}

/// The same behind a shell that runs `before` first.
pub fn serve_after(store: &Path, before: &str) -> Launch {
    behind_shell(Command::new("sh"), store, before)
}

/// The same in namespaces of its own: `before` may mount.
pub fn serve_in_namespace(store: &Path, before: &str) -> Launch {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh"]);
    behind_shell(command, store, before)
}

fn behind_shell(mut command: Command, store: &Path, before: &str) -> Launch {
    command.args(["-ec", &format!("{before}\nexec \"$0\" \"$@\"")]).arg(env!("CARGO_BIN_EXE_teimoso"));
    arguments(&mut command, store);
    clean(&mut command);
    Launch { command }
}

/// The same without root's power over modes; `None` when this machine cannot take it away.
pub fn serve_without_privileges(store: &Path) -> Option<Launch> {
    // The owner of a process's directory in /proc is the process's.
    let root = std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if !root {
        return Some(serve(store));
    }
    has_namespaces().then(|| {
        let mut command = Command::new("unshare");
        command.args(["--user", env!("CARGO_BIN_EXE_teimoso")]);
        arguments(&mut command, store);
        clean(&mut command);
        Launch { command }
    })
}

/// Whether this machine lets anybody make namespaces to mount in. Containers often do not.
pub fn has_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]);
    command.output().is_ok_and(|output| output.status.success())
}

impl Launch {
    pub fn args(mut self, args: &[&str]) -> Launch {
        self.command.args(args);
        self
    }

    /// Listens elsewhere.
    pub fn listen(mut self, address: &str) -> Launch {
        let mut other = Command::new(self.command.get_program());
        let arguments = self.command.get_args().map(|argument| match argument.to_str() {
            Some("127.0.0.1:0") => address.into(),
            _ => argument.to_owned(),
        });
        other.args(arguments);
        clean(&mut other);
        self.command = other;
        self
    }

    /// Aborts at the named point, or at its n-th passage: `name:n`.
    pub fn fault(mut self, point: &str) -> Launch {
        self.command.env("TEIMOSO_FAULT", point);
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it ends instead of getting ready.
    pub fn run(self) -> Serving {
        self.try_run().unwrap_or_else(|ended| panic!("it did not start: {ended:?}"))
    }

    /// Starts it; it may end before it is ready.
    pub fn try_run(mut self) -> Result<Serving, Ended> {
        let child = self.command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the binary runs");
        let (said, reader) = listen(&mut child);
        let mut serving = Serving { child, said, reader: Some(reader), api: Api(super::ANY) };
        let ready = until("it is ready or ends", || match serving.address() {
            Some(address) => Some(Some(address)),
            None => serving.child.try_wait().expect("a child").map(|_| None),
        });
        match ready.or_else(|| serving.address()) {
            Some(address) => {
                serving.api = Api(address);
                Ok(serving)
            }
            None => Err(serving.ended()),
        }
    }

    /// Runs it until it ends by itself.
    pub fn ended(self) -> Ended {
        match self.try_run() {
            Ok(serving) => serving.ended(),
            Err(ended) => ended,
        }
    }
}

type Said = Arc<Mutex<Vec<String>>>;

fn listen(child: &mut Child) -> (Said, JoinHandle<()>) {
    let said = Said::default();
    let (lines, heard) = (BufReader::new(child.stderr.take().expect("piped")).lines(), Arc::clone(&said));
    let reader = std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            heard.lock().expect("no panic").push(line);
        }
    });
    (said, reader)
}

/// A running server. Killed when dropped.
pub struct Serving {
    child: Child,
    said: Said,
    reader: Option<JoinHandle<()>>,
    pub api: Api,
}

impl Serving {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The lines on stderr so far.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().expect("no panic").clone()
    }

    /// Where its API is; one that has none is ready when it says so.
    fn address(&self) -> Option<SocketAddr> {
        self.said().iter().find_map(|line| {
            if ["teimoso: workers only", "teimoso: so o enviador"].iter().any(|start| line.starts_with(start))
            {
                return Some(super::ANY);
            }
            let rest = line.strip_prefix("teimoso: listening on http://");
            let rest = rest.or_else(|| line.strip_prefix("teimoso: ouvindo em http://"))?;
            rest.split(',').next()?.parse().ok()
        })
    }

    /// Waits until it says a line that starts so.
    pub fn until_said(&self, start: &str) -> String {
        until(&format!("it says {start}"), || self.said().into_iter().find(|line| line.starts_with(start)))
    }

    /// SIGKILL, and the end of the process.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Sends `TERM` or `INT`.
    pub fn signal(&self, name: &str) {
        let order = format!("kill -{name} {}", self.pid());
        let status = Command::new("sh").args(["-c", &order]).status();
        assert!(status.expect("a shell runs").success());
    }

    /// SIGTERM, the drain, exit 0.
    pub fn stop(self) -> Ended {
        self.signal("TERM");
        let ended = self.ended();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    }

    /// Waits for the end.
    pub fn ended(mut self) -> Ended {
        let status = until("it ends", || self.child.try_wait().expect("a child"));
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no panic");
        }
        let stderr = self.said().iter().map(|line| format!("{line}\n")).collect();
        Ended { code: status.code(), signal: status.signal(), stdout: String::new(), stderr }
    }

    /// The largest amount of memory it ever had, in KiB.
    pub fn peak_memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may be gone already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
