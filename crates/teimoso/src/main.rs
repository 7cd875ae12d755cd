//! The `teimoso` binary: reads the command line and hands it on.

use std::process::ExitCode;

use clap::Parser;
use teimoso::args::Cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    teimoso::commands::run(Cli::parse())
}
