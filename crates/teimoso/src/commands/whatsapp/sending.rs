//! What the two commands that send have in common: their options, the signal that may come between, and the outcome.
//! Deliberately absent: the message.

use std::future::Future;

use teimoso_whatsapp::{
    CallerId, Connector, InvalidMessage, MediaKind, MessageId, Operation, Repeat, SendOptions, SendOutcome,
};

use super::super::Context;
use super::super::signals::Signals;
use super::report;
use crate::args::RepeatArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{Message, Whatsapp};

/// The options of a send. Its id is chosen here, where one is carried, so that it can be told even if a signal comes
/// before the answer.
pub(super) fn options(args: &RepeatArgs, connector: &Connector, carries: CallerId) -> SendOptions {
    let repeat = match (args.idempotent, args.retry_unsent) {
        (true, _) => Repeat::Idempotent,
        (_, true) => Repeat::Unsent,
        _ => Repeat::Never,
    };
    let asked = carries != CallerId::None && (args.idempotent || args.reconcile);
    let fresh = || (carries.is_always_carried() || asked).then(|| connector.fresh_id());
    SendOptions { repeat, id: args.id.clone().or_else(fresh), reconcile: args.reconcile }
}

/// A message that nobody could send.
pub(super) fn unusable(invalid: &InvalidMessage) -> CliError {
    let error = CliError::usage(invalid.to_string());
    match invalid {
        InvalidMessage::Recipient => error.with_next_step("give it with --to, for one person"),
        InvalidMessage::Id => error.with_next_step("give one with --id, or none"),
        InvalidMessage::EmptyText => error.with_next_step("give it with --text or --text-file"),
        InvalidMessage::LongText => error.with_next_step("send it in parts, or as a file"),
        InvalidMessage::EmptyMedia => error.with_next_step("look at what --file names"),
        InvalidMessage::LargeMedia { kind: MediaKind::Document, .. } => {
            error.with_next_step("make it smaller, or send a link to it")
        }
        InvalidMessage::LargeMedia { .. } => {
            error.with_next_step("make it smaller, or send it with --as-document, which may have more")
        }
        InvalidMessage::MediaType => error.with_next_step("give it with --media-type TYPE"),
        InvalidMessage::CaptionOfAudio => error.with_next_step("leave --caption out"),
        InvalidMessage::FileName => error.with_next_step("send it under another name"),
    }
}

/// Waits for the outcome or a signal, and says what came of it.
pub(super) async fn finish(
    sending: impl Future<Output = SendOutcome>,
    what: (Operation, Option<&MessageId>),
    connector: &Connector,
    as_json: bool,
    context: Context,
) -> Result<Exit, CliError> {
    let (operation, id) = what;
    let mut signals = Signals::new()?;
    let outcome = tokio::select! {
        outcome = sending => outcome,
        exit = signals.next() => {
            let line = Message::Whatsapp(Whatsapp::Interrupted { id });
            context.output.say_apart(&line.text(context.output.language));
            return Ok(exit);
        }
    };
    let facts = connector.adapter().facts();
    context.output.say(&Message::Whatsapp(Whatsapp::Ended { outcome: &outcome, facts }));
    if as_json {
        let object = report::send_json(facts.name, operation, &outcome);
        report::print(&format!("{object}\n"), context);
    } else if let SendOutcome::Sent(sent) = &outcome
        && let Some(id) = &sent.id
    {
        report::print(&format!("{}\n", crate::messages::printable(id)), context);
    }
    Ok(report::exit_of_send(&outcome))
}
