//! One request, from the caller's hand to what is known of it; absent: a second one.

mod builder;
mod message;
mod negotiate;
mod send;

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;

use http::HeaderValue;
use teimoso_retry::{Fate, Proof, Refusal};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::attempt::{Attempt, AttemptError, AttemptRequest, ErrorKind, Response};
use crate::body::{BodyEnd, BodyRead, Pace, RequestBody, ResponseBody};
use crate::connect::{ConnectFailure, Connector, Offer, Progress, never_sent};
use crate::exchange::{Exchange, ExchangeRequest};
use crate::h1::body::Http1Body;
use crate::h1::pool::Pool;
use crate::h2::body::Http2Body;
use crate::h2::origins::Origins;
use crate::io::Stream;
use crate::target::Origin;
use crate::timer::later;

use self::negotiate::Answered;
use self::send::{Failure, Order};

pub use self::builder::{BuildError, HttpVersions, TransportBuilder};
pub(crate) use self::message::ADDED_HEADERS;

/// Makes attempts: connection pool, resolver, egress rules and TLS configuration. Clones share everything.
///
/// It runs on the caller's tokio runtime, whose I/O and time drivers must be enabled; one `current_thread` runtime per
/// transport is the fastest arrangement.
#[derive(Clone)]
pub struct Transport {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Arc<Pool<Stream>>,
    origins: Origins,
    connector: Connector,
    user_agent: HeaderValue,
    versions: HttpVersions,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

impl Transport {
    /// A builder with the defaults: guarded egress, the machine's trust roots and resolver.
    pub fn builder() -> TransportBuilder {
        TransportBuilder::default()
    }

    /// Makes one attempt over HTTP/1.1 and reads its response; it ends within `limits.total_timeout`.
    ///
    /// The peer sees the request at most once. An idle connection that turns out to be dead before anything was
    /// written to it is replaced by another or a fresh one within the same attempt: the peer saw nothing of it. There
    /// is no other repetition, and a connection whose exchange did not end in order is never used again.
    ///
    /// Dropping the future closes the connection at once.
    pub async fn attempt(&self, request: AttemptRequest) -> Attempt {
        let started = Instant::now();
        let deadline = later(started, request.limits.total_timeout);
        let timer = pin!(sleep_until(deadline));
        let mut attempt = self.shared.attempt(request, deadline, timer).await;
        attempt.timings.total = Some(started.elapsed());
        attempt
    }

    /// Makes one exchange up to its response head, within `limits.total_timeout`; the body is the caller's to read.
    ///
    /// What [`attempt`](Self::attempt) promises holds here too. On HTTP/2, where a connection is shared, dropping the
    /// future or the body resets the stream; a connection that was silent all the while takes no further exchange.
    pub async fn exchange(&self, request: ExchangeRequest) -> Exchange {
        let started = Instant::now();
        let deadline = later(started, request.limits.total_timeout);
        let timer = pin!(sleep_until(deadline));
        let mut exchange = self.shared.exchange(request, deadline, timer).await;
        exchange.timings.total = Some(started.elapsed());
        exchange
    }
}

impl Shared {
    async fn attempt(
        &self,
        request: AttemptRequest,
        deadline: Instant,
        mut timer: Pin<&mut Sleep>,
    ) -> Attempt {
        if request.method == http::Method::CONNECT {
            return Attempt::refused(Refusal::InvalidDestination, CONNECT_REFUSED);
        }
        let (limits, target) = (request.limits, request.target.clone());
        let form = match self.form(&target, Offer::Http1) {
            Ok(form) => form,
            Err(ConnectFailure { fate, error }) => return Attempt::failed(fate, error),
        };
        let message = message::of(request.into(), form, &self.user_agent);
        let order = Order { target: &target, connect_timeout: limits.connect_timeout, deadline };
        let mut progress = Progress::default();
        let sent = self.send_http1(&order, message, timer.as_mut(), &mut progress).await;
        let (mut connection, response) = match sent {
            Ok(answered) => answered,
            Err(Failure { fate, error, .. }) => {
                let Progress { timings, peer, reused } = progress;
                return Attempt { timings, peer, reused, ..Attempt::failed(fate, error) };
            }
        };
        let (head, body) = response.into_parts();
        let read = connection.read_body(body, limits.response_body_max, timer).await;
        let may_go_on = read.end == BodyEnd::Complete && is_well_directed(head.status);
        if may_go_on && connection.is_reusable() {
            self.pool.put(order.origin(), connection);
        }
        answered_attempt(head, read, progress)
    }

