//! `teimoso migrate`: everything from one store to another, and a table of both. Deliberately absent: the carrying.

use serde_json::{Map, Value, json};
use teimoso_delivery::model::DeliveryState;

use super::Context;
use crate::args::MigrateArgs;
use crate::clock;
use crate::exit::{CliError, Exit};
use crate::messages::{Message, Moving};
use crate::output::progress::Progress;
use crate::output::table::Table;
use crate::wiring::moving::{Move, Step, Tally};

/// Moves everything.
///
/// # Errors
/// A store cannot be opened, is in use or holds something else; not everything arrived; stdout cannot be written.
pub async fn run(args: MigrateArgs, context: Context) -> Result<Exit, CliError> {
    let moving = Move::open(&args.from, &args.to)?;
    let mut progress = Progress::new(clock::monotonic_now());
    let moved = moving.run(&mut |step| tell(step, &mut progress, context)).await;
    progress.finish();
    moving.close().await;
    let (source, target) = moved?;
    let complete = target.holds(&source);
    let (from, to) = (args.from.to_string(), args.to.to_string());
    let text = match args.output.json {
        true => as_json(&from, &to, complete, &source, &target),
        false => table(&source, &target),
    };
    context.output.data(&text)?;
    if !complete {
        return Err(CliError::failure(format!("not everything of {from} is in {to}"))
            .with_next_step(format!("empty {to} and begin again; {from} still has all of it")));
    }
    context.output.say(&Message::Migrate(Moving::Done { from: &from }));
    Ok(Exit::OK)
}

fn tell(step: Step, progress: &mut Progress, context: Context) {
    let (words, done, of) = match step {
        Step::Listening(wait) => {
            return context.output.say(&Message::Migrate(Moving::Listening { seconds: wait.as_secs() }));
        }
        Step::Leases(in_flight) => (Moving::Leases { in_flight }, 0, in_flight),
        Step::Carried(done, of) => (Moving::Carried { done, of }, done, of),
        Step::Counted(done, of) => (Moving::Counted { done, of }, done, of),
    };
    let words = Message::Migrate(words).text(context.output.language);
    progress.show(&words, done, of, clock::monotonic_now());
}

/// What is counted, by its stable name.
fn rows(tally: &Tally) -> Vec<(&'static str, u64)> {
    let mut rows = vec![("events", tally.events), ("payload_bytes", tally.payload_bytes)];
    rows.push(("deliveries", tally.all_deliveries()));
    // Nothing is in flight while it moves.
    let states = DeliveryState::ALL.iter().zip(tally.deliveries);
    rows.extend(
        states.filter(|(state, _)| **state != DeliveryState::InFlight).map(|(state, n)| (state.name(), n)),
    );
    rows.extend([
        ("expunged", tally.expunged),
        ("attempts", tally.attempts),
        ("names", tally.names),
        ("lanes", tally.lanes),
        ("replays", tally.replays),
    ]);
    rows
}

fn table(source: &Tally, target: &Tally) -> String {
    let mut table = Table::new(&["WHAT", "SOURCE", "TARGET"]);
    for ((name, source), (_, target)) in rows(source).into_iter().zip(rows(target)) {
        table.row([name.into(), source.to_string().into(), target.to_string().into()]);
    }
    let digest = |tally: &Tally| format!("{:016x}", tally.digest);
    table.row(["digest".into(), digest(source).into(), digest(target).into()]);
    table.render()
}

fn as_json(from: &str, to: &str, complete: bool, source: &Tally, target: &Tally) -> String {
    let object = |tally: &Tally| {
        let mut object: Map<String, Value> =
            rows(tally).into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect();
        object.insert("digest".to_owned(), json!(format!("{:016x}", tally.digest)));
        object
    };
    let object = json!({
        "from": from, "to": to, "complete": complete, "source": object(source), "target": object(target),
    });
    format!("{object}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_stand_beside_each_other() {
        let source = Tally { events: 3, deliveries: [1, 0, 0, 2, 0, 0], digest: 10, ..Tally::default() };
        let target = Tally { names: 1, ..source.clone() };
        let text = table(&source, &target);
        assert!(text.starts_with("WHAT           SOURCE            TARGET\nevents         3 "), "{text}");
        assert!(text.contains("\ndelivered      2 ") && !text.contains("in_flight"), "{text}");
        assert!(target.holds(&source) && !source.holds(&target), "a name more is no loss, one less is");
        assert!(!Tally { digest: 11, ..target.clone() }.holds(&source));
        let object: Value = serde_json::from_str(&as_json("a", "b", true, &source, &target)).expect("JSON");
        assert_eq!((&object["target"]["names"], &object["source"]["deliveries"]), (&json!(1), &json!(3)));
    }
}
