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
    fn peek(&mut self) -> Peek;

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
    fn peek(&mut self) -> Peek {
        match self {
            Self::Plain(tcp) => peek_socket(tcp),
            Self::Tls(tls) => peek_session(tls),
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
        Err(error) => peek_failed(error),
    }
}

/// Session tickets arrive when they please, and only TLS can tell them from an answer that nobody asked for or from a
/// goodbye: so it is given what lies there, once.
fn peek_session(tls: &mut TlsStream<TcpStream>) -> Peek {
    let (tcp, session) = tls.get_mut();
    match session.read_tls(&mut &*socket2::SockRef::from(&*tcp)) {
        Ok(0) => Peek::Closed,
        Ok(_) => match session.process_new_packets() {
            Ok(state) if state.plaintext_bytes_to_read() > 0 => Peek::Unsolicited,
            Ok(state) if state.peer_has_closed() => Peek::Closed,
            Ok(_) => peek_socket(tcp),
            Err(_) => Peek::Unsolicited,
        },
        Err(error) => peek_failed(error),
    }
}

fn peek_failed(error: io::Error) -> Peek {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Peek::Quiet,
        _ => Peek::Broken(error),
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
    read: AtomicU64,
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
            read: AtomicU64::new(0),
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
        // One task at a time reads a stream, so nothing is lost between the two.
        self.read.store(self.read() + bytes as u64, Ordering::Relaxed);
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

    /// Bytes that came since the connection began.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
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
    use std::time::Duration;

    use rcgen::CertifiedKey;
    use rustls::pki_types::{PrivateKeyDer, ServerName};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::connect::tls::{TlsRoots, config, offering};

    /// A stream without a kernel behind it, for tests of what lies above.
    impl Wire for tokio::io::DuplexStream {
        fn peek(&mut self) -> Peek {
            Peek::Quiet
        }

        fn failed_write_sent_nothing(&self) -> bool {
            true
        }
    }

    /// Both ends of a TLS connection over which two bytes went, and all tickets before them.
    async fn used() -> (Stream, tokio_rustls::server::TlsStream<TcpStream>) {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["peer.test".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let client = offering(config(&TlsRoots::OnlyAdded, vec![cert.der().clone()]).unwrap(), &[]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
        let name = ServerName::try_from("peer.test").unwrap();
        let (ours, theirs) = tokio::join!(client.connect(name, tcp), acceptor.accept(accepted));
        let (mut ours, mut theirs) = (ours.unwrap(), theirs.unwrap());
        theirs.write_all(b"ok").await.unwrap();
        ours.read_exact(&mut [0; 2]).await.unwrap();
        (Stream::Tls(Box::new(ours)), theirs)
    }

    /// What lies there first.
    async fn first_seen(mut stream: Stream) -> Peek {
        let looking = async {
            loop {
                match stream.peek() {
                    Peek::Quiet => tokio::task::yield_now().await,
                    seen => break seen,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), looking).await.unwrap()
    }

    #[tokio::test]
    async fn tls_says_what_lies_unread_on_an_idle_connection_and_not_the_reactor() {
        let (mut ours, mut theirs) = used().await;
        assert!(matches!(ours.peek(), Peek::Quiet));
        theirs.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let seen = first_seen(ours).await;
        assert!(matches!(seen, Peek::Unsolicited), "{seen:?}");
        let (ours, mut theirs) = used().await;
        theirs.shutdown().await.unwrap();
        let seen = first_seen(ours).await;
        assert!(matches!(seen, Peek::Closed), "{seen:?}");
    }
}
