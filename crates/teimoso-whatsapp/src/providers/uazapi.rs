//! uazapi, after a copy of its OpenAPI document, uazapiGO v2.0; absent: its administration, and its placeholders: a text
//! with `{{name}}` is filled in by the server.

use http::Method;
use serde_json::{Value, json};

use crate::account::Account;
use crate::adapter::{
    Adapter, Answer, Call, CallerId, Declined, Facts, Found, Instance, Path, Reading, SentAs,
};
use crate::media::Media;
use crate::message::{MessageId, Text};
use crate::qr::Qr;
use crate::status::{Connection, State, Status};

/// The adapter.
#[derive(Debug)]
pub(super) struct Uazapi;

/// Whose labels ours are.
const SOURCE: &str = "teimoso";

const FACTS: Facts = Facts {
    name: "uazapi",
    title: "uazapi",
    server: None,
    instance: Instance::Unused,
    token_header: Some(("token", "")),
    client_token: None,
    // `track_id` is a label: two messages may have the same.
    caller_id: CallerId::Labels,
    caller_id_on_media: true,
    lookup: true,
    queues: false,
};

impl Adapter for Uazapi {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// A 429 here is the number of instances that the plan allows.
    fn connect(&self, _account: &Account) -> Call<Connection> {
        Call::write(Method::POST, Path::of(&["instance", "connect"]), read_connection)
            .limit_is_final()
            .json(json!({}))
    }

    fn status(&self, _account: &Account) -> Call<Status> {
        Call::read(Method::GET, Path::of(&["instance", "status"]), read_status)
    }

    fn qr(&self, _account: &Account) -> Call<Qr> {
        Call::read(Method::GET, Path::of(&["instance", "status"]), read_qr)
    }

    fn logout(&self, _account: &Account) -> Call<()> {
        let path = Path::of(&["instance", "disconnect"]);
        Call::write(Method::POST, path, |answer| answer.success(|_| Reading::Done(())))
    }

    fn send_text(&self, _account: &Account, text: &Text, id: Option<&MessageId>) -> Call<SentAs> {
        let body = json!({
            "number": text.to().digits(),
            "text": text.text(),
            "track_source": id.map(|_| SOURCE),
            "track_id": id.map(MessageId::text),
        });
        Call::send(Path::of(&["send", "text"]), read_sent).json(body)
    }

    fn send_media(
        &self,
        _account: &Account,
        media: &Media,
        id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str> {
        let body = json!({
            "number": media.to().digits(),
            "type": media.kind().name(),
            "file": media.base64(),
            "docName": media.file_name(),
            "text": media.caption(),
            "track_source": id.map(|_| SOURCE),
            "track_id": id.map(MessageId::text),
        });
        let call = Call::send(Path::of(&["send", "media"]), read_sent);
        Ok(call.json(body))
    }

    /// A read, though by `POST`.
    fn find(&self, _account: &Account, id: &MessageId) -> Option<Call<Option<Found>>> {
        let body = json!({"track_source": SOURCE, "track_id": id.text(), "limit": 10});
        let id = id.text().to_owned();
        let reader = move |answer: &Answer| read_found(answer, &id);
        let call = Call::read(Method::POST, Path::of(&["message", "find"]), reader);
        Some(call.json(body))
    }
}

fn read_status(answer: &Answer) -> Reading<Status> {
    answer.success(|answer| {
        let Some(raw) = answer.text_at(&["/instance/status"]) else { return Reading::Unclear };
        let waits_for_a_scan = answer.text_at(&["/instance/qrcode"]).is_some();
        let state = match &*raw {
            "connected" => State::Connected,
            "connecting" if waits_for_a_scan => State::Qr,
            "connecting" => State::Connecting,
            "disconnected" => State::Disconnected,
            _ => State::Error,
        };
        Reading::Done(Status::new(state, raw))
    })
}

fn read_connection(answer: &Answer) -> Reading<Connection> {
    if answer.status() == 429 {
        return Reading::Declined(Declined::Limit);
    }
    let code = || answer.text_at(&["/instance/qrcode"]).and_then(|text| Qr::from_text(&text).ok());
    read_status(answer).map(|status| Connection { status, qr: code() })
}

fn read_qr(answer: &Answer) -> Reading<Qr> {
    answer.success(|answer| match answer.text_at(&["/instance/qrcode"]) {
        Some(text) => Qr::from_text(&text).map_or(Reading::Unclear, Reading::Done),
        None => match answer.text_at(&["/instance/status"]).as_deref() {
            Some("connected") => Reading::Declined(Declined::AlreadyConnected),
            _ => Reading::Declined(Declined::NotReady),
        },
    })
}

fn read_sent(answer: &Answer) -> Reading<SentAs> {
    answer.sent(&["/messageid", "/id"])
}

/// Only what carries our label is ours: the filter is the server's, and an older one may not have it.
fn read_found(answer: &Answer, ours: &str) -> Reading<Option<Found>> {
    answer.success(|answer| {
        let Some(messages) = answer.at("/messages").and_then(Value::as_array) else {
            return Reading::Unclear;
        };
        let text = |message: &Value, field: &str| message[field].as_str().map(str::to_owned);
        let found = messages.iter().find(|message| message["track_id"] == ours).map(|message| {
            let state = text(message, "status");
            let failed = state.as_deref().is_some_and(|state| state.eq_ignore_ascii_case("failed"));
            Found { id: text(message, "messageid").or_else(|| text(message, "id")), state, failed }
        });
        Reading::Done(found)
    })
}
