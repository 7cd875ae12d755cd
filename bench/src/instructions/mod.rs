//! How many instructions the hot paths take, counted by callgrind: a number that does not depend on how busy the
//! machine is, compared with what is written down in `bench/instructions.json`.
//!
//! Each path runs twice, so many times and several times as often; the difference divided by the difference is the
//! cost of one, with start-up and shut-down left out. Deliberately absent: time. Cache misses, waits and the kernel
//! are not in these numbers.

mod clients;
mod expected;
mod paths;
mod ratio;

use std::path::Path;
use std::process::{Command, Stdio};

use clap::ValueEnum;

use crate::args::{HotPath, InstructionsArgs};
use crate::lab::{Sink, folder};
use crate::trouble::{Doing, Result, Trouble};
use expected::{Expected, Verdict};
pub use paths::run as path;
use ratio::Ratio;

impl HotPath {
    /// How often it runs, at first and then.
    const fn times(self) -> (u64, u64) {
        match self {
            Self::Decide => (10_000, 60_000),
            Self::Lanes => (6_400, 32_000),
            Self::Line => (2_048, 10_240),
            Self::Store => (1_024, 5_120),
            Self::Attempt | Self::Client | Self::HyperUtil => (200, 1_200),
        }
    }

    /// Whether it needs a peer.
    const fn needs_sink(self) -> bool {
        matches!(self, Self::Attempt | Self::Client | Self::HyperUtil)
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Counts and compares.
///
/// # Errors
/// When a path needs more or fewer instructions than the tolerance allows, or the client more than it may.
pub fn run(args: &InstructionsArgs) -> Result<()> {
    if !has_valgrind() {
        println!("instructions are not counted: there is no valgrind (Debian's package valgrind)");
        return Ok(());
    }
    let mut expected = Expected::read(&args.expected)?;
    let counts = count_all(args, &expected)?;
    let ratio = Ratio::of(&counts);
    if let Some(ratio) = ratio {
        println!("{ratio}");
    }
    if cfg!(debug_assertions) {
        println!("\nThis is a debug build: its counts are compared with nothing.");
        return Ok(());
    }
    if args.write {
        for (path, count) in &counts {
            expected.note(path.name(), *count);
        }
        expected.write(&args.expected)?;
    } else if expected.is_of_this_machine() {
        check(&counts, &expected)?;
    } else {
        println!("\nThe expected counts are of another kind of processor: no verdict.");
    }
    ratio.map_or(Ok(()), Ratio::check)
}

/// Counts what is wanted, and prints each as a line of a table.
fn count_all(args: &InstructionsArgs, expected: &Expected) -> Result<Vec<(HotPath, u64)>> {
    let wanted = |path: &&HotPath| args.only.is_empty() || args.only.contains(path);
    let mut counts = Vec::new();
    println!("| path | instructions | expected | difference |\n|---|---:|---:|---:|");
    for path in HotPath::value_variants().iter().filter(wanted) {
        let counted = count(*path, args.keep.as_deref())?;
        println!("| {} | {counted} | {} |", path.name(), expected.judge(&path.name(), counted));
        counts.push((*path, counted));
    }
    Ok(counts)
}

fn check(counts: &[(HotPath, u64)], expected: &Expected) -> Result<()> {
    let is_beyond = |(path, count): &&(HotPath, u64)| {
        matches!(expected.judge(&path.name(), *count), Verdict::Beyond { .. })
    };
    let beyond: Vec<String> = counts.iter().filter(is_beyond).map(|(path, _)| path.name()).collect();
    if beyond.is_empty() {
        return Ok(());
    }
    let beyond = beyond.join(", ");
    Err(Trouble::new(format!(
        "beyond ±10 %: {beyond}; find out why, or write the new counts down with --write"
    )))
}

fn has_valgrind() -> bool {
    let asked =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Instructions of one time.
fn count(path: HotPath, keep: Option<&Path>) -> Result<u64> {
    let (few, many) = path.times();
    let sink = if path.needs_sink() { Some(Sink::start()?) } else { None };
    let fewer = collect(path, few, sink.as_ref(), keep)?;
    let more = collect(path, many, sink.as_ref(), keep)?;
    Ok(more.saturating_sub(fewer) / (many - few))
}

fn collect(path: HotPath, times: u64, sink: Option<&Sink>, keep: Option<&Path>) -> Result<u64> {
    let name = path.name();
    let mut out = std::ffi::OsString::from("--callgrind-out-file=");
    match keep {
        Some(dir) => out.push(dir.join(format!("callgrind.{name}.{times}"))),
        None => out.push("/dev/null"),
    }
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(out).arg(std::env::current_exe().doing("find this program")?);
    command.args(["path", &name, "--times", &times.to_string(), "--dir"]).arg(folder()?);
    if let Some(sink) = sink {
        command.args(["--sink", &sink.address.to_string()]);
    }
    let ended = command.stdin(Stdio::null()).output().doing("run valgrind")?;
    let said = String::from_utf8_lossy(&ended.stderr);
    if !ended.status.success() {
        return Err(Trouble::new(format!("{name} failed under valgrind: {said}")));
    }
    collected(&said).ok_or_else(|| Trouble::new(format!("valgrind counted nothing: {said}")))
}

/// The number in callgrind's last words.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected"))?;
    line.rsplit_once(':')?.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrinds_number_is_found() {
        assert_eq!(collected("==1== \n==1== Collected : 123456\n==1== I refs: 7\n"), Some(123_456));
        assert_eq!(collected("==1== nothing\n"), None);
    }

    #[test]
    fn every_path_runs_more_often_the_second_time() {
        for path in HotPath::value_variants() {
            let (few, many) = path.times();
            assert!(few < many, "{path:?}");
        }
    }
}
