//! An answer as adapters read it, and what can be read in it; absent: what follows from that.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;
use teimoso_http::retry::{Effect, Fate};

use super::SentAs;

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    /// It is done, and this came of it.
    Done(T),
    /// It was not done: the provider says so, and an adapter takes its word for it only where that is known to hold.
    Declined(Declined),
    /// It may have been done or not.
    Unclear,
}

/// Why something was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Declined {
    /// The token is not accepted.
    Authentication,
    /// There is no such instance.
    NotFound,
    /// The request, or what is in it, is not acceptable.
    Invalid,
    /// Not yet: there is no QR code, the session is not ready.
    NotReady,
    /// Already linked: there is nothing to scan.
    AlreadyConnected,
    /// Too many requests at the moment.
    RateLimited,
    /// A limit of the account that waiting does not lift.
    Limit,
    /// The provider says that it failed, and that nothing came of it.
    Failed,
}

impl<T> Reading<T> {
    /// The same reading of something else.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Done(value) => Reading::Done(change(value)),
            Self::Declined(why) => Reading::Declined(why),
            Self::Unclear => Reading::Unclear,
        }
    }
}

/// An answer, whole.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    content_type: String,
    body: Bytes,
    json: Value,
}

/// Where providers put their own words, the most telling place first.
const WORDS: [&str; 9] = [
    "/response/message",
    "/error/message",
    "/exception/message",
    "/error/details",
    "/message",
    "/error",
    "/reason",
    "/details",
    "/status",
];

impl Answer {
    /// Takes an answer. A body that is no JSON is none to those who ask for JSON.
    pub fn new(status: u16, content_type: &str, body: Bytes) -> Self {
        let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Self { status, content_type: content_type.to_ascii_lowercase(), body, json }
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the status is a success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether the body is a JSON object.
    pub fn is_object(&self) -> bool {
        self.json.is_object()
    }

    /// Whether it is a picture, by its content type or its first bytes.
    pub fn is_png(&self) -> bool {
        self.content_type.starts_with("image/png") || self.body.starts_with(b"\x89PNG")
    }

    /// What stands at this place of the JSON (RFC 6901), if it is not `null`.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.json.pointer(pointer).filter(|value| !value.is_null())
    }

    /// The text at the first of these places that has one which is not empty. Numbers are texts too.
    pub fn text_at(&self, pointers: &[&str]) -> Option<Cow<'_, str>> {
        pointers.iter().find_map(|pointer| match self.at(pointer)? {
            Value::String(text) if !text.is_empty() => Some(Cow::from(text)),
            Value::Number(number) => Some(Cow::from(number.to_string())),
            _ => None,
        })
    }

    /// The truth value at the first of these places that has one.
    pub fn bool_at(&self, pointers: &[&str]) -> Option<bool> {
        pointers.iter().find_map(|pointer| self.at(pointer)?.as_bool())
    }

    /// The provider's own words about what went wrong, unredacted. A page of HTML has none.
    pub fn words(&self) -> Option<String> {
        if self.json.is_object() {
            return WORDS.iter().find_map(|pointer| said(self.at(pointer)?));
        }
        let plain = self.content_type.starts_with("text/plain");
        let text = std::str::from_utf8(&self.body).ok().filter(|_| plain)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Whether any of these, in lower case, stands in the provider's words.
    pub fn says(&self, phrases: &[&str]) -> bool {
        let words = self.words().unwrap_or_default().to_lowercase();
        phrases.iter().any(|phrase| words.contains(phrase))
    }

    /// Whether a success has an error inside: `error` that is true or has words, `success` that is false, a `status`
    /// that says so, or the code of a failure in `status`, `statusCode` or `code`.
    pub fn has_error_inside(&self) -> bool {
        let error = match self.at("/error") {
            Some(Value::Bool(error)) => *error,
            Some(Value::String(words)) => !words.is_empty(),
            Some(Value::Object(_) | Value::Array(_)) => true,
            _ => false,
        };
        let unsuccessful = self.bool_at(&["/success"]) == Some(false);
        let status = self.text_at(&["/status"]).is_some_and(|status| status.eq_ignore_ascii_case("error"));
        let is_failure = |code: &Value| code.as_u64().is_some_and(|code| (400..600).contains(&code));
        let code = ["/status", "/statusCode", "/code"].iter().filter_map(|at| self.at(at)).any(is_failure);
        error || unsuccessful || status || code
    }

    /// Whether the provider's words tell of a time that ran out: whatever the status, it may have been done.
    pub fn tells_of_a_timeout(&self) -> bool {
        self.says(&["timed out", "timeout", "time-out", "time out"])
    }

    /// What an answer says that its adapter has nothing special to say about. By its status alone, as
    /// [`Fate::may_have_taken_effect`] reads it: a 4xx other than 408 was not acted upon, anything else may have been;
    /// and so may what a 4xx calls a time-out, unless its status names another reason.
    pub fn by_status<T>(&self) -> Reading<T> {
        if Fate::Answered.may_have_taken_effect(Some(self.status)) != Effect::No {
            return Reading::Unclear;
        }
        Reading::Declined(match self.status {
            401 | 403 => Declined::Authentication,
            404 | 410 => Declined::NotFound,
            429 => Declined::RateLimited,
            402 => Declined::Limit,
            _ if self.tells_of_a_timeout() => return Reading::Unclear,
            _ => Declined::Invalid,
        })
    }

    /// Reads a success that is a JSON object without an error inside; everything else as [`Answer::by_status`] does,
    /// and as unclear if it is a success all the same.
    pub fn success<T>(&self, read: impl FnOnce(&Self) -> Reading<T>) -> Reading<T> {
        match self.is_success() && self.is_object() && !self.has_error_inside() {
            true => read(self),
            false => self.by_status(),
        }
    }

    /// Reads the answer to a send: sent if it is a success that has an id at one of these places, or says that it is
    /// one. A success that says neither is somebody else's: it is unclear.
    pub fn sent(&self, ids: &[&str]) -> Reading<SentAs> {
        self.success(|answer| match answer.text_at(ids) {
            Some(id) => Reading::Done(SentAs(Some(id.into_owned()))),
            None if answer.says_success() => Reading::Done(SentAs(None)),
            None => Reading::Unclear,
        })
    }

    fn says_success(&self) -> bool {
        let says = |place| self.text_at(&[place]).is_some_and(|word| word.eq_ignore_ascii_case("success"));
        self.bool_at(&["/success", "/sent"]) == Some(true) || says("/status") || says("/message")
    }
}

