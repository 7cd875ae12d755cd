//! The command line, as data.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// Kills senders and Redis at random and accounts for every acknowledged event.
#[derive(Debug, Parser)]
#[command(name = "teimoso-chaos", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a storm and account for it; fails when teimoso lost, changed or wrongly repeated anything
    Run(RunArgs),
    /// A process of the naive design
    #[command(hide = true)]
    Naive(NaiveArgs),
}

/// Who delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// The released binary.
    Teimoso,
    /// A loop of BLPOP, POST and ZADD, and a forwarder of ZREM and RPUSH.
    Naive,
}

/// Arguments of `run`.
#[derive(Debug, Clone, ClapArgs)]
pub struct RunArgs {
    /// Who is struck; several in one run are struck by the same seed
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES", default_values = ["teimoso", "naive"])]
    pub designs: Vec<Which>,
    /// A short storm, done within a minute for teimoso alone
    #[arg(long)]
    pub short: bool,
    /// How long it strikes, in seconds [default: 150, with --short 9]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(5..=86_400))]
    pub seconds: Option<u64>,
    /// Events per second from all producers together
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(20..=2_000))]
    pub rate: u32,
    /// Repeats a storm as far as the machine lets it [default: the time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The binary [default: teimoso beside this program]
    #[arg(long, value_name = "FILE")]
    pub teimoso: Option<PathBuf>,
}

impl RunArgs {
    /// How long it strikes.
    pub fn storm(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(if self.short { 9 } else { 150 }))
    }
}

/// Arguments of `naive`.
#[derive(Debug, Clone, ClapArgs)]
pub struct NaiveArgs {
    /// Its Redis
    #[arg(long)]
    pub redis: String,
    /// How many events it has on the wire at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub loops: u32,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn both_designs_are_struck_unless_one_is_named() {
        let run = |words: &[&str]| match Args::try_parse_from(words).expect("they parse").command {
            Command::Run(run) => run,
            Command::Naive(_) => panic!("run was asked for"),
        };
        assert_eq!(run(&["x", "run"]).designs, [Which::Teimoso, Which::Naive]);
        let short = run(&["x", "run", "--designs", "teimoso", "--short"]);
        assert_eq!(
            (short.designs.as_slice(), short.storm()),
            (&[Which::Teimoso][..], Duration::from_secs(9))
        );
    }
}
