//! The one place of a document that a run fills in by itself: the table of Redis, between two marks.

use std::fs;
use std::path::Path;

use super::ledger::Summary;
use super::table;
use crate::trouble::{Doing, Result, Trouble};

/// What the place begins and ends with; invisible where the document is read.
const BEGIN: &str = "<!-- measured on Redis -->\n";
const END: &str = "<!-- end of what was measured on Redis -->";
/// What the names of its scenarios begin with.
const REDIS: &str = "Redis";

/// Fills it with what was measured on Redis, if anything was.
///
/// # Errors
/// The document has no such place, or cannot be written.
pub fn fill(path: &Path, summary: &[Summary], machine: &str) -> Result<()> {
    let rows: Vec<Summary> = summary.iter().filter(|line| belongs(&line.scenario)).cloned().collect();
    if !rows.iter().any(|line| line.scenario.starts_with(REDIS)) {
        return Ok(());
    }
    let shown = path.display();
    let document = fs::read_to_string(path).doing(&format!("read {shown}"))?;
    let content = format!("On {machine}.\n\n{}", table::table(&rows));
    let filled = filled(&document, &content);
    let filled = filled.ok_or_else(|| Trouble::new(format!("{shown} has no place for Redis: {BEGIN}")))?;
    fs::write(path, filled).doing(&format!("write {shown}"))
}

/// The limit of the same run stands beside it.
fn belongs(scenario: &str) -> bool {
    scenario.starts_with(REDIS) || scenario == "limit"
}

fn filled(document: &str, content: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{content}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_the_marks_is_replaced_and_nothing_else() {
        let document = format!("a\n{BEGIN}old\n{END}\nb\n");
        let once = filled(&document, "first\n").unwrap();
        assert_eq!(once, format!("a\n{BEGIN}first\n{END}\nb\n"));
        assert_eq!(filled(&once, "second\n").unwrap(), once.replace("first", "second"));
        assert_eq!(filled("no marks", "x"), None);
    }

    #[test]
    fn the_performance_page_has_the_place() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/performance.md");
        assert!(filled(&fs::read_to_string(page).unwrap(), "x").is_some());
    }
}
