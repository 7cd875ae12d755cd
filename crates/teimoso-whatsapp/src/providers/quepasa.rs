//! QuePasa, after the source of 3.26 and its swagger document; absent: `GET /command`, some of whose actions toggle.

use http::Method;
use serde_json::{Value, json};

use crate::account::Account;
use crate::adapter::{Adapter, Answer, Call, CallerId, Declined, Facts, Instance, Path, Reading, SentAs};
use crate::media::Media;
use crate::message::{MessageId, Recipient, Text};
use crate::qr::Qr;
use crate::status::{Connection, State, Status};

/// The adapter.
#[derive(Debug)]
pub(super) struct QuePasa;

const FACTS: Facts = Facts {
    name: "quepasa",
    title: "QuePasa",
    server: None,
    // The user to whom a session that is still to be made will belong.
    instance: Instance::Default(""),
    token_header: Some(("x-quepasa-token", "")),
    client_token: None,
    caller_id: CallerId::Deduplicates,
    caller_id_on_media: true,
    lookup: false,
    queues: false,
};

impl Adapter for QuePasa {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// A `GET` that makes the session if there is none: a write.
    fn connect(&self, account: &Account) -> Call<Connection> {
        let call = Call::write(Method::GET, Path::of(&["scan"]), |answer| {
            read_qr(answer).map(|qr| Connection { status: Status::new(State::Qr, ""), qr: Some(qr) })
        });
        with_user(call, account)
    }

    fn status(&self, _account: &Account) -> Call<Status> {
        Call::read(Method::GET, Path::of(&["health"]), read_status)
    }

    fn qr(&self, account: &Account) -> Call<Qr> {
        with_user(Call::read(Method::GET, Path::of(&["scan"]), read_qr), account)
    }

    /// It deletes the session's record too.
    fn logout(&self, _account: &Account) -> Call<()> {
        Call::write(Method::DELETE, Path::of(&["info"]), read_logout)
    }

    fn send_text(&self, _account: &Account, text: &Text, id: Option<&MessageId>) -> Call<SentAs> {
        let body = json!({"chatId": chat(text.to()), "text": text.text(), "id": id.map(MessageId::text)});
        Call::send(Path::of(&["send"]), read_sent).json(body)
    }

    fn send_media(
        &self,
        _account: &Account,
        media: &Media,
        id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str> {
        let body = json!({
            "chatId": chat(media.to()),
            "content": media.data_uri(),
            "fileName": media.file_name(),
            "text": media.caption(),
            "id": id.map(MessageId::text),
        });
        Ok(Call::send(Path::of(&["send"]), read_sent).json(body))
    }
}

fn with_user<T>(call: Call<T>, account: &Account) -> Call<T> {
    match account.instance() {
        "" => call,
        user => call.header("x-quepasa-user", user),
    }
}

fn chat(to: &Recipient) -> String {
    format!("{}@s.whatsapp.net", to.digits())
}

/// The states in the order of their numbers: some versions write the number, some the name.
const STATES: [(&str, State); 15] = [
    ("Unknown", State::Error),
    ("UnPrepared", State::Disconnected),
    ("UnVerified", State::Qr),
    ("Starting", State::Connecting),
    ("Connecting", State::Connecting),
    ("Stopping", State::Disconnected),
    ("Stopped", State::Disconnected),
    ("Restarting", State::Connecting),
    ("Reconnecting", State::Connecting),
    ("Connected", State::Connected),
    ("Fetching", State::Connected),
    ("Ready", State::Connected),
    ("Halting", State::Disconnected),
    ("Disconnected", State::Disconnected),
    ("Failed", State::Error),
];

/// A token that belongs to nobody is answered with nothing, or with the health of the server alone.
fn read_status(answer: &Answer) -> Reading<Status> {
    if answer.status() == 204 {
        return Reading::Declined(Declined::NotFound);
    }
    if !answer.is_success() || !answer.is_object() {
        return answer.by_status();
    }
    let known = match answer.at("/state") {
        None => return Reading::Declined(Declined::NotFound),
        Some(Value::Number(number)) => {
            number.as_u64().and_then(|number| STATES.get(usize::try_from(number).ok()?))
        }
        Some(Value::String(name)) => STATES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)),
        Some(_) => None,
    };
    let raw = answer.text_at(&["/state"]).unwrap_or_default().into_owned();
    Reading::Done(known.map_or(Status::new(State::Error, raw), |(name, state)| Status::new(*state, *name)))
}

fn read_qr(answer: &Answer) -> Reading<Qr> {
    match answer.is_success() && answer.is_png() {
        true => Qr::from_png(answer.body().clone()).map_or(Reading::Unclear, Reading::Done),
        false => answer.by_status(),
    }
}

/// What is not there is logged out.
fn read_logout(answer: &Answer) -> Reading<()> {
    if answer.status() == 204 { Reading::Done(()) } else { answer.success(|_| Reading::Done(())) }
}

/// Every failure is a 400, those of WhatsApp too: it proves nothing. A 503 in the server's own words comes before
/// anything is sent; one from a proxy does not say so.
fn read_sent(answer: &Answer) -> Reading<SentAs> {
    match answer.status() {
        503 if answer.bool_at(&["/success"]) == Some(false) => Reading::Declined(Declined::NotReady),
        400 => Reading::Unclear,
        _ => answer.sent(&["/message/id"]),
    }
}
