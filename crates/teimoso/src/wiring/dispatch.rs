//! The wire behind the engine's port: a delivery becomes one HTTP request, its outcome a report.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use foldhash::quality::RandomState;
use http::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use teimoso_delivery::model::{ErrorKind, Millis, PhaseTimings, ResponseRecord};
use teimoso_delivery::ports::{BoxFuture, Clock, Dispatch, Dispatched, Report, kept};
use teimoso_http::{Attempt, AttemptLimits, AttemptRequest, InvalidTarget, Response, Target, Transport};
use teimoso_retry::{Hint, parse_retry_after};

/// Parsed URLs kept, so that a lane's requests parse and format nothing.
const TARGETS_MAX: usize = 4_096;
/// Response header bytes kept of a failure.
const KEPT_HEADER_BYTES: usize = 16 * 1024;

static WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
static WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
static TEIMOSO_ATTEMPT: HeaderName = HeaderName::from_static("teimoso-attempt");

type Targets = HashMap<Arc<str>, Arc<Target>, RandomState>;

/// Sends deliveries over a [`Transport`].
#[derive(Clone)]
pub struct HttpDispatch {
    transport: Transport,
    clock: Arc<dyn Clock>,
    targets: Arc<Mutex<Targets>>,
    on_wire: OnWire,
}

/// How many attempts of this process are on the wire; a store that is shared knows everybody's only.
#[derive(Debug, Clone, Default)]
pub struct OnWire(Arc<AtomicUsize>);

/// One of them, for as long as it lives.
struct Held(OnWire);

impl OnWire {
    /// How many there are now.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn hold(&self) -> Held {
        self.0.fetch_add(1, Ordering::Relaxed);
        Held(self.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HttpDispatch {
    /// Over this transport; `clock` is for dates in Retry-After.
    #[must_use]
    pub fn new(transport: Transport, clock: Arc<dyn Clock>) -> Self {
        Self { transport, clock, targets: Arc::default(), on_wire: OnWire::default() }
    }

    /// Counted together with others.
    #[must_use]
    pub fn counted_by(self, on_wire: OnWire) -> Self {
        Self { on_wire, ..self }
    }

    fn target(&self, url: &Arc<str>) -> Result<Arc<Target>, InvalidTarget> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = targets.get(url) {
            return Ok(Arc::clone(target));
        }
        let target = Arc::new(Target::parse(url)?);
        if targets.len() >= TARGETS_MAX {
            targets.clear();
        }
        targets.insert(Arc::clone(url), Arc::clone(&target));
        Ok(target)
    }
}

impl Dispatch for HttpDispatch {
    fn attempt(&self, request: Dispatched) -> BoxFuture<'static, Report> {
        let target = self.target(&request.url);
        let (transport, clock) = (self.transport.clone(), Arc::clone(&self.clock));
        let held = self.on_wire.hold();
        Box::pin(async move {
            let _held = held;
            let attempt = match target {
                Ok(target) => transport.attempt(to_request(&request, target)).await,
                Err(invalid) => Attempt::invalid_target(&invalid),
            };
            to_report(attempt, || clock.now())
        })
    }
}

fn to_request(request: &Dispatched, target: Arc<Target>) -> AttemptRequest {
    AttemptRequest {
        method: Method::POST,
        headers: headers(request, &target),
        target,
        body: request.event.payload.clone(),
        limits: AttemptLimits {
            connect_timeout: request.connect_timeout,
            total_timeout: request.total_timeout,
            ..AttemptLimits::default()
        },
    }
}

/// The headers of a delivery. The model admits only values that HTTP can carry; anything else is left out.
fn headers(request: &Dispatched, target: &Target) -> HeaderMap {
    let event = &request.event;
    let mut headers = target.headers(7 + event.headers.iter().count());
    for header in event.headers.iter() {
        let name = HeaderName::from_bytes(header.name().as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(header.value())) {
            headers.append(name, value);
        }
    }
    if let Some(content_type) = content_type(event.content_type.as_str()) {
        headers.insert(CONTENT_TYPE, content_type);
    }
    if let Ok(id) = HeaderValue::from_maybe_shared(Bytes::from(event.id.to_string())) {
        headers.insert(WEBHOOK_ID.clone(), id);
    }
    headers.insert(WEBHOOK_TIMESTAMP.clone(), HeaderValue::from(request.at.get() / 1_000));
    headers.insert(TEIMOSO_ATTEMPT.clone(), HeaderValue::from(request.number.get()));
    headers
}

