//! Bodies that are read and written as streams, over HTTP/1.1 and real sockets.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use common::exchanges::{Fed, Pieces, exchange, read};
use common::{OK, Peer, drain, hasty, patient, read_request, reset, transport};
use http_body_util::{BodyExt, Full};
use teimoso_http::{AttemptLimits, BodyError, ErrorKind, RequestBody, ResponseBody, Target};
use teimoso_retry::{Fate, Proof, Why};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

/// Reads until what came ends with `ending`; what came before the end of the other side otherwise.
async fn read_until(stream: &mut tokio::net::TcpStream, ending: &[u8]) -> String {
    let mut read = Vec::new();
    while !read.ends_with(ending) && matches!(stream.read_buf(&mut read).await, Ok(1..)) {}
    String::from_utf8(read).unwrap()
}

/// Sends this body and returns what the peer read up to `ending`.
async fn what_arrives(body: RequestBody, ending: &'static [u8]) -> String {
    let (tell, mut told) = mpsc::unbounded_channel();
    let peer = Peer::start(move |_, mut stream| {
        let tell = tell.clone();
        async move {
            tell.send(read_until(&mut stream, ending).await).unwrap();
            stream.write_all(OK).await.unwrap();
            drain(stream).await;
        }
    })
    .await;
    let answer = transport().exchange(exchange(&peer.url(), body, patient())).await;
    assert_eq!(read(answer).await, (200, "ok".into()));
    told.recv().await.unwrap()
}

#[tokio::test]
async fn a_stream_of_unknown_size_goes_out_in_chunks() {
    let body = RequestBody::stream(Pieces::of(&["first ", "", "second"]));
    let arrived = what_arrives(body, b"\r\n0\r\n\r\n").await;
    let (head, body) = arrived.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("transfer-encoding: chunked") && !head.contains("content-length"), "{head}");
    assert_eq!(body, "6\r\nfirst \r\n6\r\nsecond\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_body_of_known_size_goes_out_with_its_length() {
    let known = || Full::new(Bytes::from_static(b"known"));
    for body in [RequestBody::stream(known()), RequestBody::factory(known), RequestBody::from("known")] {
        let arrived = what_arrives(body, b"known").await;
        let (head, body) = arrived.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-length: 5") && !head.contains("chunked"), "{head}");
        assert_eq!(body, "known");
    }
}

#[tokio::test]
async fn a_request_is_streamed_while_its_pieces_are_made() {
    let (feed, fed) = mpsc::unbounded_channel();
    let peer = Peer::start(move |_, mut stream| {
        let feed = feed.clone();
        async move {
            read_until(&mut stream, b"\r\n\r\n").await;
            // The head is here, so the rest is made now.
            feed.send(Bytes::from_static(b"late")).unwrap();
            drop(feed);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            drain(stream).await;
        }
    })
    .await;
    let request = exchange(&peer.url(), RequestBody::stream(Fed(fed)), patient());
    assert_eq!(read(transport().exchange(request).await).await, (200, Bytes::new()));
}

/// A peer that writes each piece when it is told to.
async fn peer_in_pieces(
    head: &'static [u8],
    pieces: &'static [&'static [u8]],
    go_on: Arc<Notify>,
    gone: Arc<Notify>,
) -> Peer {
    Peer::start(move |_, mut stream| {
        let (go_on, gone) = (go_on.clone(), gone.clone());
        async move {
            while read_request(&mut stream).await.is_some() {
                stream.write_all(head).await.unwrap();
                for piece in pieces {
                    go_on.notified().await;
                    stream.write_all(piece).await.unwrap();
                }
            }
            gone.notify_one();
        }
    })
    .await
}

async fn next_piece(body: &mut ResponseBody) -> Option<Bytes> {
    body.frame().await.map(|frame| frame.unwrap().into_data().unwrap())
}

