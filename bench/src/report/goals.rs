//! The numbers to reach, on two cores with fsync on, attempts logged and payloads of 200 to 500 bytes; of the store,
//! beside a bare log in the same minute.

use serde::Serialize;

use super::ledger::Measure;

/// A bound, and what would be better still.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Goal {
    /// Whether more is better.
    pub at_least: bool,
    /// To reach.
    pub reach: f64,
    /// To hope for.
    pub hope: Option<f64>,
}

impl Goal {
    const fn at_least(reach: f64, hope: f64) -> Self {
        Self { at_least: true, reach, hope: Some(hope) }
    }

    const fn limit(reach: f64) -> Self {
        Self { at_least: false, reach, hope: None }
    }

    const fn at_most(reach: f64, hope: f64) -> Self {
        Self { at_least: false, reach, hope: Some(hope) }
    }

    /// Whether a value is good enough.
    pub fn is_met(self, value: f64) -> bool {
        if self.at_least { value >= self.reach } else { value <= self.reach }
    }
}

/// What a measure of a scenario should be, if anything was promised.
pub fn goal(scenario: &str, measure: Measure) -> Option<Goal> {
    let goal = match (scenario, measure) {
        ("backlog", Measure::OfLimit) => Goal::at_least(0.40, 0.50),
        ("through", Measure::OfLimit) => Goal::at_least(0.25, 0.35),
        ("batch ingest", Measure::OfLimit) => Goal::at_least(0.45, 0.60),
        ("single ingest", Measure::OfLimit) => Goal::at_least(0.20, 0.30),
        ("backlog", Measure::Cpu) => Goal::at_most(0.40, 0.30),
        ("limit", Measure::SinkCpu) => Goal::limit(0.08),
        ("latency at 500/s", Measure::P50) => Goal::at_most(2.0, 1.0),
        ("latency at 500/s", Measure::P99) => Goal::at_most(10.0, 5.0),
        ("latency at 5000/s", Measure::P99) => Goal::at_most(25.0, 10.0),
        ("retry storm", Measure::Late99) => Goal::at_most(50.0, 10.0),
        ("retry storm", Measure::OfIdeal) => Goal::at_most(1.10, 1.02),
        ("1 M pending", Measure::OfEmpty) => Goal::at_least(0.85, 0.95),
        ("1 M pending", Measure::Memory) => Goal::at_most(200.0, 150.0),
        ("1 M pending", Measure::Ready) => Goal::at_most(1.5, 1.0),
        ("5 M pending", Measure::Memory) => Goal::at_most(500.0, 300.0),
        ("a lane beside 1 hanging", Measure::OfAlone) => Goal::at_most(2.0, 1.2),
        ("a lane beside 64 hanging", Measure::OfAlone) => Goal::at_most(3.0, 1.5),
        ("idle", Measure::Core) => Goal::limit(0.2),
        ("empty", Measure::Memory) => Goal::limit(30.0),
        ("Redis backlog", Measure::OfLimit) => Goal::at_least(0.25, 0.30),
        ("Redis backlog", Measure::StoreMicros) => Goal::limit(12.0),
        ("Redis latency at 500/s", Measure::P50) => Goal::limit(3.0),
        ("Redis latency at 500/s", Measure::P99) => Goal::limit(20.0),
        ("Redis wake by RPUSH", Measure::P99) => Goal::limit(5.0),
        ("Redis retry storm", Measure::Late99) => Goal::limit(50.0),
        ("Redis idle, 2 senders", Measure::StoreCommands) => Goal::limit(2.0),
        ("Redis idle, 2 senders", Measure::StoreCore) => Goal::limit(0.5),
        ("Redis, 500000 retries due", Measure::P99) => Goal::limit(1_000.0),
        ("Redis, 500000 retries due", Measure::LongestScript) => Goal::limit(5.0),
        ("Redis, 200 senders at 50/s", Measure::StoreCore) => Goal::limit(5.0),
        ("store: enqueue, 64 producers", Measure::OfLog) => Goal::at_least(0.75, 0.84),
        ("store: enqueue, 256 producers", Measure::OfLog) => Goal::at_least(0.55, 0.60),
        ("store: enqueue, 256 producers", Measure::P99) => Goal::at_most(10.0, 5.9),
        ("store: cycle", Measure::OfLog) => Goal::at_least(0.45, 0.55),
        ("store: cycle with attempts", Measure::OfLog) => Goal::at_least(0.30, 0.35),
        _ => return None,
    };
    Some(goal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_on_its_own_side() {
        assert!(Goal::at_least(0.4, 0.5).is_met(0.4));
        assert!(!Goal::at_least(0.4, 0.5).is_met(0.39));
        assert!(Goal::at_most(2.0, 1.0).is_met(2.0));
        assert!(!Goal::at_most(2.0, 1.0).is_met(2.1));
    }
}
