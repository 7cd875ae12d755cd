//! The table, in Markdown, and what must be said below it.

use std::fmt::Write;

use super::ledger::Summary;
use crate::lab::QUIET_CORES;

const HEAD: &str = "\
| scenario | measure | median | min – max | to reach | hope | reached | load |
|---|---|---:|---:|---:|---:|---|---:|
";

/// One line per measure; a scenario is named once.
pub fn table(summary: &[Summary]) -> String {
    let mut table = HEAD.to_owned();
    let mut before = "";
    for line in summary {
        let scenario = if before == line.scenario { "" } else { line.scenario.as_str() };
        before = &line.scenario;
        let show = |value| line.measure.show(value);
        let (least, greatest) = line.span;
        let span =
            if line.values > 1 { format!("{} – {}", show(least), show(greatest)) } else { String::new() };
        let (reach, hope, reached) = match line.goal {
            None => Default::default(),
            Some(goal) => {
                let sign = if goal.at_least { "≥" } else { "≤" };
                let reached = if goal.is_met(line.median) { "yes" } else { "**no**" };
                (
                    format!("{sign} {}", goal.reach),
                    goal.hope.map_or_else(String::new, |hope| hope.to_string()),
                    reached,
                )
            }
        };
        let load = line.load.map_or_else(String::new, |(low, high)| format!("{low:.1} – {high:.1}"));
        let mark = if line.is_disturbed() { " †" } else { "" };
        let (label, median) = (line.measure.label(), show(line.median));
        // Writing to a string does not fail.
        let _written = writeln!(
            table,
            "| {scenario} | {label} | {median}{mark} | {span} | {reach} | {hope} | {reached} | {load} |"
        );
    }
    table
}

/// What the marks mean, if there are any.
pub fn notes(summary: &[Summary]) -> Vec<String> {
    let worst =
        summary.iter().filter(|line| line.is_disturbed()).filter_map(|line| line.others).reduce(f64::max);
    let note = |worst| {
        format!(
            "† Other processes used more than {QUIET_CORES} of a core in at least one of these rounds, {worst:.1} at \
             most: run it again on a quiet machine."
        )
    };
    worst.map(note).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Spent;
    use crate::report::{Ledger, Measure};

    #[test]
    fn a_line_says_what_was_to_be_reached_and_who_disturbed() {
        let mut ledger = Ledger::new();
        let spent = Spent { load: 1.0, others: 0.7, ..Spent::default() };
        ledger.put("backlog", Measure::Rate, 50_000.0, &spent);
        ledger.put_quietly("backlog", Measure::OfLimit, 0.39);
        let summary = ledger.summary();
        let table = table(&summary);
        assert_eq!(
            table.lines().skip(2).collect::<Vec<_>>(),
            [
                "| backlog | per second | 50 000 † |  |  |  |  | 1.0 – 1.0 |",
                "|  | of the limit | 0.39 |  | ≥ 0.4 | 0.5 | **no** |  |",
            ]
        );
        assert_eq!(notes(&summary).len(), 1);
    }
}
