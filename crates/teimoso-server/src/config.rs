//! The API's bounds, each with a name and a default (G11). Deliberately absent: where they come from.

use std::time::Duration;

use teimoso_delivery::retry::RetryPolicy;

/// What an event may take besides its payload: URL, type, headers, JSON syntax.
pub(crate) const ENVELOPE_BYTES: usize = 64 * 1024;

/// How the API is to behave. Start from [`ApiConfig::new`] and change what differs.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    /// The product's version, for the `user-agent` shown with attempts.
    pub version: String,
    /// The policy of deliveries whose event names none, for `max_attempts` in views.
    pub default_policy: RetryPolicy,
    /// Largest payload, in bytes. A request may hold 64 KiB more; a batch line too.
    pub max_payload: usize,
    /// Requests worked on at once; one more is answered 503. A batch counts as one.
    pub shed_above_in_flight_requests: usize,
    /// Bytes of request bodies held at once, over all requests but batches; more is answered 503. Less than two of the
    /// largest bodies counts as two: what `max_payload` allows must be acceptable to a server that does nothing else.
    pub max_buffered_body_bytes: usize,
    /// Answers only requests whose `Host` is `localhost` or an IP address. To be set when the API listens on loopback,
    /// where a web page whose name was made to resolve to 127.0.0.1 would otherwise be same-origin with it.
    pub only_local_names: bool,
    /// Batches streaming at once; one more is answered 503. Each holds a few MiB at most.
    pub max_batches: usize,
    /// Open connections; further ones wait in the listener's backlog.
    pub max_connections: usize,
    /// A request's head must be complete within this; an idle connection is closed after it.
    pub header_read_timeout: Duration,
    /// A request's body must be complete within this; a batch must send something within ten times it.
    pub body_read_timeout: Duration,
    /// A client must take something of its answer within this, or its connection is closed.
    pub write_stall_timeout: Duration,
    /// After the stop signal, connections may take this long to finish.
    pub drain_timeout: Duration,
}

impl ApiConfig {
    /// The defaults: 1 MiB payloads, 1 024 requests, 64 MiB of bodies, 32 batches, 4 096 connections,
    /// 30 s for a head and for a body, 60 s of a stalled answer, 10 s to drain, any `Host`.
    #[must_use]
    pub fn new(version: impl Into<String>, default_policy: RetryPolicy) -> Self {
        Self {
            version: version.into(),
            default_policy,
            max_payload: 1024 * 1024,
            shed_above_in_flight_requests: 1024,
            max_buffered_body_bytes: 64 * 1024 * 1024,
            only_local_names: false,
            max_batches: 32,
            max_connections: 4096,
            header_read_timeout: Duration::from_secs(30),
            body_read_timeout: Duration::from_secs(30),
            write_stall_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(10),
        }
    }

    /// Largest body of one event, and largest line of a batch.
    pub(crate) const fn max_event_bytes(&self) -> usize {
        self.max_payload.saturating_add(ENVELOPE_BYTES)
    }

    /// What all bodies may take together: `max_buffered_body_bytes`, and room for two of the largest at least.
    pub(crate) fn body_bytes(&self) -> usize {
        self.max_buffered_body_bytes.max(self.max_event_bytes().saturating_mul(2))
    }
}
