//! The request as it goes out: which headers are the caller's and which are ours; absent: the sending.

use http::Uri;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body::Body as _;

use crate::body::RequestBody;
use crate::exchange::ExchangeRequest;
use crate::h1::Message;
use crate::target::Target;

/// How a request names its target, and what it tells the proxy that it goes to, if it goes to one.
pub(super) struct Form {
    pub(super) uri: Uri,
    pub(super) proxy_authorization: Option<HeaderValue>,
}

/// What is added to the headers of nearly every request: `Host`, `User-Agent`, and hyper's `Content-Length`.
pub(crate) const ADDED_HEADERS: usize = 3;

/// The message of a request. Its header map is used as it is, so that nothing is allocated for one that has room: a
/// `Host` the caller put there keeps its place and gets our value, else ours comes last (RFC 9110 §7.2 would have it
/// first). hyper adds the length of a body that has one.
pub(super) fn of(request: ExchangeRequest, form: Form, user_agent: &HeaderValue) -> Message {
    let ExchangeRequest { method, target, mut headers, body, .. } = request;
    headers.insert(header::HOST, target.host_header().clone());
    if headers.keys().any(is_ours) {
        let ours: Vec<HeaderName> = headers.keys().filter(|name| is_ours(name)).cloned().collect();
        for name in ours {
            headers.remove(name);
        }
    }
    finish(method, headers, body, form, user_agent)
}

fn finish(
    method: http::Method,
    mut headers: HeaderMap,
    body: RequestBody,
    form: Form,
    user_agent: &HeaderValue,
) -> Message {
    if !headers.contains_key(header::USER_AGENT) {
        headers.insert(header::USER_AGENT, user_agent.clone());
    }
    if body.is_end_stream() && expects_body(&method) {
        // RFC 9110 §8.6: methods that give a body a meaning announce an empty one.
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    if let Some(value) = form.proxy_authorization {
        headers.insert(header::PROXY_AUTHORIZATION, value);
    }
    let mut message = Message::new(body);
    *message.method_mut() = method;
    *message.uri_mut() = form.uri;
    *message.headers_mut() = headers;
    message
}

/// Rewrites a message for HTTP/2, where the target's authority is a field of its own (RFC 9113 §8.3.1).
pub(super) fn to_http2(message: &mut Message, absolute: Uri) {
    message.headers_mut().remove(header::HOST);
    *message.uri_mut() = absolute;
}

/// The way back.
pub(super) fn to_http1(message: &mut Message, target: &Target) {
    message.headers_mut().insert(header::HOST, target.host_header().clone());
    *message.uri_mut() = target.uri().clone();
}

/// The fields beside `Host` that describe this connection and this message's framing; HTTP/2 forbids them altogether
/// (RFC 9113 §8.2.2).
fn is_ours(name: &HeaderName) -> bool {
    *name == header::CONTENT_LENGTH
        || *name == header::TRANSFER_ENCODING
        || *name == header::CONNECTION
        || *name == header::TE
        || *name == header::TRAILER
        || *name == header::UPGRADE
        || name == "keep-alive"
        || name == "proxy-connection"
}

fn expects_body(method: &http::Method) -> bool {
    matches!(*method, http::Method::POST | http::Method::PUT | http::Method::PATCH)
}
