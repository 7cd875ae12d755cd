//! One HTTP/1.1 connection and the exchange over it; absent: how the connection came about, and where it goes after.
//!
//! The protocol driver is polled by the attempt itself, and then by whoever reads the response body, instead of by a
//! task of its own. So nothing crosses tasks on the fast path, and dropping either closes the connection at once. The
//! price: an idle connection is not watched, hence [`Http1::is_alive`] must ask before it is used again.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::Sleep;

use crate::attempt::RESPONSE_HEAD_BYTES_MAX;
use crate::body::{BodyRead, FrameRead, Frames, RequestBody, gather};
use crate::evidence::Fault;
use crate::io::{Counted, Meter, Wire};
use crate::timer::poll_timer;

pub(crate) mod body;
pub(crate) mod pool;

/// A request as the protocol layer takes it.
pub(crate) type Message = http::Request<RequestBody>;

type Driver<S> = http1::Connection<TokioIo<Counted<S>>, RequestBody>;

/// A connection that carries one exchange at a time.
pub(crate) struct Http1<S: Wire> {
    sender: http1::SendRequest<RequestBody>,
    driver: Option<Driver<S>>,
    meter: Arc<Meter>,
    /// What the meter showed when the previous response was complete.
    baseline: u64,
    peer: SocketAddr,
}

/// Why no response head came.
pub(crate) enum SendFailure {
    /// The protocol layer gave the request back: nothing of it was serialised.
    HandedBack(Box<Message>, Fault),
    /// Anything else; `written` bytes were handed over.
    Broken { fault: Fault, written: u64 },
}

impl<S: Wire> Http1<S> {
    /// Puts HTTP/1.1 on a fresh stream. Nothing is sent yet. Boxed once: it is large, and moves with every exchange.
    pub(crate) async fn start(stream: S, peer: SocketAddr) -> Result<Box<Self>, Fault> {
        let (counted, meter) = Counted::new(stream);
        // No `max_headers`: hyper's own limit is `RESPONSE_HEADERS_MAX`, and within it hyper parses without allocating.
        let started = http1::Builder::new()
            .max_buf_size(RESPONSE_HEAD_BYTES_MAX)
            .handshake(TokioIo::new(counted))
            .await;
        match started {
            Ok((sender, driver)) => {
                Ok(Box::new(Self { sender, driver: Some(driver), meter, baseline: 0, peer }))
            }
            Err(error) => Err(Fault::of(&error, &meter)),
        }
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether an idle connection can still be used, as far as this machine's kernel knows at this moment.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.meter.set_probe(true);
        // Nobody waits here. A real waker would stay behind in the driver's request queue, and the send that follows
        // would wake the very task that sends.
        let driving = drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        // Left armed, it would take an answer for unsolicited bytes.
        self.meter.set_probe(false);
        driving && self.sender.is_ready()
    }

    /// Sends the request and waits for the response head, until the timer's deadline.
    pub(crate) async fn send(
        &mut self,
        message: Message,
        mut timer: Pin<&mut Sleep>,
    ) -> Result<http::Response<Incoming>, SendFailure> {
        // One more than hyper's buffer holds: a head that fills it is complete, and its body may be read at once.
        self.meter.expect_head(RESPONSE_HEAD_BYTES_MAX + 1);
        let mut answer = pin!(self.sender.try_send_request(message));
        // Only the driver can make the answer ready, and the driver is polled right here: a real waker would merely
        // wake this task for what it is about to look at.
        let mut begun = false;
        let outcome = poll_fn(|cx| {
            let mut unwatched = Context::from_waker(Waker::noop());
            // Whoever is woken mostly finds the answer, and then the driver waits for the reader of its body, who is
            // this task again: with a real waker in there, reading would wake the reader once more for nothing.
            if std::mem::replace(&mut begun, true) {
                drive(&mut self.driver, &mut unwatched);
                if let Poll::Ready(outcome) = answer.as_mut().poll(&mut unwatched) {
                    return Poll::Ready(Ok(outcome));
                }
            }
            let driving = drive(&mut self.driver, cx);
            match answer.as_mut().poll(&mut unwatched) {
                Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
                Poll::Pending if !driving => Poll::Ready(Err(Fault::Other)),
                Poll::Pending => poll_timer(timer.as_mut(), cx).map(|()| Err(Fault::Deadline)),
            }
        })
        .await;
        let written = self.meter.written() - self.baseline;
        match outcome {
            Ok(Ok(response)) => {
                self.meter.head_complete();
                Ok(response)
            }
            Ok(Err(mut error)) => {
                let fault = Fault::of(error.error(), &self.meter);
                Err(match error.take_message() {
                    Some(message) => SendFailure::HandedBack(Box::new(message), fault),
                    None => SendFailure::Broken { fault, written },
                })
            }
            Err(fault) => Err(SendFailure::Broken { fault, written }),
        }
    }

    /// Reads a response body up to `max` bytes, until the timer's deadline.
    pub(crate) async fn read_body(&mut self, body: Incoming, max: usize, timer: Pin<&mut Sleep>) -> BodyRead {
        gather(&mut Reading { connection: self, body }, max, timer).await
    }

    /// The next frame of the response that the connection is at.
    pub(crate) fn poll_frame(&mut self, body: &mut Incoming, cx: &mut Context<'_>) -> Poll<FrameRead> {
        // As in `send`: the driver, polled here, is the only one who can make a frame ready.
        let mut unwatched = Context::from_waker(Waker::noop());
        let mut frame = Pin::new(&mut *body).poll_frame(&mut unwatched);
        if frame.is_pending() {
            let driving = drive(&mut self.driver, cx);
            frame = Pin::new(body).poll_frame(&mut unwatched);
            if frame.is_pending() && !driving {
                return Poll::Ready(Err(Fault::Other));
            }
        }
        frame.map(|frame| frame.transpose().map_err(|error| Fault::of(&error, &self.meter)))
    }

    /// Whether the connection can serve another exchange, after a response was read to its end: the request was
    /// written in full, the peer keeps the connection open, and it sent nothing beyond its response.
    pub(crate) fn is_reusable(&mut self) -> bool {
        if !self.sender.is_ready() {
            drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        }
        self.baseline = self.meter.written();
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// A response body on its connection.
struct Reading<'a, S: Wire> {
    connection: &'a mut Http1<S>,
    body: Incoming,
}

impl<S: Wire> Frames for Reading<'_, S> {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<FrameRead> {
        self.connection.poll_frame(&mut self.body, cx)
    }

    fn is_over(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// Polls the driver once; false when it is done. A driver that is done is dropped at once, because that is what makes
/// hyper hand back a request that it never looked at.
fn drive<S: Wire>(driver: &mut Option<Driver<S>>, cx: &mut Context<'_>) -> bool {
    let Some(running) = driver else { return false };
    match Pin::new(running).poll(cx) {
        Poll::Pending => true,
        // Its outcome is not lost: hyper gives errors to the request that is waiting.
        Poll::Ready(_) => {
            *driver = None;
            false
        }
    }
}
