//! Connections that look usable and are left all the same; absent: those whose end the
//! kernel has told.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::exchanges::{exchange, read};
use common::frames::{END_HEADERS, END_STREAM, Frames, HEADERS};
use common::{OK, Peer, builder, patient, post, read_request, transport};
use teimoso_http::{HttpVersions, Transport};
use teimoso_retry::Fate;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

fn http2() -> Transport {
    builder().http_version(HttpVersions::Http2Only).build().unwrap()
}

#[tokio::test]
async fn a_connection_that_is_silent_is_left_although_its_caller_gave_up_before_the_deadline() {
    let seen = Arc::new(Notify::new());
    let peer = Peer::start({
        let seen = seen.clone();
        move |number, stream| {
            let seen = seen.clone();
            async move {
                let mut frames = Frames::accept(stream).await;
                if number == 1 {
                    let stream = frames.request().await.unwrap();
                    frames.answer(stream, b"ok").await;
                    frames.request().await.unwrap();
                    seen.notify_one();
                    while frames.next().await.is_some() {}
                }
                frames.answer_all().await;
            }
        }
    })
    .await;
    let transport = http2();
    let request = || exchange(&peer.url(), "payload", patient());
    assert_eq!(read(transport.exchange(request()).await).await.0, 200);
    tokio::select! {
        _ = transport.exchange(request()) => panic!("nothing was answered"),
        () = seen.notified() => {}
    }
    let third = transport.exchange(request()).await;
    assert_eq!((third.fate, third.reused, peer.accepted()), (Fate::Answered, false, 2));
}

/// Its first connection is the wrong one.
async fn misdirecting_at_first() -> Peer {
    Peer::start(|number, mut stream| async move {
        let answer = if number == 1 { b"HTTP/1.1 421 X\r\ncontent-length: 0\r\n\r\n" } else { OK };
        while read_request(&mut stream).await.is_some() {
            stream.write_all(answer).await.unwrap();
        }
    })
    .await
}

/// RFC 9110 §15.5.20: a 421 is repeated over another connection.
#[tokio::test]
async fn after_a_421_the_next_request_takes_another_connection() {
    let peer = misdirecting_at_first().await;
    let exchanging = transport();
    let mut statuses = Vec::new();
    for _ in 0..2 {
        statuses.push(read(exchanging.exchange(exchange(&peer.url(), "payload", patient())).await).await.0);
    }
    assert_eq!((statuses, peer.accepted()), (vec![421, 200], 2));
    let peer = misdirecting_at_first().await;
    let attempting = transport();
    let mut statuses = Vec::new();
    for _ in 0..2 {
        statuses.push(attempting.attempt(post(&peer.url(), "payload", patient())).await.status());
    }
    assert_eq!((statuses, peer.accepted()), (vec![Some(421), Some(200)], 2));
}

#[tokio::test]
async fn after_a_421_over_http2_the_next_request_takes_another_connection() {
    let peer = Peer::start(|number, stream| async move {
        let mut frames = Frames::accept(stream).await;
        if number == 1 {
            let stream = frames.request().await.unwrap();
            // `:status: 421` as a literal: its name is the eighth of the static table.
            frames.send(HEADERS, END_HEADERS | END_STREAM, stream, &[8, 3, b'4', b'2', b'1']).await;
        }
        frames.answer_all().await;
    })
    .await;
    let transport = http2();
    let mut answers = Vec::new();
    for _ in 0..2 {
        answers.push(read(transport.exchange(exchange(&peer.url(), "payload", patient())).await).await);
    }
    assert_eq!((answers, peer.accepted()), (vec![(421, Bytes::new()), (200, "ok".into())], 2));
}
