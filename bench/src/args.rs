//! The benchmark's command line, as data.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::event;

/// Measures what teimoso delivers, beside the limit of the machine.
#[derive(Debug, Parser)]
#[command(name = "teimoso-bench", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the released binary in every scenario, or in some
    Run(RunArgs),
    /// Compare the embedded store alone with a bare append log
    Store(StoreArgs),
    /// Count the instructions of the hot paths and compare them with what is written down
    Instructions(InstructionsArgs),
    /// The counting destination, as a process of its own
    #[command(hide = true)]
    Sink(SinkArgs),
    /// The leanest client, as a process of its own
    #[command(hide = true)]
    Limit(LimitArgs),
    /// One hot path, so many times
    #[command(hide = true)]
    Path(PathArgs),
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Scenario {
    /// Events stored beforehand and all due at once, beside the limit
    Backlog,
    /// NDJSON batches accepted and delivered at the same time, beside the limit
    Through,
    /// NDJSON batches accepted, nothing due, beside the limit
    Ingest,
    /// One event per request from 64 producers, nothing due, beside the limit
    Single,
    /// From before the request to the arrival, at fixed rates
    Latency,
    /// Events answered 503, 503, 200
    Storm,
    /// A backlog while a million others are stored for later; a kill -9; the start after it
    Pending,
    /// A healthy lane beside hanging ones
    Isolation,
    /// What it costs to wait
    Idle,
    /// Backlogs of small and large payloads, beside the limit
    Payloads,
    /// The backlog on Redis, by one sender and by two, beside the limit
    RedisBacklog,
    /// Batches accepted and delivered at the same time on Redis, beside the limit
    RedisThrough,
    /// From before the request to the arrival on Redis, at 500 per second
    RedisLatency,
    /// From a bare RPUSH to the arrival, at a sender that was waiting
    RedisWake,
    /// Events answered 503, 503, 200 on Redis
    RedisStorm,
    /// What two senders that wait cost Redis
    RedisIdle,
    /// Fresh events beside half a million retries that are due at once
    RedisDue,
    /// What two hundred senders cost Redis
    RedisFleet,
}

impl Scenario {
    /// Whether it needs a `redis-server`.
    pub const fn is_on_redis(self) -> bool {
        use Scenario::{
            RedisBacklog, RedisDue, RedisFleet, RedisIdle, RedisLatency, RedisStorm, RedisThrough, RedisWake,
        };
        matches!(
            self,
            RedisBacklog
                | RedisThrough
                | RedisLatency
                | RedisWake
                | RedisStorm
                | RedisIdle
                | RedisDue
                | RedisFleet
        )
    }
}

/// Arguments of `run`.
#[derive(Debug, Clone, ClapArgs)]
pub struct RunArgs {
    /// Only these scenarios, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    pub only: Vec<Scenario>,
    /// How often each is measured [default: 3, with --short 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: Option<u32>,
    /// Small numbers, done within two minutes: shows that it works, not how fast it is
    #[arg(long)]
    pub short: bool,
    /// Five million pending events, too
    #[arg(long)]
    pub long: bool,
    /// Events of a throughput run [default: 50000, with --short 10000]; the other scenarios follow in proportion
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    pub events: Option<u64>,
    /// Payload bytes where the scenario does not say
    #[arg(long, value_name = "N", default_value_t = event::PAYLOAD_BYTES)]
    pub payload: usize,
    /// Write everything that was measured to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Plot the medians into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Put the table of Redis where this document has its place for it
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// The binary to measure [default: release/teimoso beside this program's folder]
    #[arg(long, value_name = "FILE")]
    pub teimoso: Option<PathBuf>,
    /// Where stores are made, on a real disk [default: this program's folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// What a user would take instead, too, on the same sink: needs node, redis-server and bench/peers/node_modules
    #[arg(long)]
    pub peers: bool,
}

/// Arguments of `store`.
#[derive(Debug, Clone, ClapArgs)]
pub struct StoreArgs {
    /// Events of a run
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub events: u64,
    /// How often each is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Events stored for later before the embedded store is measured
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub pending: u64,
    /// Payload bytes
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub payload: usize,
    /// Where stores are made, on a real disk [default: this program's folder]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Write everything that was measured to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `instructions`.
#[derive(Debug, Clone, ClapArgs)]
pub struct InstructionsArgs {
    /// Only these paths, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    pub only: Vec<HotPath>,
    /// The expected counts
    #[arg(long, value_name = "FILE", default_value = "bench/instructions.json")]
    pub expected: PathBuf,
    /// Write the counts down as the expected ones instead of comparing
    #[arg(long)]
    pub write: bool,
    /// Keep callgrind's files here, for callgrind_annotate
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// A path that every delivery takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HotPath {
    /// The decision after an attempt
    Decide,
    /// A delivery's way through its lane: push, take, release
    Lanes,
    /// An NDJSON line read, judged, stored in memory and answered
    Line,
    /// An event's way through the embedded store: accept, claim, settle with its attempt, all committed
    Store,
    /// One request over a kept connection
    Attempt,
    /// One request of the client that retries, its answer collected
    Client,
    /// The same request of hyper-util's client, which knows nothing of fates
    HyperUtil,
}

/// Arguments of `sink`.
#[derive(Debug, Clone, ClapArgs)]
pub struct SinkArgs {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
}

/// Arguments of `limit`.
#[derive(Debug, Clone, ClapArgs)]
pub struct LimitArgs {
    /// The sink's address
    #[arg(long)]
    pub sink: SocketAddr,
    /// How many requests
    #[arg(long)]
    pub requests: u64,
    /// Over how many connections
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Payload bytes
    #[arg(long, default_value_t = event::PAYLOAD_BYTES)]
    pub payload: usize,
}

/// Arguments of `path`.
#[derive(Debug, Clone, ClapArgs)]
pub struct PathArgs {
    /// Which one
    #[arg(value_enum)]
    pub path: HotPath,
    /// How often
    #[arg(long)]
    pub times: u64,
    /// The sink, for the paths that need a peer
    #[arg(long)]
    pub sink: Option<SocketAddr>,
    /// Where a store may be made
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn scenarios_are_named_in_one_argument() {
        let args = Args::try_parse_from(["x", "run", "--only", "backlog,storm", "--short"]).unwrap();
        let Command::Run(run) = args.command else { panic!("run was asked for") };
        assert_eq!(run.only, [Scenario::Backlog, Scenario::Storm]);
        assert!(run.short);
    }
}
