//! `teimoso send`: hands one event, or a stream of them, to a server or straight to a store.
//! Deliberately absent: delivering them, which is the engine's.

mod batch;
mod push;
mod wait;

use std::fs::File;
use std::io::{self, Read};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Context;
use super::list::one_line;
use super::session::{self, Reach, Session};
use super::shapes;
use crate::api_client::ApiError;
use crate::args::{DataSource, HeaderLine, SendArgs, StoreLocation};
use crate::clock;
use crate::exit::{CliError, Exit};
use crate::messages::Message;

/// The largest payload that is read, 256 MiB: no server takes more.
const DATA_MAX_BYTES: u64 = 256 << 20;

/// Sends what the arguments say and prints the id of each accepted event (S2.12).
///
/// # Errors
/// Unusable data, what the server, the store or the connection says, or an answer that was lost.
pub async fn run(args: SendArgs, context: Context) -> Result<Exit, CliError> {
    let reach = Reach::to_send(args.server.clone(), args.allow_net.clone(), args.wait)?;
    if args.ndjson.is_some() {
        let (url, json) = (args.url.as_deref(), args.output.json);
        let sent = session::run(reach, context, async |session| {
            session.parting.will_be(&Message::MayBeAccepted, context);
            batch::run(session.client, url, json, context).await
        });
        return sent.await.inspect(|exit| say_stored(&args, *exit, context));
    }
    // Stdin is read before anything listens to signals: until then they end the process by themselves.
    let data = read_data(&args.data)?;
    if let Some((redis, url)) = push::is_plain(&args) {
        return push::run(redis, url, payload(&data)?, args.output.json, context).await;
    }
    let body = event_body(&args, &data, clock::wall_now())?;
    let sent = session::run(reach, context, async |session| one(session, body, &args, context).await);
    sent.await.inspect(|exit| say_stored(&args, *exit, context))
}

async fn one(
    mut session: Session,
    body: String,
    args: &SendArgs,
    context: Context,
) -> Result<Exit, CliError> {
    session.parting.will_be(&Message::MayBeAccepted, context);
    let answer = session.client.post("/v1/events", body.into()).await.map_err(lost_event)?;
    let accepted = answer.json()?;
    let id = shapes::text(&accepted, "id");
    if !args.output.json {
        context.output.data(&format!("{id}\n"))?;
    } else if !args.wait {
        context.output.data(&one_line(&String::from_utf8_lossy(&answer.body)))?;
    }
    if shapes::array(&accepted, "deliveries").is_empty() {
        context.output.say(&Message::NoDeliveries);
    }
    if !args.wait {
        return Ok(Exit::OK);
    }
    match not_shared(args) {
        Some(directory) => {
            session.parting.will_be(&Message::StoredOnly { directory: &directory }, context);
        }
        None => session.parting.will_be(&Message::DeliveryGoesOn { event: &id }, context),
    }
    wait::run(&mut session.client, &id, args.output.json, context).await
}

/// The store that was handed the event, unless others may be at work on it already.
fn not_shared(args: &SendArgs) -> Option<String> {
    let store = args.server.store.as_ref().filter(|store| !matches!(store, StoreLocation::Redis(_)));
    store.map(ToString::to_string)
}

/// An event handed straight to a store waits there.
fn say_stored(args: &SendArgs, exit: Exit, context: Context) {
    if let Some(directory) = not_shared(args)
        && !args.wait
        && [Exit::OK, Exit::PARTLY_FAILED].contains(&exit)
    {
        context.output.say(&Message::StoredOnly { directory: &directory });
    }
}

/// An event whose answer was lost may have been accepted.
fn lost_event(error: ApiError) -> CliError {
    let lost = matches!(error, ApiError::Lost(_));
    let error = CliError::from(error);
    if !lost {
        return error;
    }
    CliError { code: Exit::UNKNOWN_OUTCOME, ..error }.with_next_step(
        "it may have been accepted: `teimoso events list` tells; with --idempotency-key it is safe to send it again",
    )
}

fn read_data(source: &DataSource) -> Result<String, CliError> {
    match source {
        DataSource::Inline(text) => Ok(text.clone()),
        DataSource::Stdin => read(io::stdin().lock(), "stdin"),
        DataSource::File(path) => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
            read(file, &name)
        }
    }
}

fn read(source: impl Read, name: &str) -> Result<String, CliError> {
    let mut text = String::new();
    let read = source.take(DATA_MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(name, &error))?;
    if text.len() as u64 > DATA_MAX_BYTES {
        return Err(CliError::failure(format!("{name} is longer than {DATA_MAX_BYTES} bytes")));
    }
    Ok(text)
}

