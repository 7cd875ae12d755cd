//! What a request is, as far as retrying cares: its method, its marks, its mode, and the number of the try; absent: URL,
//! headers and body.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

/// What is known of the try that has just ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Try {
    /// 1 for the first attempt within the current budget of attempts; a replay starts a fresh one.
    pub number: NonZeroU32,
    /// Since the first attempt's start.
    pub elapsed: Duration,
    /// The request's method.
    pub method: Method,
    /// Whether the request is marked as safe to send twice: by its caller, or by an `Idempotency-Key`. A safe method
    /// needs no mark.
    pub replay_safe: bool,
    /// Who promises what.
    pub mode: Mode,
}

/// A request method, as far as retrying tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// OPTIONS.
    Options,
    /// TRACE.
    Trace,
    /// PUT.
    Put,
    /// DELETE.
    Delete,
    /// POST.
    Post,
    /// PATCH.
    Patch,
    /// Any other.
    Other,
}

/// Who promises what about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The engine's default: the receiver may see the request again, so every request is replay-safe (G3).
    AtLeastOnce,
    /// What may have taken effect is never followed by another attempt, whatever marks it carries (G4).
    AtMostOnce,
    /// No engine: [`Try::replay_safe`] and the method decide.
    Client,
}

impl Try {
    /// Whether this request may safely be sent twice.
    pub(crate) fn may_be_replayed(&self) -> bool {
        match self.mode {
            Mode::AtLeastOnce => true,
            Mode::AtMostOnce => false,
            Mode::Client => self.replay_safe || self.method.safe(),
        }
    }
}

impl Method {
    /// Whether the method is safe (RFC 9110 §9.2.1): GET, HEAD, OPTIONS, TRACE. PUT and DELETE are idempotent, yet a
    /// repeated one may answer otherwise (a DELETE that had worked answers 404), so they need a mark.
    pub fn safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// The method a request line spells. Methods are case-sensitive (RFC 9110 §9.1): `get` is [`Method::Other`].
    pub fn from_name(name: &str) -> Self {
        match name {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "OPTIONS" => Self::Options,
            "TRACE" => Self::Trace,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "POST" => Self::Post,
            "PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }

    /// The stable name, in lower case: `get` … `patch`, `other`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Head => "head",
            Self::Options => "options",
            Self::Trace => "trace",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Post => "post",
            Self::Patch => "patch",
            Self::Other => "other",
        }
    }
}

impl From<&str> for Method {
    fn from(name: &str) -> Self {
        Self::from_name(name)
    }
}

impl FromStr for Method {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(Self::from_name(name))
    }
}

impl Mode {
    /// The stable name: `at_least_once`, `at_most_once` or `client`.
    pub fn name(self) -> &'static str {
        match self {
            Self::AtLeastOnce => "at_least_once",
            Self::AtMostOnce => "at_most_once",
            Self::Client => "client",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_methods_that_promise_no_effect_are_safe() {
        let safe = ["GET", "HEAD", "OPTIONS", "TRACE"];
        assert!(safe.iter().all(|name| Method::from_name(name).safe()));
        let unsafe_ones = ["PUT", "DELETE", "POST", "PATCH", "CONNECT", "PURGE", ""];
        assert!(unsafe_ones.iter().all(|name| !Method::from_name(name).safe()));
    }

    #[test]
    fn methods_are_case_sensitive() {
        assert_eq!("get".parse(), Ok(Method::Other));
        assert_eq!(Method::from("PATCH"), Method::Patch);
    }
}
