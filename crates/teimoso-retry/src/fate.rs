//! What is known of a request after an attempt, and whether it may have taken effect; absent: any opinion on what to
//! do about it.
//!
//! Only a proof leaves [`Fate::Ambiguous`]. Bytes handed to the kernel never prove that the peer received them; zero
//! bytes handed over prove that it did not.

/// What is known of one attempt's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// No byte of the request left: proved by our own side.
    NeverSent(Proof),
    /// The peer stated that it did not process the request (RFC 9113 §8.7).
    NotProcessed(Nack),
    /// A response head arrived, and its body as far as it was wanted.
    Answered,
    /// A response head arrived, its body was cut; only the body is unknown.
    BodyLost,
    /// Bytes were written and no complete response head came.
    Ambiguous(Why),
    /// We declined before connecting; trying again is pointless.
    Refused(Refusal),
}

/// What proves that a request was never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proof {
    /// The name did not resolve.
    Dns,
    /// No connection was established.
    Connect,
    /// The TLS handshake failed, other than by a rejected certificate.
    TlsHandshake,
    /// The peer's certificate was rejected.
    TlsCertificate,
    /// The attempt ended before a connection was assigned to it.
    NoConnection,
    /// The protocol layer handed the request back unsent.
    HandedBack,
    /// On an HTTP/1.1 connection the byte counter stands where it stood before this request.
    ZeroBytesWritten,
}

/// How the peer stated that it did not process a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Nack {
    /// HTTP/2 `RST_STREAM` with `REFUSED_STREAM` (RFC 9113 §8.7).
    RefusedStream,
    /// HTTP/2 `GOAWAY` whose last stream id is below ours (RFC 9113 §6.8).
    GoAway,
}

/// How an ambiguous attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// The attempt's deadline passed after bytes were written.
    Timeout,
    /// The peer closed the connection in order (FIN).
    Closed,
    /// The connection was reset (RST), or its stream was.
    Reset,
    /// What came back was not HTTP.
    Protocol,
    /// Our own side stopped waiting.
    Cancelled,
    /// Anything else.
    Other,
}

/// Why we declined to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The URL cannot be used.
    InvalidDestination,
    /// Every address of the destination is refused by the egress rules.
    BlockedAddress,
    /// The request exceeds a size limit of ours.
    TooLarge,
}

/// Whether a request may have taken effect at the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It has not: proved or stated.
    No,
    /// It has: a success was answered.
    Yes,
    /// It may have.
    Unknown,
}

impl Fate {
    /// The stable name: `never_sent`, `not_processed`, `answered`, `body_lost`, `ambiguous` or `refused`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NeverSent(_) => "never_sent",
            Self::NotProcessed(_) => "not_processed",
            Self::Answered => "answered",
            Self::BodyLost => "body_lost",
            Self::Ambiguous(_) => "ambiguous",
            Self::Refused(_) => "refused",
        }
    }

    /// Whether the request may have taken effect. `status` is the answer's status code, which only
    /// [`Fate::Answered`] and [`Fate::BodyLost`] read.
    ///
    /// Of an answer: 2xx yes; 421, 425, 429 and the other 4xx no; 408, 3xx and 5xx unknown, for a 503 may follow the
    /// effect. A status outside 200–599, or none, says nothing and is unknown.
    pub fn may_have_taken_effect(self, status: Option<u16>) -> Effect {
        match self {
            Self::NeverSent(_) | Self::NotProcessed(_) | Self::Refused(_) => Effect::No,
            Self::Ambiguous(_) => Effect::Unknown,
            Self::Answered | Self::BodyLost => match status {
                Some(200..=299) => Effect::Yes,
                Some(408) => Effect::Unknown,
                Some(400..=499) => Effect::No,
                _ => Effect::Unknown,
            },
        }
    }
}

impl Proof {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::TlsHandshake => "tls_handshake",
            Self::TlsCertificate => "tls_certificate",
            Self::NoConnection => "no_connection",
            Self::HandedBack => "handed_back",
            Self::ZeroBytesWritten => "zero_bytes_written",
        }
    }
}

impl Nack {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RefusedStream => "refused_stream",
            Self::GoAway => "go_away",
        }
    }
}

impl Why {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Protocol => "protocol",
            Self::Cancelled => "cancelled",
            Self::Other => "other",
        }
    }
}

impl Refusal {
    /// The stable name; it is also the reason a delivery dies of.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidDestination => "invalid_destination",
            Self::BlockedAddress => "blocked_address",
            Self::TooLarge => "too_large",
        }
    }
}

impl Effect {
    /// The stable name: `no`, `yes` or `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_proof_or_statement_says_that_nothing_took_effect() {
        let silent = |fate: Fate| fate.may_have_taken_effect(None);
        assert_eq!(silent(Fate::NeverSent(Proof::ZeroBytesWritten)), Effect::No);
        assert_eq!(silent(Fate::NeverSent(Proof::TlsCertificate)), Effect::No);
        assert_eq!(silent(Fate::NotProcessed(Nack::RefusedStream)), Effect::No);
        assert_eq!(silent(Fate::Refused(Refusal::BlockedAddress)), Effect::No);
        for why in [Why::Timeout, Why::Closed, Why::Reset, Why::Protocol, Why::Cancelled, Why::Other] {
            assert_eq!(silent(Fate::Ambiguous(why)), Effect::Unknown);
        }
    }

    #[test]
    fn an_answer_says_what_its_status_says_with_or_without_its_body() {
        for fate in [Fate::Answered, Fate::BodyLost] {
            let of = |status| fate.may_have_taken_effect(Some(status));
            assert_eq!([200, 204, 299].map(of), [Effect::Yes; 3]);
            assert_eq!([400, 404, 410, 421, 425, 429, 499].map(of), [Effect::No; 7]);
            assert_eq!([301, 304, 399, 408, 500, 503, 599].map(of), [Effect::Unknown; 7]);
            assert_eq!([0, 100, 199, 600, u16::MAX].map(of), [Effect::Unknown; 5]);
            assert_eq!(fate.may_have_taken_effect(None), Effect::Unknown);
        }
    }

    #[test]
    fn a_status_never_softens_an_ambiguous_fate() {
        assert_eq!(Fate::Ambiguous(Why::Closed).may_have_taken_effect(Some(404)), Effect::Unknown);
    }

    #[test]
    fn names_are_the_contract() {
        let fates = [
            Fate::NeverSent(Proof::Dns),
            Fate::NotProcessed(Nack::GoAway),
            Fate::Answered,
            Fate::BodyLost,
            Fate::Ambiguous(Why::Other),
            Fate::Refused(Refusal::TooLarge),
        ];
        let names = ["never_sent", "not_processed", "answered", "body_lost", "ambiguous", "refused"];
        assert_eq!(fates.map(Fate::name), names);
    }
}
