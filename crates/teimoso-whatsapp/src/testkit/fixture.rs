//! The fixture of a provider: for each operation the request that it documents, and answers that it gives, each with
//! what is to be read in it. Absent: sockets.
//!
//! A fixture is `fixtures/NAME.json`. In its strings `{number}`, `{text}`, `{id}`, `{token}`, `{client_token}`,
//! and `{base64}` stand for what the tests send, `{code}` for the text of a QR code, and `{png}` for a picture of it, in
//! base64.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::wire::Reply;
use crate::media::{Media, MediaKind};
use crate::message::{Recipient, Text};
use crate::qr::Qr;

/// To whom the tests send.
pub const NUMBER: &str = "5511999998888";

/// What they send.
pub const TEXT: &str = "pedido 1234 pago";

/// Under which id.
pub const ID: &str = "3EB0A1B2C3D4E5F6A7B8C9";

/// The token of every double; the account's second one is the same with `-client` behind it.
pub const TOKEN: &str = "t0ken-do-teste";

/// The text of the QR codes in fixtures.
pub const CODE: &str = "2@dGVpbW9zbw,cXI,Zml4dHVyZQ==,1";

/// The bytes of every file.
const BYTES: &[u8] = b"not really a picture";

/// The text that the tests send.
pub fn text() -> Text {
    Text::new(Recipient::parse(NUMBER).expect("a number"), TEXT).expect("a text")
}

/// The file of a kind that the tests send; with a caption if the kind may have one.
pub fn media(kind: MediaKind, with_caption: bool) -> Media {
    let (media_type, name) = match kind {
        MediaKind::Image => ("image/png", "foto.png"),
        MediaKind::Video => ("video/mp4", "video.mp4"),
        MediaKind::Audio => ("audio/ogg", "audio.ogg"),
        MediaKind::Document => ("application/pdf", "nota.pdf"),
    };
    let media =
        Media::new(Recipient::parse(NUMBER).expect("a number"), media_type, name, BYTES).expect("a file");
    match with_caption && kind != MediaKind::Audio {
        true => media.with_caption("a legenda").expect("a caption"),
        false => media,
    }
}

/// A fixture, parsed.
#[derive(Debug, Clone)]
pub struct Fixture {
    name: String,
    root: Value,
}

/// A request that a provider documents.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestCase {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers that must be there, with these values.
    pub headers: Vec<(String, String)>,
    /// The JSON body, or the fields of a form; `null` for none.
    pub body: Value,
    /// Whether `body` is a form.
    pub form: bool,
}

/// An answer that a provider gives.
#[derive(Debug, Clone)]
pub struct AnswerCase {
    /// What it is.
    pub name: String,
    /// The answer.
    pub reply: Reply,
    /// What is to be read in it, in a line.
    pub expect: String,
}

impl Fixture {
    /// The fixture of this provider.
    ///
    /// # Panics
    ///
    /// There is none, or it is not in the form that the module describes.
    pub fn of(name: &str) -> Self {
        let path = format!("{}/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let root = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { name: name.to_owned(), root }
    }

    /// The provider.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where all of it is known from.
    pub fn sources(&self) -> &str {
        self.root["sources"].as_str().unwrap_or_default()
    }

    /// The instance that its requests name.
    pub fn instance(&self) -> Option<&str> {
        self.root["instance"].as_str()
    }

    /// The operations that it has, by their names here.
    pub fn operations(&self) -> Vec<&str> {
        let members = self.root.as_object().expect("a fixture is an object");
        members
            .iter()
            .filter(|(name, value)| value.is_object() && *name != "headers")
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// The request of an operation; of media, of an image.
    pub fn request(&self, operation: &str) -> RequestCase {
        self.request_at(&self.root[operation]["request"])
    }

    /// The request that sends a kind of media.
    pub fn media_request(&self, kind: MediaKind) -> RequestCase {
        self.request_at(&self.root["send_media"][kind.name()])
    }

    fn request_at(&self, case: &Value) -> RequestCase {
        let text =
            |field: &str| filled(case[field].as_str().unwrap_or_else(|| panic!("{}: {field}", self.name)));
        let headers = self.root["headers"].as_object().into_iter().flatten();
        let value = |value: &Value| filled(value.as_str().expect("a header is a string"));
        let form = case.get("form").is_some();
        RequestCase {
            method: text("method"),
            path: text("path"),
            headers: headers.map(|(name, header)| (name.clone(), value(header))).collect(),
            body: filled_in(&case[if form { "form" } else { "body" }]),
            form,
        }
    }

    /// The answers of an operation; the first is the one that its double gives.
    pub fn answers(&self, operation: &str) -> Vec<AnswerCase> {
        let cases = self.root[operation]["answers"].as_array();
        cases.map_or_else(Vec::new, |cases| cases.iter().map(|case| self.answer_at(case)).collect())
    }

    /// The answer that the double gives: the first.
    pub(super) fn own_answer(&self, operation: &str) -> Reply {
        self.answer_at(&self.root[operation]["answers"][0]).reply
    }

    fn answer_at(&self, case: &Value) -> AnswerCase {
        let text = |field: &str| case[field].as_str().map(filled);
        let png = text("png").map(|_| picture().to_vec());
        let body = match (&case["body"], text("text"), &png) {
            (Value::Null, Some(text), _) => text.into_bytes(),
            (Value::Null, None, Some(png)) => png.clone(),
            (Value::Null, None, None) => Vec::new(),
            (json, _, _) => filled_in(json).to_string().into_bytes(),
        };
        let own = if png.is_some() { "image/png" } else { "application/json; charset=utf-8" };
        let content_type = text("type").unwrap_or_else(|| own.to_owned());
        let status = case["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        let reply = Reply {
            status: status.unwrap_or_else(|| panic!("{}: an answer has a status", self.name)),
            headers: vec![("content-type".to_owned(), content_type)],
            body,
        };
        let required =
            |field: &str| text(field).unwrap_or_else(|| panic!("{}: an answer has `{field}`", self.name));
        AnswerCase { name: required("name"), reply, expect: required("expect") }
    }
}

/// A value with all its strings filled in.
fn filled_in(value: &Value) -> Value {
    match value {
        Value::String(text) => filled(text).into(),
        Value::Array(list) => list.iter().map(filled_in).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), filled_in(value))).collect())
        }
        other => other.clone(),
    }
}

fn filled(text: &str) -> String {
    let text = text
        .replace("{number}", NUMBER)
        .replace("{text}", TEXT)
        .replace("{id}", ID)
        .replace("{code}", CODE)
        .replace("{token}", TOKEN)
        .replace("{client_token}", &format!("{TOKEN}-client"))
        .replace("{base64}", &STANDARD.encode(BYTES));
    match text.contains("{png}") {
        true => text.replace("{png}", &STANDARD.encode(picture())),
        false => text,
    }
}

/// The picture of [`CODE`], drawn once.
fn picture() -> &'static [u8] {
    static PICTURE: OnceLock<Vec<u8>> = OnceLock::new();
    PICTURE.get_or_init(|| Qr::from_code(CODE).expect("a code").png().to_vec())
}
