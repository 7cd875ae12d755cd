//! The ledger: one record per value and round, and the medians over the rounds.

use serde::Serialize;
use serde_json::{Value, json};

use super::goals::{Goal, goal};
use crate::lab::{QUIET_CORES, Spent};
use crate::stats;

/// What a value is; [`Measure::label`] says it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    Rate,
    LogRate,
    OfLog,
    OfLimit,
    OfEmpty,
    OfIdeal,
    OfAlone,
    Cpu,
    SinkCpu,
    ProducerCpu,
    StoreCpu,
    StoreMicros,
    StoreCore,
    StoreCommands,
    LongestScript,
    P50,
    P90,
    P99,
    P999,
    Longest,
    Late50,
    Late99,
    Seconds,
    Ready,
    Memory,
    PeakMemory,
    MemoryAfterStart,
    Core,
    WakeUps,
}

impl Measure {
    /// Its name with its unit.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Rate => "per second",
            Self::LogRate => "bare log, per second",
            Self::OfLog => "of the bare log",
            Self::OfLimit => "of the limit",
            Self::OfEmpty => "of the rate when empty",
            Self::OfIdeal => "of the schedule's own time",
            Self::OfAlone => "p99 of the p99 alone",
            Self::Cpu => "CPU s per 10 k",
            Self::SinkCpu => "sink's CPU s per 10 k",
            Self::ProducerCpu => "producers' CPU s per 10 k",
            Self::StoreCpu => "Redis's CPU s per 10 k",
            Self::StoreMicros => "Redis's CPU µs per event",
            Self::StoreCore => "Redis, % of a core",
            Self::StoreCommands => "commands per second and sender",
            Self::LongestScript => "longest script ms",
            Self::P50 => "p50 ms",
            Self::P90 => "p90 ms",
            Self::P99 => "p99 ms",
            Self::P999 => "p99.9 ms",
            Self::Longest => "longest ms",
            Self::Late50 => "retry late, p50 ms",
            Self::Late99 => "retry late, p99 ms",
            Self::Seconds => "s to the last 200",
            Self::Ready => "s until ready after kill -9",
            Self::Memory => "resident MiB",
            Self::PeakMemory => "peak MiB",
            Self::MemoryAfterStart => "resident MiB after that start",
            Self::Core => "% of a core",
            Self::WakeUps => "wake-ups per second",
        }
    }

    /// A value as a person reads it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Rate | Self::LogRate => thousands(value),
            Self::Memory | Self::PeakMemory | Self::MemoryAfterStart | Self::WakeUps => format!("{value:.1}"),
            Self::Cpu | Self::SinkCpu | Self::ProducerCpu | Self::StoreCpu | Self::Core => {
                format!("{value:.3}")
            }
            _ => format!("{value:.2}"),
        }
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

/// One value.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    scenario: String,
    measure: Measure,
    round: u32,
    value: f64,
    /// The load average of the minute before; `None` for a ratio, whose parts have their own.
    load: Option<f64>,
    /// Cores that other processes used meanwhile.
    others: Option<f64>,
}

/// Everything that was measured so far.
#[derive(Debug, Default)]
pub struct Ledger {
    round: u32,
    records: Vec<Record>,
}

/// The rounds of one measure.
#[derive(Debug, Clone)]
pub struct Summary {
    /// What was done.
    pub scenario: String,
    /// What was looked at.
    pub measure: Measure,
    /// The middle of the rounds.
    pub median: f64,
    /// The least and the greatest.
    pub span: (f64, f64),
    /// How many values there are.
    pub values: usize,
    /// The load averages' span.
    pub load: Option<(f64, f64)>,
    /// The most cores that others used in a round.
    pub others: Option<f64>,
    /// What it should be.
    pub goal: Option<Goal>,
}

impl Ledger {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// What follows belongs to this round.
    pub fn begin(&mut self, round: u32) {
        self.round = round;
    }

    /// The running round, from 0.
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Whether what is compared with goes first in this round: a machine that gets slower or faster in the course of
    /// the run favours neither side.
    pub const fn is_reference_first(&self) -> bool {
        self.round.is_multiple_of(2)
    }

