//! `teimoso deliveries`: list, show, retry, cancel. Deliberately absent: bulk changes by filter.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;

use super::bulk::{self, Change};
use super::list::{self, one_line};
use super::session::{self, Reach};
use super::shapes::{self, DELIVERIES, DELIVERY_FIELDS};
use super::{Context, events};
use crate::api_client::{ApiClient, ApiError, Query, segment};
use crate::args::{ChangeArgs, DeliveriesArgs, DeliveriesCommand};
use crate::clock;
use crate::exit::{CliError, Exit};

/// Lists, shows, retries or cancels deliveries.
///
/// # Errors
/// What the server, the store or the connection says.
pub async fn run(args: DeliveriesArgs, context: Context) -> Result<Exit, CliError> {
    match args.command {
        DeliveriesCommand::List { state, kind, list, server, output } => {
            let since = list.since.map(|moment| moment.resolve(clock::wall_now()));
            let query =
                Query::new("/v1/deliveries").with("state", state).with("type", kind).with("since", since);
            let limit = list.limit.get() as usize;
            session::run(Reach::of(server)?, context, async |mut session| {
                list::print(&mut session.client, query, limit, output.json, &DELIVERIES, context).await?;
                Ok(Exit::OK)
            })
            .await
        }
        DeliveriesCommand::Show { id, server, output } => {
            session::run(Reach::of(server)?, context, async |mut session| {
                show(&mut session.client, &id, output.json, context).await?;
                Ok(Exit::OK)
            })
            .await
        }
        DeliveriesCommand::Retry { explicit, change: args } => {
            let kind = if explicit { Change::RetryDelivered } else { Change::Retry };
            change(args, kind, context).await
        }
        DeliveriesCommand::Cancel(args) => change(args, Change::Cancel, context).await,
    }
}

async fn change(args: ChangeArgs, change: Change, context: Context) -> Result<Exit, CliError> {
    session::run(Reach::of(args.server)?, context, async |mut session| {
        bulk::apply(&mut session.client, change, &args.ids, None, args.output.json, context).await
    })
    .await
}

async fn show(client: &mut ApiClient, id: &str, json: bool, context: Context) -> Result<(), CliError> {
    let answer = client.get(&path(id)).await?;
    if json {
        return context.output.data(&one_line(&String::from_utf8_lossy(&answer.body)));
    }
    context.output.data(&described(&answer.json()?))
}

pub(super) fn path(id: &str) -> String {
    format!("/v1/deliveries/{}", segment(id))
}

/// A delivery for a person: its fields and its attempts.
fn described(delivery: &Value) -> String {
    let attempts = shapes::array(delivery, "attempt_records");
    shapes::fields(delivery, DELIVERY_FIELDS) + &shapes::attempts(attempts)
}

/// A dead delivery with the body that was not delivered (S2.9).
pub(super) async fn show_with_payload(
    client: &mut ApiClient,
    id: &str,
    json: bool,
    context: Context,
) -> Result<(), CliError> {
    let answer = client.get(&path(id)).await?;
    let delivery = answer.json()?;
    let payload = events::payload(client, &shapes::text(&delivery, "event_id")).await?;
    if json {
        let object = with_payload(&answer.body, &payload.body).ok_or(ApiError::NotOurs)?;
        return context.output.data(&object);
    }
    context.output.data(&format!("{}\n{}\n", described(&delivery), events::shown(&payload)))
}

/// The object with one more field: `payload` when the payload is JSON, else `payload_base64`.
fn with_payload(object: &[u8], payload: &[u8]) -> Option<String> {
    let object = std::str::from_utf8(object).ok()?.trim().strip_suffix('}')?;
    let comma = if object.trim_end().ends_with('{') { "" } else { "," };
    let field = match serde_json::from_slice::<&RawValue>(payload) {
        Ok(json) => format!("\"payload\":{}", json.get()),
        Err(_) => format!("\"payload_base64\":\"{}\"", STANDARD.encode(payload)),
    };
    Some(one_line(&format!("{object}{comma}{field}}}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_9_a_payload_joins_its_delivery_as_it_is() {
        let joined = with_payload(b"{\"id\":\"dlv_1\"}\n", b" {\"b\":1.0,\n\"a\":1e400}\n");
        assert_eq!(joined.as_deref(), Some("{\"id\":\"dlv_1\",\"payload\":{\"b\":1.0,\"a\":1e400}}\n"));
        assert_eq!(with_payload(b"{}", b"\xff").as_deref(), Some("{\"payload_base64\":\"/w==\"}\n"));
        assert_eq!(with_payload(b"[]", b"1"), None);
    }
}
