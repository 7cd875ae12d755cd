//! S2.12's enqueue command: an event that is nothing but a URL and JSON is one entry pushed to the ready list.
//! Deliberately absent: everything S2's entry has no field for; such an event goes through the store.

use http::Uri;
use serde::Serialize;
use serde_json::value::RawValue;
use teimoso_delivery::ports::Entropy;

use super::Context;
use crate::args::{RedisUrl, SendArgs, StoreLocation};
use crate::clock::{self, SystemClock};
use crate::exit::{CliError, Exit};
use crate::wiring::direct::redis_prefix;
use crate::wiring::entropy::SystemEntropy;
use crate::wiring::redis;

/// The Redis and the URL of an event that S2's entry says all of.
pub(super) fn is_plain(args: &SendArgs) -> Option<(&RedisUrl, &str)> {
    let Some(StoreLocation::Redis(redis)) = &args.server.store else { return None };
    let named = args.kind.is_some() || args.id.is_some() || args.idempotency_key.is_some();
    let delayed = args.at.is_some() || args.after.is_some() || args.wait;
    let more = named || delayed || !args.header.is_empty() || !args.allow_net.is_empty();
    args.url.as_deref().filter(|_| !more).map(|url| (redis, url))
}

/// Pushes it and prints its id.
///
/// # Errors
/// The URL is none that anything could be delivered to; what Redis or the connection says.
pub(super) async fn run(
    redis: &RedisUrl,
    url: &str,
    payload: &RawValue,
    json: bool,
    context: Context,
) -> Result<Exit, CliError> {
    check(url)?;
    let id = id(clock::wall_now().as_millisecond(), SystemEntropy.next_u64());
    let entry = entry(&id, url, payload)?;
    redis::push(redis, redis_prefix(), &entry, &SystemClock::start()).await?;
    let told = if json { format!("{{\"id\":\"{id}\"}}\n") } else { format!("{id}\n") };
    context.output.data(&told).map(|()| Exit::OK)
}

/// Once it is pushed, only the dead letters tell that it went nowhere.
fn check(url: &str) -> Result<(), CliError> {
    let parsed: Option<Uri> = url.parse().ok();
    let usable = parsed.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    });
    match usable {
        true => Ok(()),
        false => Err(CliError::usage(format!("`{url}` is no URL of a destination"))
            .with_next_step("it begins with http:// or https:// and names a host")),
    }
}

/// S2's id is the millisecond; six more digits tell apart what several processes push in the same one.
fn id(millisecond: i64, chance: u64) -> String {
    format!("evt_{millisecond}{:06}", chance % 1_000_000)
}

/// The entry, its fields in S2's order, the payload byte for byte.
fn entry(id: &str, url: &str, payload: &RawValue) -> Result<String, CliError> {
    #[derive(Serialize)]
    struct Entry<'a> {
        id: &'a str,
        url: &'a str,
        corpo: &'a RawValue,
        tentativas: u32,
    }
    let entry = Entry { id, url, corpo: payload, tentativas: 0 };
    serde_json::to_string(&entry)
        .map_err(|error| CliError::failure(format!("cannot write the event: {error}")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn is_pushed(more: &str) -> bool {
        let line = format!("teimoso send http://x/y {more}");
        let Command::Send(args) = Cli::try_parse_from(line.split_whitespace()).expect("parses").command
        else {
            panic!("not send")
        };
        is_plain(&args).is_some()
    }

    #[test]
    fn s2_12_only_a_url_and_json_are_a_plain_push() {
        assert!(is_pushed("--store redis://h") && is_pushed("--store redis://h -d 1 --json"));
        for more in [
            "",
            "--store d",
            "--store redis://h --wait",
            "--store redis://h --type t",
            "--store redis://h --after 1s",
            "--store redis://h -H a:b",
            "--store redis://h --idempotency-key k",
        ] {
            assert!(!is_pushed(more), "{more}");
        }
    }

    #[test]
    fn s2_2_the_entry_is_four_fields_and_the_payload_untouched() {
        let payload: &RawValue = serde_json::from_str("{\"b\": 1.0,\"a\":1e400}").expect("JSON");
        let entry = entry(&id(1_789_136_700_349, 17_000_042), "http://x/y", payload).expect("an entry");
        assert_eq!(
            entry,
            r#"{"id":"evt_1789136700349000042","url":"http://x/y","corpo":{"b": 1.0,"a":1e400},"tentativas":0}"#
        );
    }

    #[test]
    fn what_could_never_be_delivered_is_not_pushed() {
        for url in ["", "x", "/ok", "ftp://h/", "http://", "redis://h"] {
            assert_eq!(check(url).map_err(|error| error.code), Err(Exit::USAGE), "{url}");
        }
        assert_eq!(check("https://example.com/hook?a=b"), Ok(()));
    }
}