/// The words in a value: of a list, all of them.
fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Array(list) => {
            let all: Vec<String> = list.iter().filter_map(said).collect();
            (!all.is_empty()).then(|| all.join("; "))
        }
        Value::Object(members) => members.get("message").and_then(said),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer::new(status, "application/json; charset=utf-8", Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn words_are_found_where_providers_put_them() {
        let cases = [
            (r#"{"status":400,"error":"Bad Request","response":{"message":["a","b"]}}"#, Some("a; b")),
            (r#"{"error":{"code":400,"message":"a"}}"#, Some("a")),
            (r#"{"statusCode":500,"exception":{"message":"a"},"request":{"text":"s3cret"}}"#, Some("a")),
            (r#"{"error":"a"}"#, Some("a")),
            (r#"{"code":500,"error":"a","success":false}"#, Some("a")),
            (r#"{"success":false,"status":"a"}"#, Some("a")),
            (r#"{"error":true,"message":" "}"#, None),
            (r#"{"status":400}"#, None),
            ("[1]", None),
            ("{", None),
        ];
        for (body, words) in cases {
            assert_eq!(answer(400, body).words().as_deref(), words, "{body}");
        }
        let html = Answer::new(502, "text/html", Bytes::from_static(b"<html>"));
        assert_eq!(html.words(), None);
        let text = Answer::new(502, "text/plain", Bytes::from_static(b"bad gateway\n"));
        assert_eq!(text.words().as_deref(), Some("bad gateway"));
    }

    #[test]
    fn a_success_with_an_error_inside_is_no_success() {
        let done = |body| answer(200, body).success(|_| Reading::Done(()));
        for body in [
            r#"{"error":true}"#,
            r#"{"error":"x"}"#,
            r#"{"success":false}"#,
            r#"{"status":"ERROR"}"#,
            r#"{"error":{"code":1}}"#,
            r#"{"status":500,"message":"x"}"#,
            r#"{"statusCode":401}"#,
            r#"{"code":400}"#,
            "<html>",
            r#"{"id":"#,
            "",
        ] {
            assert_eq!(done(body), Reading::Unclear, "{body}");
        }
        assert_eq!(done(r#"{"error":false,"status":"PENDING"}"#), Reading::Done(()));
        assert_eq!(done(r#"{"error":null}"#), Reading::Done(()));
        assert_eq!(done(r#"{"code":200,"status":"connected"}"#), Reading::Done(()));
    }

    #[test]
    fn a_success_without_an_id_was_sent_only_if_it_says_so() {
        let sent = |body| answer(200, body).sent(&["/key/id", "/id"]);
        let with = |id: &str| Reading::Done(SentAs(Some(id.to_owned())));
        assert_eq!(sent(r#"{"key":{"id":"A"}}"#), with("A"));
        assert_eq!(sent(r#"{"id":7}"#), with("7"));
        for body in
            [r#"{"success":true}"#, r#"{"sent":true}"#, r#"{"status":"success"}"#, r#"{"message":"Success"}"#]
        {
            assert_eq!(sent(body), Reading::Done(SentAs(None)), "{body}");
        }
        for body in ["{}", r#"{"message":"Welcome"}"#, r#"{"id":"A","error":"x"}"#, r#"{"status":"ok"}"#] {
            assert_eq!(sent(body), Reading::Unclear, "{body}");
        }
    }

    #[test]
    fn a_time_that_ran_out_is_no_refusal_whatever_its_status() {
        let read = |status, body| answer(status, body).by_status::<()>();
        for body in [
            r#"{"error":"Timed Out"}"#,
            r#"{"message":["x","ETIMEOUT: timeout"]}"#,
            r#"{"error":"time-out"}"#,
        ] {
            for status in [400, 409, 422] {
                assert_eq!(read(status, body), Reading::Unclear, "{status} {body}");
            }
        }
        let expired = r#"{"error":"the session timed out"}"#;
        assert_eq!(read(401, expired), Reading::Declined(Declined::Authentication));
        assert_eq!(read(429, expired), Reading::Declined(Declined::RateLimited));
    }

    #[test]
    fn a_status_alone_says_no_more_than_is_known() {
        let read = |status| answer(status, "{}").by_status::<()>();
        for status in [200, 201, 204, 301, 302, 307, 408, 500, 502, 503, 504, 599] {
            assert_eq!(read(status), Reading::Unclear, "{status}");
        }
        let declined = [
            (400, Declined::Invalid),
            (401, Declined::Authentication),
            (402, Declined::Limit),
            (403, Declined::Authentication),
            (404, Declined::NotFound),
            (413, Declined::Invalid),
            (422, Declined::Invalid),
            (429, Declined::RateLimited),
        ];
        for (status, why) in declined {
            assert_eq!(read(status), Reading::Declined(why), "{status}");
        }
    }
}
