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
    let declared = usize::try_from(declared).unwrap_or(limit);
    let mut hold = app.body_room()?;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let (mut length, mut counted) = (0_usize, 0_usize);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| cut())?;
        length += chunk.len();
        if length > limit {
            discard(&mut chunks).await;
            return Err(too_large());
        }
        // Counted before it is allocated.
        let needed = room(counted, length, declared, limit);
        if !hold.grow(needed - counted) {
            return Err(App::no_body_room());
        }
        counted = needed;
        if first.is_empty() && all.is_empty() {
            first = chunk;
            continue;
        }
        all.reserve(counted - all.len());
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&chunk);
    }
    Ok(Buffered { bytes: if all.is_empty() { first } else { all.freeze() }, _hold: hold })
}

/// The bytes to have room for when `length` are needed and there is room for `counted`: what was declared, and
/// otherwise so much that a body in many chunks is not copied for each of them.
fn room(counted: usize, length: usize, declared: usize, limit: usize) -> usize {
    if length <= counted { counted } else { counted.saturating_mul(2).min(limit).max(declared).max(length) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g11_room_is_what_was_declared_or_grows_by_doubling_up_to_the_limit() {
        assert_eq!(room(0, 10, 700, 1_000), 700);
        assert_eq!(room(700, 700, 700, 1_000), 700);
        let mut counted = 0;
        let grown = [10, 15, 21, 300, 990].map(|length| {
            counted = room(counted, length, 0, 1_000);
            counted
        });
        assert_eq!(grown, [10, 20, 40, 300, 990]);
        assert_eq!(room(600, 601, 0, 1_000), 1_000);
    }
}
