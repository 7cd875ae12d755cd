//! One attempt over real sockets: what a peer does to a connection, and the fate that follows.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use common::{OK, Peer, answered, attempt, drain, hasty, patient, post, read_request, reset, transport};
use teimoso_http::{Attempt, AttemptLimits, ErrorKind};
use teimoso_retry::{Fate, Proof, Why};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

fn assert_ambiguous(attempt: &Attempt, why: Why, kind: ErrorKind) {
    assert_eq!((attempt.fate, attempt.error_kind()), (Fate::Ambiguous(why), Some(kind)));
    assert!(attempt.response.is_none());
}

/// The first answer of a connection is fine; then `after` happens to it.
async fn peer_that_spoils_after_one<F, S>(after: S) -> Peer
where
    S: Fn(tokio::net::TcpStream) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let after = Arc::new(after);
    Peer::start(move |number, mut stream| {
        let after = after.clone();
        async move {
            read_request(&mut stream).await.unwrap();
            stream.write_all(OK).await.unwrap();
            if number == 1 {
                after(stream).await;
            } else {
                drain(stream).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_refused_connection_was_never_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let attempt = attempt(&format!("http://{address}/?token=s3cret"), patient()).await;
    assert_eq!(attempt.fate, Fate::NeverSent(Proof::Connect));
    let error = attempt.error.unwrap();
    assert_eq!(error.kind, ErrorKind::ConnectRefused);
    assert_eq!(error.message, format!("connect to {address}: connection refused"));
    assert_eq!(attempt.peer, Some(address));
}

#[tokio::test]
async fn silence_until_the_deadline_is_ambiguous_and_its_connection_is_not_reused() {
    let peer = Peer::start(|_, stream| drain(stream)).await;
    let transport = transport();
    for accepted in 1..=2 {
        let attempt = transport.attempt(post(&peer.url(), "payload", hasty())).await;
        assert_ambiguous(&attempt, Why::Timeout, ErrorKind::Timeout);
        assert_eq!(peer.accepted(), accepted);
    }
}

#[tokio::test]
async fn fin_before_the_request_is_read_is_ambiguous() {
    let peer = Peer::start(|_, mut stream| async move {
        stream.readable().await.unwrap();
        stream.shutdown().await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let attempt = attempt(&peer.url(), patient()).await;
    assert_ambiguous(&attempt, Why::Closed, ErrorKind::Closed);
}

#[tokio::test]
async fn fin_after_the_request_was_read_is_ambiguous() {
    let peer = Peer::answering_once(b"").await;
    let attempt = attempt(&peer.url(), patient()).await;
    assert_ambiguous(&attempt, Why::Closed, ErrorKind::Closed);
    assert_eq!(attempt.error.unwrap().message, "get a response: the peer closed the connection");
}

#[tokio::test]
async fn rst_after_the_request_was_read_is_ambiguous() {
    let peer = Peer::start(|_, mut stream| async move {
        read_request(&mut stream).await.unwrap();
        reset(stream);
    })
    .await;
    let attempt = attempt(&peer.url(), patient()).await;
    assert_ambiguous(&attempt, Why::Reset, ErrorKind::Reset);
}

#[tokio::test]
async fn part_of_a_head_then_fin_is_ambiguous() {
    for part in [&b"HTTP/1.1 20"[..], b"HTTP/1.1 200 OK\r\nx: y\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"] {
        let peer = Peer::answering_once(part).await;
        assert_ambiguous(&attempt(&peer.url(), patient()).await, Why::Closed, ErrorKind::Closed);
    }
}

#[tokio::test]
async fn garbage_is_ambiguous_protocol() {
    let peer = Peer::answering_once(b"<html>what?</html>\r\n\r\n").await;
    assert_ambiguous(&attempt(&peer.url(), patient()).await, Why::Protocol, ErrorKind::Protocol);
}

/// A peer on a thread of its own, so that there is always something to read: `head`, then `piece` for ever.
fn flooding(head: &'static [u8], piece: &'static [u8]) -> (String, std::thread::JoinHandle<()>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let flood = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        stream.write_all(head).unwrap();
        let pieces = piece.repeat(1000);
        while stream.write_all(&pieces).is_ok() {}
    });
    (url, flood)
}

#[tokio::test]
async fn g11_interim_responses_count_towards_the_cap_of_the_head() {
    let (url, flood) = flooding(b"", b"HTTP/1.1 102 Processing\r\n\r\n");
    assert_ambiguous(&attempt(&url, patient()).await, Why::Protocol, ErrorKind::Protocol);
    flood.join().unwrap();
}

#[tokio::test]
async fn a_flood_does_not_starve_the_deadline() {
    let (url, flood) = flooding(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"3\r\nabc\r\n");
    let limits = AttemptLimits { response_body_max: usize::MAX, ..hasty() };
    let attempt = attempt(&url, limits).await;
    assert_eq!((attempt.fate, attempt.error_kind()), (Fate::BodyLost, Some(ErrorKind::Timeout)));
    let took = attempt.timings.total.unwrap();
    assert!(took < Duration::from_secs(2), "{took:?}");
    flood.join().unwrap();
}

#[tokio::test]
async fn an_interim_response_before_the_final_one_is_skipped() {
    let peer = Peer::answering_once(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n").await;
    let attempt = attempt(&peer.url(), patient()).await;
    assert_eq!((attempt.fate, answered(&attempt)), (Fate::Answered, Some((204, &b""[..], false))));
}

#[tokio::test]
async fn two_attempts_share_one_connection() {
    let peer = Peer::answering(OK).await;
    let transport = transport();
    for (number, reused) in [(1, false), (2, true), (3, true)] {
        let attempt = transport.attempt(post(&peer.url(), "payload", patient())).await;
        assert_eq!((attempt.fate, answered(&attempt)), (Fate::Answered, Some((200, &b"ok"[..], false))));
        assert_eq!((attempt.reused, attempt.peer), (reused, Some(peer.address)), "attempt {number}");
        assert_eq!(attempt.timings.connect.is_some(), !reused);
        assert!(attempt.timings.first_byte.is_some() && attempt.timings.total.is_some());
    }
    assert_eq!(peer.accepted(), 1);
}

/// The engine's speed rests on it: one wake-up to write, one to read, none between tasks.
#[tokio::test]
async fn an_exchange_on_a_reused_connection_takes_two_polls() {
    let peer = Peer::answering(OK).await;
    let transport = transport();
    let request = post(&peer.url(), "payload", patient());
    assert_eq!(transport.attempt(request.clone()).await.fate, Fate::Answered);
    for _ in 0..10 {
        // Taking the last piece of a body wakes its sender once more, after the attempt is over.
        tokio::task::yield_now().await;
        let mut polls = 0;
        let mut exchange = pin!(transport.attempt(request.clone()));
        let attempt = poll_fn(|cx| {
            polls += 1;
            exchange.as_mut().poll(cx)
        })
        .await;
        assert_eq!((attempt.fate, attempt.reused, polls), (Fate::Answered, true, 2));
    }
}

#[tokio::test]
async fn fin_on_the_second_request_of_a_connection_is_ambiguous() {
    let peer = peer_that_spoils_after_one(|mut stream| async move {
        read_request(&mut stream).await.unwrap();
        stream.shutdown().await.unwrap();
        drain(stream).await;
    })
    .await;
    let transport = transport();
    let first = transport.attempt(post(&peer.url(), "payload", patient())).await;
    assert_eq!(first.fate, Fate::Answered);
    let second = transport.attempt(post(&peer.url(), "payload", patient())).await;
    assert_ambiguous(&second, Why::Closed, ErrorKind::Closed);
    assert!(second.reused);
    assert_eq!(peer.accepted(), 1, "an ambiguous exchange is not repeated behind the caller's back");
    let third = transport.attempt(post(&peer.url(), "payload", patient())).await;
    assert_eq!((third.fate, third.reused, peer.accepted()), (Fate::Answered, false, 2));
}

/// Spoils an idle connection, waits until the peer is done with that, and attempts again.
async fn attempt_over_a_spoilt_idle_connection(spoil: fn(tokio::net::TcpStream)) {
    let spoilt = Arc::new(Notify::new());
    let peer = peer_that_spoils_after_one({
        let spoilt = spoilt.clone();
        move |stream| {
            let spoilt = spoilt.clone();
            async move {
                spoil(stream);
                spoilt.notify_one();
            }
        }
    })
    .await;
    let transport = transport();
    let first = transport.attempt(post(&peer.url(), "payload", patient())).await;
    assert_eq!(first.fate, Fate::Answered);
    spoilt.notified().await;
    let second = transport.attempt(post(&peer.url(), "payload", patient())).await;
    assert_eq!((second.fate, second.reused, peer.accepted()), (Fate::Answered, false, 2));
}

#[tokio::test]
async fn an_idle_connection_that_got_a_fin_is_not_used() {
    attempt_over_a_spoilt_idle_connection(drop).await;
}

#[tokio::test]
async fn an_idle_connection_that_got_a_reset_is_not_used() {
    attempt_over_a_spoilt_idle_connection(reset).await;
}

#[tokio::test]
async fn an_idle_connection_with_unsolicited_bytes_is_not_used() {
    attempt_over_a_spoilt_idle_connection(|stream| {
        // A server that times an idle connection out may say so.
        stream.try_write(b"HTTP/1.1 408 Request Timeout\r\n\r\n").unwrap();
        tokio::spawn(drain(stream));
    })
    .await;
}

#[tokio::test]
async fn an_answer_with_bytes_beyond_its_length_spoils_its_connection() {
    let peer =
        Peer::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n").await;
    let transport = transport();
    for accepted in 1..=2 {
        let attempt = transport.attempt(post(&peer.url(), "payload", patient())).await;
        assert_eq!((attempt.fate, answered(&attempt)), (Fate::Answered, Some((200, &b"ok"[..], false))));
        assert_eq!(peer.accepted(), accepted);
    }
}

#[tokio::test]
async fn a_connection_that_the_peer_wants_closed_is_not_reused() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"[..],
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\nok",
    ] {
        let peer = Peer::answering_once(answer).await;
        let transport = transport();
        for accepted in 1..=2 {
            let attempt = transport.attempt(post(&peer.url(), "payload", patient())).await;
            assert_eq!((attempt.fate, answered(&attempt)), (Fate::Answered, Some((200, &b"ok"[..], false))));
            assert_eq!(peer.accepted(), accepted);
        }
    }
}

#[tokio::test]
async fn an_early_503_during_a_large_upload_is_answered() {
    let peer = Peer::start(|_, mut stream| async move {
        let mut some = [0; 1024];
        stream.read_exact(&mut some).await.unwrap();
        stream.write_all(b"HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        // Unread bytes turn this close into a reset, which must not hide the answer.
        drop(stream);
    })
    .await;
    let transport = transport();
    let upload = vec![b'x'; 8 * 1024 * 1024];
    for accepted in 1..=20 {
        let attempt = transport.attempt(post(&peer.url(), upload.clone(), patient())).await;
        assert_eq!((attempt.fate, answered(&attempt)), (Fate::Answered, Some((503, &b""[..], false))));
        assert_eq!(attempt.response.unwrap().headers["retry-after"], "7");
        assert_eq!((attempt.reused, peer.accepted()), (false, accepted));
    }
}

#[tokio::test]
async fn a_reset_in_the_middle_of_a_large_upload_is_ambiguous() {
    let peer = Peer::start(|_, mut stream| async move {
        let mut some = [0; 1024];
        stream.read_exact(&mut some).await.unwrap();
        reset(stream);
    })
    .await;
    let upload = vec![b'x'; 8 * 1024 * 1024];
    let attempt = transport().attempt(post(&peer.url(), upload, patient())).await;
    assert_ambiguous(&attempt, Why::Reset, ErrorKind::Reset);
}

#[tokio::test]
async fn dropping_an_attempt_closes_its_connection() {
    let (seen, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let peer = Peer::start({
        let (seen, gone) = (seen.clone(), gone.clone());
        move |_, mut stream| {
            let (seen, gone) = (seen.clone(), gone.clone());
            async move {
                read_request(&mut stream).await.unwrap();
                seen.notify_one();
                drain(stream).await;
                gone.notify_one();
            }
        }
    })
    .await;
    let request = post(&peer.url(), "payload", patient());
    let transport = transport();
    let task = tokio::spawn(async move { transport.attempt(request.clone()).await.fate });
    seen.notified().await;
    task.abort();
    gone.notified().await;
    assert!(task.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn an_exchange_over_a_kept_connection_is_woken_by_its_answer_and_by_nothing_else() {
    let peer = Peer::answering(OK).await;
    let transport = transport();
    for number in 0..4 {
        let mut polls = 0;
        let mut attempt = pin!(transport.attempt(post(&peer.url(), "payload", patient())));
        let attempt = poll_fn(|cx| {
            polls += 1;
            attempt.as_mut().poll(cx)
        })
        .await;
        assert_eq!((answered(&attempt), attempt.reused), (Some((200, b"ok".as_slice(), false)), number > 0));
        if attempt.reused {
            assert_eq!(polls, 2, "attempt {number}");
        }
    }
}
