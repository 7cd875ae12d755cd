//! What one attempt takes and what it gives back; absent: how it is made, and what to do next.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use teimoso_retry::{Fate, Refusal};

use crate::target::{InvalidTarget, Target};

/// The largest response head that is read, in bytes (G11), with any interim (1xx) responses before it. A longer one
/// ends the attempt as ambiguous, kind `protocol`: an answer nobody can read is no answer.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 64 * 1024;

/// The most header lines a response may have (G11); more end the attempt like a head that is too long.
pub const RESPONSE_HEADERS_MAX: usize = 100;

/// One request, ready to be sent. It can be attempted any number of times; each attempt shares the bytes.
#[derive(Clone)]
pub struct AttemptRequest {
    /// The method. `CONNECT` is refused: it asks for a tunnel, not for an answer.
    pub method: http::Method,
    /// Where to. Shared, because a lane sends many requests to one target.
    pub target: Arc<Target>,
    /// The caller's headers. They win over the transport's defaults, except for the fields that describe this
    /// connection and this message's framing (`host`, `content-length`, `transfer-encoding`, `connection`,
    /// `keep-alive`, `proxy-connection`, `te`, `trailer`, `upgrade`; RFC 9110 §7.6.1), which are dropped.
    pub headers: http::HeaderMap,
    /// The body, sent byte for byte (G7).
    pub body: Bytes,
    /// The limits of this attempt.
    pub limits: AttemptLimits,
}

impl fmt::Debug for AttemptRequest {
    /// Header values and the body are left out: both may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptRequest")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("body_bytes", &self.body.len())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The limits of one attempt (G11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptLimits {
    /// Time for name lookup, TCP connect and TLS handshake together; default 5 s. The total bounds it too.
    pub connect_timeout: Duration,
    /// Time for the whole attempt, the response body included; default 15 s.
    pub total_timeout: Duration,
    /// Response body bytes that are read before the attempt stops and drops the connection; default 64 KiB. Reaching
    /// it is not a failure: the response is marked truncated.
    pub response_body_max: usize,
}

impl Default for AttemptLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            total_timeout: Duration::from_secs(15),
            response_body_max: 64 * 1024,
        }
    }
}

/// What came of one attempt.
#[derive(Debug)]
pub struct Attempt {
    /// What is known of the request, from evidence alone.
    pub fate: Fate,
    /// The response as far as it came; present if and only if the fate is `answered` or `body_lost`.
    pub response: Option<Response>,
    /// Why there is no complete response; `None` if and only if the fate is `answered`.
    pub error: Option<AttemptError>,
    /// How long the phases took.
    pub timings: Timings,
    /// The address that was connected to, or that the last connection was tried with; a proxy's, where there is one.
    pub peer: Option<SocketAddr>,
    /// Whether the request went over a connection that had served an earlier one.
    pub reused: bool,
}

impl Attempt {
    /// An attempt that was declined before anything was sent, for instance because its payload is too large.
    /// `message` is lower case and reads after "failed to".
    pub fn refused(refusal: Refusal, message: impl Into<String>) -> Self {
        let kind = match refusal {
            Refusal::InvalidDestination => ErrorKind::InvalidDestination,
            Refusal::BlockedAddress => ErrorKind::BlockedAddress,
            Refusal::TooLarge => ErrorKind::TooLarge,
        };
        Self::failed(Fate::Refused(refusal), AttemptError { kind, message: message.into() })
    }

    /// The attempt that a URL which cannot be used deserves.
    pub fn invalid_target(invalid: &InvalidTarget) -> Self {
        Self::refused(Refusal::InvalidDestination, format!("use the url: {}", invalid.sentence))
    }

    pub(crate) fn failed(fate: Fate, error: AttemptError) -> Self {
        Self {
            fate,
            response: None,
            error: Some(error),
            timings: Timings::default(),
            peer: None,
            reused: false,
        }
    }

    /// The response's status code, if a response head arrived.
    pub fn status(&self) -> Option<u16> {
        self.response.as_ref().map(|response| response.status.as_u16())
    }

