//! `teimoso sink`: runs the test destination and prints a line per request (S2.11).
//! Deliberately absent: the destination itself, which is [`crate::sink`].

use std::fmt::Write as _;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::signals::Signals;
use super::{Context, cannot_listen};
use crate::args::SinkArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{Language, Message};
use crate::sink::record::Record;
use crate::sink::{self, Options, SinkHandle};

/// How many requests may wait for their line; beyond it the sink waits for stdout.
const LINES_WAITING_MAX: usize = 1_024;

/// Runs the sink until a signal.
///
/// # Errors
/// The address cannot be listened on, or stdout cannot be written.
pub async fn run(args: SinkArgs, context: Context) -> Result<Exit, CliError> {
    let mut signals = Signals::new()?;
    let (listener, mut records) = mpsc::channel(LINES_WAITING_MAX);
    let options = Options { keep: args.keep, listener: (!args.quiet).then_some(listener) };
    let sink = sink::start(args.listen, options).map_err(|error| cannot_listen(args.listen, &error))?;
    context.output.say(&Message::SinkReady { url: &sink.url("") });
    tokio::select! {
        error = print_forever(&mut records, args.output.json, context) => Err(error),
        exit = signals.next() => Ok(stopped(&sink, context, exit)),
    }
}

fn stopped(sink: &SinkHandle, context: Context, exit: Exit) -> Exit {
    context.output.say(&Message::SinkStopped { count: sink.count() });
    exit
}

/// Ends only when nothing can be printed any more; a quiet sink has nothing to print and no end.
async fn print_forever(records: &mut mpsc::Receiver<Arc<Record>>, json: bool, context: Context) -> CliError {
    match print(records, json, context).await {
        Ok(()) => std::future::pending().await,
        Err(error) => error,
    }
}

/// Prints what arrives, many lines per write when many are waiting.
async fn print(
    records: &mut mpsc::Receiver<Arc<Record>>,
    json: bool,
    context: Context,
) -> Result<(), CliError> {
    let mut batch = Vec::new();
    while records.recv_many(&mut batch, LINES_WAITING_MAX).await > 0 {
        let mut text = String::new();
        for record in batch.drain(..) {
            let line = if json { json_line(&record) } else { line(&record, context.output.language) };
            // Writing to a string cannot fail.
            let _never = writeln!(text, "{line}");
        }
        context.output.data(&text)?;
    }
    Ok(())
}

fn json_line(record: &Record) -> String {
    serde_json::to_string(record).unwrap_or_default()
}

fn line(record: &Record, language: Language) -> String {
    let webhook_id = record.webhook_id();
    let message = Message::SinkRequest {
        method: record.method().as_str(),
        path: record.path(),
        webhook_id: webhook_id.as_deref(),
        attempt: record.attempt(),
        answer: record.answer(),
    };
    message.text(language)
}