    /// All records, in the order they were made.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Notes a value, with what went on around it.
    pub fn put(&mut self, scenario: &str, measure: Measure, value: f64, spent: &Spent) {
        self.push(scenario, measure, value, Some(spent));
    }

    /// Notes a value that was computed from others.
    pub fn put_quietly(&mut self, scenario: &str, measure: Measure, value: f64) {
        self.push(scenario, measure, value, None);
    }

    fn push(&mut self, scenario: &str, measure: Measure, value: f64, spent: Option<&Spent>) {
        let (load, others) = (spent.map(|spent| spent.load), spent.map(|spent| spent.others));
        self.records.push(Record {
            scenario: scenario.to_owned(),
            measure,
            round: self.round,
            value,
            load,
            others,
        });
    }

    /// The medians, in the order in which measures first appeared, a scenario's together.
    pub fn summary(&self) -> Vec<Summary> {
        let mut keys: Vec<(&str, Measure)> = Vec::new();
        for record in &self.records {
            let key = (record.scenario.as_str(), record.measure);
            if !keys.contains(&key) {
                let after = keys.iter().rposition(|(scenario, _)| *scenario == key.0);
                keys.insert(after.map_or(keys.len(), |at| at + 1), key);
            }
        }
        keys.into_iter().filter_map(|(scenario, measure)| self.summarize(scenario, measure)).collect()
    }

    fn summarize(&self, scenario: &str, measure: Measure) -> Option<Summary> {
        let of_it = |record: &&Record| record.scenario == scenario && record.measure == measure;
        let records: Vec<&Record> = self.records.iter().filter(of_it).collect();
        let values: Vec<f64> = records.iter().map(|record| record.value).collect();
        let loads: Vec<f64> = records.iter().filter_map(|record| record.load).collect();
        let others: Vec<f64> = records.iter().filter_map(|record| record.others).collect();
        Some(Summary {
            scenario: scenario.to_owned(),
            measure,
            median: stats::median(&values)?,
            span: stats::span(&values)?,
            values: values.len(),
            load: stats::span(&loads),
            others: stats::span(&others).map(|(_, most)| most),
            goal: goal(scenario, measure),
        })
    }
}

impl Summary {
    /// Whether others disturbed one of the rounds.
    pub fn is_disturbed(&self) -> bool {
        self.others.is_some_and(|others| others > QUIET_CORES)
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "scenario": self.scenario,
            "measure": self.measure,
            "label": self.measure.label(),
            "median": self.median,
            "min": self.span.0,
            "max": self.span.1,
            "values": self.values,
            "load": self.load,
            "others_cores_max": self.others,
            "goal": self.goal,
            "met": self.goal.map(|goal| goal.is_met(self.median)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_gathered_by_scenario_and_measure() {
        let mut ledger = Ledger::new();
        for (round, value) in [(0, 10.0), (1, 30.0), (2, 20.0)] {
            ledger.begin(round);
            let spent = Spent { load: f64::from(round), others: 0.1, ..Spent::default() };
            ledger.put("limit", Measure::Rate, value, &spent);
            ledger.put("backlog", Measure::Rate, 5.0, &spent);
            ledger.put_quietly("backlog", Measure::OfLimit, 0.5);
        }
        let summary = ledger.summary();
        let order: Vec<(&str, Measure)> = summary.iter().map(|s| (s.scenario.as_str(), s.measure)).collect();
        let expected = [("limit", Measure::Rate), ("backlog", Measure::Rate), ("backlog", Measure::OfLimit)];
        assert_eq!(order, expected);
        assert_eq!((summary[0].median, summary[0].span, summary[0].values), (20.0, (10.0, 30.0), 3));
        assert_eq!((summary[0].load, summary[2].load), (Some((0.0, 2.0)), None));
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([7.0, 1_234.0, 1_234_567.0].map(thousands), ["7", "1 234", "1 234 567"]);
    }
}
