//! The arguments of `teimoso dead`. Deliberately absent: throwing dead letters away.

use std::num::NonZeroU32;

use clap::{ArgGroup, Args, Subcommand};

use teimoso_delivery::store::MAX_REPLAY_RATE_PER_SECOND;

use super::{ListArgs, OutputArgs, ServerArgs, dead_reasons};
use crate::units::{self, Moment};

const EXAMPLES: &str = "\
Examples:
  teimoso dead list --reason attempts_exhausted --since 7d
  teimoso dead show dlv_0192f0c1                          with the body that was not delivered
  teimoso dead replay dlv_0192f0c1
  teimoso dead replay --reason attempts_exhausted --dry-run
  teimoso dead replay --all --yes --rate 50/s
  teimoso dead replay --cancel rpl_0192f0c1               stop a replay that is under way

A replay by --all, --reason or --since is a job of the server: it goes on when this command ends,
and after a restart.";

/// Look at deliveries that were given up, and replay them.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct DeadArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DeadCommand,
}

/// What to do with dead deliveries.
#[derive(Debug, Clone, Subcommand)]
pub enum DeadCommand {
    /// List dead deliveries, the newest first
    List {
        /// Only those that died of this
        #[arg(long, value_name = "REASON", value_parser = dead_reasons())]
        reason: Option<String>,
        /// How much of the list.
        #[command(flatten)]
        list: ListArgs,
        /// Which server.
        #[command(flatten)]
        server: ServerArgs,
        /// How data is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show one dead delivery, its attempts and its body
    Show {
        /// The delivery id
        id: String,
        /// Which server.
        #[command(flatten)]
        server: ServerArgs,
        /// How data is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Attempt dead deliveries anew, with a fresh budget of attempts
    Replay(ReplayArgs),
}

/// Which dead deliveries to replay, and how.
///
/// `ambiguous` ones may already have taken effect: they are replayed only by id or with `--reason ambiguous`.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("which").required(true).multiple(true))]
pub struct ReplayArgs {
    /// The delivery ids
    #[arg(value_name = "ID", group = "which", conflicts_with_all = ["all", "reason", "since"])]
    pub ids: Vec<String>,
    /// All dead deliveries except ambiguous ones
    #[arg(long, group = "which", conflicts_with_all = ["reason", "since"])]
    pub all: bool,
    /// Those that died of this
    #[arg(long, group = "which", value_name = "REASON", value_parser = dead_reasons())]
    pub reason: Option<String>,
    /// Those created since then: RFC 3339, or a duration back from now such as 2h or 7d
    #[arg(long, group = "which", value_name = "TIME", value_parser = units::moment)]
    pub since: Option<Moment>,
    /// Stop this replay job; what it replayed already stays replayed
    #[arg(long, group = "which", value_name = "JOB")]
    #[arg(conflicts_with_all = ["ids", "all", "reason", "since", "dry_run", "rate"])]
    pub cancel: Option<String>,
    /// Show how many would be replayed, and replay nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// At most so many per second [default: 100/s, by id no limit]
    #[arg(long, value_name = "N/s", value_parser = rate)]
    pub rate: Option<NonZeroU32>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

fn rate(text: &str) -> Result<NonZeroU32, String> {
    match units::rate_per_second(text)? {
        rate if rate.get() <= MAX_REPLAY_RATE_PER_SECOND => Ok(rate),
        _ => Err(format!("at most {MAX_REPLAY_RATE_PER_SECOND}/s")),
    }
}
