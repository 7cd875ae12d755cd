//! What a caller is told when something is refused: RFC 9457 `application/problem+json`, with a stable
//! `code` and pointers to the fields at fault. Deliberately absent: the decision to refuse.

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use teimoso_delivery::store::{Rejection, StoreError, StoreErrorKind};

use crate::config::ApiConfig;

macro_rules! codes {
    ($($variant:ident = $status:literal $name:literal),+ $(,)?) => {
        /// Every way to be refused: its stable name and its status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code { $($variant),+ }

        impl Code {
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            pub(crate) const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }
        }
    };
}

codes! {
    MalformedJson = 400 "malformed_json",
    MalformedRequest = 400 "malformed_request",
    CrossOrigin = 403 "cross_origin",
    UnknownHost = 403 "unknown_host",
    NotFound = 404 "not_found",
    MethodNotAllowed = 405 "method_not_allowed",
    RequestTimeout = 408 "request_timeout",
    IdTaken = 409 "id_taken",
    WrongState = 409 "wrong_state",
    PayloadTooLarge = 413 "payload_too_large",
    UnsupportedMediaType = 415 "unsupported_media_type",
    UnknownField = 422 "unknown_field",
    DuplicateField = 422 "duplicate_field",
    MissingField = 422 "missing_field",
    InvalidValue = 422 "invalid_value",
    InvalidDestination = 422 "invalid_destination",
    BlockedAddress = 422 "blocked_address",
    UnknownPolicy = 422 "unknown_policy",
    ModeUnavailable = 422 "mode_unavailable",
    KeyReused = 422 "idempotency_key_reused",
    KeyMismatch = 422 "idempotency_key_mismatch",
    InvalidCursor = 422 "invalid_cursor",
    Internal = 500 "internal",
    Overloaded = 503 "overloaded",
    Draining = 503 "draining",
    TooManyLanes = 503 "too_many_lanes",
    StoreBusy = 503 "store_busy",
    StoreFailed = 503 "store_failed",
    StoreClosed = 503 "store_closed",
    StoreFull = 507 "store_full",
}

/// Where in a request the fault lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum At {
    /// RFC 6901, into the body.
    Pointer(String),
    /// A header's name.
    Header(String),
    /// A query parameter's name.
    Parameter(String),
}

impl At {
    /// The body's field reached by these names.
    pub(crate) fn field(path: &[&str]) -> Self {
        Self::Pointer(path.iter().fold(String::new(), |mut pointer, name| {
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            pointer
        }))
    }
}

/// How an event's fields came in: as members of a JSON object or as headers around a raw payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Json,
    Raw,
}

