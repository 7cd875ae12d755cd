//! Evolution GO, after the source of 0.6.1 and its swagger document; absent: its administration.

use http::Method;
use serde_json::json;

use crate::account::Account;
use crate::adapter::{
    Adapter, Answer, Call, CallerId, Declined, Facts, Instance, Multipart, Path, Reading, SentAs,
};
use crate::media::Media;
use crate::message::{MessageId, Text};
use crate::qr::Qr;
use crate::status::{Connection, State, Status};

/// The adapter.
#[derive(Debug)]
pub(super) struct EvolutionGo;

const FACTS: Facts = Facts {
    name: "evolution-go",
    title: "Evolution GO",
    server: None,
    instance: Instance::Unused,
    token_header: Some(("apikey", "")),
    client_token: None,
    // Without an id of ours, the server's own repetitions each make a new one.
    caller_id: CallerId::Deduplicates,
    caller_id_on_media: true,
    lookup: false,
    queues: false,
};

impl Adapter for EvolutionGo {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// The body is required; without `immediate` the answer waits for the link.
    fn connect(&self, _account: &Account) -> Call<Connection> {
        Call::write(Method::POST, Path::of(&["instance", "connect"]), read_connection)
            .json(json!({"immediate": true}))
    }

    fn status(&self, _account: &Account) -> Call<Status> {
        Call::read(Method::GET, Path::of(&["instance", "status"]), read_status)
    }

    fn qr(&self, _account: &Account) -> Call<Qr> {
        Call::read(Method::GET, Path::of(&["instance", "qr"]), read_qr)
    }

    fn logout(&self, _account: &Account) -> Call<()> {
        let path = Path::of(&["instance", "logout"]);
        Call::write(Method::DELETE, path, |answer| answer.success(|_| Reading::Done(())))
    }

    fn send_text(&self, _account: &Account, text: &Text, id: Option<&MessageId>) -> Call<SentAs> {
        let body = json!({"number": text.to().digits(), "text": text.text(), "id": id.map(MessageId::text)});
        Call::send(Path::of(&["send", "text"]), read_sent).json(body)
    }

    /// A file that has no URL is taken as a form.
    fn send_media(
        &self,
        _account: &Account,
        media: &Media,
        id: Option<&MessageId>,
    ) -> Result<Call<SentAs>, &'static str> {
        let form = Multipart::new()
            .text("number", Some(media.to().digits()))
            .text("type", Some(media.kind().name()))
            .text("caption", media.caption())
            .text("filename", Some(media.file_name()))
            .text("id", id.map(MessageId::text))
            .file("file", media.file_name(), media.media_type(), media.bytes());
        let call = Call::send(Path::of(&["send", "media"]), read_sent);
        Ok(call.multipart(form))
    }
}

/// `success` says that the client was started; whose phone it is, if it is linked.
fn read_connection(answer: &Answer) -> Reading<Connection> {
    answer.success(|answer| {
        let linked = answer.text_at(&["/data/jid"]).is_some();
        let state = if linked { State::Connected } else { State::Connecting };
        let raw = answer.text_at(&["/message"]).unwrap_or_default();
        Reading::Done(Status::new(state, raw).into())
    })
}

/// The names are upper case in the source and lower case in its documents.
fn read_status(answer: &Answer) -> Reading<Status> {
    answer.success(|answer| {
        let connected = answer.bool_at(&["/data/Connected", "/data/connected"]);
        let logged_in = answer.bool_at(&["/data/LoggedIn", "/data/loggedIn"]);
        let (Some(connected), Some(logged_in)) = (connected, logged_in) else { return Reading::Unclear };
        Reading::Done(Status::of_link(connected, logged_in))
    })
}

/// The source and its documents disagree on which of the two fields has the picture and which the text: what it is
/// shows in itself.
fn read_qr(answer: &Answer) -> Reading<Qr> {
    if answer.status() == 400 && answer.says(&["no qr code available"]) {
        return Reading::Declined(Declined::NotReady);
    }
    if answer.status() == 400 && answer.says(&["already logged in"]) {
        return Reading::Declined(Declined::AlreadyConnected);
    }
    answer.success(|answer| {
        let fields = ["/data/Code", "/data/code", "/data/Qrcode", "/data/qrcode"];
        match answer.text_at(&fields) {
            Some(text) => Qr::from_text(&text).map_or(Reading::Unclear, Reading::Done),
            None => Reading::Declined(Declined::NotReady),
        }
    })
}

fn read_sent(answer: &Answer) -> Reading<SentAs> {
    answer.sent(&["/data/Info/ID", "/data/info/id"])
}
