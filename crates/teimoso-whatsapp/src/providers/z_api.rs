//! Z-API, after its public documents, for its server is closed; absent: its queue, which is to be looked at before a
//! message is sent again while the phone is off line.

use http::Method;
use serde_json::{Value, json};

use crate::account::Account;
use crate::adapter::{Adapter, Answer, Call, CallerId, Declined, Facts, Instance, Path, Reading, SentAs};
use crate::media::{Media, MediaKind};
use crate::message::{MessageId, Text};
use crate::qr::Qr;
use crate::status::{Connection, State, Status};

/// The adapter.
#[derive(Debug)]
pub(super) struct ZApi;

const FACTS: Facts = Facts {
    name: "z-api",
    title: "Z-API",
    server: Some("https://api.z-api.io"),
    instance: Instance::Required,
    token_header: None,
    client_token: Some("the security token of the account, header Client-Token"),
    // `messageId` in a request names the message that is replied to.
    caller_id: CallerId::None,
    caller_id_on_media: false,
    lookup: false,
    queues: true,
};

impl Adapter for ZApi {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// There is no request of its own: whoever asks for the QR code begins to connect.
    fn connect(&self, account: &Account) -> Call<Connection> {
        let call = Call::write(Method::GET, path(account).then("qr-code").then("image"), |answer| {
            match read_qr(answer) {
                Reading::Declined(Declined::AlreadyConnected) => {
                    Reading::Done(Status::new(State::Connected, "connected=true").into())
                }
                read => read.map(|qr| Connection { status: Status::new(State::Qr, ""), qr: Some(qr) }),
            }
        });
        with_client_token(call, account)
    }

    fn status(&self, account: &Account) -> Call<Status> {
        with_client_token(Call::read(Method::GET, path(account).then("status"), read_status), account)
    }

    fn qr(&self, account: &Account) -> Call<Qr> {
        let path = path(account).then("qr-code").then("image");
        with_client_token(Call::read(Method::GET, path, read_qr), account)
    }

    /// A `GET` that unlinks the phone: a write.
    fn logout(&self, account: &Account) -> Call<()> {
        let reader = |answer: &Answer| answer.success(|_| Reading::Done(()));
        with_client_token(Call::write(Method::GET, path(account).then("disconnect"), reader), account)
    }

    fn send_text(&self, account: &Account, text: &Text, _id: Option<&MessageId>) -> Call<SentAs> {
        let body = json!({"phone": text.to().digits(), "message": text.text()});
        with_client_token(Call::send(path(account).then("send-text"), read_sent).json(body), account)
    }

    fn send_media(
        &self,
        account: &Account,
        media: &Media,
        _id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str> {
        let (path, kind) = (path(account), media.kind());
        let path = match kind {
            MediaKind::Document => path.then("send-document").then(extension(media.file_name())?),
            _ => path.then(&format!("send-{kind}")),
        };
        if kind == MediaKind::Document && media.caption().is_some() {
            return Err("a document carries no caption there");
        }
        let mut body = json!({"phone": media.to().digits(), "caption": media.caption()});
        body[kind.name()] = media.data_uri().into();
        if kind == MediaKind::Document {
            body["fileName"] = media.file_name().into();
        }
        Ok(with_client_token(Call::send(path, read_sent).json(body), account))
    }
}

/// The instance and its token stand in the path.
fn path(account: &Account) -> Path {
    Path::of(&["instances", account.instance(), "token"]).then_secret(account.token())
}

fn with_client_token<T>(call: Call<T>, account: &Account) -> Call<T> {
    match account.client_token() {
        Some(token) => call.token("client-token", "", token),
        None => call,
    }
}

fn extension(file_name: &str) -> Result<&str, &'static str> {
    let extension = file_name.rsplit_once('.').map(|(_, extension)| extension);
    extension.filter(|text| !text.is_empty()).ok_or("a document needs a file name with an extension there")
}

/// `error` has words even when all is well.
fn read_status(answer: &Answer) -> Reading<Status> {
    let Some(connected) = answer.bool_at(&["/connected"]).filter(|_| answer.is_success()) else {
        return answer.by_status();
    };
    let raw = answer.text_at(&["/error"]).unwrap_or_default();
    let state = match (connected, raw.to_lowercase().contains("restore")) {
        (true, _) => State::Connected,
        (false, true) => State::Error,
        (false, false) => State::Disconnected,
    };
    Reading::Done(Status::new(state, raw))
}

fn read_qr(answer: &Answer) -> Reading<Qr> {
    if answer.bool_at(&["/connected"]) == Some(true) {
        return Reading::Declined(Declined::AlreadyConnected);
    }
    if answer.is_success() && answer.is_png() {
        return Qr::from_png(answer.body().clone()).map_or(Reading::Unclear, Reading::Done);
    }
    answer.success(|answer| match answer.at("/value") {
        Some(Value::String(text)) => Qr::from_text(text).map_or(Reading::Unclear, Reading::Done),
        _ => Reading::Declined(Declined::NotReady),
    })
}

/// The answer says that it is queued: up to a thousand messages wait while the phone is off line.
fn read_sent(answer: &Answer) -> Reading<SentAs> {
    answer.sent(&["/messageId", "/id", "/zaapId"])
}
