//! The benchmark: what teimoso delivers, beside the limit of the machine in the same minute.
//!
//! `run` starts everything else as processes of their own, so that each one's CPU and memory can be read apart:
//! the released binary, the counting [`sink`], the [`limit`] (the leanest client that sends the same bytes).
//! [`store`] compares the store alone with a bare append log, and [`instructions`] counts the hot paths under
//! callgrind. `docs/performance.md` explains the method. Deliberately absent: anything that a published crate needs.

mod args;
mod clock;
mod event;
mod instructions;
mod lab;
mod limit;
mod load;
mod procfs;
mod report;
mod run;
mod sink;
mod stats;
mod store;
mod talk;
mod trouble;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

/// What the product allocates with: the limit must not be slower by its allocator. The tests count allocations with one
/// of their own.
#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Instructions(args) => instructions::run(&args),
        Command::Sink(args) => sink::run(&args),
        Command::Limit(args) => limit::run(&args),
        Command::Path(args) => instructions::path(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("teimoso-bench: {trouble}");
            ExitCode::FAILURE
        }
    }
}
