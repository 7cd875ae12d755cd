//! A connection whose client must take what it asked for: writing that makes no progress for too long
//! ends it. Deliberately absent: a limit on reading, which heads, bodies and batches each have their own of.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use teimoso_delivery::ports::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::App;

/// `T` with a limit on how long a write may stand still.
pub(crate) struct Stallable<T> {
    io: T,
    app: App,
    limit: Duration,
    /// Set while a write waits for room.
    waiting: Option<BoxFuture<'static, ()>>,
}

impl<T> Stallable<T> {
    pub(crate) fn new(io: T, app: App) -> Self {
        let limit = app.config().write_stall_timeout;
        Self { io, app, limit, waiting: None }
    }
}

impl<T: Unpin> Stallable<T> {
    /// Passes on what `write` says, unless it has said "not yet" for too long.
    fn watched<R>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let result = write(Pin::new(&mut self.io), context);
        if result.is_ready() {
            self.waiting = None;
            return result;
        }
        let (app, limit) = (&self.app, self.limit);
        let waiting = self.waiting.get_or_insert_with(|| app.clock().sleep(limit));
        waiting.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Stallable<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Stallable<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.watched(context, |io, context| io.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.watched(context, |io, context| io.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched(context, |io, context| io.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched(context, |io, context| io.poll_shutdown(context))
    }
}
