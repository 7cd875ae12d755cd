//! One HTTP/2 connection and the exchanges that share it; absent: how it came about, and which origin it is kept for.
//!
//! One task drives the connection: what hyper would spawn is polled within it. So nothing is received between the
//! moment hyper takes a request and the moment the request has its stream; with two tasks on two threads, a graceful
//! `GOAWAY` that arrives in between would look like a refusal of a request that is then sent all the same.

pub(crate) mod body;
mod driver;
pub(crate) mod origins;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::Sleep;

use self::driver::{Aside, Driver};
use crate::attempt::RESPONSE_HEAD_BYTES_MAX;
use crate::body::RequestBody;
use crate::evidence::Fault;
use crate::evidence::h2::Ending;
use crate::h1::Message;
use crate::io::{Counted, Meter, Wire};
use crate::timer::poll_timer;

/// A connection that carries many exchanges at a time. Dropped, it takes no further one, and closes after its last.
pub(crate) struct Http2(Arc<Shared>);

struct Shared {
    /// Gone once the connection is retired.
    sender: Mutex<Option<SendRequest<RequestBody>>>,
    peer: SocketAddr,
    meter: Arc<Meter>,
    /// Exchanges in progress, their response bodies included.
    open: AtomicUsize,
    /// Exchanges ever begun.
    begun: AtomicU64,
}

/// The right to one exchange on a connection; while it lives the connection is not idle.
pub(crate) struct Lease {
    shared: Arc<Shared>,
    sender: SendRequest<RequestBody>,
}

/// Why no response head came.
pub(crate) enum SendFailure {
    /// The request was not dispatched; hyper gives it back, if it still has it.
    HandedBack(Option<Box<Message>>, Fault),
    /// The peer's word, or none.
    Ended(Ending),
}

impl Http2 {
    /// Puts HTTP/2 on a fresh stream and sends the preface. Must be called on a runtime, which drives the connection
    /// from then on; without exchanges for `idle_timeout` it closes.
    pub(crate) async fn start<S: Wire>(
        stream: S,
        peer: SocketAddr,
        idle_timeout: Duration,
    ) -> Result<Self, Fault> {
        let (counted, meter) = Counted::new(stream);
        let aside = Aside::default();
        let started = http2::Builder::new(aside.clone())
            .max_header_list_size(RESPONSE_HEAD_BYTES_MAX as u32)
            .handshake(TokioIo::new(counted))
            .await;
        let (sender, client) = match started {
            Ok(started) => started,
            Err(error) => return Err(Ending::of(&error, &meter).fault()),
        };
        let shared = Arc::new(Shared {
            sender: Mutex::new(Some(sender)),
            peer,
            meter,
            open: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
        });
        tokio::spawn(Driver::new(client, aside, Arc::downgrade(&shared), idle_timeout));
        Ok(Self(shared))
    }

    /// The right to one exchange; `None` when the connection takes no more.
    pub(crate) fn lease(&self) -> Option<Lease> {
        let sender = self.0.sender().clone().filter(|sender| !sender.is_closed())?;
        self.0.open.fetch_add(1, Ordering::Relaxed);
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        Some(Lease { shared: self.0.clone(), sender })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.sender().as_ref().is_some_and(|sender| !sender.is_closed())
    }
}

impl Shared {
    fn sender(&self) -> MutexGuard<'_, Option<SendRequest<RequestBody>>> {
        // Whole at every instant: it is only taken or cloned.
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no further exchange; those in progress go on.
    fn retire(&self) {
        let _sender = self.sender().take();
    }

    /// The number of exchanges so far, if none is in progress.
    fn quiet_since(&self) -> Option<u64> {
        (self.open.load(Ordering::Relaxed) == 0).then(|| self.begun.load(Ordering::Relaxed))
    }
}

impl Lease {
    pub(crate) fn peer(&self) -> SocketAddr {
        self.shared.peer
    }

