//! HTTP/2 over real sockets: frame by frame where a peer misbehaves, with a real server where it does not.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::exchanges::{Fed, Pieces, exchange, read};
use common::frames::{
    CANCEL, DATA, END_HEADERS, Frames, GOAWAY, HEADERS, INTERNAL_ERROR, NO_ERROR, REFUSED_STREAM, RST_STREAM,
    STATUS_200,
};
use common::{Peer, builder, hasty, patient};
use http_body_util::BodyExt;
use teimoso_http::{BodyError, ErrorKind, Exchange, HttpVersions, RequestBody, Transport};
use teimoso_retry::{Fate, Nack, Why};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

/// A transport that speaks HTTP/2 to whoever it meets.
fn transport() -> Transport {
    builder().http_version(HttpVersions::Http2Only).build().unwrap()
}

/// Plays `script` on each connection after its hello; the script gets the connection's number.
async fn peer<F, S>(script: S) -> Peer
where
    S: Fn(usize, Frames<TcpStream>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let script = Arc::new(script);
    Peer::start(move |number, stream| {
        let script = script.clone();
        async move { script(number, Frames::accept(stream).await).await }
    })
    .await
}

async fn send(transport: &Transport, peer: &Peer) -> Exchange {
    transport.exchange(exchange(&peer.url(), "payload", patient())).await
}

fn fate_and_kind(exchange: &Exchange) -> (Fate, Option<ErrorKind>) {
    (exchange.fate, exchange.error.as_ref().map(|error| error.kind))
}

#[tokio::test]
async fn exchanges_share_one_connection() {
    let peer = peer(|_, frames| frames.answer_all()).await;
    let transport = transport();
    for reused in [false, true, true] {
        let answer = send(&transport, &peer).await;
        assert_eq!((answer.fate, answer.reused, answer.peer), (Fate::Answered, reused, Some(peer.address)));
        assert_eq!(answer.response.as_ref().unwrap().version(), http::Version::HTTP_2);
        assert_eq!(read(answer).await, (200, "ok".into()));
    }
    assert_eq!(peer.accepted(), 1);
}

#[tokio::test]
async fn exchanges_that_begin_together_wait_for_one_connection() {
    let peer = peer(|_, frames| frames.answer_all()).await;
    let transport = transport();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (transport, request) = (transport.clone(), exchange(&peer.url(), "payload", patient()));
            tokio::spawn(async move { transport.exchange(request).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(read(task.await.unwrap()).await, (200, "ok".into()));
    }
    assert_eq!(peer.accepted(), 1);
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_fails_each_that_waits_for_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let transport = transport();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (transport, request) = (transport.clone(), exchange(&url, "payload", patient()));
            tokio::spawn(async move { transport.exchange(request).await })
        })
        .collect();
    for task in tasks {
        let answer = task.await.unwrap();
        assert_eq!(answer.fate, Fate::NeverSent(teimoso_retry::Proof::Connect));
        assert!(answer.unsent.is_some());
    }
}

#[tokio::test]
async fn an_exchange_that_is_dropped_while_it_connects_lets_the_next_one_connect() {
    // Nobody answers the handshake of the first, so it hangs in it.
    let first_is_here = Arc::new(Notify::new());
    let silent = Peer::start({
        let here = first_is_here.clone();
        move |_, stream| {
            let here = here.clone();
            async move {
                here.notify_one();
                common::drain(stream).await;
            }
        }
    })
    .await;
    let url = silent.url().replace("http:", "https:");
    let transport = transport();
    for accepted in 1..=2 {
        let (transport, request) = (transport.clone(), exchange(&url, "payload", patient()));
        let task = tokio::spawn(async move { transport.exchange(request).await.fate });
        first_is_here.notified().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(silent.accepted(), accepted);
    }
}

#[tokio::test]
async fn canary_a_refused_stream_was_not_processed_and_the_connection_goes_on() {
    let peer = peer(|_, mut frames| async move {
        let stream = frames.request().await.unwrap();
        frames.reset(stream, REFUSED_STREAM).await;
        frames.answer_all().await;
    })
    .await;
    let transport = transport();
    let refused = send(&transport, &peer).await;
    assert_eq!(fate_and_kind(&refused), (Fate::NotProcessed(Nack::RefusedStream), Some(ErrorKind::Reset)));
    assert_eq!(refused.error.unwrap().message, "get a response: the peer refused the stream");
    let second = send(&transport, &peer).await;
    assert_eq!((second.fate, second.reused, peer.accepted()), (Fate::Answered, true, 1));
}

