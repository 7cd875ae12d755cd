//! The body of a response, read as the caller wants it; absent: decoding, and any second copy of what was read.

use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::gather::{BodyEnd, FrameRead, Frames, gather};
use crate::attempt::{AttemptError, ErrorKind};
use crate::evidence::Fault;
use crate::h1::body::Http1Body;
use crate::h2::body::Http2Body;
use crate::timer::{later, poll_timer};

/// What was being done when a body broke.
const DOING: &str = "read the response body";

/// The body of a response, as it arrives.
///
/// It holds what the exchange needs to go on: on HTTP/1.1 the connection itself, which goes back to the transport's
/// pool when the body was read to its end, and is closed when the body is dropped before; on HTTP/2 a stream of a
/// shared connection, which is reset then.
///
/// Read as a stream, each frame must come within the attempt's `total_timeout` of the one before, and all of them
/// within `response_body_max` bytes. [`collect`](Self::collect) reads all of it within the attempt's own deadline.
pub struct ResponseBody {
    source: Source,
    pace: Pace,
}

/// How long and how much may be read.
pub(crate) struct Pace {
    frame_timeout: Duration,
    deadline: Option<Instant>,
    left: usize,
    /// Made when a frame first has to be waited for: most bodies arrive with their head.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

/// Where the frames come from.
enum Source {
    Over,
    Bytes(Bytes),
    Http1(Http1Body),
    Http2(Http2Body),
}

/// A response body that could not be read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyError {
    error: AttemptError,
}

impl ResponseBody {
    pub(crate) fn http1(body: Http1Body, pace: Pace) -> Self {
        Self::begin(Source::Http1(body), pace)
    }

    pub(crate) fn http2(body: Http2Body, pace: Pace) -> Self {
        Self::begin(Source::Http2(body), pace)
    }

    fn begin(mut source: Source, pace: Pace) -> Self {
        if source.is_over() {
            source.settle();
        }
        Self { source, pace }
    }

    /// Reads the whole body, within the deadline of the attempt that it belongs to.
    ///
    /// # Errors
    ///
    /// A body that is cut, late, or larger than `max` bytes (kind `too_large`); its connection is closed.
    pub async fn collect(self, max: usize) -> Result<Bytes, BodyError> {
        let Self { mut source, pace } = self;
        let max = max.min(pace.left);
        if source.size_hint().lower() > max as u64 {
            return Err(BodyError::too_large(max));
        }
        if let Source::Bytes(bytes) = source {
            return Ok(bytes);
        }
        if source.is_over() {
            return Ok(Bytes::new());
        }
        let deadline = pace.deadline.unwrap_or_else(|| later(Instant::now(), Duration::MAX));
        let read = gather(&mut source, max, pin!(sleep_until(deadline))).await;
        match read.end {
            BodyEnd::Complete => Ok(read.bytes),
            BodyEnd::Limit => Err(BodyError::too_large(max)),
            BodyEnd::Cut(fault) => {
                source.spoil();
                Err(BodyError::of(fault))
            }
        }
    }
}

impl Pace {
    /// The pace of a body whose attempt ends at `deadline`.
    pub(crate) fn new(frame_timeout: Duration, deadline: Instant, max: usize) -> Self {
        Self { frame_timeout, deadline: Some(deadline), left: max, timer: None, waiting: false }
    }

    fn unbounded() -> Self {
        Self { frame_timeout: Duration::MAX, deadline: None, left: usize::MAX, timer: None, waiting: false }
    }

    /// Ready when the frame that is waited for is overdue.
    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let at = || later(Instant::now(), self.frame_timeout);
        let timer = match &mut self.timer {
            Some(timer) if self.waiting => timer,
            Some(timer) => {
                timer.as_mut().reset(at());
                timer
            }
            none => none.insert(Box::pin(sleep_until(at()))),
        };
        self.waiting = true;
        poll_timer(timer.as_mut(), cx)
    }

    fn take(&mut self, frame: &Frame<Bytes>) -> Result<(), ()> {
        self.waiting = false;
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        self.left = self.left.checked_sub(bytes).ok_or(())?;
        Ok(())
    }
}

