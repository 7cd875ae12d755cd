//! Which version of HTTP is spoken over TLS, and what goes over it.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use common::exchanges::{exchange, read};
use common::{OK, Peer, builder, patient, post, read_request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use teimoso_http::{ErrorKind, HttpVersions, RequestBody, Transport};
use teimoso_retry::{Fate, Proof};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Answers with what it was asked: method, target and headers in lines, then the body.
async fn tell_back(request: http::Request<Incoming>) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let mut told = format!("{} {} {:?}\n", head.method, head.uri, head.version);
    for (name, value) in &head.headers {
        told += &format!("{name}: {}\n", value.to_str().unwrap());
    }
    let body = body.collect().await.unwrap().to_bytes();
    told += std::str::from_utf8(&body).unwrap();
    Ok(http::Response::new(Full::new(Bytes::from(told))))
}

/// A real server of whatever was agreed on.
async fn serve(mut stream: TlsStream<TcpStream>) {
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        // How the connection ends is for the client to see.
        let _ = server.serve_connection(TokioIo::new(stream), service_fn(tell_back)).await;
        return;
    }
    while read_request(&mut stream).await.is_some() {
        stream.write_all(OK).await.unwrap();
    }
}

/// A server that offers these protocols, its URL and a transport that trusts it.
async fn server(alpn: &[&str], versions: HttpVersions) -> (Peer, String, Transport) {
    let (config, root) = common::tls::server_config("127.0.0.1", alpn);
    let peer = common::tls::peer(config, serve).await;
    let url = peer.url().replace("http:", "https:");
    let transport = builder().tls_root_der(&root).http_version(versions).build().unwrap();
    (peer, url, transport)
}

#[tokio::test]
async fn http2_is_agreed_on_and_no_connection_field_goes_over_it() {
    for versions in [HttpVersions::Http2Preferred, HttpVersions::Http2Only] {
        let (peer, url, transport) = server(&["h2", "http/1.1"], versions).await;
        let mut request = exchange(&url, "payload", patient());
        for name in
            ["connection", "keep-alive", "proxy-connection", "te", "upgrade", "transfer-encoding", "host"]
        {
            request.headers.insert(name, "own".parse().unwrap());
        }
        request.headers.insert("x-own", "kept".parse().unwrap());
        let answer = transport.exchange(request).await;
        assert_eq!(answer.response.as_ref().unwrap().version(), http::Version::HTTP_2);
        let (status, told) = read(answer).await;
        let told = String::from_utf8(told.to_vec()).unwrap();
        let mut lines: Vec<&str> = told.lines().collect();
        assert_eq!((status, lines.remove(0)), (200, format!("POST {url} HTTP/2.0").as_str()));
        lines.sort_unstable();
        let user_agent = concat!("user-agent: teimoso/", env!("CARGO_PKG_VERSION"));
        assert_eq!(lines, ["content-length: 7", "payload", user_agent, "x-own: kept"]);
        assert_eq!(peer.accepted(), 1);
    }
}

#[tokio::test]
async fn a_large_body_goes_both_ways_over_http2() {
    let (_peer, url, transport) = server(&["h2"], HttpVersions::Http2Preferred).await;
    let large = "x".repeat(6 * 1024 * 1024);
    let mut request = exchange(&url, large.clone(), patient());
    request.limits.response_body_max = usize::MAX;
    let (_, told) = read(transport.exchange(request).await).await;
    assert!(told.ends_with(large.as_bytes()), "{} bytes came back", told.len());
}

#[tokio::test]
async fn a_factory_and_an_empty_body_go_over_http2() {
    let (_peer, url, transport) = server(&["h2"], HttpVersions::Http2Preferred).await;
    let body = RequestBody::factory(|| Full::new(Bytes::from_static(b"made")));
    let (_, told) = read(transport.exchange(exchange(&url, body, patient())).await).await;
    let told = String::from_utf8(told.to_vec()).unwrap();
    assert!(told.contains("content-length: 4\n") && told.ends_with("made"), "{told}");
    let (_, told) = read(transport.exchange(exchange(&url, (), patient())).await).await;
    assert!(String::from_utf8(told.to_vec()).unwrap().contains("content-length: 0\n"));
}

