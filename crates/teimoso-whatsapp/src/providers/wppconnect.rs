//! WPPConnect server, after the source of 2.10.4 and its swagger document; absent: making its token, which is its
//! operator's, and lists of recipients: a failure in the middle of one is told as if nothing had been sent.

use http::Method;
use serde_json::json;

use crate::account::Account;
use crate::adapter::{Adapter, Answer, Call, CallerId, Declined, Facts, Instance, Path, Reading, SentAs};
use crate::media::{Media, MediaKind};
use crate::message::{MessageId, Text};
use crate::qr::Qr;
use crate::status::{Connection, State, Status};

/// The adapter.
#[derive(Debug)]
pub(super) struct WppConnect;

const FACTS: Facts = Facts {
    name: "wppconnect",
    title: "WPPConnect server",
    server: None,
    instance: Instance::Required,
    token_header: Some(("authorization", "Bearer ")),
    client_token: None,
    // Its options are passed on, an id among them; what becomes of it is not known.
    caller_id: CallerId::None,
    caller_id_on_media: false,
    lookup: false,
    queues: false,
};

impl Adapter for WppConnect {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn connect(&self, account: &Account) -> Call<Connection> {
        Call::write(Method::POST, path(account, "start-session"), read_connection)
            .json(json!({"waitQrCode": false}))
    }

    fn status(&self, account: &Account) -> Call<Status> {
        Call::read(Method::GET, path(account, "status-session"), read_status)
    }

    fn qr(&self, account: &Account) -> Call<Qr> {
        Call::read(Method::GET, path(account, "qrcode-session"), read_qr)
    }

    fn logout(&self, account: &Account) -> Call<()> {
        Call::write(Method::POST, path(account, "logout-session"), read_logout)
    }

    fn send_text(&self, account: &Account, text: &Text, _id: Option<&MessageId>) -> Call<SentAs> {
        let body = json!({"phone": text.to().digits(), "message": text.text(), "isGroup": false});
        Call::send(path(account, "send-message"), read_sent).json(body)
    }

    fn send_media(
        &self,
        account: &Account,
        media: &Media,
        _id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str> {
        let phone = media.to().digits();
        let (operation, body) = match media.kind() {
            MediaKind::Audio => (
                "send-voice-base64",
                json!({"phone": phone, "isGroup": false, "base64Ptt": media.data_uri()}),
            ),
            MediaKind::Image | MediaKind::Video | MediaKind::Document => (
                "send-file-base64",
                json!({
                    "phone": phone,
                    "isGroup": false,
                    "filename": media.file_name(),
                    "caption": media.caption(),
                    "base64": media.data_uri(),
                }),
            ),
        };
        let call = Call::send(path(account, operation), read_sent);
        Ok(call.json(body))
    }
}

fn path(account: &Account, operation: &str) -> Path {
    Path::of(&["api", account.instance(), operation])
}

/// The server passes on what the browser says, in the one spelling or the other.
fn state(raw: &str) -> State {
    match raw.to_ascii_uppercase().as_str() {
        "CONNECTED" | "INCHAT" | "ISLOGGED" => State::Connected,
        "INITIALIZING" | "OPENING" | "PAIRING" | "QRREADSUCCESS" => State::Connecting,
        "QRCODE" | "PHONECODE" | "NOTLOGGED" => State::Qr,
        "CLOSED" | "DISCONNECTED" | "" => State::Disconnected,
        _ => State::Error,
    }
}

/// A session that does not run has no status, or a 404 that says so.
fn read_status(answer: &Answer) -> Reading<Status> {
    let says_it = answer.is_success() || (answer.status() == 404 && answer.at("/status").is_some());
    if !says_it || !answer.is_object() {
        return answer.by_status();
    }
    let raw = answer.text_at(&["/status"]).unwrap_or_default();
    Reading::Done(Status::new(state(&raw), raw))
}

fn code(answer: &Answer) -> Option<Qr> {
    answer.text_at(&["/urlcode", "/qrcode"]).and_then(|text| Qr::from_text(&text).ok())
}

/// The first answer says CLOSED, for that is what the session was.
fn read_connection(answer: &Answer) -> Reading<Connection> {
    answer.success(|answer| {
        let raw = answer.text_at(&["/status"]).unwrap_or_default();
        let state = match state(&raw) {
            State::Disconnected => State::Connecting,
            state => state,
        };
        Reading::Done(Connection { status: Status::new(state, raw), qr: code(answer) })
    })
}

/// A picture, or a success in JSON that says why there is none.
fn read_qr(answer: &Answer) -> Reading<Qr> {
    if answer.is_success() && answer.is_png() {
        return Qr::from_png(answer.body().clone()).map_or(Reading::Unclear, Reading::Done);
    }
    answer.success(|answer| {
        let raw = answer.text_at(&["/status"]).unwrap_or_default();
        match state(&raw) {
            State::Connected => Reading::Declined(Declined::AlreadyConnected),
            _ => Reading::Declined(Declined::NotReady),
        }
    })
}

/// What does not run is logged out.
fn read_logout(answer: &Answer) -> Reading<()> {
    let is_out =
        answer.status() == 404 && answer.text_at(&["/status"]).is_some_and(|raw| raw == "Disconnected");
    if is_out { Reading::Done(()) } else { answer.success(|_| Reading::Done(())) }
}

/// The check of the session answers 404 or 400 and lets the request go on all the same: only the check of the token,
/// which comes first, proves anything.
fn read_sent(answer: &Answer) -> Reading<SentAs> {
    match answer.status() {
        401 => Reading::Declined(Declined::Authentication),
        200..300 => answer.sent(&["/response/0/id", "/response/0/id/_serialized", "/response/id"]),
        _ => Reading::Unclear,
    }
}