#[tokio::test]
async fn canary_any_other_reset_is_ambiguous_and_the_connection_is_left() {
    for code in [INTERNAL_ERROR, CANCEL, NO_ERROR] {
        let peer = peer(move |number, mut frames| async move {
            if number == 1 {
                let stream = frames.request().await.unwrap();
                frames.reset(stream, code).await;
            }
            frames.answer_all().await;
        })
        .await;
        let transport = transport();
        let answer = send(&transport, &peer).await;
        assert_eq!(fate_and_kind(&answer), (Fate::Ambiguous(Why::Reset), Some(ErrorKind::Reset)), "{code}");
        let second = send(&transport, &peer).await;
        assert_eq!((second.fate, second.reused, peer.accepted()), (Fate::Answered, false, 2));
    }
}

#[tokio::test]
async fn canary_a_goaway_below_the_stream_was_not_processed_whatever_its_code() {
    for code in [NO_ERROR, INTERNAL_ERROR] {
        let peer = peer(move |number, mut frames| async move {
            if number == 1 {
                frames.request().await.unwrap();
                frames.go_away(0, code).await;
                frames.close().await;
            } else {
                frames.answer_all().await;
            }
        })
        .await;
        let transport = transport();
        let answer = send(&transport, &peer).await;
        let expected = (Fate::NotProcessed(Nack::GoAway), Some(ErrorKind::Closed));
        assert_eq!(fate_and_kind(&answer), expected, "{code}");
        let second = send(&transport, &peer).await;
        assert_eq!((second.fate, second.reused, peer.accepted()), (Fate::Answered, false, 2));
    }
}

#[tokio::test]
async fn canary_a_goaway_that_covers_the_stream_and_an_end_is_ambiguous() {
    for code in [NO_ERROR, INTERNAL_ERROR] {
        let peer = peer(move |_, mut frames| async move {
            let stream = frames.request().await.unwrap();
            frames.go_away(stream, code).await;
            frames.close().await;
        })
        .await;
        let answer = send(&transport(), &peer).await;
        let expected = (Fate::Ambiguous(Why::Closed), Some(ErrorKind::Closed));
        assert_eq!(fate_and_kind(&answer), expected, "{code}");
    }
}

#[tokio::test]
async fn canary_an_end_without_a_word_is_ambiguous() {
    let peer = peer(|_, mut frames| async move {
        frames.request().await.unwrap();
        frames.close().await;
    })
    .await;
    let answer = send(&transport(), &peer).await;
    assert_eq!(fate_and_kind(&answer), (Fate::Ambiguous(Why::Closed), Some(ErrorKind::Closed)));
}

#[tokio::test]
async fn canary_a_frame_that_makes_no_sense_is_ambiguous_protocol() {
    let peer = peer(|_, mut frames| async move {
        let stream = frames.request().await.unwrap();
        // A body before its head.
        frames.send(DATA, 0, stream, b"?").await;
        while frames.next().await.is_some() {}
    })
    .await;
    let answer = send(&transport(), &peer).await;
    assert_eq!(fate_and_kind(&answer), (Fate::Ambiguous(Why::Protocol), Some(ErrorKind::Protocol)));
}

