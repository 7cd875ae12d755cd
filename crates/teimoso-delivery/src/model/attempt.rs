//! An attempt: one HTTP exchange made for a delivery, and what is kept of it.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use bytes::Bytes;
use teimoso_retry::Fate;

use super::Millis;
use super::delivery::named;

/// An attempt's number within its delivery, from 1. Continues over replays (G6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptNumber(NonZeroU32);

impl AttemptNumber {
    /// The attempt that follows `settled` settled ones.
    #[must_use]
    pub const fn after(settled: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(settled))
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

named! {
    /// What was decided after an attempt.
    DecisionName {
        /// Delivered.
        Done = 0 "done",
        /// Another attempt follows.
        Retry = 1 "retry",
        /// A dead letter, or a cancellation that was waiting for this attempt's end.
        GiveUp = 2 "give_up",
    }
}

named! {
    /// What kind of failure an attempt met. A closed list.
    ErrorKind {
        /// The name did not resolve.
        Dns = 1 "dns",
        /// Nobody listens there.
        ConnectRefused = 2 "connect_refused",
        /// No connection within its time.
        ConnectTimeout = 3 "connect_timeout",
        /// The TLS handshake failed.
        TlsHandshake = 4 "tls_handshake",
        /// The certificate is not trusted.
        TlsCertificate = 5 "tls_certificate",
        /// The peer reset the connection.
        Reset = 6 "reset",
        /// The peer closed before its answer was complete.
        Closed = 7 "closed",
        /// No complete answer within the attempt's time.
        Timeout = 8 "timeout",
        /// The answer was not HTTP.
        Protocol = 9 "protocol",
        /// The request is larger than the limit.
        TooLarge = 10 "too_large",
        /// The egress rules refuse the address.
        BlockedAddress = 11 "blocked_address",
        /// Answered 3xx.
        Http3xx = 12 "http_3xx",
        /// Answered 4xx.
        Http4xx = 13 "http_4xx",
        /// Answered 5xx.
        Http5xx = 14 "http_5xx",
        /// Our own side stopped waiting.
        Cancelled = 15 "cancelled",
    }
}

/// How long each phase of an exchange took. `None`: the phase did not happen (a reused connection
/// resolves and connects nothing).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseTimings {
    /// Name resolution.
    pub dns: Option<Duration>,
    /// TCP connect.
    pub connect: Option<Duration>,
    /// TLS handshake.
    pub tls: Option<Duration>,
    /// From the request's first byte to the response's head.
    pub first_byte: Option<Duration>,
    /// The whole attempt.
    pub total: Duration,
}

/// What is kept of a response that was a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponseRecord {
    /// `name: value` lines, values that are not UTF-8 made so.
    pub headers: Box<str>,
    /// The first 16 KiB of the body.
    pub body: Bytes,
    /// Whether the body was longer than what is kept.
    pub truncated: bool,
}

/// One settled attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Its number.
    pub number: AttemptNumber,
    /// When it started.
    pub started_at: Millis,
    /// What is known of its request.
    pub fate: Fate,
    /// The response's status, if a head arrived.
    pub status: Option<u16>,
    /// What went wrong, if anything did.
    pub error_kind: Option<ErrorKind>,
    /// The same for a person: one line without secrets.
    pub error: Option<Box<str>>,
    /// What was decided.
    pub decision: DecisionName,
    /// The wait before the next attempt, and whether the receiver's Retry-After set it.
    pub wait: Option<(Duration, teimoso_retry::WaitSource)>,
    /// Whom we talked to.
    pub peer: Option<SocketAddr>,
    /// Phase timings.
    pub timings: PhaseTimings,
    /// The response, kept of failures only.
    pub response: Option<Box<ResponseRecord>>,
}
