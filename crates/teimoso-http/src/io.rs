//! The byte stream of a connection and the meter that proves "nothing was written"; absent: what follows from it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// What the meter needs to know of a stream beyond reading and writing.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Asks the kernel what lies unread on an idle connection, without waiting and without trusting an event that
    /// the reactor may not have seen yet.
    fn peek(&self) -> Peek;

    /// Whether a failed write proves that nothing of that write left. True for a bare socket. False over TLS: one
    /// write may make several records, and fail after the first ones were sent.
    fn failed_write_sent_nothing(&self) -> bool;
}

/// The unread state of an idle connection.
#[derive(Debug)]
pub(crate) enum Peek {
    /// Nothing lies there.
    Quiet,
    /// The peer said something nobody asked for.
    Unsolicited,
    /// The peer closed its side.
    Closed,
    /// The connection is broken.
    Broken(io::Error),
}

/// A connection's bytes: bare TCP, or TLS over it.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether the peer agreed to HTTP/2 (ALPN, RFC 7301).
    pub(crate) fn agreed_to_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => tls.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

impl Wire for Stream {
    fn peek(&self) -> Peek {
        match self {
            Self::Plain(tcp) => peek_socket(tcp),
            Self::Tls(tls) => match peek_socket(tls.get_ref().0) {
                // Session tickets arrive when they please; what they are is for TLS to say.
                Peek::Unsolicited => Peek::Quiet,
                other => other,
            },
        }
    }

    fn failed_write_sent_nothing(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

fn peek_socket(tcp: &TcpStream) -> Peek {
    let mut byte = [std::mem::MaybeUninit::uninit()];
    match socket2::SockRef::from(tcp).peek(&mut byte) {
        Ok(0) => Peek::Closed,
        Ok(_) => Peek::Unsolicited,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Peek::Quiet
        }
        Err(error) => Peek::Broken(error),
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, slices),
            Self::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

/// What one connection has written, readable from outside while the protocol layer owns the stream.
#[derive(Debug)]
pub(crate) struct Meter {
    written: AtomicU64,
    /// Bytes that may still be read before the response head must be complete.
    head_room: AtomicU64,
    probe: AtomicBool,
    write_failure: OnceLock<io::ErrorKind>,
}

/// The room of a stream that is not expected to bring a head.
const UNBOUNDED: u64 = u64::MAX;

impl Meter {
    fn new() -> Self {
        Self {
            written: AtomicU64::new(0),
            head_room: AtomicU64::new(UNBOUNDED),
            probe: AtomicBool::new(false),
            write_failure: OnceLock::new(),
        }
    }

    /// From now on, a head must be complete within `bytes`. The protocol layer bounds one head; this bounds a head
    /// with all the interim responses before it, of which a peer may send any number (RFC 9110 §15.2).
    pub(crate) fn expect_head(&self, bytes: usize) {
        self.head_room.store(bytes as u64, Ordering::Relaxed);
    }

    /// The head is there.
    pub(crate) fn head_complete(&self) {
        self.head_room.store(UNBOUNDED, Ordering::Relaxed);
    }

    fn head_overdue(&self) -> bool {
        self.head_room.load(Ordering::Relaxed) == 0
    }

    fn has_read(&self, bytes: usize) {
        let room = self.head_room.load(Ordering::Relaxed);
        if room != UNBOUNDED {
            self.head_room.store(room.saturating_sub(bytes as u64), Ordering::Relaxed);
        }
    }

    /// Bytes handed over since the connection began: to the kernel, or, over TLS, to the TLS layer, which is never
    /// fewer than the plaintext on the wire. Errs towards "something was written".
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// How a write failed, if one did.
    pub(crate) fn write_failure(&self) -> Option<io::ErrorKind> {
        self.write_failure.get().copied()
    }

    /// Whether the next read that finds nothing asks the kernel itself.
    pub(crate) fn set_probe(&self, armed: bool) {
        self.probe.store(armed, Ordering::Relaxed);
    }

    fn take_probe(&self) -> bool {
        self.probe.load(Ordering::Relaxed) && self.probe.swap(false, Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A stream that counts what is written to it. It sits outside TLS, so that handshake bytes do not count.
///
/// When the peer breaks the connection under a write, that write stays pending for ever instead of failing: an answer
/// that came before the break (an early 503 during a large upload) may still lie unread, and the protocol layer would
/// stop reading at the first failed write. The reading side of a broken connection ends by itself.
pub(crate) struct Counted<S> {
    stream: S,
    meter: Arc<Meter>,
}

impl<S: Wire> Counted<S> {
    pub(crate) fn new(stream: S) -> (Self, Arc<Meter>) {
        let meter = Arc::new(Meter::new());
        (Self { stream, meter: meter.clone() }, meter)
    }

    fn count(&self, cx: &Context<'_>, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match ready!(outcome) {
            Ok(bytes) => {
                self.meter.add(bytes as u64);
                Poll::Ready(Ok(bytes))
            }
            Err(error) => {
                if !self.stream.failed_write_sent_nothing() {
                    self.meter.add(1);
                }
                self.hold(cx, error)
            }
        }
    }

    /// Withholds a failure that means "the peer is gone"; any other one concerns our side and is passed on.
    fn hold<T>(&self, cx: &Context<'_>, error: io::Error) -> Poll<io::Result<T>> {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        let kind = error.kind();
        // The first failure is the cause, later ones are consequences.
        let _ = self.meter.write_failure.set(kind);
        if matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Err(error))
    }

    fn is_broken(&self) -> bool {
        self.meter.write_failure.get().is_some()
    }
}

impl<S: Wire> AsyncRead for Counted<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.meter.head_overdue() {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let probing = this.meter.take_probe();
        let before = buffer.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, buffer) {
            Poll::Pending if probing => match this.stream.peek() {
                Peek::Quiet => Poll::Pending,
                Peek::Closed => Poll::Ready(Ok(())),
                Peek::Unsolicited => Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
                Peek::Broken(error) => Poll::Ready(Err(error)),
            },
            outcome => {
                this.meter.has_read(buffer.filled().len() - before);
                outcome
            }
        }
    }
}

impl<S: Wire> AsyncWrite for Counted<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_broken() {
            return Poll::Pending;
        }
        let outcome = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.count(cx, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_broken() {
            return Poll::Pending;
        }
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.count(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_broken() {
            return Poll::Pending;
        }
        match ready!(Pin::new(&mut this.stream).poll_flush(cx)) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(error) => this.hold(cx, error),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream without a kernel behind it, for tests of what lies above.
    impl Wire for tokio::io::DuplexStream {
        fn peek(&self) -> Peek {
            Peek::Quiet
        }

        fn failed_write_sent_nothing(&self) -> bool {
            true
        }
    }
}