#[tokio::test]
async fn canary_something_else_than_http2_is_ambiguous_protocol() {
    let peer = Peer::answering_once(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    let answer = send(&transport(), &peer).await;
    assert_eq!(fate_and_kind(&answer), (Fate::Ambiguous(Why::Protocol), Some(ErrorKind::Protocol)));
}

#[tokio::test]
async fn a_graceful_goaway_lets_the_stream_end_and_takes_no_further_one() {
    let peer = peer(|_, mut frames| async move {
        let stream = frames.request().await.unwrap();
        frames.go_away(0x7fff_ffff, NO_ERROR).await;
        frames.answer(stream, b"ok").await;
        frames.close().await;
    })
    .await;
    let transport = transport();
    for accepted in 1..=2 {
        let answer = send(&transport, &peer).await;
        assert_eq!((answer.fate, answer.reused, peer.accepted()), (Fate::Answered, false, accepted));
        assert_eq!(read(answer).await, (200, "ok".into()));
    }
}

#[tokio::test]
async fn an_idle_connection_that_the_peer_closed_is_not_used() {
    let closed = Arc::new(Notify::new());
    let peer = peer({
        let closed = closed.clone();
        move |_, mut frames| {
            let closed = closed.clone();
            async move {
                let stream = frames.request().await.unwrap();
                frames.answer(stream, b"ok").await;
                // Returns when the other side has closed too, so it knows.
                frames.close().await;
                closed.notify_one();
            }
        }
    })
    .await;
    let transport = transport();
    for accepted in 1..=2 {
        assert_eq!(read(send(&transport, &peer).await).await, (200, "ok".into()));
        closed.notified().await;
        assert_eq!(peer.accepted(), accepted);
    }
}

#[tokio::test]
async fn silence_until_the_deadline_is_ambiguous_and_the_connection_is_left() {
    let peer = peer(|number, mut frames| async move {
        if number == 1 {
            while frames.next().await.is_some() {}
        } else {
            frames.answer_all().await;
        }
    })
    .await;
    let transport = transport();
    let late = transport.exchange(exchange(&peer.url(), "payload", hasty())).await;
    assert_eq!(fate_and_kind(&late), (Fate::Ambiguous(Why::Timeout), Some(ErrorKind::Timeout)));
    let second = send(&transport, &peer).await;
    assert_eq!((second.fate, second.reused, peer.accepted()), (Fate::Answered, false, 2));
}

#[tokio::test]
async fn without_a_pool_each_exchange_has_its_own_connection() {
    let peer = peer(|_, frames| frames.answer_all()).await;
    let transport = builder().http_version(HttpVersions::Http2Only).pool_idle_per_host(0).build().unwrap();
    for accepted in 1..=2 {
        assert_eq!(read(send(&transport, &peer).await).await, (200, "ok".into()));
        assert_eq!(peer.accepted(), accepted);
    }
}

#[tokio::test]
async fn bodies_are_streamed_both_ways() {
    let (feed, fed) = mpsc::unbounded_channel();
    let go_on = Arc::new(Notify::new());
    let peer = peer({
        let go_on = go_on.clone();
        move |_, mut frames| {
            let (feed, go_on) = (feed.clone(), go_on.clone());
            async move {
                let head = frames.next().await.unwrap();
                assert_eq!(head.kind, HEADERS);
                feed.send(Bytes::from_static(b"late")).unwrap();
                let data = frames.next().await.unwrap();
                assert_eq!((data.kind, &data.payload[..]), (DATA, &b"late"[..]));
                frames.send(HEADERS, END_HEADERS, head.stream, STATUS_200).await;
                frames.send(DATA, 0, head.stream, b"first").await;
                go_on.notified().await;
                frames.send(DATA, 1, head.stream, b"second").await;
                while frames.next().await.is_some() {}
            }
        }
    })
    .await;
    let request = exchange(&peer.url(), RequestBody::stream(Fed(fed)), patient());
    let answer = transport().exchange(request).await;
    let mut body = answer.response.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
    go_on.notify_one();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "second");
    assert!(body.frame().await.is_none());
}

