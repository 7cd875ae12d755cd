//! What goes out, byte by byte, and how response bodies come in under their limits.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::{OK, Peer, answered, attempt, hasty, patient, post, read_request, reset, transport};
use http::{HeaderMap, HeaderValue, Method};
use teimoso_http::{Attempt, AttemptLimits, AttemptRequest, ErrorKind, Target};
use teimoso_retry::{Fate, Refusal, Why};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

/// Makes one attempt and returns the request as the peer read it.
async fn as_sent(request: impl FnOnce(&str) -> AttemptRequest) -> String {
    let (sender, mut arrived) = mpsc::unbounded_channel();
    let peer = Peer::start(move |_, mut stream| {
        let sender = sender.clone();
        async move {
            sender.send(read_request(&mut stream).await.unwrap()).unwrap();
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    let attempt = transport().attempt(request(&peer.url())).await;
    assert_eq!(attempt.fate, Fate::Answered);
    let text = String::from_utf8(arrived.recv().await.unwrap()).unwrap();
    text.replace(&peer.address.to_string(), "PEER")
}

#[tokio::test]
async fn g10_a_request_has_host_length_and_our_user_agent_and_nothing_else() {
    let sent = as_sent(|url| post(url, "payload", patient())).await;
    let agent = concat!("teimoso/", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        sent,
        format!(
            "POST /hook?token=s3cret HTTP/1.1\r\nhost: PEER\r\nuser-agent: {agent}\r\ncontent-length: 7\r\n\r\npayload"
        )
    );
}

#[tokio::test]
async fn the_callers_headers_win_except_for_framing() {
    let sent = as_sent(|url| {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "elsewhere.test"),
            ("content-length", "99"),
            ("transfer-encoding", "chunked"),
            ("connection", "close"),
            ("keep-alive", "1"),
            ("proxy-connection", "close"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("upgrade", "h2c"),
            ("user-agent", "mine/1"),
            ("x-twice", "a"),
            ("x-twice", "b"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        AttemptRequest { headers, ..post(url, "payload", patient()) }
    })
    .await;
    // The order of different fields says nothing (RFC 9110 §5.3); that of the same field is kept.
    assert_eq!(
        sent,
        "POST /hook?token=s3cret HTTP/1.1\r\nhost: PEER\r\nx-twice: a\r\nx-twice: b\r\nuser-agent: mine/1\r\n\
         content-length: 7\r\n\r\npayload"
    );
}

#[tokio::test]
async fn an_empty_post_says_so_and_a_get_does_not() {
    let sent = as_sent(|url| post(url, "", patient())).await;
    assert!(sent.ends_with("content-length: 0\r\n\r\n"), "{sent}");
    let sent = as_sent(|url| AttemptRequest { method: Method::GET, ..post(url, "", patient()) }).await;
    assert!(sent.starts_with("GET /hook") && !sent.contains("content-length"), "{sent}");
}

#[tokio::test]
async fn g7_every_byte_of_a_large_payload_arrives() {
    let payload: Bytes =
        (0..3 * 1024 * 1024_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (sender, mut arrived) = mpsc::unbounded_channel();
    let peer = Peer::start(move |_, mut stream| {
        let sender = sender.clone();
        async move {
            sender.send(read_request(&mut stream).await.unwrap()).unwrap();
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    let attempt = transport().attempt(post(&peer.url(), payload.clone(), patient())).await;
    assert_eq!(attempt.fate, Fate::Answered);
    assert!(arrived.recv().await.unwrap().ends_with(&payload));
}

#[tokio::test]
async fn connect_is_refused_without_a_connection() {
    let peer = Peer::answering(OK).await;
    let request = AttemptRequest { method: Method::CONNECT, ..post(&peer.url(), "", patient()) };
    let attempt = transport().attempt(request.clone()).await;
    assert_eq!(attempt.fate, Fate::Refused(Refusal::InvalidDestination));
    assert_eq!((attempt.error_kind(), peer.accepted()), (Some(ErrorKind::InvalidDestination), 0));
}

#[tokio::test]
async fn a_status_gives_its_kind() {
    for (answer, kind) in [
        (&b"HTTP/1.1 204 No Content\r\n\r\n"[..], None),
        (b"HTTP/1.1 301 Moved\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n", Some(ErrorKind::Http3xx)),
        (b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n", Some(ErrorKind::Http4xx)),
        (b"HTTP/1.1 599 Odd\r\ncontent-length: 0\r\n\r\n", Some(ErrorKind::Http5xx)),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", Some(ErrorKind::Protocol)),
        (b"HTTP/1.1 777 Odd\r\ncontent-length: 0\r\n\r\n", Some(ErrorKind::Protocol)),
    ] {
        let peer = Peer::answering(answer).await;
        let attempt = attempt(&peer.url(), patient()).await;
        assert_eq!((attempt.fate, attempt.error_kind()), (Fate::Answered, kind));
        assert!(attempt.error.is_none());
    }
}

#[tokio::test]
async fn a_head_answer_has_no_body_whatever_it_announces() {
    let peer = Peer::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
    let transport = transport();
    for reused in [false, true] {
        let request = AttemptRequest { method: Method::HEAD, ..post(&peer.url(), "", patient()) };
        let attempt = transport.attempt(request.clone()).await;
        assert_eq!((attempt.fate, answered(&attempt)), (Fate::Answered, Some((200, &b""[..], false))));
        assert_eq!(attempt.reused, reused);
    }
}

#[tokio::test]
async fn a_chunked_body_with_trailers_is_read_and_its_connection_reused() {
    let peer = Peer::answering(
        b"HTTP/1.1 500 Oops\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nsum: 1\r\n\r\n",
    )
    .await;
    let transport = transport();
    for reused in [false, true] {
        let attempt = transport.attempt(post(&peer.url(), "payload", patient())).await;
        assert_eq!((attempt.fate, answered(&attempt)), (Fate::Answered, Some((500, &b"abcde"[..], false))));
        assert_eq!(attempt.reused, reused);
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_whole() {
    let peer = Peer::answering(OK).await;
    for (max, body, truncated) in [(2, &b"ok"[..], false), (1, b"o", true), (0, b"", true)] {
        let limits = AttemptLimits { response_body_max: max, ..patient() };
        let attempt = attempt(&peer.url(), limits).await;
        assert_eq!((attempt.fate, answered(&attempt)), (Fate::Answered, Some((200, body, truncated))));
    }
}

/// A peer that writes `head` and then `piece` until the connection breaks.
async fn endless(head: &'static [u8], piece: &'static [u8]) -> Peer {
    Peer::start(move |_, mut stream| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(head).await.unwrap();
        while stream.write_all(piece).await.is_ok() {}
    })
    .await
}

#[tokio::test]
async fn g11_an_endless_body_is_cut_at_the_limit_and_its_connection_dropped() {
    for head in [
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n",
        // Not decoded, hence no bomb.
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n",
    ] {
        let peer = endless(head, &[b'z'; 16 * 1024]).await;
        let transport = transport();
        for accepted in 1..=2 {
            let attempt = transport.attempt(post(&peer.url(), "payload", patient())).await;
            let expected = vec![b'z'; 64 * 1024];
            assert_eq!(
                (attempt.fate, answered(&attempt)),
                (Fate::Answered, Some((200, &expected[..], true)))
            );
            assert_eq!((attempt.reused, peer.accepted()), (false, accepted));
        }
    }
}

#[tokio::test]
async fn g11_an_endless_head_ends_as_protocol_within_its_cap() {
    for (head, piece) in [
        (&b"HTTP/1.1 200 OK\r\n"[..], &b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"[..]),
        (b"HTTP/1.1 200 OK\r\nx: ", &[b'y'; 4096]),
        (b"HTTP/1.1 200 ", &[b'y'; 4096]),
    ] {
        let peer = endless(head, piece).await;
        let attempt = attempt(&peer.url(), patient()).await;
        assert_eq!(
            (attempt.fate, attempt.error_kind()),
            (Fate::Ambiguous(Why::Protocol), Some(ErrorKind::Protocol))
        );
    }
}

#[tokio::test]
async fn g11_a_response_has_at_most_100_header_lines() {
    let fits = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n".to_owned() + &"x: y\r\n".repeat(99) + "\r\n";
    let exceeds = fits.replacen("x: y\r\n", "x: y\r\nx: y\r\n", 1);
    for (answer, fate) in [(fits, Fate::Answered), (exceeds, Fate::Ambiguous(Why::Protocol))] {
        let answer: &'static [u8] = answer.leak().as_bytes();
        let peer = Peer::answering_once(answer).await;
        assert_eq!(attempt(&peer.url(), patient()).await.fate, fate);
    }
}

fn assert_lost(attempt: &Attempt, kind: ErrorKind) {
    assert_eq!((attempt.fate, attempt.error_kind()), (Fate::BodyLost, Some(kind)));
    assert_eq!(answered(attempt), Some((201, &b"half"[..], true)));
}

#[tokio::test]
async fn a_body_cut_short_is_lost_and_its_status_kept() {
    for answer in [
        &b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nhalf"[..],
        b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let peer = Peer::answering_once(answer).await;
        assert_lost(&attempt(&peer.url(), patient()).await, ErrorKind::Closed);
    }
}

#[tokio::test]
async fn a_body_cut_by_a_reset_is_lost() {
    let peer = Peer::start(|_, mut stream| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
        reset(stream);
    })
    .await;
    assert_lost(&attempt(&peer.url(), patient()).await, ErrorKind::Reset);
}

#[tokio::test]
async fn the_deadline_includes_the_body() {
    let peer = Peer::start(|_, mut stream| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let transport = transport();
    for accepted in 1..=2 {
        let attempt = transport.attempt(post(&peer.url(), "payload", hasty())).await;
        assert_lost(&attempt, ErrorKind::Timeout);
        assert_eq!(attempt.error.unwrap().message, "read the response body: the attempt's time ran out");
        assert_eq!(peer.accepted(), accepted);
    }
}

#[tokio::test]
async fn attempts_to_different_paths_of_one_origin_share_a_connection() {
    let peer = Peer::answering(OK).await;
    let transport = transport();
    for (path, reused) in [("a", false), ("b", true)] {
        let url = format!("http://{}/{path}", peer.address);
        let target = Arc::new(Target::parse(&url).unwrap());
        let request = AttemptRequest { target, ..post(&url, "payload", patient()) };
        assert_eq!(transport.attempt(request.clone()).await.reused, reused);
    }
}

#[tokio::test]
async fn what_is_printed_of_an_answer_holds_no_header_value_and_no_body() {
    let peer = Peer::answering(
        b"HTTP/1.1 302 Found\r\nset-cookie: sid=s3cret\r\nlocation: http://u:s3cret@h.example/\r\ncontent-length: 6\r\n\r\ns3cret",
    )
    .await;
    let attempt = attempt(&peer.url(), patient()).await;
    let exchange = transport().exchange(post(&peer.url(), "payload", patient()).into()).await;
    for printed in [format!("{attempt:?}"), format!("{exchange:?}")] {
        assert!(printed.contains("302") && !printed.contains("s3cret"), "{printed}");
    }
}
