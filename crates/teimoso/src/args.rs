//! The command line as data: what may be said, and nothing of what is then done.
//! Deliberately absent: reading files, the environment's language, and every effect; flags of things that do not
//! exist yet.

mod dead;
mod deliveries;
mod doctor;
mod events;
pub mod forgejo;
mod migrate;
mod policy;
mod request;
mod send;
mod serve;
mod sink;
mod store;
mod whatsapp;

use std::num::NonZeroU32;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};

use crate::api_client::ServerUrl;
use crate::messages::Language;
use crate::units::{self, Moment};

pub use dead::{DeadArgs, DeadCommand, ReplayArgs};
pub use deliveries::{ChangeArgs, DeliveriesArgs, DeliveriesCommand};
pub use doctor::DoctorArgs;
pub use events::{EventsArgs, EventsCommand};
pub use forgejo::ForgejoArgs;
pub use migrate::MigrateArgs;
pub use policy::{PolicyArgs, PolicyCommand};
pub use request::{ElsewhereArgs, Private, RequestArgs};
pub use send::{DataSource, HeaderLine, SendArgs};
pub use serve::{AcceptedWhen, AttemptLines, ServeArgs};
pub use sink::SinkArgs;
pub use store::{RedisUrl, StoreLocation};
pub use whatsapp::{
    AccountArgs, ConnectArgs, FindArgs, LogoutArgs, ProvidersArgs, QrArgs, RepeatArgs, SendMediaArgs,
    SendTextArgs, StatusArgs, WhatsappArgs, WhatsappCommand,
};

const EXAMPLES: &str = "\
Examples:
  teimoso sink                                        a destination to play with, on port 4000
  teimoso serve --allow-net 127.0.0.0/8               accept events on port 8080 and deliver them
  teimoso send http://127.0.0.1:4000/teimoso --wait   hand one event over and see it arrive
  teimoso dead list                                   what was given up, and why
  teimoso request GET https://example.com/status      one request, repeated only where that is safe
  teimoso forgejo pr automerge acme/site 7            wait for green checks, then merge
  teimoso whatsapp providers                          gateways that messages can be sent through
  teimoso policy show patient                         when the attempts are made

Exit codes:
  0 ok    1 failure    2 usage    3 not found    4 authentication    5 partly failed
  6 retries or waiting time exhausted    7 outcome unknown    8 checks pending
  130 interrupted    143 terminated";

/// The place of what every command has: after what is its own.
const LAST: usize = 900;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "teimoso", version, about, after_help = EXAMPLES, subcommand_required = true)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Cli {
    /// Language of the lines for people: en or pt-BR [default: from TEIMOSO_LANG, LC_ALL, LC_MESSAGES or LANG]
    #[arg(long, global = true, value_name = "LANG", display_order = LAST)]
    pub lang: Option<Language>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Accept events and deliver them until stopped
    Serve(Box<ServeArgs>),
    /// Hand events over for delivery
    Send(Box<SendArgs>),
    /// Look at accepted events
    Events(EventsArgs),
    /// Look at deliveries, retry or cancel them
    Deliveries(DeliveriesArgs),
    /// Look at deliveries that were given up, and replay them
    Dead(DeadArgs),
    /// Look for what is wrong with a store, and put it right
    Doctor(DoctorArgs),
    /// Move everything from one store to another
    Migrate(MigrateArgs),
    /// Make one HTTP request, repeated only where that is safe
    Request(Box<RequestArgs>),
    /// Work with pull requests and issues of a Forgejo
    Forgejo(ForgejoArgs),
    /// Send WhatsApp messages through a gateway, and link it with a phone
    Whatsapp(Box<WhatsappArgs>),
    /// Run a test destination that succeeds, fails and stalls on demand
    Sink(SinkArgs),
    /// Show the retry policies and when they make their attempts
    Policy(PolicyArgs),
}

/// Which server, or which store, a command talks to.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// The server to talk to [env: TEIMOSO_SERVER=] [default: http://127.0.0.1:8080]
    // Not clap's `env`: a variable that is set must not contradict --store.
    #[arg(long, value_name = "URL", display_order = LAST)]
    pub server: Option<ServerUrl>,
    /// Instead of a server, the store in this directory, which no server may be using, or on this Redis, which any
    /// number may
    #[arg(long, value_name = "DIR|redis://…", display_order = LAST, conflicts_with = "server")]
    #[arg(value_parser = store::of_ones_own)]
    pub store: Option<StoreLocation>,
}

/// How a command prints its data.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Print JSON: one object, or one per line for lists and streams
    #[arg(long, display_order = LAST)]
    pub json: bool,
}

/// How much of a list is wanted.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Only what was created since then: RFC 3339, or a duration back from now such as 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub since: Option<Moment>,
    /// Show at most so many
    #[arg(long, value_name = "N", default_value = "50")]
    pub limit: NonZeroU32,
}

/// The delivery states, in the order a delivery goes through them.
const STATES: [&str; 6] = ["pending", "in_flight", "scheduled", "delivered", "dead", "cancelled"];

/// The closed list of reasons for which a delivery is given up.
const DEAD_REASONS: [&str; 11] = [
    "permanent_status",
    "attempts_exhausted",
    "deadline_exceeded",
    "ambiguous",
    "endpoint_gone",
    "redirect",
    "blocked_address",
    "invalid_destination",
    "malformed",
    "too_large",
    "poison",
];

fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(STATES)
}

fn dead_reasons() -> PossibleValuesParser {
    PossibleValuesParser::new(DEAD_REASONS)
}

#[cfg(test)]
mod tests;
