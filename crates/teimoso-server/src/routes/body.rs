//! Reading a request's body whole, within its bounds: bytes, time, and what all bodies may take together.

use std::pin::pin;
use std::task::Poll;

use axum::body::{Body, BodyDataStream, HttpBody};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::HeaderMap;
use http::header::EXPECT;

use crate::App;
use crate::admission::Hold;
use crate::api::problem::{Code, Problem};

/// What is read and thrown away of a body that is too large, so that its sender, who may be unable to
/// read before it has written, gets the answer.
const DISCARDED_BYTES: usize = 16 * 1024 * 1024;

/// A whole body, counted among all bodies for as long as it lives.
#[derive(Debug)]
pub(super) struct Buffered {
    pub(super) bytes: Bytes,
    _hold: Hold,
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Buffered, Problem> {
    // A client that waits for "100 Continue" has sent nothing yet, and need not.
    let patient = headers.contains_key(EXPECT);
    let mut reading = pin!(collect(app, body, limit, patient));
    // Most bodies arrive with their head: they need no timer.
    let at_once = std::future::poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await;
    if let Poll::Ready(done) = at_once {
        return done;
    }
    tokio::select! {
        done = reading => done,
        () = app.clock().sleep(app.config().body_read_timeout) => Err(Problem::late_body(app.config())),
    }
}

async fn collect(app: &App, body: Body, limit: usize, patient: bool) -> Result<Buffered, Problem> {
    let declared = body.size_hint().lower();
    let too_large = || Problem::too_large("the request's body", limit);
    let mut chunks = body.into_data_stream();
    if declared > limit as u64 {
        if !patient {
            discard(&mut chunks).await;
        }
        return Err(too_large());
    }
    let mut hold = app.body_room()?;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut length = 0_usize;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| cut())?;
        length += chunk.len();
        if length > limit {
            discard(&mut chunks).await;
            return Err(too_large());
        }
        if !hold.grow(chunk.len()) {
            return Err(App::no_body_room());
        }
        if first.is_empty() && all.is_empty() {
            first = chunk;
            continue;
        }
        if all.is_empty() {
            all.reserve(length.max(usize::try_from(declared).unwrap_or(0)));
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&chunk);
    }
    Ok(Buffered { bytes: if all.is_empty() { first } else { all.freeze() }, _hold: hold })
}

fn cut() -> Problem {
    Problem::new(Code::MalformedRequest, "the request's body ended before it was complete")
}

async fn discard(chunks: &mut BodyDataStream) {
    let mut left = DISCARDED_BYTES;
    while let Some(Ok(chunk)) = chunks.next().await {
        match left.checked_sub(chunk.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
