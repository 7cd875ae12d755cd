//! The `teimoso` binary: reads the command line and hands it on.

use std::process::ExitCode;

use clap::Parser;
use teimoso::args::Cli;

fn main() -> ExitCode {
    teimoso::commands::run(Cli::parse())
}
