//! Every look into an error of hyper, h2, rustls or the operating system; absent: anything that decides by it.
//!
//! These libraries erase the types behind their errors and promise nothing about them. So each look has a canary test
//! that provokes the error in the real library: an upgrade that changes the evidence fails here, not at night.

pub(crate) mod h2;
pub(crate) mod tls;

use std::error::Error as StdError;
use std::io;

use teimoso_retry::{Fate, Proof, Why};

use crate::attempt::{AttemptError, ErrorKind};
use crate::body::BodyFailed;
use crate::io::Meter;

/// How an exchange broke, as far as errors can tell. That a peer's end is `Closed` or `Reset` says nothing about what
/// it did with the request before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The peer ended its side in order.
    Closed,
    /// The peer reset the connection.
    Reset,
    /// What arrived is not HTTP, or exceeds the limits of a head.
    Protocol,
    /// The operating system gave up on the peer.
    PeerTimeout,
    /// The attempt's own deadline passed.
    Deadline,
    /// The peer reset the stream, an exchange's part of an HTTP/2 connection.
    StreamReset,
    /// The peer refused the stream.
    StreamRefused,
    /// The peer went away before it looked at the stream.
    GoneAway,
    /// The caller's own body failed while it was being sent.
    RequestBody,
    /// None of these.
    Other,
}

impl Fault {
    /// Reads an error of hyper; the meter knows of a write that failed without hyper being told.
    pub(crate) fn of(error: &hyper::Error, meter: &Meter) -> Self {
        let fault = of_hyper(error);
        match (fault, meter.write_failure()) {
            // A reset that the write side met first leaves an orderly end for the read side to find.
            (Self::Closed | Self::Other, Some(kind)) => of_io_kind(kind),
            (fault, _) => fault,
        }
    }

    fn why(self) -> Why {
        match self {
            Self::Closed | Self::GoneAway => Why::Closed,
            Self::Reset | Self::StreamReset | Self::StreamRefused => Why::Reset,
            Self::RequestBody => Why::Cancelled,
            Self::Protocol => Why::Protocol,
            Self::PeerTimeout | Self::Deadline => Why::Timeout,
            Self::Other => Why::Other,
        }
    }

    fn kind(self) -> ErrorKind {
        match self {
            // There is no kind for "other": an exchange that ended for no reason that we know is a broken one.
            Self::Closed | Self::GoneAway | Self::Other => ErrorKind::Closed,
            Self::Reset | Self::StreamReset | Self::StreamRefused => ErrorKind::Reset,
            Self::RequestBody => ErrorKind::RequestBody,
            Self::Protocol => ErrorKind::Protocol,
            Self::PeerTimeout | Self::Deadline => ErrorKind::Timeout,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Closed => "the peer closed the connection",
            Self::Reset => "the peer reset the connection",
            Self::Protocol => "what arrived is not http, or beyond the limits of a response head",
            Self::PeerTimeout => "the peer stopped answering",
            Self::Deadline => "the attempt's time ran out",
            Self::StreamReset => "the peer reset the stream",
            Self::StreamRefused => "the peer refused the stream",
            Self::GoneAway => "the peer went away before it took the stream",
            Self::RequestBody => "the request's own body failed",
            Self::Other => "the exchange broke off",
        }
    }

    /// The error of an exchange that broke while it was `doing` something.
    pub(crate) fn error(self, doing: &str) -> AttemptError {
        AttemptError { kind: self.kind(), message: format!("{doing}: {}", self.words()) }
    }

    /// The fate of a request that got no response head. `written` counts the bytes handed over since the connection's
    /// previous response was complete; zero of them prove that the request was never sent.
    pub(crate) fn fate_unanswered(self, written: u64) -> Fate {
        match written {
            0 => Fate::NeverSent(Proof::ZeroBytesWritten),
            _ => Fate::Ambiguous(self.why()),
        }
    }
}

fn of_hyper(error: &hyper::Error) -> Fault {
    if error.is_parse() {
        return Fault::Protocol;
    }
    if error.is_incomplete_message() {
        return Fault::Closed;
    }
    if error.is_body_write_aborted() {
        return Fault::RequestBody;
    }
    match error.source() {
        Some(source) if source.is::<BodyFailed>() => Fault::RequestBody,
        Some(source) => of_source(source, error.is_canceled()),
        None => Fault::Other,
    }
}

/// A request that is handed back carries what happened to the connection: hyper's own error, or only words when it
/// ended in order.
fn of_source(source: &(dyn StdError + 'static), handed_back: bool) -> Fault {
    if let Some(error) = source.downcast_ref::<io::Error>() {
        return of_io(error);
    }
    match source.downcast_ref::<hyper::Error>() {
        Some(error) => match of_hyper(error) {
            // The one error without flag or source that ends an idle connection: bytes nobody asked for.
            Fault::Other if handed_back => Fault::Protocol,
            fault => fault,
        },
        None if handed_back => Fault::Closed,
        None => Fault::Other,
    }
}

fn of_io(error: &io::Error) -> Fault {
    let inner = error.get_ref().map(|inner| inner.is::<rustls::Error>());
    match inner {
        // An alert or a record that makes no sense, after the handshake.
        Some(true) => Fault::Protocol,
        _ => of_io_kind(error.kind()),
    }
}

fn of_io_kind(kind: io::ErrorKind) -> Fault {
    match kind {
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            Fault::Reset
        }
        io::ErrorKind::UnexpectedEof => Fault::Closed,
        io::ErrorKind::TimedOut => Fault::PeerTimeout,
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Fault::Protocol,
        _ => Fault::Other,
    }
}

/// Reads a failed TCP connect. The system's own reasons (no route, no file descriptors left) count as refusals: there
/// was no connection, and the message says why.
pub(crate) fn of_connect(error: &io::Error) -> (ErrorKind, String) {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut => ErrorKind::ConnectTimeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => ErrorKind::Reset,
        _ => ErrorKind::ConnectRefused,
    };
    (kind, io_words(error))
}

/// The system's words in our style: lower case, without the number.
fn io_words(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    lower_first(&text[..end])
}

fn lower_first(text: &str) -> String {
    let mut rest = text.chars();
    match rest.next() {
        Some(first) => first.to_lowercase().chain(rest).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
