//! One request as data: method, path, query, body, and whether it may be sent again; absent: the server and the token.

use bytes::Bytes;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

/// What is written as it is: the unreserved characters of RFC 3986 §2.3. All else, `/` and `*` among it, is escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Whether a request may be sent again after a failure in which it may have taken effect (S1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// Yes: a read, or a write that makes the same state however often it arrives.
    Any,
    /// Only if it was provably not sent, or the server said that it did not look at it.
    UnlessSent,
}

/// One request to the API.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Below the API's base, escaped, with its first slash.
    pub(crate) path: String,
    /// Escaped, without the question mark; empty for none.
    pub(crate) query: String,
    pub(crate) body: Option<Bytes>,
    pub(crate) again: Again,
}

impl Call {
    /// A read.
    pub(crate) fn get(segments: &[&str]) -> Self {
        Self::to(Method::GET, segments, Again::Any)
    }

    /// A write that may arrive twice.
    pub(crate) fn by_value(method: Method, segments: &[&str]) -> Self {
        Self::to(method, segments, Again::Any)
    }

    /// A write that must not arrive twice.
    pub(crate) fn once(method: Method, segments: &[&str]) -> Self {
        Self::to(method, segments, Again::UnlessSent)
    }

    fn to(method: Method, segments: &[&str], again: Again) -> Self {
        let mut path = String::new();
        for segment in segments {
            path.push('/');
            path.extend(utf8_percent_encode(segment, ESCAPED));
        }
        Self { method, path, query: String::new(), body: None, again }
    }

    /// With one more parameter.
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(name);
        self.query.push('=');
        self.query.extend(utf8_percent_encode(value, ESCAPED));
        self
    }

    /// With one more parameter, if there is a value for it.
    pub(crate) fn query_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// With a body.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        let bytes = serde_json::to_vec(body).expect("our own types have text for keys and no failing parts");
        self.body = Some(bytes.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches_and_rules_stay_one_segment() {
        let call = Call::get(&["repos", "a", "b", "branch_protections", "release/*"]).query("q", "a b&c=d");
        assert_eq!(call.path, "/repos/a/b/branch_protections/release%2F%2A");
        assert_eq!(call.query, "q=a%20b%26c%3Dd");
    }

    #[test]
    fn a_parameter_without_a_value_is_left_out() {
        let call = Call::get(&["x"]).query_some("a", None).query_some("b", Some("1")).query("c", "2");
        assert_eq!(call.query, "b=1&c=2");
    }
}
