//! `teimoso policy`: when the attempts of a policy are made. Deliberately absent: the arithmetic, which is
//! `teimoso-retry`'s; what is shown is what the engine does.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use teimoso_retry::{Preset, RetryPolicy, ScheduleStep};

use super::Context;
use crate::args::{PolicyArgs, PolicyCommand};
use crate::exit::{CliError, Exit};
use crate::output::table::{Cell, Table};
use crate::units::human;

/// The width of the longest bar of a plot.
const BAR_MAX: u128 = 40;

/// Lists policies or shows one.
///
/// # Errors
/// Stdout cannot be written.
pub fn run(args: &PolicyArgs, context: Context) -> Result<Exit, CliError> {
    let text = match &args.command {
        PolicyCommand::List { output } if output.json => list_json(),
        PolicyCommand::List { .. } => list(),
        PolicyCommand::Show { name, attempts, plot, output } => {
            let plan = Plan::new(*name, policy(*name, *attempts)?);
            match (output.json, plot) {
                (true, _) => plan.json(),
                (false, true) => plan.table() + "\n" + &plan.plot(),
                (false, false) => plan.table(),
            }
        }
    };
    context.output.data(&text)?;
    Ok(Exit::OK)
}

fn policy(name: Preset, attempts: Option<u32>) -> Result<RetryPolicy, CliError> {
    let preset = RetryPolicy::preset(name);
    match attempts {
        None => Ok(preset),
        Some(attempts) => preset
            .to_builder()
            .max_attempts(attempts)
            .build()
            .map_err(|error| CliError::usage(format!("no such policy: {error}"))),
    }
}

fn list() -> String {
    let mut table = Table::new(&["NAME", "ATTEMPTS", "SPAN", "WHAT FOR"]);
    for name in Preset::ALL {
        let policy = RetryPolicy::preset(name);
        let span = range(policy.total_span());
        let attempts = policy.max_attempts().to_string();
        table.row([name.name().into(), attempts.into(), span.into(), name.summary().into()]);
    }
    table.render()
}

fn list_json() -> String {
    let line = |name: Preset| {
        let policy = RetryPolicy::preset(name);
        let (min, max) = policy.total_span();
        let object = json!({
            "name": name.name(),
            "summary": name.summary(),
            "attempts": policy.max_attempts(),
            "span_min_ms": milliseconds(min),
            "span_max_ms": milliseconds(max),
        });
        format!("{object}\n")
    };
    Preset::ALL.into_iter().map(line).collect()
}

/// Milliseconds, rounded down; saturating.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `30s to 34s`, or one duration when both are the same.
fn range((min, max): (Duration, Duration)) -> String {
    if min == max { human(min) } else { format!("{} to {}", human(min), human(max)) }
}

/// A policy's schedule with its sums.
struct Plan {
    name: Preset,
    policy: RetryPolicy,
    steps: Vec<PlannedStep>,
}

/// An attempt, and how long after the first it begins if no attempt takes any time.
struct PlannedStep {
    step: ScheduleStep,
    at: Duration,
    at_min: Duration,
    at_max: Duration,
}

impl Plan {
    fn new(name: Preset, policy: RetryPolicy) -> Plan {
        let mut sums = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let planned = policy.schedule().map(|step| {
            let (at, at_min, at_max) = &mut sums;
            *at = at.saturating_add(step.wait);
            *at_min = at_min.saturating_add(step.min);
            *at_max = at_max.saturating_add(step.max);
            PlannedStep { step, at: *at, at_min: *at_min, at_max: *at_max }
        });
        let steps = planned.collect();
        Plan { name, policy, steps }
    }