    /// The error kind for records and metrics: the failure's own, else the class of an answer other than 2xx.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        match (&self.error, &self.response) {
            (Some(error), _) => Some(error.kind),
            (None, Some(response)) => ErrorKind::of_status(response.status),
            (None, None) => None,
        }
    }
}

/// A response as far as it came. Bodies are never decoded: a compressed body is kept as it arrived.
#[derive(Clone)]
pub struct Response {
    /// The status code.
    pub status: StatusCode,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: http::Version,
    /// The response headers.
    pub headers: http::HeaderMap,
    /// The body bytes that arrived, at most `response_body_max` of them.
    pub body: Bytes,
    /// Whether the body goes on beyond `body`: it exceeded the limit, or it was cut.
    pub truncated: bool,
}

impl fmt::Debug for Response {
    /// Header values and the body are left out: both may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("version", &self.version)
            .field("body_bytes", &self.body.len())
            .field("truncated", &self.truncated)
            .finish_non_exhaustive()
    }
}

/// How long the phases of an attempt took. A phase that did not happen, as all three connect phases of a reused
/// connection, is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Name lookup; `None` for address literals.
    pub dns: Option<Duration>,
    /// TCP connect, all addresses tried.
    pub connect: Option<Duration>,
    /// TLS handshake.
    pub tls: Option<Duration>,
    /// From the moment the connection was there to the complete response head.
    pub first_byte: Option<Duration>,
    /// The whole attempt; always set on an attempt that [`Transport::attempt`](crate::Transport::attempt) made.
    pub total: Option<Duration>,
}

/// Why an attempt has no complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptError {
    /// The stable kind.
    pub kind: ErrorKind,
    /// Lower case, reads after "failed to"; holds neither header values nor query strings.
    pub message: String,
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {}", self.message)
    }
}

impl std::error::Error for AttemptError {}

/// The stable kinds of failure, as records, metrics and the API name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The name did not resolve, or not in time.
    Dns,
    /// No address took the connection: refused, unreachable, or no local resources for it.
    ConnectRefused,
    /// No address took the connection in time.
    ConnectTimeout,
    /// The TLS handshake failed or took too long.
    TlsHandshake,
    /// The peer's certificate was rejected.
    TlsCertificate,
    /// The peer reset the connection.
    Reset,
    /// The peer closed the connection early.
    Closed,
    /// The attempt's total time ran out.
    Timeout,
    /// What came back was not HTTP, or beyond the limits of a response head.
    Protocol,
    /// The request exceeds a size limit of ours, or a response body the cap of whoever reads it.
    TooLarge,
    /// The caller's own body failed while it was being sent.
    RequestBody,
    /// The egress rules refuse every address of the destination.
    BlockedAddress,
    /// The URL or the method cannot be used.
    InvalidDestination,
    /// A header of the request is none that HTTP can carry.
    InvalidHeader,
    /// Answered with a redirect.
    Http3xx,
    /// Answered with a client error.
    Http4xx,
    /// Answered with a server error.
    Http5xx,
}

impl ErrorKind {
    /// The kind of an answered status: `None` for 2xx. A status outside 200–599 is `protocol`.
    pub fn of_status(status: StatusCode) -> Option<Self> {
        match status.as_u16() {
            200..=299 => None,
            300..=399 => Some(Self::Http3xx),
            400..=499 => Some(Self::Http4xx),
            500..=599 => Some(Self::Http5xx),
            _ => Some(Self::Protocol),
        }
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::TlsHandshake => "tls_handshake",
            Self::TlsCertificate => "tls_certificate",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::TooLarge => "too_large",
            Self::RequestBody => "request_body",
            Self::BlockedAddress => "blocked_address",
            Self::InvalidDestination => "invalid_destination",
            Self::InvalidHeader => "invalid_header",
            Self::Http3xx => "http_3xx",
            Self::Http4xx => "http_4xx",
            Self::Http5xx => "http_5xx",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
