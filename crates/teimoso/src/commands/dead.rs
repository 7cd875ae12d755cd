//! `teimoso dead`: list, show, replay. Deliberately absent: the server's own replay jobs; these replays end with the
//! command.

use serde_json::Value;

use super::bulk::{self, Change};
use super::list::{self, Pages};
use super::shapes::{self, DEAD};
use super::{Context, deliveries};
use crate::api_client::{ApiClient, Query};
use crate::args::{DeadArgs, DeadCommand, ReplayArgs};
use crate::clock;
use crate::exit::{CliError, Exit};
use crate::messages::Message;
use crate::output::table::Table;

/// The reason of deliveries that may already have taken effect.
const AMBIGUOUS: &str = "ambiguous";

/// Lists, shows or replays dead deliveries.
///
/// # Errors
/// What the server or the connection to it says; a replay that needs a yes and cannot ask.
pub async fn run(args: DeadArgs, context: Context) -> Result<Exit, CliError> {
    match args.command {
        DeadCommand::List { reason, list, server, output } => {
            let since = list.since.map(|moment| moment.resolve(clock::wall_now()));
            let query = dead().with("reason", reason).with("since", since);
            let limit = list.limit.get() as usize;
            let mut client = ApiClient::new(server.server);
            list::print(&mut client, query, limit, output.json, &DEAD, context).await?;
            Ok(Exit::OK)
        }
        DeadCommand::Show { id, server, output } => {
            let mut client = ApiClient::new(server.server);
            deliveries::show_with_payload(&mut client, &id, output.json, context).await?;
            Ok(Exit::OK)
        }
        DeadCommand::Replay(args) => replay(args, context).await,
    }
}

fn dead() -> Query {
    Query::new("/v1/deliveries").with("state", Some("dead"))
}

async fn replay(args: ReplayArgs, context: Context) -> Result<Exit, CliError> {
    let mut client = ApiClient::new(args.server.server.clone());
    let plan = if args.ids.is_empty() { by_filter(&mut client, &args).await? } else { by_id(&args) };
    let bulk = args.ids.is_empty();
    if bulk || args.dry_run {
        let message = Message::ReplayPlan { count: plan.ids.len(), ambiguous: plan.ambiguous };
        context.output.say(&message);
    }
    if args.dry_run {
        context.output.data(&plan.render(args.output.json))?;
        return Ok(Exit::OK);
    }
    if bulk && !plan.ids.is_empty() && !args.yes && !agreed(context)? {
        context.output.say(&Message::NothingDone);
        return Ok(Exit::FAILURE);
    }
    bulk::apply(&mut client, Change::Retry, &plan.ids, args.rate, args.output.json, context).await
}

fn agreed(context: Context) -> Result<bool, CliError> {
    if !context.output.can_ask() {
        return Err(CliError::usage("a replay of many deliveries needs a yes, and there is nobody to ask")
            .with_next_step("add --yes, or look first with --dry-run"));
    }
    Ok(context.output.ask(&Message::AskToProceed))
}

/// What a replay is about to do.
#[derive(Debug, Default)]
struct Plan {
    ids: Vec<String>,
    ambiguous: usize,
    rows: Vec<Value>,
    lines: String,
}

impl Plan {
    fn render(&self, json: bool) -> String {
        if json {
            return self.lines.clone();
        }
        if self.rows.is_empty() {
            return self.ids.iter().map(|id| format!("{id}\n")).collect();
        }
        let mut table = Table::new(DEAD.header);
        self.rows.iter().for_each(|row| table.row((DEAD.cells)(row)));
        table.render()
    }

    fn consider(&mut self, item: list::Item, keep_row: bool, named: Option<&str>) {
        if !chosen(&item.value, named) {
            self.ambiguous += usize::from(shapes::text(&item.value, "reason") == AMBIGUOUS);
            return;
        }
        self.ids.push(shapes::text(&item.value, "id"));
        if keep_row {
            self.lines += &list::lines(std::slice::from_ref(&item));
            self.rows.push(item.value);
        }
    }
}

/// The ids in the order given, each once: a second retry of the same delivery could only fail.
fn by_id(args: &ReplayArgs) -> Plan {
    let mut plan = Plan::default();
    for id in &args.ids {
        if !plan.ids.contains(id) {
            plan.ids.push(id.clone());
            plan.lines += &format!("{}\n", serde_json::json!({ "id": id }));
        }
    }
    plan
}

async fn by_filter(client: &mut ApiClient, args: &ReplayArgs) -> Result<Plan, CliError> {
    let since = args.since.map(|moment| moment.resolve(clock::wall_now()));
    let query = dead().with("reason", args.reason.as_deref()).with("since", since);
    let mut pages = Pages::new(query);
    let mut plan = Plan::default();
    while let Some(items) = pages.next(client, usize::MAX).await? {
        for item in items {
            plan.consider(item, args.dry_run, args.reason.as_deref());
        }
    }
    Ok(plan)
}

/// Whether a dead delivery is part of a replay whose filter names `named`. The server has filtered already; a server
/// that ignores the filter must not widen a replay.
fn chosen(delivery: &Value, named: Option<&str>) -> bool {
    let reason = shapes::text(delivery, "reason");
    match named {
        Some(named) => reason == named,
        None => reason != AMBIGUOUS,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(named: Option<&str>) -> Plan {
        let mut plan = Plan::default();
        for (id, reason) in [("a", "poison"), ("b", "ambiguous"), ("c", "redirect")] {
            let raw = serde_json::value::to_raw_value(&json!({"id": id, "reason": reason})).expect("JSON");
            plan.consider(list::item(raw).expect("an item"), true, named);
        }
        plan
    }

    #[test]
    fn a_bulk_replay_skips_ambiguous_unless_named() {
        let all = plan(None);
        assert_eq!((all.ids, all.ambiguous), (vec!["a".to_owned(), "c".to_owned()], 1));
        let named = plan(Some("ambiguous"));
        assert_eq!((named.ids, named.ambiguous), (vec!["b".to_owned()], 0));
    }

    #[test]
    fn a_dry_run_shows_what_would_be_replayed() {
        let plan = plan(Some("poison"));
        assert_eq!(plan.render(true), "{\"id\":\"a\",\"reason\":\"poison\"}\n");
        assert_eq!(plan.render(false).lines().count(), 2);
    }
}