impl Origin {
    /// Where a caller finds this field.
    pub(crate) fn at(self, field: &str) -> At {
        match (self, field) {
            (Self::Json, _) => At::field(&[field]),
            (Self::Raw, "content_type") => At::Header("Content-Type".to_owned()),
            (Self::Raw, "idempotency_key") => At::Header("Idempotency-Key".to_owned()),
            (Self::Raw, _) => At::Header(format!("Teimoso-{}", field.replace('_', "-"))),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
struct Fault {
    #[serde(flatten)]
    at: At,
    detail: String,
}

#[derive(Debug, Clone)]
struct Inner {
    code: Code,
    status: u16,
    detail: String,
    faults: Vec<Fault>,
    limit_bytes: Option<usize>,
    line: Option<u64>,
    retry_after_seconds: Option<u32>,
}

/// A refusal. Boxed, because it travels in every `Result` of the hot path.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<Inner>);

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let (detail, faults) = (detail.into(), Vec::new());
        let status = code.status();
        let retry_after_seconds = match status {
            503 => Some(1),
            // Somebody has to make room first; then the store goes on by itself.
            507 => Some(5),
            _ => None,
        };
        Self(Box::new(Inner {
            code,
            status,
            detail,
            faults,
            limit_bytes: None,
            line: None,
            retry_after_seconds,
        }))
    }

    /// A refusal whose whole reason is one field, header or parameter.
    pub(crate) fn at(code: Code, at: At, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let mut problem = Self::new(code, detail.clone());
        problem.0.faults.push(Fault { at, detail });
        problem
    }

    /// What is too large, and the limit.
    pub(crate) fn too_large(what: &str, limit: usize) -> Self {
        let mut problem =
            Self::new(Code::PayloadTooLarge, format!("{what} is larger than the limit of {limit} bytes"));
        problem.0.limit_bytes = Some(limit);
        problem
    }

    pub(crate) fn overloaded(what: &str) -> Self {
        Self::new(Code::Overloaded, format!("{what}; nothing was stored, send it again later"))
    }

    pub(crate) fn draining() -> Self {
        Self::new(Code::Draining, "the server is stopping and takes nothing more; send it again later")
    }

    pub(crate) fn late_body(config: &ApiConfig) -> Self {
        let seconds = config.body_read_timeout.as_secs_f32();
        Self::new(Code::RequestTimeout, format!("the request's body did not come within {seconds} s"))
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no such {what}"))
    }

    /// Not ready, for whichever reason the store names: a probe asks for 200 or 503.
    pub(crate) fn unready(error: StoreError) -> Self {
        let mut problem = Self::from(error);
        problem.0.status = 503;
        problem.0.retry_after_seconds = Some(1);
        problem
    }

    /// One event of a batch, or the only one, that the store refused.
    pub(crate) fn rejected(rejection: Rejection, origin: Origin) -> Self {
        let detail = rejection.to_string();
        match rejection {
            Rejection::IdTaken => Self::at(Code::IdTaken, origin.at("id"), detail),
            Rejection::KeyReused => Self::at(Code::KeyReused, origin.at("idempotency_key"), detail),
            Rejection::ModeUnavailable => Self::at(Code::ModeUnavailable, origin.at("mode"), detail),
            Rejection::TooManyLanes => Self::new(Code::TooManyLanes, detail),
        }
    }

    /// Names the batch line it is about.
    #[must_use]
    pub(crate) fn on_line(mut self, line: u64) -> Self {
        self.0.line = Some(line);
        self
    }

    /// The answer's body.
    pub(crate) fn body(&self) -> impl Serialize + '_ {
        let status = self.0.status;
        Wire {
            kind: format!("urn:teimoso:problem:{}", self.0.code.name()),
            title: StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()).unwrap_or_default(),
            status,
            detail: &self.0.detail,
            code: self.0.code.name(),
            errors: &self.0.faults,
            limit_bytes: self.0.limit_bytes,
            line: self.0.line,
        }
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> Code {
        self.0.code
    }
}

#[derive(Serialize)]
struct Wire<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    errors: &'a [Fault],
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.name(), self.0.detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let code = match error.kind() {
            StoreErrorKind::Full => Code::StoreFull,
            StoreErrorKind::Failed => Code::StoreFailed,
            StoreErrorKind::Busy => Code::StoreBusy,
            StoreErrorKind::Closed => Code::StoreClosed,
            StoreErrorKind::InvalidCursor => Code::InvalidCursor,
        };
        Self::new(code, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body()).unwrap_or_default();
        let mut response = Response::new(body.into());
        *response.status_mut() =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.0.retry_after_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_rfc_9457_with_a_code_and_pointers() {
        let problem = Problem::at(Code::InvalidValue, At::field(&["headers", "a/b~"]), "is wrong").on_line(7);
        assert_eq!(
            serde_json::to_string(&problem.body()).unwrap(),
            r#"{"type":"urn:teimoso:problem:invalid_value","title":"Unprocessable Entity","status":422,"detail":"is wrong","code":"invalid_value","errors":[{"pointer":"/headers/a~1b~0","detail":"is wrong"}],"line":7}"#
        );
    }

    #[test]
    fn overload_is_never_500_and_always_says_when_to_come_back() {
        for kind in [StoreErrorKind::Failed, StoreErrorKind::Busy, StoreErrorKind::Closed] {
            let response = Problem::from(StoreError::new(kind, "x")).into_response();
            assert_eq!(response.status(), 503);
            assert_eq!(response.headers()[RETRY_AFTER], "1");
        }
        let full = Problem::from(StoreError::new(StoreErrorKind::Full, "x")).into_response();
        assert_eq!(full.status(), 507);
        assert_eq!(full.headers()[RETRY_AFTER], "5");
    }
}
