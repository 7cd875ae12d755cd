//! One request as an adapter describes it: what goes on the wire, what kind of act it is, and how to read the answer.
//! Absent: the wire.

use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::answer::{Answer, Reading};
use super::multipart::Multipart;
use crate::account::Secret;

/// What a request does, whatever its method says (S3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// It changes nothing that matters: repeated at will.
    Read,
    /// It changes something: repeated only if its caller marks it.
    Write,
    /// It sends a message: repeated only under an id that the provider recognises.
    Send,
}

/// How an answer is read.
pub(crate) type Reader<T> = Box<dyn Fn(&Answer) -> Reading<T> + Send + Sync>;

/// A request, and how to read its answer as a `T`.
pub struct Call<T> {
    pub(crate) method: Method,
    pub(crate) path: Path,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) class: Class,
    pub(crate) limit_is_final: bool,
    pub(crate) reader: Reader<T>,
}

impl<T> Call<T> {
    /// A read.
    pub fn read(
        method: Method,
        path: Path,
        reader: impl Fn(&Answer) -> Reading<T> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Class::Read, method, path, reader)
    }

    /// A write, be it by `GET`.
    pub fn write(
        method: Method,
        path: Path,
        reader: impl Fn(&Answer) -> Reading<T> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Class::Write, method, path, reader)
    }

    /// A send, by `POST`: no provider here sends otherwise any more.
    pub fn send(path: Path, reader: impl Fn(&Answer) -> Reading<T> + Send + Sync + 'static) -> Self {
        Self::new(Class::Send, Method::POST, path, reader)
    }

    fn new(
        class: Class,
        method: Method,
        path: Path,
        reader: impl Fn(&Answer) -> Reading<T> + Send + Sync + 'static,
    ) -> Self {
        let headers =
            HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json, image/png"))]);
        let reader = Box::new(reader);
        Self { method, path, headers, body: Bytes::new(), class, limit_is_final: false, reader }
    }

    /// With a further token in a header, after a prefix such as `Bearer `; the account's own is sent with every call
    /// ([`Facts::token_header`](super::Facts::token_header)).
    #[must_use]
    pub fn token(mut self, name: &'static str, prefix: &str, token: &Secret) -> Self {
        self.headers.insert(HeaderName::from_static(name), token.header(prefix));
        self
    }

    /// With a header that is no secret. A value with a control character, which no header can carry, is left out.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// With a JSON body. Members that are `null` are left out.
    #[must_use]
    pub fn json(mut self, mut body: Value) -> Self {
        if let Value::Object(members) = &mut body {
            members.retain(|_, value| !value.is_null());
        }
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = body.to_string().into();
        self
    }

    /// With a form of several parts (RFC 7578).
    #[must_use]
    pub fn multipart(mut self, form: Multipart) -> Self {
        let (content_type, body) = form.finish();
        self.headers.insert(CONTENT_TYPE, content_type);
        self.body = body;
        self
    }

    /// Of which a 429 is no "later": it is a limit that waiting does not lift.
    #[must_use]
    pub fn limit_is_final(mut self) -> Self {
        self.limit_is_final = true;
        self
    }

    /// What kind of act it is.
    pub fn class(&self) -> Class {
        self.class
    }
}

impl<T> fmt::Debug for Call<T> {
    /// Headers and body are left out: both hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

/// A path, built from its segments, each encoded; and the same as it may be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Path {
    pub(crate) wire: String,
    pub(crate) shown: String,
}

/// What may stand in a segment or a query as it is (RFC 3986 §2.3), and `@`, which segments may have too.
const AS_IT_IS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

impl Path {
    /// A path of these segments.
    pub fn of(segments: &[&str]) -> Self {
        let path = Self { wire: String::new(), shown: String::new() };
        segments.iter().fold(path, |path, segment| path.then(segment))
    }

    /// With one more segment.
    #[must_use]
    pub fn then(mut self, segment: &str) -> Self {
        // A segment of dots would climb out of its place.
        let encoded = match segment {
            "." => "%2E".to_owned(),
            ".." => "%2E%2E".to_owned(),
            _ => utf8_percent_encode(segment, AS_IT_IS).to_string(),
        };
        for text in [&mut self.wire, &mut self.shown] {
            text.push('/');
            text.push_str(&encoded);
        }
        self
    }

    /// With one more segment that is not to be shown.
    #[must_use]
    pub fn then_secret(mut self, secret: &Secret) -> Self {
        self.wire = self.wire + "/" + &utf8_percent_encode(secret.reveal(), AS_IT_IS).to_string();
        self.shown.push_str("/***");
        self
    }

    /// With a query parameter; to be called after all segments.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.wire.push(if self.wire.contains('?') { '&' } else { '?' });
        self.wire = self.wire + name + "=" + &utf8_percent_encode(value, AS_IT_IS).to_string();
        self
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_stays_one_segment() {
        let path = Path::of(&["api", "a/b?c", ".."]).then("São@c.us").query("format", "a&b").query("x", "1");
        assert_eq!(path.wire, "/api/a%2Fb%3Fc/%2E%2E/S%C3%A3o@c.us?format=a%26b&x=1");
        assert_eq!(path.shown, "/api/a%2Fb%3Fc/%2E%2E/S%C3%A3o@c.us");
    }

    #[test]
    fn a_secret_in_a_path_is_on_the_wire_and_nowhere_else() {
        let secret = Secret::new("s3cret/x").expect("a token");
        let path = Path::of(&["token"]).then_secret(&secret).then("status");
        assert_eq!(
            (path.wire.as_str(), path.shown.as_str()),
            ("/token/s3cret%2Fx/status", "/token/***/status")
        );
        let call = Call::<()>::read(Method::GET, path, |_| Reading::Unclear)
            .token("client-token", "", &secret)
            .json(serde_json::json!({"token": "s3cret"}));
        assert!(!format!("{call:?}").contains("s3cret"));
    }

    #[test]
    fn what_is_not_said_is_not_in_the_body() {
        let call = Call::<()>::read(Method::POST, Path::of(&["a"]), |_| Reading::Unclear)
            .json(serde_json::json!({"id": null, "text": "hi"}));
        assert_eq!(call.body, r#"{"text":"hi"}"#);
    }
}