/// The usual one costs no allocation.
fn content_type(text: &str) -> Option<HeaderValue> {
    match text {
        "application/json" => Some(HeaderValue::from_static("application/json")),
        other => HeaderValue::from_str(other).ok(),
    }
}

fn to_report(attempt: Attempt, now: impl Fn() -> Millis) -> Report {
    let timings = PhaseTimings {
        dns: attempt.timings.dns,
        connect: attempt.timings.connect,
        tls: attempt.timings.tls,
        first_byte: attempt.timings.first_byte,
        total: attempt.timings.total.unwrap_or_default(),
    };
    let status = attempt.status();
    let failed = !status.is_some_and(|status| (200..300).contains(&status));
    Report {
        fate: attempt.fate,
        status,
        hint: attempt.response.as_ref().filter(|_| failed).and_then(|response| hint(response, &now)),
        error_kind: attempt.error_kind().and_then(error_kind),
        error: attempt.error.as_ref().map(|error| error.to_string().into()),
        peer: attempt.peer,
        timings,
        response: attempt.response.filter(|_| failed).map(|response| Box::new(record(&response))),
    }
}

/// The transport's kinds in the words of the record, of which one has none.
const fn error_kind(kind: teimoso_http::ErrorKind) -> Option<ErrorKind> {
    use teimoso_http::ErrorKind as Wire;
    Some(match kind {
        Wire::Dns => ErrorKind::Dns,
        Wire::ConnectRefused => ErrorKind::ConnectRefused,
        Wire::ConnectTimeout => ErrorKind::ConnectTimeout,
        Wire::TlsHandshake => ErrorKind::TlsHandshake,
        Wire::TlsCertificate => ErrorKind::TlsCertificate,
        Wire::Reset => ErrorKind::Reset,
        Wire::Closed => ErrorKind::Closed,
        Wire::Timeout => ErrorKind::Timeout,
        Wire::Protocol => ErrorKind::Protocol,
        Wire::TooLarge => ErrorKind::TooLarge,
        Wire::BlockedAddress => ErrorKind::BlockedAddress,
        Wire::Http3xx => ErrorKind::Http3xx,
        Wire::Http4xx => ErrorKind::Http4xx,
        Wire::Http5xx => ErrorKind::Http5xx,
        // Nothing went wrong on the wire: the fate `refused` and the dead reason `invalid_destination` say it all. A
        // payload is bytes that are there, so it cannot fail while it is sent.
        Wire::InvalidDestination | Wire::InvalidHeader | Wire::RequestBody => return None,
    })
}

fn hint(response: &Response, now: impl Fn() -> Millis) -> Option<Hint> {
    let lines = response.headers.get_all(RETRY_AFTER).iter().map(HeaderValue::as_bytes);
    let date = response.headers.get(DATE).map(HeaderValue::as_bytes);
    let now = std::time::Duration::from_millis(now().get());
    parse_retry_after(lines, date, now)
}

fn record(response: &Response) -> ResponseRecord {
    let mut headers = String::new();
    for (name, value) in &response.headers {
        if headers.len() + name.as_str().len() + value.len() > KEPT_HEADER_BYTES {
            break;
        }
        let _written = writeln!(headers, "{name}: {}", String::from_utf8_lossy(value.as_bytes()));
    }
    let (body, cut) = kept(&response.body);
    ResponseRecord { headers: headers.into(), body, truncated: cut || response.truncated }
}

#[cfg(test)]
mod tests {
    use teimoso_http::ErrorKind as Wire;

    use super::*;

    #[test]
    fn a_kind_keeps_its_name_from_the_wire_to_the_record() {
        let every = [
            Wire::Dns,
            Wire::ConnectRefused,
            Wire::ConnectTimeout,
            Wire::TlsHandshake,
            Wire::TlsCertificate,
            Wire::Reset,
            Wire::Closed,
            Wire::Timeout,
            Wire::Protocol,
            Wire::TooLarge,
            Wire::BlockedAddress,
            Wire::Http3xx,
            Wire::Http4xx,
            Wire::Http5xx,
        ];
        for kind in every {
            assert_eq!(error_kind(kind).map(ErrorKind::name), Some(kind.name()));
        }
        assert_eq!(error_kind(Wire::InvalidDestination), None);
    }
}
