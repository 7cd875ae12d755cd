//! A receiver that fails twice and then recovers: how long everything takes, against the waits that were drawn, and
//! how late a due retry starts.

use std::path::Path;

use serde::Deserialize;

use crate::event::{self, Events};
use crate::lab::{Lab, Server, Sink, Window};
use crate::report::{Ledger, Measure};
use crate::stats;
use crate::trouble::{Doing, Result, Trouble};

/// The receiver answers 503 so often before its 200.
const FAILURES: usize = 2;

/// Under S2's schedule: 2 s and 4 s, each up to 1 s longer.
///
/// # Errors
/// When an event is not delivered at the third attempt.
pub fn measure(lab: &Lab, ledger: &mut Ledger) -> Result<()> {
    let store = lab.fresh()?;
    on(store.path(), lab, ledger, "retry storm")
}

/// The same on any store.
///
/// # Errors
/// When an event is not delivered at the third attempt.
pub fn on(store: &Path, lab: &Lab, ledger: &mut Ledger, scenario: &str) -> Result<()> {
    let mut sink = Sink::start()?;
    let mut server = lab.server(store, &["--policy", "webhook"])?;
    let count = lab.sizes.storm;
    let events = Events::new(&event::urls(sink.address, "storm", event::ENDPOINTS), lab.payload, None)?;
    let window = Window::open(&[&server.process, &sink.process])?;
    let loaded = server.load(&events, count, true)?;
    let report = sink.wait(|report| report.ok >= count)?;
    server.settled(count)?;
    let spent = window.close()?;
    let took = report.last_ok.saturating_sub(report.first) as f64 / 1e6;
    let schedule = Schedule::recorded(&mut server, &loaded.answers)?;
    ledger.put(scenario, Measure::Seconds, took, &spent);
    ledger.put(scenario, Measure::OfIdeal, took / schedule.ideal_seconds, &spent);
    ledger.put(scenario, Measure::Late50, stats::percentile(&schedule.late, 500) as f64, &spent);
    ledger.put(scenario, Measure::Late99, stats::percentile(&schedule.late, 990) as f64, &spent);
    let used = spent.watched.first().copied().unwrap_or_default();
    ledger.put(scenario, Measure::Cpu, used * 10_000.0 / report.requests as f64, &spent);
    Ok(())
}

/// What the attempts' records say.
#[derive(Debug)]
struct Schedule {
    /// The longest sum of waits: nobody who keeps the schedule is done earlier, even in no time at all.
    ideal_seconds: f64,
    /// How many milliseconds each retry started after it was due, sorted.
    late: Vec<u64>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    id: String,
}

#[derive(Debug, Deserialize)]
struct Attempts {
    data: Vec<Attempt>,
}

#[derive(Debug, Deserialize)]
struct Attempt {
    started_at: String,
    duration_ms: u64,
    wait_ms: Option<u64>,
}

impl Schedule {
    fn recorded(server: &mut Server, answers: &[u8]) -> Result<Self> {
        let (mut ideal, mut late) = (0, Vec::new());
        for line in answers.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Answer { id } = serde_json::from_slice(line).doing("read an answer's line")?;
            let attempts = server.json(&format!("/v1/events/{id}/attempts"))?;
            let Attempts { data } = serde_json::from_value(attempts).doing("read attempts")?;
            if data.len() != FAILURES + 1 {
                return Err(Trouble::new(format!("{id} has {} attempts, not {}", data.len(), FAILURES + 1)));
            }
            ideal = ideal.max(data.iter().filter_map(|attempt| attempt.wait_ms).sum());
            for pair in data.windows(2) {
                late.push(late_millis(&pair[0], &pair[1])?);
            }
        }
        late.sort_unstable();
        if ideal == 0 {
            return Err(Trouble::new("the attempts' records hold no waits"));
        }
        Ok(Self { ideal_seconds: ideal as f64 / 1e3, late })
    }
}

/// Records keep whole milliseconds: the result is exact to two of them.
fn late_millis(before: &Attempt, after: &Attempt) -> Result<u64> {
    let waited = after.started()?.as_millisecond() - before.started()?.as_millisecond();
    let planned = before.duration_ms + before.wait_ms.unwrap_or(0);
    Ok(u64::try_from(waited).unwrap_or(0).saturating_sub(planned))
}

impl Attempt {
    fn started(&self) -> Result<jiff::Timestamp> {
        self.started_at.parse().doing("read a time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_late_by_what_passed_beyond_attempt_and_wait() {
        let at = |second: &str| format!("2026-09-11T14:25:{second}Z");
        let before = Attempt { started_at: at("01"), duration_ms: 5, wait_ms: Some(2_000) };
        let after = Attempt { started_at: at("03.012"), duration_ms: 5, wait_ms: None };
        assert_eq!(late_millis(&before, &after).unwrap(), 7);
        assert_eq!(late_millis(&after, &before).unwrap(), 0);
    }
}
