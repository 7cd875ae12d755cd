//! The bodies the commands send: whole ones, and streams of lines. Deliberately absent: what is in them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// A request body.
#[derive(Debug)]
pub(super) enum RequestBody {
    /// All of it; empty once it was taken.
    Whole(Bytes),
    /// Pieces as they come; the stream ends when the sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

impl RequestBody {
    pub(super) fn empty() -> RequestBody {
        RequestBody::Whole(Bytes::new())
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            RequestBody::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            RequestBody::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            RequestBody::Stream(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, RequestBody::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            RequestBody::Stream(_) => SizeHint::default(),
        }
    }
}
