//! Body frames put together to bytes, within a size and a time; absent: where the frames come from.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, Sleep};

use crate::evidence::Fault;
use crate::timer::poll_timer;

/// A frame, the end, or why there is neither.
pub(crate) type FrameRead = Result<Option<Frame<Bytes>>, Fault>;

/// Something that frames of one body come from.
pub(crate) trait Frames {
    /// The next frame.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<FrameRead>;

    /// Whether it is known already that no frame is left.
    fn is_over(&self) -> bool;
}

/// A response body as far as it was read.
pub(crate) struct BodyRead {
    pub(crate) bytes: Bytes,
    pub(crate) end: BodyEnd,
}

/// How the reading of a body ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    Complete,
    /// The limit was reached; more would have come.
    Limit,
    Cut(Fault),
}

/// Reads up to `max` bytes, until the timer's deadline. Trailers are read and dropped.
pub(crate) async fn gather(frames: &mut impl Frames, max: usize, mut timer: Pin<&mut Sleep>) -> BodyRead {
    let mut kept = Kept::default();
    let end = loop {
        let frame = poll_fn(|cx| match frames.poll_frame(cx) {
            Poll::Pending => poll_timer(timer.as_mut(), cx).map(|()| Err(Fault::Deadline)),
            read => read,
        });
        match frame.await {
            Ok(None) => break BodyEnd::Complete,
            Ok(Some(frame)) => {
                let Ok(data) = frame.into_data() else { continue };
                if !kept.take(data, max) {
                    break BodyEnd::Limit;
                }
                if frames.is_over() {
                    break BodyEnd::Complete;
                }
                // A flood of frames that are always ready shares the thread with others and ends in time.
                consume_budget().await;
                // A timer that was never waited for does not know that it is over.
                if Instant::now() >= timer.deadline() {
                    break BodyEnd::Cut(Fault::Deadline);
                }
            }
            Err(fault) => break BodyEnd::Cut(fault),
        }
    };
    BodyRead { bytes: kept.into_bytes(), end }
}

/// Collects body bytes; a body that comes in one piece is not copied.
#[derive(Default)]
struct Kept {
    first: Bytes,
    all: BytesMut,
}

impl Kept {
    /// Takes as much of `data` as fits; false if it did not all fit.
    fn take(&mut self, mut data: Bytes, max: usize) -> bool {
        let room = max - self.len();
        let fits = data.len() <= room;
        data.truncate(room);
        if self.len() == 0 {
            self.first = data;
        } else {
            if self.all.is_empty() {
                self.all.extend_from_slice(&self.first);
            }
            self.all.extend_from_slice(&data);
        }
        fits
    }

    fn len(&self) -> usize {
        self.first.len().max(self.all.len())
    }

    fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use tokio::time::sleep_until;

    use super::*;

    /// Frames that are always there and hold nothing.
    struct Flood;

    impl Frames for Flood {
        fn poll_frame(&mut self, _: &mut Context<'_>) -> Poll<FrameRead> {
            Poll::Ready(Ok(Some(Frame::data(Bytes::new()))))
        }

        fn is_over(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn frames_that_never_make_wait_end_at_the_deadline_all_the_same() {
        let timer = pin!(sleep_until(Instant::now() + Duration::from_millis(20)));
        let read = gather(&mut Flood, usize::MAX, timer).await;
        assert_eq!((read.end, read.bytes), (BodyEnd::Cut(Fault::Deadline), Bytes::new()));
    }
}