#[tokio::test]
async fn many_exchanges_at_once_share_the_connection() {
    let (peer, url, transport) = server(&["h2", "http/1.1"], HttpVersions::Http2Preferred).await;
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let request = exchange(&url, format!("body {number}"), patient());
            let transport = transport.clone();
            tokio::spawn(async move { read(transport.exchange(request).await).await.1 })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        assert!(task.await.unwrap().ends_with(format!("body {number}").as_bytes()));
    }
    assert_eq!(peer.accepted(), 1);
}

#[tokio::test]
async fn a_peer_without_http2_is_spoken_to_in_http_1_1() {
    for alpn in [&["http/1.1"][..], &[]] {
        let (peer, url, transport) = server(alpn, HttpVersions::Http2Preferred).await;
        for reused in [false, true] {
            let answer = transport.exchange(exchange(&url, "payload", patient())).await;
            assert_eq!((answer.fate, answer.reused), (Fate::Answered, reused));
            assert_eq!(answer.response.as_ref().unwrap().version(), http::Version::HTTP_11);
            assert_eq!(read(answer).await, (200, "ok".into()));
        }
        // Held open, the first answers leave nothing for the others, which make connections of their own.
        let held: Vec<_> =
            [(); 3].map(|()| transport.exchange(exchange(&url, "payload", patient()))).into_iter().collect();
        for exchange in held {
            assert_eq!(exchange.await.fate, Fate::Answered);
        }
        assert!(peer.accepted() <= 3);
    }
}

#[tokio::test]
async fn a_peer_that_agrees_to_no_http2_was_never_sent_anything_when_nothing_else_will_do() {
    for alpn in [&["http/1.1"][..], &[]] {
        let (_peer, url, transport) = server(alpn, HttpVersions::Http2Only).await;
        let answer = transport.exchange(exchange(&url, "payload", patient())).await;
        assert_eq!(answer.fate, Fate::NeverSent(Proof::TlsHandshake));
        assert_eq!(answer.error.unwrap().kind, ErrorKind::TlsHandshake);
        assert!(answer.unsent.is_some());
    }
}

#[tokio::test]
async fn a_delivery_agrees_to_http_1_1_on_a_transport_that_prefers_http2() {
    let (peer, url, transport) = server(&["h2", "http/1.1"], HttpVersions::Http2Preferred).await;
    assert_eq!(read(transport.exchange(exchange(&url, "payload", patient())).await).await.0, 200);
    let attempt = transport.attempt(post(&url, "payload", patient())).await;
    assert_eq!((attempt.fate, attempt.reused, peer.accepted()), (Fate::Answered, false, 2));
    assert_eq!(attempt.response.unwrap().version, http::Version::HTTP_11);
}

#[tokio::test]
async fn without_a_pool_connections_are_made_side_by_side() {
    const TOGETHER: usize = 3;
    let (config, root) = common::tls::server_config("127.0.0.1", &["h2"]);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let all_there = Arc::new(Barrier::new(TOGETHER));
    let peer = Peer::start(move |_, tcp| {
        let (acceptor, all_there) = (acceptor.clone(), all_there.clone());
        async move {
            all_there.wait().await;
            serve(acceptor.accept(tcp).await.unwrap()).await;
        }
    })
    .await;
    let url = peer.url().replace("http:", "https:");
    let versions = HttpVersions::Http2Preferred;
    let transport =
        builder().tls_root_der(&root).http_version(versions).pool_idle_per_host(0).build().unwrap();
    let tasks: Vec<_> = (0..TOGETHER)
        .map(|_| {
            let (transport, request) = (transport.clone(), exchange(&url, "payload", patient()));
            tokio::spawn(async move { transport.exchange(request).await.fate })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), Fate::Answered);
    }
    assert_eq!(peer.accepted(), TOGETHER);
}
