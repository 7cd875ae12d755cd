//! The bodies the sink sends: whole, cut short, or one line per kept request.
//! Deliberately absent: which of them to send.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::record::Record;

/// The declared length of the body of `/cut`.
pub const CUT_DECLARED_BYTES: usize = 64;

/// What of it is really sent.
const CUT_SENT: &[u8] = b"this body will not reach its ";

/// Ends the connection from within a body.
#[derive(Debug, thiserror::Error)]
#[error("the body ends here on purpose")]
pub struct CutShort;

/// A response body.
#[derive(Debug)]
pub enum Reply {
    /// All of it, known beforehand.
    Whole(Bytes),
    /// Fewer bytes than were declared, then the end of the connection.
    Cut(CutStep),
    /// NDJSON, made line by line so that a long list is never in memory twice.
    Lines(std::vec::IntoIter<Arc<Record>>),
}

/// Where a cut body stands.
#[derive(Debug)]
pub enum CutStep {
    /// Nothing was sent.
    Send,
    /// The bytes were handed over; the connection gets one turn to write them.
    Flush,
    /// The end.
    End,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        match &mut *self {
            Reply::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Reply::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Reply::Cut(step) => poll_cut(step, context),
            Reply::Lines(records) => Poll::Ready(records.next().map(|record| Ok(Frame::data(line(&record))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Reply::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Reply::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Reply::Cut(_) | Reply::Lines(_) => SizeHint::default(),
        }
    }
}

fn poll_cut(step: &mut CutStep, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
    match step {
        CutStep::Send => {
            *step = CutStep::Flush;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(CUT_SENT)))))
        }
        CutStep::Flush => {
            // hyper flushes before it polls a pending body again; failing at once would lose head and bytes.
            *step = CutStep::End;
            context.waker().wake_by_ref();
            Poll::Pending
        }
        CutStep::End => Poll::Ready(Some(Err(CutShort))),
    }
}

fn line(record: &Record) -> Bytes {
    let mut line = serde_json::to_vec(record).unwrap_or_default();
    line.push(b'\n');
    line.into()
}

impl From<&'static str> for Reply {
    fn from(text: &'static str) -> Reply {
        Reply::Whole(Bytes::from_static(text.as_bytes()))
    }
}

/// The error of a handler that ends the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection ends without an answer")]
pub struct HangUp;
