//! The arguments of `teimoso events`. Deliberately absent: anything that changes an event; events are immutable.

use clap::{Args, Subcommand};

use super::{ListArgs, OutputArgs, ServerArgs};
use crate::units::{self, Moment};

const EXAMPLES: &str = "\
Examples:
  teimoso events list --type pedido.pago --since 2h
  teimoso events show evt_0192f0c1
  teimoso events tail --json";

/// Look at accepted events.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct EventsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: EventsCommand,
}

/// What to do with events.
#[derive(Debug, Clone, Subcommand)]
pub enum EventsCommand {
    /// List events, the newest first
    List {
        /// Only events of this type
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
    /// Show one event, its deliveries and its payload
    Show {
        /// The event id
        id: String,
        /// Which server.
        #[command(flatten)]
        server: ServerArgs,
        /// How data is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print events as they are accepted, until stopped
    Tail {
        /// Only events of this type
        #[arg(long = "type", id = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// Start there instead of now: RFC 3339, or a duration back from now such as 2h
        #[arg(long, value_name = "TIME", value_parser = units::moment)]
        since: Option<Moment>,
        /// Which server.
        #[command(flatten)]
        server: ServerArgs,
        /// How data is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
}
