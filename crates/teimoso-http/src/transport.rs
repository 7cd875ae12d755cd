//! The single attempt: from a request to what is known of it; absent: a second one.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body_util::Full;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use teimoso_retry::{Fate, Proof, Refusal};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::attempt::{Attempt, AttemptRequest, Response};
use crate::connect::{ConnectFailure, Connector, Progress};
use crate::egress::Egress;
use crate::http1::{BodyEnd, Http1, Message, SendFailure, set_timer};
use crate::io::{Stream, Wire};
use crate::pool::{POOL_IDLE_PER_HOST, POOL_IDLE_TIMEOUT, Pool};
use crate::resolve::{Resolve, Resolver, SystemResolver};
use crate::tls::{self, TlsRoots};

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
    connector: Connector,
    user_agent: HeaderValue,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

/// Settings of a [`Transport`].
pub struct TransportBuilder {
    egress: Egress,
    user_agent: String,
    idle_per_host: usize,
    idle_timeout: Duration,
    roots: TlsRoots,
    added_pem: Vec<Vec<u8>>,
    added_der: Vec<Vec<u8>>,
    resolver: Box<dyn Resolve>,
}

/// A transport that cannot be built; the message names the setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError {
    message: String,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {}", self.message)
    }
}

impl std::error::Error for BuildError {}

impl TransportBuilder {
    /// The egress rules; default: globally reachable addresses only.
    #[must_use]
    pub fn egress(mut self, egress: Egress) -> Self {
        self.egress = egress;
        self
    }

    /// The `User-Agent` of requests that bring none; default `teimoso/<version>`.
    #[must_use]
    pub fn user_agent(mut self, user_agent: &str) -> Self {
        user_agent.clone_into(&mut self.user_agent);
        self
    }

    /// Idle connections kept per origin; default 16; 0 means one connection per attempt.
    #[must_use]
    pub fn pool_idle_per_host(mut self, connections: usize) -> Self {
        self.idle_per_host = connections;
        self
    }

    /// How long a connection may lie idle; default 30 s; zero means one connection per attempt.
    #[must_use]
    pub fn pool_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// The trust roots; default: the machine's own, else the bundled ones.
    #[must_use]
    pub fn tls_roots(mut self, roots: TlsRoots) -> Self {
        self.roots = roots;
        self
    }

    /// Adds every certificate of a PEM text to the trust roots.
    #[must_use]
    pub fn tls_root_pem(mut self, pem: &[u8]) -> Self {
        self.added_pem.push(pem.to_vec());
        self
    }

    /// Adds one DER certificate to the trust roots.
    #[must_use]
    pub fn tls_root_der(mut self, der: &[u8]) -> Self {
        self.added_der.push(der.to_vec());
        self
    }

    /// The resolver; default [`SystemResolver`].
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Box::new(resolver);
        self
    }

    /// Reads the trust roots and makes the transport.
    ///
    /// # Errors
    ///
    /// A user agent that is no header value, or an added root that is no certificate.
    pub fn build(self) -> Result<Transport, BuildError> {
        let user_agent = HeaderValue::from_str(&self.user_agent)
            .map_err(|_| BuildError { message: "use the user agent: it is no header value".to_owned() })?;
        let unusable = |error: &dyn fmt::Display| BuildError { message: format!("use a tls root: {error}") };
        let mut added: Vec<_> = self.added_der.into_iter().map(CertificateDer::from).collect();
        for pem in &self.added_pem {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                added.push(certificate.map_err(|error| unusable(&error))?);
            }
        }
        let tls = tls::connector(&self.roots, added).map_err(|error| unusable(&error))?;
        let connector = Connector { resolver: Resolver::new(self.resolver), egress: self.egress, tls };
        let pool = Arc::new(Pool::new(self.idle_per_host, self.idle_timeout));
        Ok(Transport { shared: Arc::new(Shared { pool, connector, user_agent }) })
    }
}

