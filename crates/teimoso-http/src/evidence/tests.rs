//! Canaries: each provokes one error in the real library and asserts how it is read.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use teimoso_retry::{Fate, Proof, Why};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

use super::Fault;
use crate::body::{BodyEnd, RequestBody};
use crate::h1::{Http1, Message, SendFailure};
use crate::io::{Peek, Wire};

/// One step of a scripted peer.
enum Step {
    Bytes(&'static [u8]),
    Endless(&'static [u8]),
    End,
    Fail(io::ErrorKind),
    Silence,
}

/// What a scripted socket does with writes.
#[derive(Clone, Copy)]
enum Writes {
    Taken,
    /// So many bytes are taken, then the write fails.
    FailAfter(usize, io::ErrorKind),
    Stalled,
}

/// A stream that plays a peer. It says nothing before the first write, unless `early`.
struct Script {
    steps: VecDeque<Step>,
    writes: Writes,
    taken: usize,
    written_to: bool,
    reader: Option<Waker>,
    over_tls: bool,
}

impl Script {
    fn new(writes: Writes, steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            writes,
            taken: 0,
            written_to: false,
            reader: None,
            over_tls: false,
        }
    }

    fn early(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { written_to: true, ..Self::new(Writes::Taken, steps) }
    }
}

impl AsyncRead for Script {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.written_to {
            this.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        match this.steps.pop_front() {
            Some(Step::Bytes(bytes)) => buffer.put_slice(bytes),
            Some(Step::Endless(bytes)) => {
                buffer.put_slice(&bytes[..bytes.len().min(buffer.remaining())]);
                this.steps.push_front(Step::Endless(bytes));
            }
            Some(Step::End) => {}
            Some(Step::Fail(kind)) => return Poll::Ready(Err(kind.into())),
            Some(Step::Silence) | None => return Poll::Pending,
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.written_to = true;
        if let Some(reader) = this.reader.take() {
            reader.wake();
        }
        match this.writes {
            Writes::Taken => {
                this.taken += bytes.len();
                Poll::Ready(Ok(bytes.len()))
            }
            Writes::FailAfter(max, _) if this.taken < max => {
                let taken = bytes.len().min(max - this.taken);
                this.taken += taken;
                Poll::Ready(Ok(taken))
            }
            Writes::FailAfter(_, kind) => Poll::Ready(Err(kind.into())),
            Writes::Stalled => Poll::Pending,
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty()).map_or(&[][..], |slice| slice);
        self.poll_write(cx, first)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Wire for Script {
    fn peek(&mut self) -> Peek {
        Peek::Quiet
    }

    fn failed_write_sent_nothing(&self) -> bool {
        !self.over_tls
    }
}

fn message() -> Message {
    let mut message = Message::new(RequestBody::from("payload"));
    *message.method_mut() = http::Method::POST;
    *message.uri_mut() = "/hook".parse().unwrap();
    message.headers_mut().insert("host", "peer.test".parse().unwrap());
    message
}

/// What a peer's script comes to.
#[derive(Debug, PartialEq, Eq)]
enum End {
    HandedBack(Fault),
    Unanswered(Fault, Fate),
    Answered(u16, Bytes, BodyEnd),
}

async fn play(script: Script) -> End {
    let mut connection = Http1::start(script, ([127, 0, 0, 1], 1).into()).await.unwrap();
    let mut timer = pin!(sleep_until(Instant::now() + Duration::from_millis(100)));
    match connection.send(message(), timer.as_mut()).await {
        Ok(response) => {
            let (head, body) = response.into_parts();
            let read = connection.read_body(body, 1024, timer).await;
            End::Answered(head.status.as_u16(), read.bytes, read.end)
        }
        Err(SendFailure::HandedBack(message, fault)) => {
            assert_eq!(message.uri(), "/hook", "the request comes back whole");
            End::HandedBack(fault)
        }
        Err(SendFailure::Broken { fault, written }) => End::Unanswered(fault, fault.fate_unanswered(written)),
    }
}

async fn answer(steps: impl IntoIterator<Item = Step>) -> End {
    play(Script::new(Writes::Taken, steps)).await
}

fn ambiguous(fault: Fault, why: Why) -> End {
    End::Unanswered(fault, Fate::Ambiguous(why))
}

#[tokio::test]
async fn canary_an_orderly_end_before_the_head_is_closed() {
    assert_eq!(answer([Step::End]).await, ambiguous(Fault::Closed, Why::Closed));
    assert_eq!(answer([Step::Bytes(b"HTTP/1.1 20"), Step::End]).await, ambiguous(Fault::Closed, Why::Closed));
    assert_eq!(
        answer([Step::Bytes(b"HTTP/1.1 100 Continue\r\n\r\n"), Step::End]).await,
        ambiguous(Fault::Closed, Why::Closed)
    );
}

#[tokio::test]
async fn canary_a_reset_before_the_head_is_reset() {
    for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionAborted, io::ErrorKind::BrokenPipe]
    {
        assert_eq!(answer([Step::Fail(kind)]).await, ambiguous(Fault::Reset, Why::Reset));
    }
}

#[tokio::test]
async fn canary_the_systems_time_out_is_a_time_out() {
    let end = answer([Step::Fail(io::ErrorKind::TimedOut)]).await;
    assert_eq!(end, ambiguous(Fault::PeerTimeout, Why::Timeout));
}

#[test]
fn a_tls_alert_after_the_handshake_is_protocol() {
    let alert = rustls::Error::AlertReceived(rustls::AlertDescription::BadCertificate);
    assert_eq!(super::of_io(&io::Error::new(io::ErrorKind::InvalidData, alert)), Fault::Protocol);
}

#[tokio::test]
async fn canary_garbage_is_protocol() {
    for garbage in [
        &b"SSH-2.0-OpenSSH_9.6\r\n"[..],
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80",
    ] {
        let end = answer([Step::Bytes(garbage), Step::End]).await;
        assert_eq!(end, ambiguous(Fault::Protocol, Why::Protocol), "{garbage:?}");
    }
}

#[tokio::test]
async fn g11_canary_a_head_beyond_its_cap_is_protocol() {
    let endless = answer([Step::Bytes(b"HTTP/1.1 200 OK\r\nx: "), Step::Endless(&[b'y'; 4096])]).await;
    assert_eq!(endless, ambiguous(Fault::Protocol, Why::Protocol));
    let many = answer([Step::Bytes(b"HTTP/1.1 200 OK\r\n"), Step::Endless(b"x: y\r\n")]).await;
    assert_eq!(many, ambiguous(Fault::Protocol, Why::Protocol));
}

#[tokio::test]
async fn canary_a_request_that_hyper_never_looked_at_comes_back() {
    assert_eq!(play(Script::early([Step::End])).await, End::HandedBack(Fault::Closed));
    assert_eq!(
        play(Script::early([Step::Fail(io::ErrorKind::ConnectionReset)])).await,
        End::HandedBack(Fault::Reset)
    );
    assert_eq!(
        play(Script::early([Step::Bytes(b"220 mail.test ESMTP\r\n")])).await,
        End::HandedBack(Fault::Protocol)
    );
}

#[tokio::test]
async fn canary_a_reset_met_by_the_first_write_proves_zero_bytes() {
    for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
        let script = Script::new(Writes::FailAfter(0, kind), [Step::End]);
        let proof = Fate::NeverSent(Proof::ZeroBytesWritten);
        assert_eq!(play(script).await, End::Unanswered(Fault::Reset, proof));
    }
}

#[tokio::test]
async fn a_failed_write_over_tls_proves_nothing() {
    let script = Script {
        over_tls: true,
        ..Script::new(Writes::FailAfter(0, io::ErrorKind::ConnectionReset), [Step::End])
    };
    assert_eq!(play(script).await, ambiguous(Fault::Reset, Why::Reset));
}

#[tokio::test]
async fn one_byte_written_is_ambiguous() {
    let script = Script::new(Writes::FailAfter(1, io::ErrorKind::BrokenPipe), [Step::End]);
    assert_eq!(play(script).await, ambiguous(Fault::Reset, Why::Reset));
}

#[tokio::test]
async fn a_deadline_with_zero_bytes_written_proves_never_sent() {
    let proof = Fate::NeverSent(Proof::ZeroBytesWritten);
    let end = play(Script::new(Writes::Stalled, [])).await;
    assert_eq!(end, End::Unanswered(Fault::Deadline, proof));
}

#[tokio::test]
async fn a_deadline_with_bytes_written_is_ambiguous() {
    assert_eq!(answer([Step::Silence]).await, ambiguous(Fault::Deadline, Why::Timeout));
}

#[tokio::test]
async fn canary_an_answer_is_read_although_the_write_broke() {
    let early = [Step::Bytes(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"), Step::End];
    let script = Script::new(Writes::FailAfter(20, io::ErrorKind::ConnectionReset), early);
    assert_eq!(play(script).await, End::Answered(503, Bytes::new(), BodyEnd::Complete));
}

#[tokio::test]
async fn canary_a_cut_body_keeps_its_status_and_what_came() {
    let table = [
        (
            vec![Step::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"), Step::End],
            BodyEnd::Cut(Fault::Closed),
        ),
        (
            vec![
                Step::Bytes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
                Step::End,
            ],
            BodyEnd::Cut(Fault::Closed),
        ),
        (
            vec![Step::Bytes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n")],
            BodyEnd::Cut(Fault::Protocol),
        ),
        (
            vec![
                Step::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"),
                Step::Fail(io::ErrorKind::ConnectionReset),
            ],
            BodyEnd::Cut(Fault::Reset),
        ),
        (
            vec![Step::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"), Step::Silence],
            BodyEnd::Cut(Fault::Deadline),
        ),
    ];
    for (steps, end) in table {
        assert_eq!(answer(steps).await, End::Answered(200, Bytes::from_static(b"half"), end));
    }
}

#[tokio::test]
async fn a_body_in_pieces_is_put_together_up_to_its_limit() {
    let head = Step::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n");
    let end = answer([head, Step::Bytes(b"ab"), Step::Bytes(b"cd"), Step::Bytes(b"ef")]).await;
    assert_eq!(end, End::Answered(200, Bytes::from_static(b"abcdef"), BodyEnd::Complete));
    let head = Step::Bytes(b"HTTP/1.1 200 OK\r\n\r\n");
    let end = answer([head, Step::Endless(&[b'z'; 100])]).await;
    assert_eq!(end, End::Answered(200, Bytes::from(vec![b'z'; 1024]), BodyEnd::Limit));
}
