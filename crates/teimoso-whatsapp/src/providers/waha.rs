//! WAHA, after its OpenAPI document of 2024.9 and reports on newer releases; absent: the deprecated `GET /api/sendText`,
//! which sends by a method that promises not to.

use http::Method;
use serde_json::{Value, json};

use crate::account::Account;
use crate::adapter::{
    Adapter, Answer, Call, CallerId, Declined, Facts, Found, Instance, Path, Reading, SentAs,
};
use crate::media::{Media, MediaKind};
use crate::message::{MessageId, Recipient, Text};
use crate::qr::Qr;
use crate::status::{Connection, State, Status};

/// The adapter.
#[derive(Debug)]
pub(super) struct Waha;

const FACTS: Facts = Facts {
    name: "waha",
    title: "WAHA",
    server: None,
    instance: Instance::Default("default"),
    token_header: Some(("x-api-key", "")),
    client_token: None,
    caller_id: CallerId::DeduplicatesIfAsked,
    caller_id_on_media: false,
    lookup: true,
    queues: false,
};

impl Adapter for Waha {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn connect(&self, account: &Account) -> Call<Connection> {
        let path = Path::of(&["api", "sessions", account.instance(), "start"]);
        Call::write(Method::POST, path, |answer| read_status(answer).map(Connection::from))
    }

    fn status(&self, account: &Account) -> Call<Status> {
        let path = Path::of(&["api", "sessions", account.instance()]);
        Call::read(Method::GET, path, read_status)
    }

    fn qr(&self, account: &Account) -> Call<Qr> {
        let path = Path::of(&["api", account.instance(), "auth", "qr"]).query("format", "raw");
        Call::read(Method::GET, path, read_qr)
    }

    fn logout(&self, account: &Account) -> Call<()> {
        let path = Path::of(&["api", "sessions", account.instance(), "logout"]);
        Call::write(Method::POST, path, read_logout)
    }

    fn send_text(&self, account: &Account, text: &Text, id: Option<&MessageId>) -> Call<SentAs> {
        let body = json!({
            "session": account.instance(),
            "chatId": chat(text.to()),
            "text": text.text(),
            "id": id.map(MessageId::text),
        });
        Call::send(Path::of(&["api", "sendText"]), read_sent).json(body)
    }

    fn send_media(
        &self,
        account: &Account,
        media: &Media,
        _id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str> {
        let body = json!({
            "session": account.instance(),
            "chatId": chat(media.to()),
            "file": {
                "mimetype": media.media_type(),
                "filename": media.file_name(),
                "data": media.base64(),
            },
            "caption": media.caption(),
        });
        let operation = match media.kind() {
            MediaKind::Image => "sendImage",
            MediaKind::Video => "sendVideo",
            MediaKind::Audio => "sendVoice",
            MediaKind::Document => "sendFile",
        };
        let call = Call::send(Path::of(&["api", operation]), read_sent);
        Ok(call.json(body))
    }

    fn find(&self, account: &Account, id: &MessageId) -> Option<Call<Option<Found>>> {
        let path = Path::of(&["api", account.instance(), "chats", "all", "messages", id.text()]);
        let id = id.text().to_owned();
        let call = Call::read(Method::GET, path, move |answer| read_found(answer, &id));
        Some(call)
    }
}

fn chat(to: &Recipient) -> String {
    format!("{}@c.us", to.digits())
}

fn read_status(answer: &Answer) -> Reading<Status> {
    answer.success(|answer| match answer.text_at(&["/status"]) {
        Some(raw) => Reading::Done(Status::new(state(&raw), raw)),
        None => Reading::Unclear,
    })
}

fn state(raw: &str) -> State {
    match raw {
        "WORKING" => State::Connected,
        "STARTING" => State::Connecting,
        "SCAN_QR_CODE" => State::Qr,
        "STOPPED" => State::Disconnected,
        _ => State::Error,
    }
}

/// A picture, its base64, or the text: by `format` and by `Accept`, which a proxy may drop. While the session is in
/// another state the answer is a 422 that names it.
fn read_qr(answer: &Answer) -> Reading<Qr> {
    if answer.status() == 422 {
        let connected = answer.text_at(&["/status"]).is_some_and(|status| status == "WORKING");
        return Reading::Declined(if connected { Declined::AlreadyConnected } else { Declined::NotReady });
    }
    let read = match answer.text_at(&["/value", "/data"]) {
        Some(text) => Qr::from_text(&text),
        None if answer.is_success() && answer.is_png() => Qr::from_png(answer.body().clone()),
        None => return answer.by_status(),
    };
    read.map_or(Reading::Unclear, Reading::Done)
}

/// Some answer 201 with nothing at all.
fn is_empty_201(answer: &Answer) -> bool {
    answer.status() == 201 && answer.body().is_empty()
}

fn read_logout(answer: &Answer) -> Reading<()> {
    if is_empty_201(answer) { Reading::Done(()) } else { answer.success(|_| Reading::Done(())) }
}

/// Each engine has a shape of its own: what it calls created is sent, wherever its id may be.
fn read_sent(answer: &Answer) -> Reading<SentAs> {
    match answer.status() {
        _ if is_empty_201(answer) => Reading::Done(SentAs(None)),
        201 => answer.success(|answer| Reading::Done(SentAs(id(answer)))),
        _ => answer.sent(&IDS),
    }
}

/// Where an id may be.
const IDS: [&str; 4] = ["/id", "/id/_serialized", "/key/id", "/_data/id/_serialized"];

fn id(answer: &Answer) -> Option<String> {
    answer.text_at(&IDS).map(|id| id.into_owned())
}

/// Only a message whose id ends in ours is ours: what a server makes of a path is not known to all of them.
fn read_found(answer: &Answer, ours: &str) -> Reading<Option<Found>> {
    if answer.status() == 404 {
        return Reading::Done(None);
    }
    answer.success(|answer| {
        let Some(id) = id(answer).filter(|id| id.split('_').any(|part| part == ours)) else {
            return Reading::Done(None);
        };
        let state = answer.text_at(&["/ackName", "/ack", "/status"]).map(|state| state.into_owned());
        let failed = answer.at("/ack").and_then(Value::as_i64) == Some(-1);
        Reading::Done(Some(Found { id: Some(id), state, failed }))
    })
}