impl Source {
    /// Lets go of what the exchange needed: it ended in order.
    fn settle(&mut self) {
        if let Self::Http1(body) = std::mem::replace(self, Self::Over) {
            body.settle();
        }
    }

    /// Lets go of what the exchange needed: it broke.
    fn spoil(&mut self) {
        if let Self::Http2(body) = std::mem::replace(self, Self::Over) {
            body.spoil();
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Over => SizeHint::with_exact(0),
            Self::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
        }
    }
}

impl Frames for Source {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<FrameRead> {
        let read = match self {
            Self::Over => Ok(None),
            Self::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                Ok((!bytes.is_empty()).then(|| Frame::data(bytes)))
            }
            Self::Http1(body) => ready!(body.poll_frame(cx)),
            Self::Http2(body) => ready!(body.poll_frame(cx)),
        };
        match &read {
            Ok(Some(_)) if !self.is_over() => {}
            Ok(_) => self.settle(),
            Err(_) => self.spoil(),
        }
        Poll::Ready(read)
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Over => true,
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Http1(body) => body.is_over(),
            Self::Http2(body) => body.is_over(),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Self { source, pace } = self.get_mut();
        let read = match source.poll_frame(cx) {
            Poll::Ready(read) => read,
            Poll::Pending => {
                ready!(pace.poll_overdue(cx));
                source.spoil();
                Err(Fault::Deadline)
            }
        };
        let failed = match read {
            Ok(None) => return Poll::Ready(None),
            Ok(Some(frame)) => match pace.take(&frame) {
                Ok(()) => return Poll::Ready(Some(Ok(frame))),
                Err(()) => BodyError::beyond_cap(),
            },
            Err(fault) => BodyError::of(fault),
        };
        // What is left of the exchange goes with it: a connection is closed, a stream reset.
        *source = Source::Over;
        Poll::Ready(Some(Err(failed)))
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.source.size_hint()
    }
}

impl From<Bytes> for ResponseBody {
    /// A body that is there already, for tests and for services that answer themselves.
    fn from(bytes: Bytes) -> Self {
        Self { source: Source::Bytes(bytes), pace: Pace::unbounded() }
    }
}

impl fmt::Debug for ResponseBody {
    /// The bytes are left out: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("over", &self.source.is_over()).finish_non_exhaustive()
    }
}

impl BodyError {
    pub(crate) fn of(fault: Fault) -> Self {
        Self { error: fault.error(DOING) }
    }

    fn too_large(max: usize) -> Self {
        Self::with(format!("{DOING}: it is larger than {max} bytes"))
    }

    fn beyond_cap() -> Self {
        Self::with(format!("{DOING}: it is larger than its cap"))
    }

    fn with(message: String) -> Self {
        Self { error: AttemptError { kind: ErrorKind::TooLarge, message } }
    }

    /// The stable kind: `too_large` for a body beyond its cap, else how the connection ended.
    pub fn kind(&self) -> ErrorKind {
        self.error.kind
    }

    /// Whether time ran out.
    pub fn is_timeout(&self) -> bool {
        self.error.kind == ErrorKind::Timeout
    }

    /// Lower case, reads after "failed to".
    pub fn message(&self) -> &str {
        &self.error.message
    }

    /// Kind and message, as attempts report them.
    pub fn as_attempt_error(&self) -> &AttemptError {
        &self.error
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for BodyError {}

impl From<BodyError> for AttemptError {
    fn from(error: BodyError) -> Self {
        error.error
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_body_from_bytes_is_read_either_way() {
        let body = ResponseBody::from(Bytes::from_static(b"here"));
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(4), false));
        assert_eq!(body.collect(4).await.unwrap(), "here");
        let body = ResponseBody::from(Bytes::from_static(b"here"));
        assert_eq!(BodyExt::collect(body).await.unwrap().to_bytes(), "here");
        assert!(ResponseBody::from(Bytes::new()).is_end_stream());
    }

    #[tokio::test]
    async fn a_body_beyond_the_cap_is_an_error_of_its_own_kind() {
        let error = ResponseBody::from(Bytes::from_static(b"here")).collect(3).await.unwrap_err();
        assert_eq!((error.kind(), error.is_timeout()), (ErrorKind::TooLarge, false));
        assert_eq!(error.to_string(), "failed to read the response body: it is larger than 3 bytes");
    }
}
