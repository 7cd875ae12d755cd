//! Evolution API v2, after the source of 2.3.6; absent: version 1, whose bodies differ.

use http::Method;
use serde_json::json;

use crate::account::Account;
use crate::adapter::{Adapter, Answer, Call, CallerId, Declined, Facts, Instance, Path, Reading, SentAs};
use crate::media::Media;
use crate::message::{MessageId, Text};
use crate::qr::Qr;
use crate::status::{Connection, State, Status};

/// The adapter.
#[derive(Debug)]
pub(super) struct Evolution;

const FACTS: Facts = Facts {
    name: "evolution",
    title: "Evolution API v2",
    server: None,
    instance: Instance::Required,
    token_header: Some(("apikey", "")),
    client_token: None,
    // The server has such an id inside and takes none from outside.
    caller_id: CallerId::None,
    caller_id_on_media: false,
    lookup: false,
    queues: false,
};

impl Adapter for Evolution {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// A `GET` that begins to link: a write.
    fn connect(&self, account: &Account) -> Call<Connection> {
        let path = Path::of(&["instance", "connect", account.instance()]);
        Call::write(Method::GET, path, read_connection)
    }

    fn status(&self, account: &Account) -> Call<Status> {
        let path = Path::of(&["instance", "connectionState", account.instance()]);
        Call::read(Method::GET, path, read_status)
    }

    /// There is no request of its own: it is the one that connects, which may be made again and again.
    fn qr(&self, account: &Account) -> Call<Qr> {
        let path = Path::of(&["instance", "connect", account.instance()]);
        Call::read(Method::GET, path, read_qr)
    }

    fn logout(&self, account: &Account) -> Call<()> {
        let path = Path::of(&["instance", "logout", account.instance()]);
        Call::write(Method::DELETE, path, read_logout)
    }

    fn send_text(&self, account: &Account, text: &Text, _id: Option<&MessageId>) -> Call<SentAs> {
        let body = json!({"number": text.to().digits(), "text": text.text()});
        let path = Path::of(&["message", "sendText", account.instance()]);
        Call::send(path, read_sent).json(body)
    }

    fn send_media(
        &self,
        account: &Account,
        media: &Media,
        _id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str> {
        let body = json!({
            "number": media.to().digits(),
            "mediatype": media.kind().name(),
            "mimetype": media.media_type(),
            "media": media.base64(),
            "fileName": media.file_name(),
            "caption": media.caption(),
        });
        let path = Path::of(&["message", "sendMedia", account.instance()]);
        Ok(Call::send(path, read_sent).json(body))
    }
}

fn state(raw: &str) -> State {
    match raw {
        "open" => State::Connected,
        "connecting" => State::Connecting,
        "close" => State::Disconnected,
        _ => State::Error,
    }
}

/// An instance that was never connected has no state at all.
fn read_status(answer: &Answer) -> Reading<Status> {
    answer.success(|answer| match answer.text_at(&["/instance/state", "/state"]) {
        Some(raw) => Reading::Done(Status::new(state(&raw), raw)),
        None if answer.at("/instance").is_some() => Reading::Done(Status::new(State::Disconnected, "")),
        None => Reading::Unclear,
    })
}

/// What stands in `code` is the text of the QR code, in `base64` a picture of it; both may be missing for a while.
fn code(answer: &Answer) -> Option<Qr> {
    answer.text_at(&["/code", "/base64"]).and_then(|text| Qr::from_text(&text).ok())
}

/// Errors come with status 200 here.
fn read_connection(answer: &Answer) -> Reading<Connection> {
    answer.success(|answer| {
        if let Reading::Done(status) = read_status(answer) {
            return Reading::Done(status.into());
        }
        let qr = code(answer);
        let state = if qr.is_some() { State::Qr } else { State::Connecting };
        Reading::Done(Connection { status: Status::new(state, ""), qr })
    })
}

fn read_qr(answer: &Answer) -> Reading<Qr> {
    answer.success(|answer| match (code(answer), answer.text_at(&["/instance/state"])) {
        (Some(qr), _) => Reading::Done(qr),
        (None, Some(state)) if state == "open" => Reading::Declined(Declined::AlreadyConnected),
        (None, _) => Reading::Declined(Declined::NotReady),
    })
}

/// Who is not connected is logged out.
fn read_logout(answer: &Answer) -> Reading<()> {
    match answer.status() {
        400 if answer.says(&["is not connected"]) => Reading::Done(()),
        _ => answer.success(|_| Reading::Done(())),
    }
}

/// Whatever goes wrong while a message is sent, a time-out too, is answered with 400. Only two kinds of 400 are known
/// to come before: a number without WhatsApp, and a body that does not fit the schema.
fn read_sent(answer: &Answer) -> Reading<SentAs> {
    if answer.status() == 400 {
        let schema = ["requires property", "is not of a type", "is not one of"];
        // Words that stand beside those of a time-out prove nothing.
        let late = answer.tells_of_a_timeout() || answer.says(&["closed"]);
        let before = is_absent(answer) || answer.says(&schema);
        return if before && !late { Reading::Declined(Declined::Invalid) } else { Reading::Unclear };
    }
    answer.sent(&["/key/id"])
}

fn is_absent(answer: &Answer) -> bool {
    let checked = ["/response/message/0/exists", "/response/message/exists"];
    answer.bool_at(&checked) == Some(false)
}