#[tokio::test]
async fn a_response_is_read_as_it_comes_and_its_connection_used_again() {
    let heads: [(&[u8], &[&[u8]]); 2] = [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n", &[b"ab", b"cd"]),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            &[b"2\r\nab\r\n", b"2\r\ncd\r\n0\r\n\r\n"],
        ),
    ];
    for (head, pieces) in heads {
        let go_on = Arc::new(Notify::new());
        let peer = peer_in_pieces(head, pieces, go_on.clone(), Arc::default()).await;
        let transport = transport();
        for reused in [false, true] {
            let answer = transport.exchange(exchange(&peer.url(), "payload", patient())).await;
            assert_eq!(
                (answer.fate, answer.reused, answer.peer),
                (Fate::Answered, reused, Some(peer.address))
            );
            assert!(answer.timings.first_byte.is_some() && answer.timings.total.is_some());
            let mut body = answer.response.unwrap().into_body();
            for piece in ["ab", "cd"] {
                go_on.notify_one();
                assert_eq!(next_piece(&mut body).await.unwrap(), piece);
            }
            assert_eq!(next_piece(&mut body).await, None);
            assert!(http_body::Body::is_end_stream(&body));
        }
        assert_eq!(peer.accepted(), 1);
    }
}

#[tokio::test]
async fn a_body_that_came_with_its_head_leaves_the_connection_free_before_it_is_dropped() {
    let peer = Peer::answering(OK).await;
    let transport = transport();
    let answer = transport.exchange(exchange(&peer.url(), "payload", patient())).await;
    let mut body = answer.response.unwrap().into_body();
    assert_eq!(next_piece(&mut body).await.unwrap(), "ok");
    let second = transport.exchange(exchange(&peer.url(), "payload", patient())).await;
    assert_eq!((second.fate, second.reused, peer.accepted()), (Fate::Answered, true, 1));
    assert_eq!(next_piece(&mut body).await, None);
}

/// As for attempts: one wake-up to write, one to read, and none for a body that came with its head.
#[tokio::test]
async fn an_exchange_on_a_reused_connection_takes_two_polls_and_its_body_one() {
    let peer = Peer::answering(OK).await;
    let transport = transport();
    let once = || exchange(&peer.url(), "payload", patient());
    assert_eq!(read(transport.exchange(once()).await).await.0, 200);
    for _ in 0..10 {
        // Taking the last piece of a body wakes its sender once more, after the exchange is over.
        tokio::task::yield_now().await;
        let (answer, polls) = counting(transport.exchange(once())).await;
        assert_eq!((answer.reused, polls), (true, 2));
        let (body, polls) = counting(answer.response.unwrap().into_body().collect(usize::MAX)).await;
        assert_eq!((body.unwrap(), polls), (Bytes::from_static(b"ok"), 1));
    }
}

/// What a future comes to, and how often it was polled.
async fn counting<F: Future>(future: F) -> (F::Output, usize) {
    let (mut polls, mut future) = (0, pin!(future));
    let output = poll_fn(|cx| {
        polls += 1;
        future.as_mut().poll(cx)
    })
    .await;
    (output, polls)
}

