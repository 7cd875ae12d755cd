//! A response body that owns its HTTP/1.1 connection until it was read; absent: time and size limits.

use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::{Body as _, SizeHint};
use hyper::body::Incoming;

use super::Http1;
use super::pool::Pool;
use crate::body::{FrameRead, Frames};
use crate::io::Stream;
use crate::target::Origin;

/// A response body and the connection it comes over. Dropped before its end, it closes the connection.
pub(crate) struct Http1Body {
    pub(crate) connection: Box<Http1<Stream>>,
    pub(crate) body: Incoming,
    /// Where the connection goes afterwards, if it goes anywhere, and for whom it is kept there.
    pub(crate) pool: Option<Arc<Pool<Stream>>>,
    pub(crate) origin: Arc<Origin>,
}

impl Http1Body {
    /// Gives the connection back, if it can be used again. The body must be over.
    pub(crate) fn settle(self) {
        let Self { mut connection, body, pool, origin } = self;
        drop(body);
        if let Some(pool) = pool
            && connection.is_reusable()
        {
            pool.put(&origin, connection);
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Frames for Http1Body {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<FrameRead> {
        self.connection.poll_frame(&mut self.body, cx)
    }

    fn is_over(&self) -> bool {
        self.body.is_end_stream()
    }
}