impl Transport {
    /// A builder with the defaults: guarded egress, the machine's trust roots and resolver.
    pub fn builder() -> TransportBuilder {
        TransportBuilder {
            egress: Egress::default(),
            user_agent: concat!("teimoso/", env!("CARGO_PKG_VERSION")).to_owned(),
            idle_per_host: POOL_IDLE_PER_HOST,
            idle_timeout: POOL_IDLE_TIMEOUT,
            roots: TlsRoots::default(),
            added_pem: Vec::new(),
            added_der: Vec::new(),
            resolver: Box::new(SystemResolver),
        }
    }

    /// Makes one attempt; it ends within `limits.total_timeout`.
    ///
    /// The peer sees the request at most once. An idle connection that turns out to be dead before anything was
    /// written to it is replaced by another or a fresh one within the same attempt: the peer saw nothing of it. There
    /// is no other repetition, and a connection whose exchange did not end in order is never used again.
    ///
    /// Dropping the future closes the connection at once.
    pub async fn attempt(&self, request: &AttemptRequest) -> Attempt {
        let started = Instant::now();
        let deadline = later(started, request.limits.total_timeout);
        let timer = pin!(sleep_until(deadline));
        let mut attempt = self.shared.attempt(request, deadline, timer).await;
        attempt.timings.total = Some(started.elapsed());
        attempt
    }
}

/// How one exchange ended.
enum Exchanged {
    /// The attempt is decided.
    Ended(Attempt),
    /// The request was handed back unsent.
    HandedBack(Box<Message>, Attempt),
}

impl Shared {
    async fn attempt(
        &self,
        request: &AttemptRequest,
        deadline: Instant,
        mut timer: Pin<&mut Sleep>,
    ) -> Attempt {
        if request.method == http::Method::CONNECT {
            return Attempt::refused(
                Refusal::InvalidDestination,
                "use the method: connect asks for a tunnel, not for an answer",
            );
        }
        let mut message = self.message(request);
        if let Some(connection) = self.pool.take_alive(request.target.shared_origin()) {
            let progress = Progress::default();
            match self.exchange(connection, message, request, progress, timer.as_mut()).await {
                Exchanged::Ended(attempt) => return Attempt { reused: true, ..attempt },
                // The connection died between the check and the first byte.
                Exchanged::HandedBack(unsent, _) => message = *unsent,
            }
        }
        let mut progress = Progress::default();
        let connection = match self.connect(request, &mut progress, timer.as_mut(), deadline).await {
            Ok(connection) => connection,
            Err(ConnectFailure { fate, error }) => {
                let Progress { timings, peer } = progress;
                return Attempt { timings, peer, ..Attempt::failed(fate, error) };
            }
        };
        match self.exchange(connection, message, request, progress, timer).await {
            Exchanged::Ended(attempt) | Exchanged::HandedBack(_, attempt) => attempt,
        }
    }

    async fn connect(
        &self,
        request: &AttemptRequest,
        progress: &mut Progress,
        mut timer: Pin<&mut Sleep>,
        deadline: Instant,
    ) -> Result<Http1<Stream>, ConnectFailure> {
        let origin = request.target.shared_origin();
        let connect_by = later(Instant::now(), request.limits.connect_timeout).min(deadline);
        let (stream, peer) = self.connector.connect(origin, timer.as_mut(), connect_by, progress).await?;
        set_timer(timer, deadline);
        Http1::start(stream, peer).await.map_err(|fault| ConnectFailure {
            fate: Fate::NeverSent(Proof::NoConnection),
            error: fault.error("begin http on a fresh connection"),
        })
    }

