//! Exchanges as the tests write them: requests, bodies in pieces, answers read to the end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Method;
use http_body::{Body, Frame};
use teimoso_http::{AttemptLimits, Exchange, ExchangeRequest, RequestBody, Target};

/// A POST to this URL.
pub fn exchange(url: &str, body: impl Into<RequestBody>, limits: AttemptLimits) -> ExchangeRequest {
    ExchangeRequest {
        method: Method::POST,
        target: Arc::new(Target::parse(url).unwrap()),
        headers: http::HeaderMap::new(),
        body: body.into(),
        limits,
    }
}

/// Status and whole body of an answer.
pub async fn read(exchange: Exchange) -> (u16, Bytes) {
    let response = exchange.response.unwrap_or_else(|| panic!("no answer: {:?}", exchange.error));
    let status = response.status().as_u16();
    (status, response.into_body().collect(usize::MAX).await.unwrap())
}

/// A body of unknown size in pieces, which ends or fails after them.
pub struct Pieces {
    pieces: VecDeque<&'static str>,
    fails: bool,
}

impl Pieces {
    pub fn of(pieces: &[&'static str]) -> Self {
        Self { pieces: pieces.iter().copied().collect(), fails: false }
    }

    pub fn then_failing(self) -> Self {
        Self { fails: true, ..self }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        match self.pieces.pop_front() {
            // A pause: the next poll goes on.
            Some("") => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece.as_bytes()))))),
            None if self.fails => Poll::Ready(Some(Err("the disk is gone"))),
            None => Poll::Ready(None),
        }
    }
}

/// A body whose pieces another task sends.
pub struct Fed(pub tokio::sync::mpsc::UnboundedReceiver<Bytes>);

impl Body for Fed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::convert::Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
