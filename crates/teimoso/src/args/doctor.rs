//! The arguments of `teimoso doctor`. Deliberately absent: which things are looked at; it looks at all of them.

use clap::Args;

use super::{OutputArgs, StoreLocation, store};

const EXAMPLES: &str = "\
Examples:
  teimoso doctor                                      look at ./teimoso-data, also beside its server
  teimoso doctor --store redis://10.0.0.5 --json      look at a Redis that a fleet is using
  teimoso doctor --store redis://10.0.0.5 --heal      and put right what can be put right

It compares the counters with what is there, and finds deliveries that nobody would attempt: in no queue,
in flight without a lease, without their event. What still can be delivered is made due again. A store in
a directory is healed only while no server is using it; a Redis is healed beside its fleet.

Exit codes: 0 nothing is wrong, or all of it was healed; 1 something is wrong; 5 a part of it was healed.";

/// Look for what is wrong with a store, and put it right.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// The store to look at: a directory, or a Redis
    // Help shows no value: it may hold a password.
    #[arg(long, env = "TEIMOSO_STORE", hide_env_values = true, value_name = "DIR|redis://…")]
    #[arg(default_value = "./teimoso-data", value_parser = store::of_ones_own)]
    pub store: StoreLocation,
    /// Put right what can be put right
    #[arg(long)]
    pub heal: bool,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}