#[tokio::test]
async fn an_answer_without_a_body_frees_its_connection_at_once() {
    let peer = Peer::answering(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    let transport = transport();
    let first = transport.exchange(exchange(&peer.url(), "payload", patient())).await;
    let second = transport.exchange(exchange(&peer.url(), (), patient())).await;
    assert_eq!((second.reused, peer.accepted()), (true, 1));
    assert_eq!((read(first).await, read(second).await), ((204, Bytes::new()), (204, Bytes::new())));
}

#[tokio::test]
async fn attempts_and_exchanges_share_a_pool() {
    let peer = Peer::answering(OK).await;
    let transport = transport();
    assert_eq!(read(transport.exchange(exchange(&peer.url(), "payload", patient())).await).await.0, 200);
    let attempt = transport.attempt(common::post(&peer.url(), "payload", patient())).await;
    assert_eq!((attempt.fate, attempt.reused, peer.accepted()), (Fate::Answered, true, 1));
}

#[tokio::test]
async fn a_body_dropped_in_the_middle_closes_its_connection() {
    let (go_on, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n";
    let peer = peer_in_pieces(head, &[b"ab"], go_on.clone(), gone.clone()).await;
    let transport = transport();
    let answer = transport.exchange(exchange(&peer.url(), "payload", patient())).await;
    let mut body = answer.response.unwrap().into_body();
    go_on.notify_one();
    assert_eq!(next_piece(&mut body).await.unwrap(), "ab");
    drop(body);
    gone.notified().await;
    let second = transport.exchange(exchange(&peer.url(), "payload", patient())).await;
    assert_eq!((second.reused, peer.accepted()), (false, 2));
}

/// How a body ends that is read as a stream, and how when it is collected. The end comes once its first half was
/// read, or its head: a reset overtakes what nobody has read yet.
async fn ends(answer: &'static [u8], with_reset: bool) -> [BodyError; 2] {
    let go_on = Arc::new(Notify::new());
    let peer = Peer::start({
        let go_on = go_on.clone();
        move |_, mut stream| {
            let go_on = go_on.clone();
            async move {
                read_request(&mut stream).await.unwrap();
                stream.write_all(answer).await.unwrap();
                go_on.notified().await;
                if with_reset {
                    reset(stream);
                } else {
                    stream.shutdown().await.unwrap();
                    drain(stream).await;
                }
            }
        }
    })
    .await;
    let transport = transport();
    let streamed = transport.exchange(exchange(&peer.url(), "payload", patient())).await;
    assert_eq!(streamed.fate, Fate::Answered);
    let mut body = streamed.response.unwrap().into_body();
    assert_eq!(next_piece(&mut body).await.unwrap(), "half");
    go_on.notify_one();
    let streamed = body.frame().await.unwrap().unwrap_err();
    assert!(body.frame().await.is_none(), "after an error there is nothing");
    let collected = transport.exchange(exchange(&peer.url(), "payload", patient())).await;
    go_on.notify_one();
    let collected = collected.response.unwrap().into_body().collect(usize::MAX).await.unwrap_err();
    assert_eq!(peer.accepted(), 2, "a connection whose body broke is not used again");
    [streamed, collected]
}

#[tokio::test]
async fn a_body_cut_while_it_is_streamed_says_how() {
    let table: [(&[u8], bool, ErrorKind); 4] = [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", false, ErrorKind::Closed),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", false, ErrorKind::Closed),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", true, ErrorKind::Reset),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
            false,
            ErrorKind::Protocol,
        ),
    ];
    for (answer, with_reset, kind) in table {
        for error in ends(answer, with_reset).await {
            assert_eq!((error.kind(), error.is_timeout()), (kind, false), "{error}");
            assert!(error.message().starts_with("read the response body: "), "{error}");
        }
    }
}

#[tokio::test]
async fn a_pause_within_a_body_ends_it_streamed_or_collected() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    let gone = Arc::new(Notify::new());
    let peer = peer_in_pieces(head, &[b"never"], Arc::default(), gone.clone()).await;
    let transport = transport();
    for collects in [false, true] {
        let answer = transport.exchange(exchange(&peer.url(), "payload", hasty())).await;
        let mut body = answer.response.unwrap().into_body();
        let error = if collects {
            body.collect(usize::MAX).await.unwrap_err()
        } else {
            assert_eq!(next_piece(&mut body).await.unwrap(), "half");
            body.frame().await.unwrap().unwrap_err()
        };
        assert_eq!((error.kind(), error.is_timeout()), (ErrorKind::Timeout, true));
    }
    assert_eq!(peer.accepted(), 2);
}

