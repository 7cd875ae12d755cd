//! The JSON event stream of `pr automerge`: one object per line, the last one named `ended`.
//! Deliberately absent: words for people; reasons are the server's and the client's, in English.

use std::time::Duration;

use serde_json::{Value, json};
use teimoso_forgejo::Counts;
use teimoso_forgejo::automerge::{Note, Outcome, Standing};

use crate::exit::Exit;

/// An event of the run.
pub(super) fn note(note: &Note, elapsed: Duration) -> Value {
    let event = match note {
        Note::Now(standing) => {
            json!({"event": "waiting", "for": name(*standing), "checks": counts(*standing)})
        }
        Note::HeadMoved { from, to } => json!({"event": "head_moved", "from": from, "to": to}),
        Note::LookFailed { reason } => json!({"event": "look_failed", "reason": reason}),
        Note::LooksAgain { failed } => json!({"event": "looks_again", "failed": failed}),
        Note::Ordering { method, head } => {
            json!({"event": "ordering", "method": method.name(), "head": head})
        }
        Note::NotYet { reason } => json!({"event": "not_yet", "reason": reason}),
        Note::Unclear { reason } => json!({"event": "unclear", "reason": reason}),
        Note::Scheduled => json!({"event": "scheduled"}),
    };
    timed(event, elapsed)
}

/// The last event.
pub(super) fn ended(outcome: &Outcome, elapsed: Duration, exit: Exit) -> Value {
    let mut event = match outcome {
        Outcome::Merged { commit, ordered, warning } => {
            json!({"outcome": "merged", "commit": commit, "by_us": ordered, "warning": warning})
        }
        Outcome::MergedUnseen => {
            json!({"outcome": "merged", "commit": null, "by_us": true, "confirmed": false})
        }
        Outcome::WouldMerge { method, head } => {
            json!({"outcome": "would_merge", "method": method.name(), "head": head})
        }
        Outcome::WouldWait(standing) => {
            json!({"outcome": "would_wait", "for": name(*standing), "checks": counts(*standing)})
        }
        Outcome::ChecksFailed { contexts } => json!({"outcome": "checks_failed", "contexts": contexts}),
        Outcome::NoChecks => json!({"outcome": "no_checks"}),
        Outcome::Closed => json!({"outcome": "closed"}),
        Outcome::Draft => json!({"outcome": "draft"}),
        Outcome::Conflict(reason) => json!({"outcome": "conflict", "reason": reason}),
        Outcome::NotMergeable(reason) => json!({"outcome": "not_mergeable", "reason": reason}),
        Outcome::Blocked { unauthorized, reason, .. } => {
            let outcome = if *unauthorized { "unauthorized" } else { "blocked" };
            json!({"outcome": outcome, "reason": reason})
        }
        Outcome::TimedOut { standing, trouble } => json!({
            "outcome": "timed_out", "for": name(*standing), "checks": counts(*standing), "reason": trouble,
        }),
        Outcome::Unknown { reason } => json!({"outcome": "unknown", "reason": reason}),
    };
    event["event"] = "ended".into();
    event["exit"] = exit.number().into();
    timed(event, elapsed)
}

fn timed(mut event: Value, elapsed: Duration) -> Value {
    event["elapsed_ms"] = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).into();
    event
}

fn name(standing: Standing) -> &'static str {
    match standing {
        Standing::Beginning => "first_look",
        Standing::NoChecks => "first_check",
        Standing::Checks(_) => "checks",
        Standing::Confirming(_) => "confirmation",
        Standing::Mergeable => "mergeable",
        Standing::Head => "head",
        Standing::Merging => "merge",
    }
}

fn counts(standing: Standing) -> Option<Value> {
    match standing {
        Standing::Checks(counts) | Standing::Confirming(counts) => {
            let Counts { all, green, pending, failed } = counts;
            Some(json!({"all": all, "green": green, "pending": pending, "failed": failed}))
        }
        _ => None,
    }
}
