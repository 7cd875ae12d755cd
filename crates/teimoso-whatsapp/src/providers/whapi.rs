//! Whapi, after the manifest of its own MCP server; absent: uploads apart from messages.

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
pub(super) struct Whapi;

const FACTS: Facts = Facts {
    name: "whapi",
    title: "Whapi",
    server: Some("https://gate.whapi.cloud"),
    instance: Instance::Unused,
    token_header: Some(("authorization", "Bearer ")),
    client_token: None,
    caller_id: CallerId::None,
    caller_id_on_media: false,
    lookup: false,
    queues: false,
};

impl Adapter for Whapi {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// A `GET` that launches the channel: a write.
    fn connect(&self, _account: &Account) -> Call<Connection> {
        let path = Path::of(&["health"]).query("wakeup", "true");
        Call::write(Method::GET, path, |answer| read_status(answer).map(Connection::from))
    }

    fn status(&self, _account: &Account) -> Call<Status> {
        let path = Path::of(&["health"]).query("wakeup", "false");
        Call::read(Method::GET, path, read_status)
    }

    fn qr(&self, _account: &Account) -> Call<Qr> {
        let path = Path::of(&["users", "login"]).query("wakeup", "true");
        Call::read(Method::GET, path, read_qr)
    }

    fn logout(&self, _account: &Account) -> Call<()> {
        let reader = |answer: &Answer| answer.success(|_| Reading::Done(()));
        Call::write(Method::POST, Path::of(&["users", "logout"]), reader)
    }

    fn send_text(&self, _account: &Account, text: &Text, _id: Option<&MessageId>) -> Call<SentAs> {
        let body = json!({"to": text.to().digits(), "body": text.text()});
        Call::send(Path::of(&["messages", "text"]), read_sent).json(body)
    }

    fn send_media(
        &self,
        _account: &Account,
        media: &Media,
        _id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str> {
        let name = (media.kind() == MediaKind::Document).then(|| media.file_name());
        let body = json!({
            "to": media.to().digits(),
            "media": media.data_uri(),
            "mime_type": media.media_type(),
            "caption": media.caption(),
            "filename": name,
        });
        let path = Path::of(&["messages", media.kind().name()]);
        Ok(Call::send(path, read_sent).json(body))
    }
}

fn read_status(answer: &Answer) -> Reading<Status> {
    answer.success(|answer| {
        let Some(raw) = answer.text_at(&["/status/text"]) else { return Reading::Unclear };
        let state = match &*raw {
            "AUTH" => State::Connected,
            "QR" => State::Qr,
            "INIT" | "LAUNCH" => State::Connecting,
            "NOT_INIT" => State::Disconnected,
            _ => State::Error,
        };
        Reading::Done(Status::new(state, raw))
    })
}

/// `OK` with the code, or a word for why there is none.
fn read_qr(answer: &Answer) -> Reading<Qr> {
    if answer.status() == 409 {
        return Reading::Declined(Declined::AlreadyConnected);
    }
    answer.success(|answer| match answer.text_at(&["/rowdata", "/base64"]) {
        Some(text) => Qr::from_text(&text).map_or(Reading::Unclear, Reading::Done),
        None => Reading::Declined(Declined::NotReady),
    })
}

/// `sent` may be false in a success. It failed only if the message itself says so.
fn read_sent(answer: &Answer) -> Reading<SentAs> {
    answer.success(|answer| {
        if answer.bool_at(&["/sent"]) == Some(false) {
            let failed = answer.text_at(&["/message/status"]).is_some_and(|status| status == "failed");
            return if failed { Reading::Declined(Declined::Failed) } else { Reading::Unclear };
        }
        answer.sent(&["/message/id"])
    })
}
