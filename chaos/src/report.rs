//! The figures: a small table for people, JSON for programs.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::account::Account;
use crate::args::Which;
use crate::havoc::{Kind, Log};
use crate::produce::Shape;

/// What came of one design's storm.
#[derive(Debug)]
pub struct Outcome {
    /// Whose.
    pub which: Which,
    /// Where everything is.
    pub account: Account,
    /// What struck, by kind.
    pub strikes: Vec<(Kind, u64)>,
    /// Senders that ended by themselves and were started again.
    pub ended_by_themselves: u64,
    /// Pushes whose answer was lost.
    pub open: u64,
    /// From the last strike until all was quiet.
    pub quiet_after_seconds: f64,
}

/// So many of each kind.
pub fn by_kind(log: &Log) -> Vec<(Kind, u64)> {
    let strikes = log.strikes();
    let count = |kind| strikes.iter().filter(|strike| strike.kind == kind).count() as u64;
    Kind::ALL.map(|kind| (kind, count(kind))).into()
}

const fn name(which: Which) -> &'static str {
    match which {
        Which::Teimoso => "teimoso",
        Which::Naive => "BLPOP, POST, ZADD",
    }
}

impl Outcome {
    fn shape(&self, shape: Shape) -> u64 {
        self.account.acknowledged.get(&shape).copied().unwrap_or(0)
    }

    /// The rows of its column.
    fn rows(&self) -> Vec<(String, String)> {
        let account = &self.account;
        let row = |label: &str, value: u64| (label.to_owned(), value.to_string());
        let mut rows = vec![
            row("events acknowledged", account.acknowledged.values().sum()),
            row("– over the API", self.shape(Shape::Api)),
            row("– by RPUSH", self.shape(Shape::Push)),
            row("– by `teimoso send`", self.shape(Shape::Send)),
        ];
        rows.extend(self.strikes.iter().map(|(kind, count)| row(kind.label(), *count)));
        let explained = |label: &str, value: u64| match self.which {
            Which::Teimoso => row(label, value),
            // It does not say who sent what.
            Which::Naive => (label.to_owned(), "–".to_owned()),
        };
        rows.extend([
            row("requests at the receiver", account.requests),
            row("delivered", account.delivered),
            row("dead, kept", account.dead),
            row("waiting", account.waiting),
            row("**lost**", account.lost),
            explained("on the way when their sender was struck", account.repeats.struck),
            row("repeated without being asked for", account.repeats.count()),
            explained("– of them unexplained", account.repeats.unexplained.len() as u64),
            ("seconds until all was quiet".to_owned(), format!("{:.0}", self.quiet_after_seconds)),
        ]);
        rows
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let account = &self.account;
        let strikes: serde_json::Map<String, Value> =
            self.strikes.iter().map(|(kind, count)| (key(*kind), json!(count))).collect();
        let explained: serde_json::Map<String, Value> =
            account.repeats.explained.iter().map(|(kind, count)| (key(*kind), json!(count))).collect();
        json!({
            "design": name(self.which),
            "acknowledged": {
                "api": self.shape(Shape::Api), "push": self.shape(Shape::Push), "send": self.shape(Shape::Send),
            },
            "pushes_without_an_answer": self.open,
            "strikes": strikes,
            "senders_that_ended_by_themselves": self.ended_by_themselves,
            "requests": account.requests,
            "delivered": account.delivered,
            "dead": account.dead,
            "waiting": account.waiting,
            "lost": account.lost,
            "struck_on_the_way": account.repeats.struck,
            "repeated": account.repeats.count(),
            "repeated_by_cause": explained,
            "unexplained": account.repeats.unexplained,
            "quiet_after_seconds": self.quiet_after_seconds,
            "wrong": account.wrong,
        })
    }
}

fn key(kind: Kind) -> String {
    json!(kind).as_str().unwrap_or_default().to_owned()
}

/// One column per design.
pub fn table(outcomes: &[Outcome]) -> String {
    let columns: Vec<Vec<(String, String)>> = outcomes.iter().map(Outcome::rows).collect();
    let mut table = "| |".to_owned();
    for outcome in outcomes {
        // Writing to a string does not fail.
        let _written = write!(table, " {} |", name(outcome.which));
    }
    table.push_str("\n|---|");
    table.push_str(&"---:|".repeat(outcomes.len()));
    for (index, (label, _)) in columns.first().into_iter().flatten().enumerate() {
        let _written = write!(table, "\n| {label} |");
        for column in &columns {
            let _written = write!(table, " {} |", column[index].1);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(which: Which, lost: u64) -> Outcome {
        Outcome {
            which,
            account: Account { lost, ..Account::default() },
            strikes: by_kind(&Log::default()),
            ended_by_themselves: 0,
            open: 0,
            quiet_after_seconds: 1.4,
        }
    }

    #[test]
    fn designs_stand_beside_each_other() {
        let table = table(&[outcome(Which::Teimoso, 0), outcome(Which::Naive, 31)]);
        assert!(table.starts_with("| | teimoso | BLPOP, POST, ZADD |\n|---|---:|---:|\n"), "{table}");
        assert!(table.contains("\n| **lost** | 0 | 31 |\n"), "{table}");
        assert!(table.contains("\n| kill -9 of redis-server | 0 | 0 |\n"), "{table}");
    }

    #[test]
    fn programs_find_the_same() {
        let value = outcome(Which::Naive, 31).json();
        assert_eq!((&value["lost"], &value["strikes"]["kill_redis"]), (&json!(31), &json!(0)));
    }
}
