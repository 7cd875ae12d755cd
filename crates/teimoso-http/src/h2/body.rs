//! A response body on its HTTP/2 stream; absent: time and size limits.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body as _, SizeHint};
use hyper::body::Incoming;

use super::Lease;
use crate::body::{FrameRead, Frames};
use crate::evidence::Fault;
use crate::evidence::h2::Ending;

/// A response body and the exchange it belongs to. Dropped before its end, it resets its stream.
pub(crate) struct Http2Body {
    pub(crate) lease: Lease,
    pub(crate) body: Incoming,
}

impl Http2Body {
    /// The body broke or stalled, and the connection may be the reason.
    pub(crate) fn spoil(self) {
        self.lease.retire();
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Frames for Http2Body {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<FrameRead> {
        Pin::new(&mut self.body).poll_frame(cx).map(|frame| match frame {
            Some(Ok(frame)) => Ok(Some(frame)),
            Some(Err(error)) => Err(Ending::of(&error, &self.lease.shared.meter).fault()),
            None if self.body.is_end_stream() => Ok(None),
            // hyper takes any end with NO_ERROR for the body's; without END_STREAM something is missing (RFC 9113 §8.1).
            None => Err(Fault::StreamReset),
        })
    }

    fn is_over(&self) -> bool {
        self.body.is_end_stream()
    }
}
