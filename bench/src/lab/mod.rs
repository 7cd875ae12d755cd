//! The laboratory: where the programs are, how they are started, and what they use while they run.
//!
//! Every measurement gets a fresh sink, a fresh server and a fresh store. Deliberately absent: what is measured.

mod process;
mod redis;
mod server;
mod sink;
mod window;

use std::path::{Path, PathBuf};

pub use process::{Process, run_to_end};
pub use redis::Redis;
pub use server::{Parked, Server};
pub use sink::Sink;
pub use window::{QUIET_CORES, Spent, Window, wait_for_quiet};

use crate::args::RunArgs;
use crate::event::{self, Events};
use crate::trouble::{Doing, Result, Trouble};

/// Where things are, and how much is to be done.
#[derive(Debug, Clone)]
pub struct Lab {
    /// The binary that is measured.
    pub teimoso: PathBuf,
    /// Where stores are made.
    pub dir: PathBuf,
    /// How much.
    pub sizes: Sizes,
    /// Payload bytes where the scenario does not say.
    pub payload: usize,
    /// Whether to wait for a quiet machine before each run.
    pub patient: bool,
}

/// How much is done.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// Rounds.
    pub rounds: u32,
    /// Events of a throughput run; the limit and the ingestion take twice as many.
    pub events: u64,
    /// Events that are sent one by one.
    pub single: u64,
    /// Rates of the latency runs, per second.
    pub rates: Vec<u32>,
    /// How long a paced run lasts, warm-up aside.
    pub paced_seconds: u64,
    /// Events of a storm.
    pub storm: u64,
    /// How many lie there for later.
    pub pending: Vec<u64>,
    /// Events for lanes that hang.
    pub hanging: u64,
    /// Events scheduled while idling, and for how long that is watched.
    pub idle: (u64, u64),
    /// Payload sizes.
    pub payloads: Vec<usize>,
    /// Pushes to a sender that waits.
    pub wakes: u64,
    /// Retries on Redis that are due at once.
    pub due: u64,
    /// Senders on one Redis.
    pub fleet: usize,
}

impl Sizes {
    /// By the arguments.
    pub fn new(args: &RunArgs) -> Self {
        let usual = if args.short { 10_000 } else { 50_000 };
        let events = args.events.unwrap_or(usual);
        let scaled = |full: u64| (full * events / 50_000).max(100);
        let mut pending = vec![scaled(1_000_000)];
        if args.long {
            pending.push(scaled(5_000_000));
        }
        Self {
            rounds: args.rounds.unwrap_or(if args.short { 1 } else { 3 }),
            events,
            single: scaled(20_000),
            rates: if args.short { vec![500, 5_000] } else { vec![200, 500, 1_000, 5_000] },
            paced_seconds: if args.short { 2 } else { 10 },
            storm: if args.short { scaled(20_000) } else { scaled(5_000) },
            pending,
            hanging: scaled(10_000).max(2_000),
            idle: (scaled(100_000), if args.short { 3 } else { 10 }),
            payloads: if args.short { vec![2_048] } else { vec![200, 2_048, 65_536] },
            wakes: if args.short { 40 } else { 300 },
            due: if args.short { scaled(50_000) } else { scaled(500_000) },
            fleet: if args.short { 10 } else { 200 },
        }
    }
}

impl Lab {
    /// By the arguments.
    ///
    /// # Errors
    /// When the binary is not there.
    pub fn new(args: &RunArgs) -> Result<Self> {
        let here = folder()?;
        let teimoso = args.teimoso.clone().unwrap_or_else(|| here.join("../release/teimoso"));
        let missing = |_| Trouble::new(format!("no binary at {}; build it: just build", teimoso.display()));
        Ok(Self {
            teimoso: teimoso.canonicalize().map_err(missing)?,
            dir: args.dir.clone().unwrap_or(here),
            sizes: Sizes::new(args),
            payload: args.payload,
            patient: !args.short,
        })
    }

    /// Events for the four endpoints that answer at once.
    ///
    /// # Errors
    /// When the payload is too small.
    pub fn events(&self, sink: &Sink, deliver_at: Option<teimoso_delivery::model::Millis>) -> Result<Events> {
        Events::new(&event::urls(sink.address, "ok", event::ENDPOINTS), self.payload, deliver_at)
    }

    /// A folder that is gone when it is dropped.
    ///
    /// # Errors
    /// When none can be made.
    pub fn fresh(&self) -> Result<tempfile::TempDir> {
        fresh_in(&self.dir)
    }
}

/// A folder that is gone when it is dropped.
///
/// # Errors
/// When none can be made.
pub fn fresh_in(dir: &Path) -> Result<tempfile::TempDir> {
    let made = tempfile::Builder::new().prefix("teimoso-bench-").tempdir_in(dir);
    made.doing(&format!("make a folder in {}", dir.display()))
}

/// This program's own folder: on the disk that the build is on, which is a real one as a rule.
///
/// # Errors
/// When the system does not say.
pub fn folder() -> Result<PathBuf> {
    let program = std::env::current_exe().doing("find this program")?;
    Ok(program.parent().map_or_else(PathBuf::new, Path::to_path_buf))
}
