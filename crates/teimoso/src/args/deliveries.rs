//! The arguments of `teimoso deliveries`. Deliberately absent: bulk changes, which `teimoso dead replay` makes.

use clap::{Args, Subcommand};

use super::{ListArgs, OutputArgs, ServerArgs, states};

const EXAMPLES: &str = "\
Examples:
  teimoso deliveries list --state scheduled
  teimoso deliveries show dlv_0192f0c1          its attempts, and when and why the next is due
  teimoso deliveries retry dlv_0192f0c1         now, instead of when it is due
  teimoso deliveries cancel dlv_0192f0c1";

/// Look at deliveries, retry or cancel them.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct DeliveriesArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DeliveriesCommand,
}

/// What to do with deliveries.
#[derive(Debug, Clone, Subcommand)]
pub enum DeliveriesCommand {
    /// List deliveries, the newest first
    List {
        /// Only deliveries in this state
        #[arg(long, value_name = "STATE", value_parser = states())]
        state: Option<String>,
        /// Only deliveries of events of this type
        #[arg(long = "type", id = "type", value_name = "TYPE")]
        kind: Option<String>,
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
    /// Show one delivery and its attempts
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
    /// Attempt dead, scheduled or cancelled deliveries now
    Retry {
        /// Send once more what was delivered already
        #[arg(long)]
        explicit: bool,
        /// Which deliveries, and where.
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Cancel deliveries that are not finished
    Cancel(ChangeArgs),
}

/// Which deliveries to change.
#[derive(Debug, Clone, Args)]
pub struct ChangeArgs {
    /// The delivery ids
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}