    async fn exchange(
        &self,
        request: ExchangeRequest,
        deadline: Instant,
        timer: Pin<&mut Sleep>,
    ) -> Exchange {
        let (limits, target) = (request.limits, request.target.clone());
        let origin = target.shared_origin();
        let offer = match self.versions.may_be_http2(origin) {
            true => Offer::Http2,
            false => Offer::Http1,
        };
        let mut progress = Progress::default();
        let form = match acceptable(&request).and_then(|()| self.form(&target, offer)) {
            Ok(form) => form,
            Err(ConnectFailure { fate, error }) => {
                return unanswered(fate, error, progress, Some(request.body));
            }
        };
        let message = message::of(request, form, &self.user_agent);
        let order = Order { target: &target, connect_timeout: limits.connect_timeout, deadline };
        let sent = match offer {
            Offer::Http1 => {
                let sent = self.send_http1(&order, message, timer, &mut progress).await;
                sent.map(|(connection, response)| Answered::Http1(connection, response))
            }
            Offer::Http2 => self.send_negotiated(&order, message, timer, &mut progress).await,
        };
        let pace = Pace::new(limits.total_timeout, deadline, limits.response_body_max);
        match sent {
            Ok(answered) => self.answered_exchange(answered, origin, pace, progress),
            Err(Failure { fate, error, unsent }) => {
                unanswered(fate, error, progress, unsent.map(|message| message.into_body()))
            }
        }
    }

    fn answered_exchange(
        &self,
        answered: Answered,
        origin: &Arc<Origin>,
        pace: Pace,
        progress: Progress,
    ) -> Exchange {
        let response = match answered {
            Answered::Http1(connection, response) => {
                let pool = is_well_directed(response.status()).then(|| self.pool.clone());
                let origin = origin.clone();
                response.map(|body| ResponseBody::http1(Http1Body { connection, body, pool, origin }, pace))
            }
            Answered::Http2(lease, response) => {
                if !is_well_directed(response.status()) {
                    lease.retire();
                }
                response.map(|body| ResponseBody::http2(Http2Body { lease, body }, pace))
            }
        };
        let Progress { timings, peer, reused } = progress;
        let (fate, response) = (Fate::Answered, Some(response));
        Exchange { fate, response, error: None, timings, peer, reused, unsent: None }
    }
}

const CONNECT_REFUSED: &str = "use the method: connect asks for a tunnel, not for an answer";

/// Whether a connection with this answer can serve the same origin again. After a 421 a repetition must take another one
/// (RFC 9110 §15.5.20).
fn is_well_directed(status: http::StatusCode) -> bool {
    status != http::StatusCode::MISDIRECTED_REQUEST
}

/// Refuses what is not worth a connection.
fn acceptable(request: &ExchangeRequest) -> Result<(), ConnectFailure> {
    if request.method == http::Method::CONNECT {
        let fate = Fate::Refused(Refusal::InvalidDestination);
        let (kind, message) = (ErrorKind::InvalidDestination, CONNECT_REFUSED.to_owned());
        return Err(ConnectFailure { fate, error: AttemptError { kind, message } });
    }
    if request.limits.total_timeout.is_zero() {
        let message = "begin: no time was left".to_owned();
        return Err(never_sent(Proof::NoConnection, ErrorKind::Timeout, message));
    }
    Ok(())
}

fn answered_attempt(head: http::response::Parts, read: BodyRead, progress: Progress) -> Attempt {
    let error = match read.end {
        BodyEnd::Complete | BodyEnd::Limit => None,
        BodyEnd::Cut(fault) => Some(fault.error("read the response body")),
    };
    let response = Response {
        status: head.status,
        version: head.version,
        headers: head.headers,
        body: read.bytes,
        truncated: read.end != BodyEnd::Complete,
    };
    let fate = if error.is_some() { Fate::BodyLost } else { Fate::Answered };
    let Progress { timings, peer, reused } = progress;
    Attempt { fate, response: Some(response), error, timings, peer, reused }
}

fn unanswered(fate: Fate, error: AttemptError, progress: Progress, unsent: Option<RequestBody>) -> Exchange {
    let Progress { timings, peer, reused } = progress;
    Exchange { fate, response: None, error: Some(error), timings, peer, reused, unsent }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::TlsRoots;

    fn assert_send<T: Send>(value: T) -> T {
        value
    }

    #[tokio::test]
    async fn an_attempt_can_be_spawned_and_a_transport_shared() {
        fn assert_shared<T: Clone + Send + Sync + 'static>() {}
        assert_shared::<Transport>();
        let transport = Transport::builder().tls_roots(TlsRoots::OnlyAdded).build().unwrap();
        let request = AttemptRequest {
            method: http::Method::CONNECT,
            target: Arc::new(crate::Target::parse("http://peer.test/").unwrap()),
            headers: HeaderMap::new(),
            body: bytes::Bytes::new(),
            limits: crate::AttemptLimits { total_timeout: std::time::Duration::MAX, ..Default::default() },
        };
        assert_eq!(
            assert_send(transport.attempt(request.clone())).await.fate,
            Fate::Refused(Refusal::InvalidDestination)
        );
        let request = ExchangeRequest {
            method: request.method,
            target: request.target,
            headers: request.headers,
            body: "kept".into(),
            limits: request.limits,
        };
        let exchange = assert_send(transport.exchange(request)).await;
        assert_eq!(exchange.fate, Fate::Refused(Refusal::InvalidDestination));
        assert!(exchange.unsent.is_some_and(|body| body.is_replayable()));
    }
}