    /// No further exchange on this connection: it broke, said goodbye, or left us not knowing.
    pub(crate) fn retire(&self) {
        self.shared.retire();
    }

    /// Sends the request and waits for the response head, until the timer's deadline. Whatever ends without a head
    /// retires the connection, save a single stream refused.
    pub(crate) async fn send(
        &mut self,
        message: Message,
        mut timer: Pin<&mut Sleep>,
    ) -> Result<http::Response<Incoming>, SendFailure> {
        let mut waiting = Waiting::begin(&self.shared);
        let mut answer = pin!(self.sender.try_send_request(message));
        let outcome = poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => poll_timer(timer.as_mut(), cx).map(|()| None),
        })
        .await;
        waiting.over = true;
        let failure = match outcome {
            Some(Ok(response)) => return Ok(response),
            None => SendFailure::Ended(Ending::Broke(Fault::Deadline)),
            Some(Err(mut error)) => {
                let ending = Ending::of(error.error(), &self.shared.meter);
                match error.take_message() {
                    Some(message) => SendFailure::HandedBack(Some(Box::new(message)), ending.fault()),
                    // hyper cancels a client's request only while it is not dispatched.
                    None if error.error().is_canceled() => SendFailure::HandedBack(None, ending.fault()),
                    None => SendFailure::Ended(ending),
                }
            }
        };
        if !matches!(failure, SendFailure::Ended(Ending::Refused)) {
            self.shared.retire();
        }
        Err(failure)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An exchange that waits for its head. Dropped while it waits, it retires a connection from which nothing came all that
/// time: it may be dead, and where every caller gives up before the deadline, no deadline would ever say so.
struct Waiting<'a> {
    shared: &'a Shared,
    heard_before: u64,
    over: bool,
}

impl<'a> Waiting<'a> {
    fn begin(shared: &'a Shared) -> Self {
        Self { shared, heard_before: shared.meter.read(), over: false }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over && self.shared.meter.read() == self.heard_before {
            self.shared.retire();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::time::{Instant, sleep_until};

    use super::*;

    fn message() -> Message {
        let mut message = Message::new("payload".into());
        *message.method_mut() = http::Method::POST;
        *message.uri_mut() = "http://peer.test/hook".parse().unwrap();
        message
    }

    #[tokio::test]
    async fn canary_a_request_for_a_connection_that_has_ended_comes_back() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        theirs.shutdown().await.unwrap();
        let idle_timeout = Duration::from_secs(30);
        let connection = Http2::start(ours, ([127, 0, 0, 1], 1).into(), idle_timeout).await.unwrap();
        let mut lease = connection.lease().unwrap();
        let timer = pin!(sleep_until(Instant::now() + Duration::from_secs(20)));
        match lease.send(message(), timer).await {
            Err(SendFailure::HandedBack(Some(message), fault)) => {
                assert_eq!((message.uri().path(), fault), ("/hook", Fault::Closed));
            }
            Err(SendFailure::HandedBack(None, fault)) => panic!("the message is lost: {fault:?}"),
            Err(SendFailure::Ended(ending)) => panic!("{ending:?}"),
            Ok(response) => panic!("{response:?}"),
        }
        assert!(connection.lease().is_none(), "a connection that broke takes no other exchange");
    }

    #[tokio::test]
    async fn a_retired_connection_takes_no_further_exchange_and_ends_after_its_last() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let idle_timeout = Duration::from_secs(30);
        let connection = Http2::start(ours, ([127, 0, 0, 1], 1).into(), idle_timeout).await.unwrap();
        let lease = connection.lease().unwrap();
        assert_eq!(connection.0.quiet_since(), None);
        lease.retire();
        assert!(!connection.is_open() && connection.lease().is_none());
        drop(lease);
        assert_eq!(connection.0.quiet_since(), Some(1));
        let mut all = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut theirs, &mut all).await.unwrap();
        assert!(all.starts_with(b"PRI * HTTP/2.0"), "{all:?}");
    }
}
