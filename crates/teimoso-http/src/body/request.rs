//! The body of a request: bytes, a way to make them again, or a stream that exists once; absent: how it is sent.

use std::cell::OnceCell;
use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use super::BoxError;

type Boxed = UnsyncBoxBody<Bytes, BoxError>;
type Factory = Arc<dyn Fn() -> Boxed + Send + Sync>;

/// The body of a request.
///
/// Bytes and factories can be sent again, a stream cannot. A body whose exact size is known goes out with a
/// `content-length`, any other one chunked (RFC 9112 §7.1) or, on HTTP/2, in frames of its own.
pub struct RequestBody(Kind);

enum Kind {
    /// What is left to send. Not boxed: it is what nearly every request has.
    Bytes(Bytes),
    Stream(Boxed),
    /// Made when it is first looked at, so that a replay which is never needed is never made.
    Made(Factory, OnceCell<Boxed>),
}

/// A failure of a body of the caller's, marked so that it is told from failures of the connection.
#[derive(Debug)]
pub(crate) struct BodyFailed(BoxError);

impl fmt::Display for BodyFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for BodyFailed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl RequestBody {
    /// A body that can be made again, for each attempt anew. The factory is called once per attempt, when the body is
    /// first looked at; it must give the same bytes each time.
    pub fn factory<F, B>(factory: F) -> Self
    where
        F: Fn() -> B + Send + Sync + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Kind::Made(Arc::new(move || boxed(factory())), OnceCell::new()))
    }

    /// A body that exists once: it is sent at most once.
    pub fn stream<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Kind::Stream(boxed(body)))
    }

    /// Whether [`replay`](Self::replay) gives another one.
    pub fn is_replayable(&self) -> bool {
        !matches!(self.0, Kind::Stream(_))
    }

    /// Another body of the same bytes, or `None` for a stream. To be asked before this one is sent. It costs a
    /// reference count: bytes are shared, and a factory is not called yet.
    pub fn replay(&self) -> Option<Self> {
        match &self.0 {
            Kind::Bytes(bytes) => Some(Self(Kind::Bytes(bytes.clone()))),
            Kind::Made(factory, _) => Some(Self(Kind::Made(factory.clone(), OnceCell::new()))),
            Kind::Stream(_) => None,
        }
    }
}

fn boxed<B>(body: B) -> Boxed
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(|error| BoxError::from(BodyFailed(error.into()))).boxed_unsync()
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.get_mut().0 {
            Kind::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Bytes(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Stream(body) => Pin::new(body).poll_frame(cx),
            Kind::Made(factory, made) => {
                // `get_mut_or_init` is not stable; the cell is filled first, and then it is there.
                made.get_or_init(|| factory());
                made.get_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(cx))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Bytes(bytes) => bytes.is_empty(),
            Kind::Stream(body) => body.is_end_stream(),
            Kind::Made(factory, made) => made.get_or_init(|| factory()).is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(body) => body.size_hint(),
            Kind::Made(factory, made) => made.get_or_init(|| factory()).size_hint(),
        }
    }
}

impl fmt::Debug for RequestBody {
    /// The bytes are left out: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("replayable", &self.is_replayable()).finish_non_exhaustive()
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        Self::from(())
    }
}

impl From<()> for RequestBody {
    fn from((): ()) -> Self {
        Self(Kind::Bytes(Bytes::new()))
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Bytes(bytes))
    }
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Bytes::from(bytes))
    }
}

impl From<String> for RequestBody {
    fn from(text: String) -> Self {
        Self::from(Bytes::from(text))
    }
}

impl From<&'static str> for RequestBody {
    fn from(text: &'static str) -> Self {
        Self::from(Bytes::from_static(text.as_bytes()))
    }
}

impl From<&'static [u8]> for RequestBody {
    fn from(bytes: &'static [u8]) -> Self {
        Self::from(Bytes::from_static(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::Full;

    use super::*;

    async fn read(body: RequestBody) -> Bytes {
        body.collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn bytes_are_replayed_without_a_box_and_have_a_size() {
        let body = RequestBody::from("payload");
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(7), false));
        let again = body.replay().unwrap();
        assert!(matches!(again.0, Kind::Bytes(_)));
        assert_eq!((read(body).await, read(again).await), ("payload".into(), "payload".into()));
        assert!(RequestBody::from(()).is_end_stream() && RequestBody::default().is_replayable());
    }

    #[tokio::test]
    async fn a_factory_makes_each_replay_anew() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let body = RequestBody::factory(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Full::new(Bytes::from_static(b"again"))
        });
        let again = body.replay().unwrap();
        assert!(again.is_replayable() && again.replay().is_some());
        assert_eq!(made.load(Ordering::Relaxed), 0, "a replay that is not sent is not made");
        assert_eq!(body.size_hint().exact(), Some(5));
        assert_eq!((read(body).await, read(again).await), ("again".into(), "again".into()));
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_stream_exists_once() {
        let body = RequestBody::stream(Full::new(Bytes::from_static(b"once")));
        assert!(!body.is_replayable() && body.replay().is_none());
        assert_eq!(format!("{body:?}"), "RequestBody { replayable: false, .. }");
    }
}
