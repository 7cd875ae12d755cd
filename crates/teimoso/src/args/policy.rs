//! The arguments of `teimoso policy`. Deliberately absent: policies from files.

use clap::{Args, Subcommand};
use teimoso_retry::Preset;

use super::OutputArgs;

const EXAMPLES: &str = "\
Examples:
  teimoso policy list
  teimoso policy show patient --plot
  teimoso policy show webhook --attempts 10 --json";

/// The most attempts a schedule is shown for.
const SHOWN_ATTEMPTS_MAX: i64 = 1_000;

/// Show the retry policies and when they make their attempts.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// What to do with policies.
#[derive(Debug, Clone, Subcommand)]
pub enum PolicyCommand {
    /// List the policies
    List {
        /// How data is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show when a policy makes its attempts, with the range that jitter gives
    Show {
        /// The policy
        name: Preset,
        /// As if it made so many attempts
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=SHOWN_ATTEMPTS_MAX))]
        attempts: Option<u32>,
        /// Draw the waits as bars
        #[arg(long, conflicts_with = "json")]
        plot: bool,
        /// How data is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
}
