//! `teimoso events`: list, show, tail. Deliberately absent: sending them, which is `teimoso send`.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::list::{self, Item, Pages};
use super::session::{self, Reach};
use super::shapes::{self, DELIVERIES, EVENT_FIELDS, EVENTS};
use super::{Context, list::one_line};
use crate::api_client::{Answer, ApiClient, Query, segment};
use crate::args::{EventsArgs, EventsCommand};
use crate::clock;
use crate::exit::{CliError, Exit};
use crate::messages::printable;
use crate::output::table::Table;

/// How often `tail` looks.
const TAIL_PAUSE: Duration = Duration::from_secs(1);

/// Lists, shows or follows events.
///
/// # Errors
/// What the server, the store or the connection says.
pub async fn run(args: EventsArgs, context: Context) -> Result<Exit, CliError> {
    match args.command {
        EventsCommand::List { kind, list, server, output } => {
            let since = list.since.map(|moment| moment.resolve(clock::wall_now()));
            let query = Query::new("/v1/events").with("type", kind).with("since", since);
            let limit = list.limit.get() as usize;
            session::run(Reach::of(server)?, context, async |mut session| {
                list::print(&mut session.client, query, limit, output.json, &EVENTS, context).await?;
                Ok(Exit::OK)
            })
            .await
        }
        EventsCommand::Show { id, server, output } => {
            session::run(Reach::of(server)?, context, async |mut session| {
                show(&mut session.client, &id, output.json, context).await?;
                Ok(Exit::OK)
            })
            .await
        }
        EventsCommand::Tail { kind, since, server, output } => {
            let now = clock::wall_now();
            let since = since.map_or(now, |moment| moment.resolve(now));
            let tail = Tail { since, seen: HashSet::new(), kind, json: output.json };
            session::run(Reach::of(server)?, context, async |session| {
                tail.follow(session.client, context).await?;
                Ok(Exit::OK)
            })
            .await
        }
    }
}

async fn show(client: &mut ApiClient, id: &str, json: bool, context: Context) -> Result<(), CliError> {
    let answer = client.get(&format!("/v1/events/{}", segment(id))).await?;
    let event = answer.json()?;
    if json {
        return context.output.data(&one_line(&String::from_utf8_lossy(&answer.body)));
    }
    let mut text = shapes::fields(&event, EVENT_FIELDS);
    let mut deliveries = Table::new(DELIVERIES.header);
    for delivery in shapes::array(&event, "deliveries") {
        deliveries.row((DELIVERIES.cells)(delivery));
    }
    if !deliveries.is_empty() {
        text += &format!("\n{}", deliveries.render());
    }
    text += &format!("\n{}\n", shown(&payload(client, id).await?));
    context.output.data(&text)
}

/// The payload of an event, byte for byte.
pub(super) async fn payload(client: &mut ApiClient, event: &str) -> Result<Answer, CliError> {
    Ok(client.get(&format!("/v1/events/{}/payload", segment(event))).await?)
}

/// A payload as a person may see it on a terminal.
pub(super) fn shown(payload: &Answer) -> String {
    match std::str::from_utf8(&payload.body) {
        Ok(text) => text.lines().map(printable).collect::<Vec<_>>().join("\n"),
        Err(_) => format!("({} bytes that are no text)", payload.body.len()),
    }
}

/// A list that is looked at again and again. What was shown is remembered for the latest instant only: the next look
/// starts there, and several events may share it.
struct Tail {
    since: Timestamp,
    seen: HashSet<String>,
    kind: Option<String>,
    json: bool,
}

impl Tail {
    async fn follow(mut self, mut client: ApiClient, context: Context) -> Result<(), CliError> {
        loop {
            let query =
                Query::new("/v1/events").with("type", self.kind.as_deref()).with("since", Some(self.since));
            let mut pages = Pages::new(query);
            let mut fresh = Vec::new();
            while let Some(items) = pages.next(&mut client, usize::MAX).await? {
                fresh.extend(
                    items.into_iter().filter(|item| !self.seen.contains(&shapes::text(&item.value, "id"))),
                );
            }
            fresh.sort_by_cached_key(|item| created(&item.value));
            context.output.data(&self.render(&fresh))?;
            self.remember(&fresh);
            clock::pause(TAIL_PAUSE).await;
        }
    }

    fn render(&self, items: &[Item]) -> String {
        if self.json {
            return list::lines(items);
        }
        items.iter().map(|item| line(&item.value)).collect()
    }

    fn remember(&mut self, items: &[Item]) {
        for item in items {
            if let Some(at) = created(&item.value)
                && at > self.since
            {
                self.since = at;
                self.seen.clear();
            }
            self.seen.insert(shapes::text(&item.value, "id"));
        }
    }
}

fn created(event: &Value) -> Option<Timestamp> {
    shapes::text(event, "created_at").parse().ok()
}

fn line(event: &Value) -> String {
    let field = |name| printable(&shapes::text(event, name));
    let bytes = shapes::number(event, "payload_bytes");
    format!("{}  {}  {}  {bytes} bytes\n", field("created_at"), field("id"), field("type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, at: &str) -> Item {
        list::item(
            serde_json::value::to_raw_value(&serde_json::json!({"id": id, "created_at": at})).expect("JSON"),
        )
        .expect("an item")
    }

    #[test]
    fn a_tail_remembers_only_the_latest_instant() {
        let since = "2026-01-01T00:00:00Z".parse().expect("an instant");
        let mut tail = Tail { since, seen: HashSet::new(), kind: None, json: false };
        let (first, second) = ("2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z");
        tail.remember(&[item("a", first), item("b", second), item("c", second)]);
        assert_eq!(tail.since.to_string(), second);
        assert_eq!(tail.seen, HashSet::from(["b".to_owned(), "c".to_owned()]));
        tail.remember(&[item("d", second)]);
        assert_eq!(tail.seen.len(), 3);
    }
}
