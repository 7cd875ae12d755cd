//! What was measured, and how it is told: a table for people, JSON for programs, a plot for the document.

mod goals;
mod ledger;
mod page;
mod plot;
mod table;

use std::fs;
use std::path::Path;

pub use ledger::{Ledger, Measure, Summary};
use serde_json::json;

use crate::trouble::{Doing, Result};
use crate::{clock, procfs};

/// What is written beside the table.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files<'a> {
    /// Every value, for programs.
    pub json: Option<&'a Path>,
    /// The plot.
    pub svg: Option<&'a Path>,
    /// The document that shows the table of Redis.
    pub page: Option<&'a Path>,
}

/// Prints the table, and writes the files that were asked for.
///
/// # Errors
/// When a file cannot be written.
pub fn write(ledger: &Ledger, files: Files<'_>) -> Result<()> {
    let summary = ledger.summary();
    println!("{}\n\n{}", machine(), table::table(&summary));
    for note in table::notes(&summary) {
        println!("{note}");
    }
    if let Some(path) = files.json {
        let finished_at = jiff::Timestamp::from_microsecond(clock::wall_micros().cast_signed());
        let value = json!({
            "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "),
            "machine": machine(),
            "finished_at": finished_at.unwrap_or_default().to_string(),
            "summary": summary.iter().map(Summary::json).collect::<Vec<_>>(),
            "records": ledger.records(),
        });
        let text = serde_json::to_string_pretty(&value).doing("write json")?;
        fs::write(path, text + "\n").doing(&format!("write {}", path.display()))?;
    }
    if let Some(path) = files.svg {
        fs::write(path, plot::svg(&summary, &machine())).doing(&format!("write {}", path.display()))?;
    }
    if let Some(path) = files.page {
        page::fill(path, &summary, &machine())?;
    }
    Ok(())
}

/// The machine in a line.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{cores} cores of {}, Linux {}", procfs::processor(), procfs::kernel())
}