/// RFC 9113 §8.1: a server that has said all asks for the end of an upload with a reset.
#[tokio::test]
async fn canary_an_early_answer_in_one_piece_with_its_reset_is_answered_during_an_upload() {
    for code in [NO_ERROR, CANCEL, INTERNAL_ERROR] {
        let peer = peer(move |_, mut frames| async move {
            let stream = frames.next().await.unwrap().stream;
            frames.answer_and_reset(stream, code).await;
            while frames.next().await.is_some() {}
        })
        .await;
        let upload = exchange(&peer.url(), vec![b'x'; 1_000_000], patient());
        let answer = transport().exchange(upload).await;
        assert_eq!(answer.fate, Fate::Answered, "{code}: {:?}", answer.error);
        assert_eq!(answer.response.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_body_dropped_in_the_middle_resets_its_stream_and_no_other() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let peer = peer(move |_, mut frames| {
        let tell = tell.clone();
        async move {
            let stream = frames.request().await.unwrap();
            frames.send(HEADERS, END_HEADERS, stream, STATUS_200).await;
            frames.send(DATA, 0, stream, b"half").await;
            let reset = frames.next().await.unwrap();
            tell.send((reset.kind, reset.stream == stream, reset.payload)).unwrap();
            frames.answer_all().await;
        }
    })
    .await;
    let transport = transport();
    let mut body = send(&transport, &peer).await.response.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half");
    drop(body);
    assert_eq!(told.recv().await.unwrap(), (RST_STREAM, true, CANCEL.to_be_bytes().to_vec()));
    let second = send(&transport, &peer).await;
    assert_eq!((second.fate, second.reused, peer.accepted()), (Fate::Answered, true, 1));
}

#[tokio::test]
async fn an_exchange_that_is_dropped_resets_its_stream_and_no_other() {
    let (seen, (tell, mut told)) = (Arc::new(Notify::new()), mpsc::unbounded_channel());
    let peer = peer({
        let seen = seen.clone();
        move |_, mut frames| {
            let (seen, tell) = (seen.clone(), tell.clone());
            async move {
                let stream = frames.request().await.unwrap();
                seen.notify_one();
                let reset = frames.next().await.unwrap();
                tell.send((reset.kind, reset.stream == stream, reset.payload)).unwrap();
                frames.answer_all().await;
            }
        }
    })
    .await;
    let transport = transport();
    let task = tokio::spawn({
        let (transport, request) = (transport.clone(), exchange(&peer.url(), "payload", patient()));
        async move { transport.exchange(request).await.fate }
    });
    seen.notified().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(told.recv().await.unwrap(), (RST_STREAM, true, CANCEL.to_be_bytes().to_vec()));
    let second = send(&transport, &peer).await;
    assert_eq!((second.fate, second.reused, peer.accepted()), (Fate::Answered, true, 1));
}

#[tokio::test]
async fn canary_a_body_cut_on_its_stream_or_with_its_connection_says_how() {
    for (with_reset, kind) in [(true, ErrorKind::Reset), (false, ErrorKind::Closed)] {
        let half_read = Arc::new(Notify::new());
        let peer = peer({
            let half_read = half_read.clone();
            move |_, mut frames| {
                let half_read = half_read.clone();
                async move {
                    let stream = frames.request().await.unwrap();
                    frames.send(HEADERS, END_HEADERS, stream, STATUS_200).await;
                    frames.send(DATA, 0, stream, b"half").await;
                    half_read.notified().await;
                    if with_reset {
                        frames.reset(stream, INTERNAL_ERROR).await;
                    }
                    frames.close().await;
                }
            }
        })
        .await;
        let transport = transport();
        let mut body = send(&transport, &peer).await.response.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half");
        half_read.notify_one();
        assert_eq!(body.frame().await.unwrap().unwrap_err().kind(), kind);
        assert!(!send_is_reused(&transport, &peer).await);
    }
}

/// The body that comes in two pieces and ends as `end` has it.
async fn body_ending_with(
    head: &'static [u8],
    end: fn(u32) -> (u8, u32, Vec<u8>),
) -> Result<Bytes, BodyError> {
    let peer = peer(move |_, mut frames| async move {
        let stream = frames.request().await.unwrap();
        frames.send(HEADERS, END_HEADERS, stream, head).await;
        frames.send(DATA, 0, stream, b"half").await;
        let (kind, stream, payload) = end(stream);
        frames.send(kind, 0, stream, &payload).await;
        while frames.next().await.is_some() {}
    })
    .await;
    send(&transport(), &peer).await.response.unwrap().into_body().collect(usize::MAX).await
}

/// RFC 9113 §8.1: only END_STREAM ends a body. hyper takes NO_ERROR for an end, too.
#[tokio::test]
async fn canary_a_body_that_ends_without_error_and_without_end_stream_is_cut() {
    /// `:status: 200` and `content-length: 10`, its name the twenty-eighth of the static table.
    const TEN_BYTES: &[u8] = &[0x88, 0x5c, 2, b'1', b'0'];
    let reset = |stream| (RST_STREAM, stream, NO_ERROR.to_be_bytes().to_vec());
    let go_away = |_| (GOAWAY, 0, [0; 8].to_vec());
    for cut in [
        body_ending_with(STATUS_200, reset).await,
        body_ending_with(TEN_BYTES, reset).await,
        body_ending_with(STATUS_200, go_away).await,
    ] {
        assert_eq!(cut.unwrap_err().kind(), ErrorKind::Reset);
    }
}

async fn send_is_reused(transport: &Transport, peer: &Peer) -> bool {
    transport.exchange(exchange(&peer.url(), "payload", hasty())).await.reused
}

#[tokio::test]
async fn canary_a_body_of_the_callers_that_fails_is_his_failure() {
    let peer = peer(|_, frames| frames.answer_all()).await;
    let body = RequestBody::stream(Pieces::of(&["some", "", ""]).then_failing());
    let answer = transport().exchange(exchange(&peer.url(), body, patient())).await;
    let expected = (Fate::Ambiguous(Why::Cancelled), Some(ErrorKind::RequestBody));
    assert_eq!(fate_and_kind(&answer), expected);
}

#[tokio::test]
async fn deliveries_speak_http_1_1_whatever_the_versions_of_exchanges() {
    let peer = Peer::answering(common::OK).await;
    let attempt = transport().attempt(common::post(&peer.url(), "payload", patient())).await;
    assert_eq!((attempt.fate, attempt.status()), (Fate::Answered, Some(200)));
    assert_eq!(attempt.response.unwrap().version, http::Version::HTTP_11);
}
