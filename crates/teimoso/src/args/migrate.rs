//! The arguments of `teimoso migrate`. Deliberately absent: moving a part of a store.

use clap::Args;

use super::{OutputArgs, StoreLocation, store};

const EXAMPLES: &str = "\
Examples:
  teimoso migrate --from ./teimoso-data --to redis://10.0.0.5     outgrow one machine
  teimoso migrate --from redis://10.0.0.5 --to ./teimoso-data     come back to one
  teimoso migrate --from ./old --to /srv/new                      into another directory

Everything moves: events with their exact bytes, ids and idempotency keys, deliveries with their attempts
and due times, dead letters, pauses, replay jobs. Stop every server on both stores first. The target must
be empty. When the command is interrupted, or killed, run the same one again: it goes on and ends with
everything exactly once. The source keeps all of it, and what anybody pushed to a Redis has
become its own deliveries; do not start a server on it again.

What came in by RPUSH moves like everything else: in the target it is no longer in a public key.";

/// Move everything from one store to another.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct MigrateArgs {
    /// The store to move from, which no server may be using
    #[arg(long, value_name = "DIR|redis://…", value_parser = store::of_ones_own)]
    pub from: StoreLocation,
    /// The store to move to: empty, or where this very move was interrupted
    #[arg(long, value_name = "DIR|redis://…", value_parser = store::of_ones_own)]
    pub to: StoreLocation,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}