    fn table(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.name.summary());
        let mut table = Table::new(&["ATTEMPT", "WAIT", "WITH JITTER", "AFTER THE FIRST"]);
        for PlannedStep { step, at_min, at_max, .. } in &self.steps {
            let first = step.attempt.get() == 1;
            let cell = |text: String| if first { Cell::plain("") } else { Cell::from(text) };
            let (wait, jittered) = (cell(human(step.wait)), cell(range((step.min, step.max))));
            table.row([step.attempt.to_string().into(), wait, jittered, cell(range((*at_min, *at_max)))]);
        }
        text += &table.render();
        text += &format!("Waiting in all: {}. ", range(self.policy.total_span()));
        let (whole, connect) = (human(self.policy.attempt_timeout()), human(self.policy.connect_timeout()));
        text += &format!("Each attempt: at most {whole}, {connect} to connect.");
        if let Some(total) = self.policy.give_up_after() {
            text += &format!(" No attempt begins after {}.", human(total));
        }
        text.push('\n');
        text
    }

    /// A bar per wait: its jitter-free length solid, what jitter may add to it dotted.
    fn plot(&self) -> String {
        let longest = self.steps.iter().map(|planned| planned.step.max).max().unwrap_or_default();
        let mut text = String::new();
        for PlannedStep { step, .. } in self.steps.iter().skip(1) {
            let solid = bar(step.min, longest);
            let dotted = bar(step.max, longest).saturating_sub(solid);
            // Writing to a string cannot fail.
            let _never = writeln!(
                text,
                "{:>4}  {}{}  {}",
                step.attempt,
                "#".repeat(solid),
                ".".repeat(dotted),
                range((step.min, step.max))
            );
        }
        text
    }

    fn json(&self) -> String {
        let (span_min, span_max) = self.policy.total_span();
        let steps: Vec<Value> = self.steps.iter().map(step_json).collect();
        let object = json!({
            "name": self.name.name(),
            "summary": self.name.summary(),
            "attempts": self.policy.max_attempts(),
            "attempt_timeout_ms": milliseconds(self.policy.attempt_timeout()),
            "connect_timeout_ms": milliseconds(self.policy.connect_timeout()),
            "give_up_after_ms": self.policy.give_up_after().map(milliseconds),
            "breaker": self.policy.breaker(),
            "span_min_ms": milliseconds(span_min),
            "span_max_ms": milliseconds(span_max),
            "schedule": steps,
        });
        format!("{object}\n")
    }
}

fn step_json(planned: &PlannedStep) -> Value {
    json!({
        "attempt": planned.step.attempt,
        "wait_ms": milliseconds(planned.step.wait),
        "wait_min_ms": milliseconds(planned.step.min),
        "wait_max_ms": milliseconds(planned.step.max),
        "after_first_ms": milliseconds(planned.at),
        "after_first_min_ms": milliseconds(planned.at_min),
        "after_first_max_ms": milliseconds(planned.at_max),
    })
}

/// The length of a bar; whatever is not zero has at least one character.
fn bar(wait: Duration, longest: Duration) -> usize {
    let length = (wait.as_nanos() * BAR_MAX).div_ceil(longest.as_nanos().max(1));
    usize::try_from(length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: Preset, attempts: Option<u32>) -> Plan {
        Plan::new(name, policy(name, attempts).expect("a policy"))
    }

    #[test]
    fn s2_13_webhook_shows_its_true_span() {
        let text = plan(Preset::Webhook, None).table();
        assert_eq!(
            text.lines().skip(1).collect::<Vec<_>>(),
            [
                "ATTEMPT  WAIT  WITH JITTER  AFTER THE FIRST",
                "1",
                "2        2s    2s to 3s     2s to 3s",
                "3        4s    4s to 5s     6s to 8s",
                "4        8s    8s to 9s     14s to 17s",
                "5        16s   16s to 17s   30s to 34s",
                "Waiting in all: 30s to 34s. Each attempt: at most 15s, 5s to connect.",
            ]
        );
    }

    #[test]
    fn patient_spans_75_h_35_min_before_jitter() {
        let plan = plan(Preset::Patient, None);
        let last = plan.steps.last().expect("ten attempts");
        assert_eq!(human(last.at), "75h 35m");
        assert_eq!((last.at_min, last.at_max), plan.policy.total_span());
    }

    #[test]
    fn more_attempts_go_on_at_the_cap() {
        let shown: Value = serde_json::from_str(&plan(Preset::Webhook, Some(12)).json()).expect("JSON");
        let waits: Vec<_> = shown["schedule"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|step| step["wait_ms"].clone())
            .collect();
        assert_eq!(waits.len(), 12);
        assert_eq!(waits[11], 300_000);
        assert_eq!(shown["span_min_ms"], shown["schedule"][11]["after_first_min_ms"]);
    }

    #[test]
    fn bars_grow_with_the_waits() {
        let text = plan(Preset::Webhook, None).plot();
        let bars: Vec<_> = text.lines().map(|line| line.matches(['#', '.']).count()).collect();
        assert_eq!(bars, [8, 12, 22, 40]);
    }

    #[test]
    fn the_list_has_every_preset() {
        assert_eq!(list().lines().count(), 1 + Preset::ALL.len());
        assert_eq!(list_json().lines().count(), Preset::ALL.len());
    }
}
