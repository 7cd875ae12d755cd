//! The arguments of `teimoso send`. Deliberately absent: reading what `--data` points at.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use http::{HeaderName, HeaderValue};
use ipnet::IpNet;
use jiff::Timestamp;

use super::{OutputArgs, ServerArgs};
use crate::units;

const EXAMPLES: &str = "\
Examples:
  teimoso send http://127.0.0.1:4000/ok
  teimoso send https://example.com/hook --data '{\"pedido\":1234}' --idempotency-key pedido-1234
  teimoso send https://example.com/hook --data @event.json --after 10m
  teimoso send https://example.com/hook --wait
  teimoso send --ndjson - < events.ndjson     one event per line, as POST /v1/events takes them
  teimoso send https://example.com/hook --store ./teimoso-data --wait     no server needed

With --wait it exits 0 when delivered, 6 when attempts or time ran out, 7 when the outcome is
unknown, 1 when it died of anything else. With --store and --wait whatever is due in the store is
delivered meanwhile; with --store alone the next server on it delivers.

Prints the id of each accepted event. Nothing is lost once the id is printed.";

/// The body of an event when none is given (S2.12).
const DEFAULT_DATA: &str = r#"{"tipo":"pedido.pago","pedido":1234,"valor":99.9}"#;

/// Hand events over for delivery.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct SendArgs {
    /// Where to deliver; with --ndjson, the URL of the lines that have none
    #[arg(value_name = "URL", required_unless_present = "ndjson")]
    pub url: Option<String>,
    /// The payload: JSON, @FILE, or - for stdin
    #[arg(long, short = 'd', value_name = "JSON|@FILE|-", default_value = DEFAULT_DATA)]
    pub data: DataSource,
    /// Read events from stdin, one JSON object per line
    #[arg(long, value_name = "-", value_parser = ["-"])]
    #[arg(conflicts_with_all = ["data", "type", "id", "idempotency_key", "header", "at", "after", "wait"])]
    pub ndjson: Option<String>,
    /// The event's type, such as pedido.pago
    #[arg(long = "type", id = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// The event's id, if it is to have one of yours
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Make a repeat of this command the same event: the server remembers the key for 24 h
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// A header for the destination; may be repeated
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub header: Vec<HeaderLine>,
    /// Not before this instant (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = units::instant, conflicts_with = "after")]
    pub at: Option<Timestamp>,
    /// Not before so long from now (ms, s, m, h, d)
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub after: Option<Duration>,
    /// Wait until it is delivered or given up
    #[arg(long)]
    pub wait: bool,
    /// With --store: allow this private or reserved network [env: TEIMOSO_ALLOW_NET=]; may be repeated
    // Not clap's `env`: a variable meant for `serve` must not ask for --store.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', requires = "store")]
    pub allow_net: Vec<IpNet>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Where a payload comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataSource {
    /// The argument itself.
    Inline(String),
    /// This file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl FromStr for DataSource {
    type Err = String;

    fn from_str(text: &str) -> Result<DataSource, String> {
        match text.strip_prefix('@') {
            Some("") => Err("a file name is missing after @".to_owned()),
            Some(file) => Ok(DataSource::File(PathBuf::from(file))),
            None if text == "-" => Ok(DataSource::Stdin),
            None => Ok(DataSource::Inline(text.to_owned())),
        }
    }
}

/// A header for the destination, as `NAME: VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderLine {
    /// The name, in lower case.
    pub name: String,
    /// The value, without surrounding spaces.
    pub value: String,
}

impl FromStr for HeaderLine {
    type Err = String;

    fn from_str(text: &str) -> Result<HeaderLine, String> {
        let (name, value) = text.split_once(':').ok_or("a header is NAME: VALUE")?;
        let name: HeaderName = name.trim().parse().map_err(|_| "that is no header name")?;
        let value = value.trim();
        HeaderValue::from_str(value).map_err(|_| "a header value is one line of visible characters")?;
        Ok(HeaderLine { name: name.as_str().to_owned(), value: value.to_owned() })
    }
}