#[tokio::test]
async fn g11_a_body_beyond_its_cap_ends_with_it_streamed_or_collected() {
    let limits = AttemptLimits { response_body_max: 3, ..patient() };
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n";
    for answer in [&b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd"[..], chunked] {
        let peer = Peer::answering(answer).await;
        let transport = transport();
        let streamed = transport.exchange(exchange(&peer.url(), "payload", limits)).await;
        let error = BodyExt::collect(streamed.response.unwrap().into_body()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        let collected = transport.exchange(exchange(&peer.url(), "payload", limits)).await;
        let error = collected.response.unwrap().into_body().collect(100).await.unwrap_err();
        assert_eq!(error.message(), "read the response body: it is larger than 3 bytes");
        let within = transport.exchange(exchange(&peer.url(), "payload", patient())).await;
        assert_eq!(within.response.unwrap().into_body().collect(4).await.unwrap(), "abcd");
    }
}

#[tokio::test]
async fn a_body_of_the_callers_that_fails_is_his_failure_and_leaves_the_request_ambiguous() {
    let peer = Peer::start(|_, stream| drain(stream)).await;
    let body = RequestBody::stream(Pieces::of(&["some", "", ""]).then_failing());
    let answer = transport().exchange(exchange(&peer.url(), body, patient())).await;
    let error = answer.error.unwrap();
    assert_eq!((answer.fate, error.kind), (Fate::Ambiguous(Why::Cancelled), ErrorKind::RequestBody));
    assert_eq!(error.message, "get a response: the request's own body failed");
}

#[tokio::test]
async fn a_stream_comes_back_when_there_is_no_connection_for_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let body = RequestBody::stream(Pieces::of(&["whole"]));
    let answer = transport().exchange(exchange(&url, body, patient())).await;
    assert_eq!(answer.fate, Fate::NeverSent(Proof::Connect));
    assert_eq!(answer.error.unwrap().kind, ErrorKind::ConnectRefused);
    let unsent = BodyExt::collect(answer.unsent.unwrap()).await.unwrap().to_bytes();
    assert_eq!(unsent, "whole");
}

#[tokio::test]
async fn an_exchange_without_time_is_never_sent() {
    let peer = Peer::answering(OK).await;
    let limits = AttemptLimits { total_timeout: std::time::Duration::ZERO, ..patient() };
    let answer = transport().exchange(exchange(&peer.url(), "payload", limits)).await;
    assert_eq!(answer.fate, Fate::NeverSent(Proof::NoConnection));
    assert_eq!(answer.error.unwrap().kind, ErrorKind::Timeout);
    assert!(answer.unsent.is_some());
    assert_eq!(peer.accepted(), 0);
}

#[tokio::test]
async fn an_early_503_ends_a_streamed_upload_and_is_read() {
    let peer = Peer::start(|_, mut stream| async move {
        read_until(&mut stream, b"some\r\n").await;
        stream.write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy").await.unwrap();
        drain(stream).await;
    })
    .await;
    let (feed, fed) = mpsc::unbounded_channel();
    feed.send(Bytes::from_static(b"some")).unwrap();
    let transport = transport();
    let request = exchange(&peer.url(), RequestBody::stream(Fed(fed)), patient());
    assert_eq!(read(transport.exchange(request).await).await, (503, "busy".into()));
    // The upload never ended, so its connection cannot carry another request.
    let (_, fed) = mpsc::unbounded_channel();
    let second = transport.exchange(exchange(&peer.url(), RequestBody::stream(Fed(fed)), hasty())).await;
    assert_eq!((second.reused, peer.accepted()), (false, 2));
    drop(feed);
}

#[tokio::test]
async fn a_head_request_is_answered_with_its_length_and_no_body() {
    let peer = Peer::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
    let transport = transport();
    for reused in [false, true] {
        let mut request = exchange(&peer.url(), (), patient());
        request.method = http::Method::HEAD;
        request.target = Arc::new(Target::parse(&peer.url()).unwrap());
        let answer = transport.exchange(request).await;
        assert_eq!(answer.reused, reused);
        assert_eq!(answer.response.as_ref().unwrap().headers()["content-length"], "1000");
        assert_eq!(read(answer).await, (200, Bytes::new()));
    }
}
