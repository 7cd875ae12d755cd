//! The chaos proof: senders, their Redis and the ways between them are killed, stopped and cut at random while events
//! come in, and at the end every acknowledged event is accounted for.
//!
//! | where | what |
//! |---|---|
//! | `world` | what there is: a Redis, processes, a proxy to cut, a receiver that remembers |
//! | `design` | who delivers: the released binary, or the naive sender it is compared with |
//! | `produce` | events in three shapes, and what of them was acknowledged |
//! | `havoc` | what strikes, when, and whom |
//! | `account` | what was lost, what came twice, and whose fault that was |
//! | `run` | the order of things |
//!
//! Everything random comes from one seed, which is printed. Deliberately absent: any crate of the product, so that
//! nothing is believed which a user could not see.

mod account;
mod args;
mod clock;
mod design;
mod havoc;
mod http;
mod produce;
mod report;
mod run;
mod trouble;
mod world;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Naive(args) => design::naive::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("teimoso-chaos: {trouble}");
            ExitCode::FAILURE
        }
    }
}