fn unreadable(name: &str, error: &io::Error) -> CliError {
    CliError::failure(format!("cannot read {name}: {error}"))
}

/// The body of `POST /v1/events`.
#[derive(Serialize)]
struct EventBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    headers: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliver_at: Option<String>,
    payload: &'a RawValue,
}

/// The data as what every payload is.
fn payload(data: &str) -> Result<&RawValue, CliError> {
    if data.trim_ascii().is_empty() {
        return Err(
            CliError::usage("the payload is empty").with_next_step("an empty JSON value is null, \"\" or {}")
        );
    }
    serde_json::from_str(data).map_err(|error| {
        CliError::usage(format!("the payload is not JSON: {error}"))
            .with_next_step("quote it for the shell, or give a file with --data @FILE")
    })
}

fn event_body(args: &SendArgs, data: &str, now: Timestamp) -> Result<String, CliError> {
    let payload = payload(data)?;
    let body = EventBody {
        url: args.url.as_deref(),
        kind: args.kind.as_deref(),
        id: args.id.as_deref(),
        idempotency_key: args.idempotency_key.as_deref(),
        headers: headers(&args.header)?,
        deliver_at: deliver_at(args, now)?.map(|instant| format!("{instant:.3}")),
        payload,
    };
    serde_json::to_string(&body)
        .map_err(|error| CliError::failure(format!("cannot write the event: {error}")))
}

fn headers(lines: &[HeaderLine]) -> Result<Map<String, Value>, CliError> {
    let mut headers = Map::new();
    for HeaderLine { name, value } in lines {
        if headers.insert(name.clone(), value.as_str().into()).is_some() {
            return Err(CliError::usage(format!("the header {name} is given twice")));
        }
    }
    Ok(headers)
}

fn deliver_at(args: &SendArgs, now: Timestamp) -> Result<Option<Timestamp>, CliError> {
    let Some(distance) = args.after else { return Ok(args.at) };
    let instant = now.checked_add(distance);
    instant.map(Some).map_err(|_| CliError::usage("--after reaches beyond the year 9999"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    const NOW: &str = "2026-01-31T12:00:00Z";

    fn body(line: &[&str], data: &str) -> Result<String, CliError> {
        let line = ["teimoso", "send"].iter().chain(line);
        let Command::Send(args) = Cli::try_parse_from(line).expect("parses").command else {
            panic!("not send")
        };
        event_body(&args, data, NOW.parse().expect("an instant"))
    }

    #[test]
    fn g7_the_payload_is_sent_byte_for_byte() {
        let payload = "{\"b\": 1.0,\"a\":1e400,\"a\":12345678901234567890}";
        let sent = body(&["http://x"], &format!(" {payload}\n")).expect("a body");
        assert_eq!(sent, format!("{{\"url\":\"http://x\",\"payload\":{payload}}}"));
    }

    #[test]
    fn every_flag_has_its_field() {
        let line = [
            "http://x",
            "--type",
            "t",
            "--id",
            "i",
            "--idempotency-key",
            "k",
            "-H",
            "X-A: 1",
            "--after",
            "1m",
        ];
        let sent: Value = serde_json::from_str(&body(&line, "1").expect("a body")).expect("JSON");
        let expected = serde_json::json!({"url": "http://x", "type": "t", "id": "i", "idempotency_key": "k",
            "headers": {"x-a": "1"}, "deliver_at": "2026-01-31T12:01:00.000Z", "payload": 1});
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_payload_that_is_not_json_says_where() {
        let error = body(&["http://x"], "{\"a\":}").expect_err("not JSON");
        assert_eq!(error.code, Exit::USAGE);
        assert!(error.sentence.ends_with("expected value at line 1 column 6"), "{}", error.sentence);
    }

    #[test]
    fn an_empty_payload_is_named_so() {
        for nothing in ["", " \n"] {
            let error = body(&["http://x"], nothing).expect_err("empty");
            assert_eq!((error.code, error.sentence.as_str()), (Exit::USAGE, "the payload is empty"));
        }
    }

    #[test]
    fn a_header_given_twice_is_refused() {
        let error = body(&["http://x", "-H", "a: 1", "-H", "A: 2"], "1").expect_err("twice");
        assert_eq!(error, CliError::usage("the header a is given twice"));
    }

    #[test]
    fn a_lost_answer_is_an_unknown_outcome() {
        assert_eq!(lost_event(ApiError::Lost("reset".to_owned())).code, Exit::UNKNOWN_OUTCOME);
        assert_eq!(lost_event(ApiError::NotOurs).code, Exit::FAILURE);
    }
}
