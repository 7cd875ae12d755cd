//! `teimoso whatsapp providers`. Deliberately absent: any request.

use serde_json::json;
use teimoso_whatsapp::{Facts, Instance, PROVIDERS};

use super::super::Context;
use crate::args::ProvidersArgs;
use crate::exit::{CliError, Exit};
use crate::output::table::Table;

/// Lists the providers.
///
/// # Errors
/// Stdout cannot be written.
pub(super) fn run(args: &ProvidersArgs, context: Context) -> Result<Exit, CliError> {
    let facts = PROVIDERS.map(|adapter| adapter.facts());
    let text = if args.output.json { facts.map(line).concat() } else { table(&facts) };
    context.output.data(&text).map(|()| Exit::OK)
}

fn line(facts: &Facts) -> String {
    let object = json!({
        "provider": facts.name,
        "title": facts.title,
        "server": facts.server,
        "instance": instance(facts),
        "client_token": facts.client_token,
        "caller_id": facts.caller_id.name(),
        "caller_id_on_media": facts.caller_id_on_media,
        "idempotent": facts.caller_id.allows_repeats(),
        "lookup": facts.lookup,
        "queues": facts.queues,
    });
    format!("{object}\n")
}

fn instance(facts: &Facts) -> &'static str {
    match facts.instance {
        Instance::Unused => "unused",
        Instance::Required => "required",
        Instance::Default(_) => "optional",
    }
}

fn table(facts: &[&Facts]) -> String {
    let mut table =
        Table::new(&["PROVIDER", "NAME", "--server", "--instance", "--idempotent", "--reconcile"]);
    for facts in facts {
        let yes = |is: bool| if is { "yes" } else { "no" };
        let server = facts.server.unwrap_or("required");
        let (idempotent, lookup) = (yes(facts.caller_id.allows_repeats()), yes(facts.lookup));
        table.row([facts.name, facts.title, server, instance(facts), idempotent, lookup].map(Into::into));
    }
    table.render()
}