    async fn exchange(
        &self,
        mut connection: Http1<Stream>,
        message: Message,
        request: &AttemptRequest,
        progress: Progress,
        timer: Pin<&mut Sleep>,
    ) -> Exchanged {
        let body_max = request.limits.response_body_max;
        let exchanged = exchange(&mut connection, message, body_max, progress, timer).await;
        if let Exchanged::Ended(Attempt { fate: Fate::Answered, response: Some(response), .. }) = &exchanged
            && !response.truncated
            && connection.is_reusable()
        {
            self.pool.put(request.target.shared_origin(), connection);
        }
        exchanged
    }

    /// The request as it goes out. `Host` comes first (RFC 9110 §7.2); hyper adds the length of a body that has one.
    fn message(&self, request: &AttemptRequest) -> Message {
        let mut headers = HeaderMap::with_capacity(request.headers.len() + 3);
        headers.insert(header::HOST, request.target.host_header().clone());
        for (name, value) in &request.headers {
            if !is_ours(name) {
                headers.append(name.clone(), value.clone());
            }
        }
        if !headers.contains_key(header::USER_AGENT) {
            headers.insert(header::USER_AGENT, self.user_agent.clone());
        }
        if request.body.is_empty() && expects_body(&request.method) {
            // RFC 9110 §8.6: methods that give a body a meaning announce an empty one.
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut message = Message::new(Full::new(request.body.clone()));
        *message.method_mut() = request.method.clone();
        *message.uri_mut() = request.target.uri().clone();
        *message.headers_mut() = headers;
        message
    }
}

/// The fields that describe this connection and this message's framing.
fn is_ours(name: &HeaderName) -> bool {
    *name == header::HOST
        || *name == header::CONTENT_LENGTH
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

/// One exchange on a connection, with the fate that its end proves.
async fn exchange<S: Wire>(
    connection: &mut Http1<S>,
    message: Message,
    body_max: usize,
    progress: Progress,
    mut timer: Pin<&mut Sleep>,
) -> Exchanged {
    let Progress { mut timings, .. } = progress;
    let peer = Some(connection.peer());
    let begun = Instant::now();
    let response = match connection.send(message, timer.as_mut()).await {
        Ok(response) => response,
        Err(SendFailure::HandedBack(message, fault)) => {
            let error = fault.error("send the request");
            let failed = Attempt::failed(Fate::NeverSent(Proof::HandedBack), error);
            return Exchanged::HandedBack(message, Attempt { timings, peer, ..failed });
        }
        Err(SendFailure::Broken { fault, written }) => {
            let failed = Attempt::failed(fault.fate_unanswered(written), fault.error(doing(written)));
            return Exchanged::Ended(Attempt { timings, peer, ..failed });
        }
    };
    timings.first_byte = Some(begun.elapsed());
    let (head, body) = response.into_parts();
    let read = connection.read_body(body, body_max, timer).await;
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
    Exchanged::Ended(Attempt { fate, response: Some(response), error, timings, peer, reused: false })
}

fn doing(written: u64) -> &'static str {
    if written == 0 { "send the request" } else { "get a response" }
}

/// An instant after `now`; a duration that no clock can hold means "never", which thirty years are.
fn later(now: Instant, duration: Duration) -> Instant {
    now.checked_add(duration).unwrap_or_else(|| now + Duration::from_secs(30 * 365 * 24 * 60 * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            limits: crate::AttemptLimits { total_timeout: Duration::MAX, ..Default::default() },
        };
        assert_eq!(
            assert_send(transport.attempt(&request)).await.fate,
            Fate::Refused(Refusal::InvalidDestination)
        );
    }

    #[test]
    fn unusable_settings_are_named() {
        let error = Transport::builder().user_agent("line\nbreak").build().unwrap_err();
        assert_eq!(error.to_string(), "failed to use the user agent: it is no header value");
        let error = Transport::builder()
            .tls_roots(TlsRoots::OnlyAdded)
            .tls_root_der(b"nonsense")
            .build()
            .unwrap_err();
        assert!(error.to_string().starts_with("failed to use a tls root: "), "{error}");
    }
}
