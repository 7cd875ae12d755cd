//! What one exchange takes and what it gives back, body unread; absent: how it is made, and what to do next.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use teimoso_retry::Fate;

use crate::attempt::{AttemptError, AttemptLimits, AttemptRequest, Timings};
use crate::body::{RequestBody, ResponseBody};
use crate::target::Target;

/// One request whose response the caller reads as it comes.
pub struct ExchangeRequest {
    /// The method. `CONNECT` is refused: it asks for a tunnel, not for an answer.
    pub method: http::Method,
    /// Where to.
    pub target: Arc<Target>,
    /// The caller's headers; those of an [`AttemptRequest`](crate::AttemptRequest) that describe the connection and
    /// the message's framing are dropped here too.
    pub headers: http::HeaderMap,
    /// The body.
    pub body: RequestBody,
    /// The limits. `total_timeout` bounds the time to the response head, then each pause within a streamed body, and
    /// all of a collected one. A response body beyond `response_body_max` bytes fails with kind `too_large`;
    /// `usize::MAX` lifts that cap.
    pub limits: AttemptLimits,
}

impl From<AttemptRequest> for ExchangeRequest {
    fn from(request: AttemptRequest) -> Self {
        let AttemptRequest { method, target, headers, body, limits } = request;
        Self { method, target, headers, body: body.into(), limits }
    }
}

impl fmt::Debug for ExchangeRequest {
    /// Header values and the body are left out: both may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeRequest")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("body", &self.body)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What came of one exchange up to its response head.
pub struct Exchange {
    /// What is known of the request, from evidence alone. It is `answered` as soon as the head is there; a body that
    /// then breaks turns it into `body_lost`, which is for the reader of the body to say.
    pub fate: Fate,
    /// The response, its body unread; present if and only if the fate is `answered`.
    pub response: Option<http::Response<ResponseBody>>,
    /// Why there is no response; `None` if and only if the fate is `answered`.
    pub error: Option<AttemptError>,
    /// How long the phases took; `total` ends with the response head.
    pub timings: Timings,
    /// The address that was connected to, or that the last connection was tried with; a proxy's, where there is one.
    pub peer: Option<SocketAddr>,
    /// Whether the request went over a connection that had served an earlier one.
    pub reused: bool,
    /// The request's body, untouched: given back when the request ended before anything read from it. Then even a
    /// stream can be sent after all.
    pub unsent: Option<RequestBody>,
}

impl fmt::Debug for Exchange {
    /// Of the response, header values and body are left out: both may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("fate", &self.fate)
            .field("status", &self.response.as_ref().map(http::Response::status))
            .field("error", &self.error)
            .field("timings", &self.timings)
            .field("peer", &self.peer)
            .field("reused", &self.reused)
            .field("unsent", &self.unsent)
            .finish_non_exhaustive()
    }
}
