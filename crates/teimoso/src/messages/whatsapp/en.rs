//! The English catalogue of what is said about a WhatsApp gateway. Deliberately absent: anything but words.

use teimoso_whatsapp::adapter::Declined;
use teimoso_whatsapp::{Error, ErrorKind, Facts, MessageId, SendOutcome, Unknown};

use super::super::Printable as P;
use super::{Whatsapp, details, is_elsewhere};

pub(super) fn text(line: &Whatsapp<'_>) -> String {
    match *line {
        Whatsapp::Failed { error } => format!("{}: {}{}", error.provider(), failed(error), details(error)),
        Whatsapp::Ended { outcome, facts } => ended(outcome, facts),
        Whatsapp::Interrupted { id } => format!("interrupted: the message may have been sent{}", under(id)),
        Whatsapp::NotListed { id } => {
            format!("no message with the id {id} is listed; that is no proof that it was not sent")
        }
        Whatsapp::ToScan => "scan it with WhatsApp on the phone: Linked devices, Link a device".to_owned(),
        Whatsapp::AskForQr => {
            "if it is to be linked with a phone, ask for the code: teimoso whatsapp qr".to_owned()
        }
        Whatsapp::Saved { path } => format!("written to {}", P(path)),
        Whatsapp::LoggedOut => "logged out".to_owned(),
    }
}

fn failed(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Declined(why) => declined(why),
        ErrorKind::Unsupported => "not possible there",
        _ if error.may_have_taken_effect() => "outcome unknown: it may have been done; look at the status",
        ErrorKind::Unclear => unclear(error.status()),
        ErrorKind::NoAnswer => "no answer; is the address right, and the server running?",
    }
}

fn unclear(status: Option<u16>) -> &'static str {
    match status {
        Some(300..400) => "it sends elsewhere, where nothing follows it; look at the address",
        Some(500..) => "the provider failed; try again later",
        _ => "the answer could not be understood; is the address that of the provider?",
    }
}

fn declined(why: Declined) -> &'static str {
    match why {
        Declined::Authentication => "the token was not accepted; look at TEIMOSO_WHATSAPP_TOKEN or its file",
        Declined::NotFound => "there is no such instance; look at the address and the instance",
        Declined::Invalid => "the request was not accepted",
        Declined::NotReady => "not ready yet; try again in a moment",
        Declined::AlreadyConnected => "already linked, there is nothing to scan",
        Declined::RateLimited => "too many requests; try again later",
        Declined::Limit => "a limit of the account, which waiting does not lift",
        Declined::Failed => "the provider says that it failed",
    }
}

fn ended(outcome: &SendOutcome, facts: &Facts) -> String {
    let name = facts.name;
    match outcome {
        SendOutcome::Sent(sent) if sent.reconciled => {
            format!("{name}: sent; the answer was lost, and the message was found")
        }
        SendOutcome::Sent(_) if facts.queues => {
            format!(
                "{name}: queued; it is sent when the phone is connected, so do not send it again meanwhile"
            )
        }
        SendOutcome::Sent(_) => format!("{name}: sent"),
        SendOutcome::NotSent { error, .. } => {
            let why = match error.kind() {
                ErrorKind::NoAnswer => "nothing left this machine",
                _ => failed(error),
            };
            format!("{name}: not sent: {why}{}", details(error))
        }
        SendOutcome::Unknown { id, why, error } => format!(
            "{name}: outcome unknown: {}{}\n  {}",
            unknown(*why),
            details(error),
            advice(id.as_ref(), error, facts)
        ),
    }
}

fn unknown(why: Unknown) -> &'static str {
    match why {
        Unknown::NoAnswer(_) => "the message may have been sent, and no answer came",
        Unknown::BodyLost => "the message may have been sent, and the answer broke off",
        Unknown::Unclear => "the message may have been sent, and the answer does not say",
        Unknown::Earlier => "an earlier attempt may have been sent",
    }
}

fn advice(id: Option<&MessageId>, error: &Error, facts: &Facts) -> String {
    match (error.reconcile(), id) {
        (Some(id), _) => format!("find out with: teimoso whatsapp find {id}"),
        (None, Some(id)) if facts.caller_id.allows_repeats() => {
            format!("look at the chat; to send it again is recognised under the same id: --id {id}")
        }
        _ if is_elsewhere(error) => {
            "it sends elsewhere, where nothing follows it; look at the address and at the chat".to_owned()
        }
        _ => "look at the chat before you send it again".to_owned(),
    }
}

fn under(id: Option<&MessageId>) -> String {
    id.map_or_else(String::new, |id| format!(", under the id {id}"))
}
