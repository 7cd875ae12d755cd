//! Wuzapi, after its source and its OpenAPI document of May 2025; absent: its administration.

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
pub(super) struct Wuzapi;

const FACTS: Facts = Facts {
    name: "wuzapi",
    title: "Wuzapi",
    server: None,
    instance: Instance::Unused,
    token_header: Some(("token", "")),
    client_token: None,
    caller_id: CallerId::Deduplicates,
    caller_id_on_media: true,
    lookup: false,
    queues: false,
};

impl Adapter for Wuzapi {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// Without `Immediate` the answer takes ten seconds.
    fn connect(&self, _account: &Account) -> Call<Connection> {
        Call::write(Method::POST, Path::of(&["session", "connect"]), read_connection)
            .json(json!({"Immediate": true}))
    }

    fn status(&self, _account: &Account) -> Call<Status> {
        Call::read(Method::GET, Path::of(&["session", "status"]), read_status)
    }

    fn qr(&self, _account: &Account) -> Call<Qr> {
        Call::read(Method::GET, Path::of(&["session", "qr"]), read_qr)
    }

    fn logout(&self, _account: &Account) -> Call<()> {
        Call::write(Method::POST, Path::of(&["session", "logout"]), read_logout)
    }

    fn send_text(&self, _account: &Account, text: &Text, id: Option<&MessageId>) -> Call<SentAs> {
        let body = json!({"Phone": text.to().digits(), "Body": text.text(), "Id": id.map(MessageId::text)});
        Call::send(Path::of(&["chat", "send", "text"]), read_sent).json(body)
    }

    /// Each kind goes under its own name, as a data URI of one of few types.
    fn send_media(
        &self,
        _account: &Account,
        media: &Media,
        id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str> {
        let (field, uri) = match media.kind() {
            MediaKind::Image if !["image/png", "image/jpeg"].contains(&media.media_type()) => {
                return Err("an image must be image/png or image/jpeg there");
            }
            MediaKind::Audio if media.media_type() != "audio/ogg" => {
                return Err("audio must be audio/ogg there");
            }
            MediaKind::Document if media.caption().is_some() => {
                return Err("a document carries no caption there");
            }
            MediaKind::Image => ("Image", media.data_uri()),
            MediaKind::Audio => ("Audio", media.data_uri()),
            MediaKind::Video => ("Video", media.data_uri()),
            MediaKind::Document => ("Document", media.data_uri_of("application/octet-stream")),
        };
        let name = (media.kind() == MediaKind::Document).then(|| media.file_name());
        let mut body = json!({
            "Phone": media.to().digits(),
            "FileName": name,
            "Caption": media.caption(),
            "Id": id.map(MessageId::text),
        });
        body[field] = uri.into();
        let path = Path::of(&["chat", "send", media.kind().name()]);
        Ok(Call::send(path, read_sent).json(body))
    }
}

/// A session that was never connected is told as a failure of the server.
fn has_no_session(answer: &Answer) -> bool {
    answer.status() == 500 && answer.says(&["no session"])
}

/// To connect what is connected is a failure of the server too.
fn read_connection(answer: &Answer) -> Reading<Connection> {
    if answer.status() == 500 && answer.says(&["already connected"]) {
        let raw = answer.words().unwrap_or_default();
        return Reading::Done(Status::new(State::Connected, raw).into());
    }
    answer.success(|answer| {
        let raw = answer.text_at(&["/data/details", "/data/Details"]).unwrap_or_default();
        let linked = answer.text_at(&["/data/jid", "/data/Jid"]).is_some();
        let state = if linked { State::Connected } else { State::Connecting };
        Reading::Done(Status::new(state, raw).into())
    })
}

fn read_status(answer: &Answer) -> Reading<Status> {
    if has_no_session(answer) {
        return Reading::Done(Status::new(State::Disconnected, answer.words().unwrap_or_default()));
    }
    answer.success(|answer| {
        let connected = answer.bool_at(&["/data/Connected", "/data/connected"]);
        let logged_in = answer.bool_at(&["/data/LoggedIn", "/data/loggedIn"]);
        let (Some(connected), Some(logged_in)) = (connected, logged_in) else { return Reading::Unclear };
        Reading::Done(Status::of_link(connected, logged_in))
    })
}

/// Who is logged in gets an empty code, or a failure of the server.
fn read_qr(answer: &Answer) -> Reading<Qr> {
    if answer.status() == 500 && answer.says(&["already logged"]) {
        return Reading::Declined(Declined::AlreadyConnected);
    }
    if has_no_session(answer) || (answer.status() == 500 && answer.says(&["not connected"])) {
        return Reading::Declined(Declined::NotReady);
    }
    answer.success(|answer| match answer.text_at(&["/data/QRCode"]) {
        Some(text) => Qr::from_text(&text).map_or(Reading::Unclear, Reading::Done),
        None => Reading::Declined(Declined::NotReady),
    })
}

fn read_logout(answer: &Answer) -> Reading<()> {
    let is_out = answer.status() == 500 && answer.says(&["not logged in", "no session"]);
    if is_out { Reading::Done(()) } else { answer.success(|_| Reading::Done(())) }
}

fn read_sent(answer: &Answer) -> Reading<SentAs> {
    answer.sent(&["/data/Id", "/data/id"])
}
