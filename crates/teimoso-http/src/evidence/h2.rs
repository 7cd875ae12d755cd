//! Every look into an error of an HTTP/2 exchange; absent: anything that decides by it.
//!
//! hyper does not promise that the source of its errors is an error of the `h2` crate, nor of which version. The
//! canaries in `tests/http2.rs` play each case with raw frames and fail when a look finds something else.

use std::error::Error as StdError;
use std::io;

use h2::Reason;
use teimoso_retry::{Fate, Nack};

use super::{Fault, of_io_kind};
use crate::io::Meter;

/// How an exchange on a stream ended without a response head, or without the rest of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// `RST_STREAM` with `REFUSED_STREAM`: the peer states that it processed nothing (RFC 9113 §8.7).
    Refused,
    /// `GOAWAY` with a last stream id below ours, whatever its code: the peer states the same (RFC 9113 §6.8).
    GoneAway,
    /// No statement.
    Broke(Fault),
}

impl Ending {
    /// Reads an error of hyper. The meter knows of a write that failed without hyper being told.
    pub(crate) fn of(error: &hyper::Error, meter: &Meter) -> Self {
        let Some(source) = error.source() else { return Self::Broke(Fault::of(error, meter)) };
        if let Some(error) = source.downcast_ref::<h2::Error>() {
            return Self::of_h2(error);
        }
        if let Some(error) = source.downcast_ref::<io::Error>() {
            return Self::Broke(of_io(error, meter));
        }
        match source.downcast_ref::<hyper::Error>() {
            Some(inner) => Self::of(inner, meter),
            None => Self::Broke(Fault::of(error, meter)),
        }
    }

    fn of_h2(error: &h2::Error) -> Self {
        match (error.is_reset(), error.is_go_away(), error.is_remote()) {
            (true, _, true) if error.reason() == Some(Reason::REFUSED_STREAM) => Self::Refused,
            (true, _, true) => Self::Broke(Fault::StreamReset),
            // `h2` marks streams above the last id with it, and requests that come after; those below it end with
            // their connection.
            (_, true, true) => Self::GoneAway,
            // Not the peer and not the library: hyper resets a stream whose request body failed.
            (true, _, false) if !error.is_library() => Self::Broke(Fault::RequestBody),
            (true, _, false) | (_, true, false) => Self::Broke(Fault::Protocol),
            (false, false, _) => Self::Broke(error.get_io().map_or(Fault::Other, io_fault)),
        }
    }

    /// The fate of a request that got no response head.
    pub(crate) fn fate_unanswered(self) -> Fate {
        match self {
            Self::Refused => Fate::NotProcessed(Nack::RefusedStream),
            Self::GoneAway => Fate::NotProcessed(Nack::GoAway),
            // The zero-byte proof is per connection, hence none here.
            Self::Broke(fault) => Fate::Ambiguous(fault.why()),
        }
    }

    /// The same as a fault, where the statement does not matter.
    pub(crate) fn fault(self) -> Fault {
        match self {
            Self::Refused => Fault::StreamRefused,
            Self::GoneAway => Fault::GoneAway,
            Self::Broke(fault) => fault,
        }
    }
}

fn of_io(error: &io::Error, meter: &Meter) -> Fault {
    match (io_fault(error), meter.write_failure()) {
        // A reset that the write side met first leaves an orderly end for the read side to find.
        (Fault::Closed, Some(kind)) => of_io_kind(kind),
        (fault, _) => fault,
    }
}

/// `h2` has words of its own for the end of a connection under a stream; the system's broken pipe has none.
fn io_fault(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::BrokenPipe if error.get_ref().is_some() => Fault::Closed,
        _ => super::of_io(error),
    }
}
