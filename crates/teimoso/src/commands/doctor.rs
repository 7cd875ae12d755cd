//! `teimoso doctor`: what is wrong with a store, as tables or as one object. Deliberately absent: looking, which each
//! store does itself.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use teimoso_delivery::store::{Checkup, Counts, FactValue, Finding};

use super::Context;
use crate::args::DoctorArgs;
use crate::clock;
use crate::exit::{CliError, Exit};
use crate::messages::{Diagnosing, Message};
use crate::output::progress::Progress;
use crate::output::table::{Cell, Table};
use crate::wiring::examine::examine;

/// Examines the store and says what was found.
///
/// # Errors
/// The store cannot be looked at; stdout cannot be written.
pub async fn run(args: DoctorArgs, context: Context) -> Result<Exit, CliError> {
    let language = context.output.language;
    let progress = Arc::new(Mutex::new(Progress::new(clock::monotonic_now())));
    let shown = Arc::clone(&progress);
    let watch = Arc::new(move |done, of| {
        let words = Message::Doctor(Diagnosing::Looked { done, of }).text(language);
        let mut progress = shown.lock().unwrap_or_else(PoisonError::into_inner);
        progress.show(&words, done, of, clock::monotonic_now());
    });
    let looked = examine(&args.store, args.heal, watch).await;
    progress.lock().unwrap_or_else(PoisonError::into_inner).finish();
    let checkup = looked?;
    let store = args.store.to_string();
    context.output.data(&if args.output.json { as_json(&store, &checkup) } else { tables(&checkup) })?;
    if checkup.scanned.is_none() {
        context.output.say(&Message::Doctor(Diagnosing::NotCounted));
    }
    let (found, healed) = checkup.totals();
    context.output.say(&Message::Doctor(match found {
        0 => Diagnosing::Sound,
        _ => Diagnosing::Found { found, healed, healing: args.heal },
    }));
    Ok(exit_of(found, healed))
}

/// What was put right is right.
fn exit_of(found: u64, healed: u64) -> Exit {
    match healed {
        _ if healed == found => Exit::OK,
        0 => Exit::FAILURE,
        _ => Exit::PARTLY_FAILED,
    }
}

fn tables(checkup: &Checkup) -> String {
    let mut parts = Vec::new();
    if !checkup.findings.is_empty() {
        let mut table = Table::new(&["FINDING", "COUNT", "HEALED", "WHICH"]);
        for finding in &checkup.findings {
            table.row(cells(finding));
        }
        parts.push(table.render());
    }
    let mut table = Table::new(&["STATE", "COUNTED", "THERE"]);
    for (name, kept, there) in numbers(checkup) {
        let there = there.map_or_else(String::new, |there| there.to_string());
        table.row([name.into(), kept.to_string().into(), there.into()]);
    }
    parts.push(table.render());
    let mut table = Table::new(&["FACT", "VALUE"]);
    for fact in &checkup.facts {
        let value = match &fact.value {
            FactValue::Number(number) => number.to_string(),
            FactValue::Text(text) => text.clone(),
        };
        table.row([fact.name.into(), value.into()]);
    }
    parts.push(table.render());
    parts.join("\n")
}

fn cells(finding: &Finding) -> [Cell; 4] {
    let more = if finding.count > finding.examples.len() as u64 { ", …" } else { "" };
    let which = format!("{}{more}", finding.examples.join(", "));
    [
        finding.kind.name().into(),
        finding.count.to_string().into(),
        finding.healed.to_string().into(),
        which.into(),
    ]
}

/// Each counter beside what was counted anew; what cannot be counted anew is only kept.
fn numbers(checkup: &Checkup) -> Vec<(&'static str, u64, Option<u64>)> {
    let states = |counts: &Counts| {
        [
            ("pending", counts.pending),
            ("in_flight", counts.in_flight),
            ("scheduled", counts.scheduled),
            ("delivered", counts.delivered),
            ("dead", counts.dead),
            ("cancelled", counts.cancelled),
        ]
    };
    let there = checkup.scanned.as_ref().map(states);
    let there = |index: usize| there.map(|there| there[index].1);
    let mut numbers = vec![("accepted", checkup.counts.accepted, None)];
    let kept = states(&checkup.counts).into_iter().enumerate();
    numbers.extend(kept.map(|(index, (name, kept))| (name, kept, there(index))));
    numbers.push(("expunged", checkup.counts.expunged, None));
    numbers
}

fn as_json(store: &str, checkup: &Checkup) -> String {
    let (found, healed) = checkup.totals();
    let numbers = numbers(checkup);
    let counted: Map<String, Value> =
        numbers.iter().map(|(name, kept, _)| ((*name).to_owned(), json!(kept))).collect();
    let there: Map<String, Value> = numbers
        .iter()
        .filter_map(|(name, _, there)| there.map(|there| ((*name).to_owned(), json!(there))))
        .collect();
    let facts: Map<String, Value> = checkup
        .facts
        .iter()
        .map(|fact| {
            let value = match &fact.value {
                FactValue::Number(number) => json!(number),
                FactValue::Text(text) => json!(text),
            };
            (fact.name.to_owned(), value)
        })
        .collect();
    let finding = |finding: &Finding| {
        let Finding { kind, count, healed, examples } = finding;
        json!({"kind": kind.name(), "count": count, "healed": healed, "examples": examples})
    };
    let object = json!({
        "store": store,
        "sound": found == healed,
        "found": found,
        "healed": healed,
        "findings": checkup.findings.iter().map(finding).collect::<Vec<_>>(),
        "counted": counted,
        "there": checkup.scanned.map(|_| there),
        "facts": facts,
    });
    format!("{object}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use teimoso_delivery::store::FindingKind;

    #[test]
    fn what_was_healed_is_well_and_a_part_of_it_is_a_part() {
        let table = [(0, 0, Exit::OK), (3, 3, Exit::OK), (3, 0, Exit::FAILURE), (3, 1, Exit::PARTLY_FAILED)];
        for (found, healed, exit) in table {
            assert_eq!(exit_of(found, healed), exit, "{healed} of {found}");
        }
    }

    #[test]
    fn tables_name_every_finding_and_every_fact() {
        let mut checkup = Checkup::default();
        for n in 0..6 {
            checkup.found(FindingKind::AliveNotQueued, format!("dlv_{n}"));
        }
        checkup.number("log_bytes", 7);
        let text = tables(&checkup);
        assert!(
            text.starts_with(
                "FINDING           COUNT  HEALED  WHICH\nalive_not_queued  6      0       dlv_0, "
            )
        );
        assert!(text.contains(", dlv_4, …\n") && text.contains("log_bytes  7\n"), "{text}");
        let object: Value = serde_json::from_str(&as_json("d", &checkup)).expect("JSON");
        assert_eq!((&object["found"], &object["there"]), (&json!(6), &Value::Null));
        assert_eq!((&object["facts"]["log_bytes"], &object["sound"]), (&json!(7), &json!(false)));
    }
}
