//! What is printed of an operation, and how the process ends after it. Deliberately absent: the words, which are the
//! catalogues'.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use teimoso_whatsapp::adapter::Declined;
use teimoso_whatsapp::{Error, ErrorKind, NotSent, Operation, Qr, SendOutcome, Status};

use super::super::Context;
use crate::exit::Exit;
use crate::messages::{Message, Whatsapp};

/// Says why an operation has no result, prints it as JSON if that is wanted, and ends as it asks for.
pub(super) fn failed(error: &Error, as_json: bool, context: Context) -> Exit {
    context.output.say(&Message::Whatsapp(Whatsapp::Failed { error }));
    if as_json {
        let object = json!({
            "provider": error.provider(),
            "operation": error.operation().name(),
            "error": error_json(error),
        });
        print(&format!("{object}\n"), context);
    }
    exit(error)
}

/// Prints what is known of a message, or of a failure. How the process ends tells of those, and so a stdout that nobody
/// reads, or that is full, does not change it: who reads "not sent" sends again.
pub(super) fn print(text: &str, context: Context) {
    if let Err(error) = context.output.data(text) {
        context.output.report(&error);
    }
}

/// The exit code of an operation without a result. The effect counts before everything.
fn exit(error: &Error) -> Exit {
    match error.kind() {
        _ if error.may_have_taken_effect() => Exit::UNKNOWN_OUTCOME,
        ErrorKind::Declined(Declined::Authentication) => Exit::AUTHENTICATION,
        ErrorKind::Declined(Declined::NotFound) => Exit::NOT_FOUND,
        ErrorKind::Unsupported => Exit::USAGE,
        _ if error.is_exhausted() => Exit::EXHAUSTED,
        _ => Exit::FAILURE,
    }
}

/// The exit code of a send.
pub(super) fn exit_of_send(outcome: &SendOutcome) -> Exit {
    match outcome {
        SendOutcome::Sent(_) => Exit::OK,
        SendOutcome::Unknown { .. } => Exit::UNKNOWN_OUTCOME,
        SendOutcome::NotSent { error, .. } => match error.kind() {
            ErrorKind::Declined(Declined::Authentication) => Exit::AUTHENTICATION,
            ErrorKind::Unsupported => Exit::USAGE,
            _ => Exit::FAILURE,
        },
    }
}

/// The stable object of a send.
pub(super) fn send_json(provider: &str, operation: Operation, outcome: &SendOutcome) -> Value {
    let mut object = json!({
        "provider": provider,
        "operation": operation.name(),
        "outcome": outcome.name(),
        "id": null,
        "caller_id": null,
        "reconciled": false,
        "proof": null,
        "why": null,
        "error": outcome.error().map(error_json),
    });
    match outcome {
        SendOutcome::Sent(sent) => {
            object["id"] = json!(sent.id);
            object["caller_id"] = json!(sent.caller_id.as_ref().map(|id| id.text()));
            object["reconciled"] = sent.reconciled.into();
        }
        SendOutcome::NotSent { proof, .. } => object["proof"] = proof_name(*proof).into(),
        SendOutcome::Unknown { id, why, .. } => {
            object["caller_id"] = json!(id.as_ref().map(|id| id.text()));
            object["why"] = why.name().into();
        }
    }
    object
}

/// With what it rests on, where that has a name of its own: `never_sent:connect`.
fn proof_name(proof: NotSent) -> String {
    match proof {
        NotSent::NeverSent(inner) => format!("{}:{}", proof.name(), inner.name()),
        NotSent::NotProcessed(inner) => format!("{}:{}", proof.name(), inner.name()),
        NotSent::Refused | NotSent::Declined => proof.name().to_owned(),
    }
}

fn error_json(error: &Error) -> Value {
    json!({
        "kind": error.kind().name(),
        "status": error.status(),
        "message": error.message(),
        "reason": error.reason(),
        "fate": error.fate().map(|fate| fate.name()),
        "attempts": error.attempts(),
        "retry_after_ms": error.retry_after_ms(),
        "may_have_taken_effect": error.may_have_taken_effect(),
        "reconcile": error.reconcile().map(|id| json!({"by": "lookup", "id": id.text()})),
    })
}

/// The stable object of a status, or of a connection.
pub(super) fn status_json(provider: &str, operation: Operation, status: &Status) -> Value {
    json!({
        "provider": provider,
        "operation": operation.name(),
        "state": status.state.name(),
        "raw": status.raw,
    })
}

/// The line of a status: the normal form, and the provider's own word behind it.
pub(super) fn status_line(status: &Status) -> String {
    match status.raw.is_empty() {
        true => format!("{}\n", status.state),
        false => format!("{} ({})\n", status.state, crate::messages::printable(&status.raw)),
    }
}

/// A QR code as both of its forms.
pub(super) fn qr_json(qr: &Qr) -> Value {
    json!({"code": qr.code(), "png_base64": STANDARD.encode(qr.png())})
}
