//! A forward proxy: what it is told, and what its refusals prove.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::sync::Arc;

use common::exchanges::{exchange, read};
use common::frames::Frames;
use common::{Fixed, OK, Peer, builder, hasty, patient, post, read_request};
use teimoso_http::{Egress, ErrorKind, Exchange, HttpVersions, Proxy, Transport, TransportBuilder};
use teimoso_retry::{Fate, Proof, Refusal};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedReceiver};

const USER: &str = "user";
const PASSWORD: &str = "s3cret-word";
/// `user:s3cret-word`.
const BASIC: &str = "Basic dXNlcjpzM2NyZXQtd29yZA==";

/// A transport through this proxy. Its resolver knows no name: names are the proxy's.
fn through(proxy: &Peer) -> TransportBuilder {
    let url = format!("http://{USER}:{PASSWORD}@{}", proxy.address);
    builder().resolver(Fixed::default()).proxy(Proxy::http(&url).unwrap())
}

/// A proxy that reports each head it is asked with, then goes on with `script`.
async fn proxy<F, S>(script: S) -> (Peer, UnboundedReceiver<String>)
where
    S: Fn(TcpStream) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (tell, told) = mpsc::unbounded_channel();
    let script = Arc::new(script);
    let peer = Peer::start(move |_, mut stream| {
        let (tell, script) = (tell.clone(), script.clone());
        async move {
            let head = read_request(&mut stream).await.unwrap();
            tell.send(String::from_utf8(head).unwrap()).unwrap();
            script(stream).await;
        }
    })
    .await;
    (peer, told)
}

async fn proxy_answering(answer: &'static [u8]) -> (Peer, UnboundedReceiver<String>) {
    proxy(move |mut stream| async move {
        stream.write_all(answer).await.unwrap();
        common::drain(stream).await;
    })
    .await
}

/// A proxy that opens its tunnels to `inner`, whatever it is asked for.
async fn tunnelling_to(inner: std::net::SocketAddr) -> (Peer, UnboundedReceiver<String>) {
    proxy(move |mut stream| async move {
        let mut inside = TcpStream::connect(inner).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        // Either side may end as it likes.
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut inside).await;
    })
    .await
}

fn assert_no_credentials(what: &impl std::fmt::Debug) {
    let printed = format!("{what:?}");
    assert!(!printed.contains(PASSWORD) && !printed.contains(BASIC), "{printed}");
}

#[tokio::test]
async fn http_goes_to_the_proxy_in_absolute_form() {
    let (proxy, mut told) = proxy(|mut stream| async move {
        stream.write_all(OK).await.unwrap();
        while read_request(&mut stream).await.is_some() {
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    let transport = through(&proxy).build().unwrap();
    let url = "http://target.test:8080/hook?key=1";
    let answer = transport.exchange(exchange(url, "payload", patient())).await;
    assert_eq!((answer.fate, answer.peer), (Fate::Answered, Some(proxy.address)));
    assert_eq!(read(answer).await, (200, "ok".into()));
    let head = told.recv().await.unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next().unwrap(), "POST http://target.test:8080/hook?key=1 HTTP/1.1");
    let lines: Vec<&str> = lines.collect();
    assert!(lines.contains(&"host: target.test:8080"), "{head}");
    assert!(lines.contains(&format!("proxy-authorization: {BASIC}").as_str()), "{head}");
    // A delivery goes the same way, over the same connection.
    let attempt = transport.attempt(post(url, "payload", patient())).await;
    assert_eq!((attempt.fate, attempt.reused, proxy.accepted()), (Fate::Answered, true, 1));
    assert_no_credentials(&transport);
}

async fn refused(answer: &'static [u8], words: &str) {
    let (proxy, mut told) = proxy_answering(answer).await;
    let transport = through(&proxy).build().unwrap();
    let answer = transport.exchange(exchange("https://target.test/", "payload", patient())).await;
    assert_eq!(answer.fate, Fate::NeverSent(Proof::Connect));
    let error = answer.error.as_ref().unwrap();
    let message = format!("get a tunnel to target.test:443 from the proxy {}: {words}", proxy.address);
    assert_eq!((error.kind, &error.message), (ErrorKind::ConnectRefused, &message));
    assert!(answer.unsent.is_some());
    assert_no_credentials(&answer);
    let head = told.recv().await.unwrap();
    let asked = format!(
        "CONNECT target.test:443 HTTP/1.1\r\nHost: target.test:443\r\nProxy-Authorization: {BASIC}\r\n\r\n"
    );
    assert_eq!(head, asked);
}

#[tokio::test]
async fn a_tunnel_that_is_refused_proves_never_sent() {
    refused(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n", "it answered 407")
        .await;
    refused(b"HTTP/1.0 502 Bad Gateway\r\n\r\n<html>", "it answered 502").await;
    refused(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\n\r\n", "it answered 503").await;
    refused(b"HTTP/1.1 301 Moved\r\nlocation: http://other.test/\r\n\r\n", "it answered 301").await;
    refused(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "what it answered is not http").await;
}

#[tokio::test]
async fn a_proxy_that_ends_or_hangs_proves_never_sent() {
    let (ending, _told) = proxy(|stream| async move { drop(stream) }).await;
    let transport = through(&ending).build().unwrap();
    let answer = transport.exchange(exchange("https://target.test/", "payload", patient())).await;
    assert_eq!(answer.fate, Fate::NeverSent(Proof::Connect));
    assert!(answer.error.unwrap().message.ends_with(": it closed the connection"));

    let (hanging, _told) = proxy(common::drain).await;
    let transport = through(&hanging).build().unwrap();
    let answer = transport.exchange(exchange("https://target.test/", "payload", hasty())).await;
    assert_eq!(answer.fate, Fate::NeverSent(Proof::Connect));
    assert_eq!(answer.error.unwrap().kind, ErrorKind::ConnectTimeout);
}

#[tokio::test]
async fn g11_an_endless_answer_of_a_proxy_is_cut() {
    let (proxy, _told) = proxy(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(b"x: y\r\n").await.is_ok() {}
    })
    .await;
    let transport = through(&proxy).build().unwrap();
    let answer = transport.exchange(exchange("https://target.test/", "payload", patient())).await;
    assert_eq!(answer.fate, Fate::NeverSent(Proof::Connect));
    assert!(answer.error.unwrap().message.ends_with(": its answer has no end"));
}

#[tokio::test]
async fn an_unreachable_proxy_proves_never_sent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let proxy = Proxy::http(&format!("http://{USER}:{PASSWORD}@{address}")).unwrap();
    let transport = builder().proxy(proxy).build().unwrap();
    for url in ["http://target.test/", "https://target.test/"] {
        let answer = transport.exchange(exchange(url, "payload", patient())).await;
        assert_eq!((answer.fate, answer.peer), (Fate::NeverSent(Proof::Connect), Some(address)));
        assert_no_credentials(&answer);
    }
}

#[tokio::test]
async fn g12_an_address_literal_is_judged_although_the_proxy_would_connect_to_it() {
    let (proxy, _told) = proxy_answering(OK).await;
    let transport = through(&proxy).egress(Egress::default()).build().unwrap();
    for url in ["http://10.0.0.1/", "https://169.254.169.254/"] {
        let answer = transport.exchange(exchange(url, "payload", patient())).await;
        assert_eq!(answer.fate, Fate::Refused(Refusal::BlockedAddress), "{url}");
    }
    assert_eq!(proxy.accepted(), 0);
}

/// An inner peer that speaks HTTP/2 at once: its first frame is in the same write as the proxy's answer.
#[tokio::test]
async fn a_server_that_speaks_first_is_heard_through_a_tunnel() {
    let (proxy, mut told) = proxy(|mut stream| async move {
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let answer = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &settings].concat();
        stream.write_all(&answer).await.unwrap();
        Frames::accept_silently(stream).await.answer_all().await;
    })
    .await;
    let transport = through(&proxy).http_version(HttpVersions::Http2Only).build().unwrap();
    for reused in [false, true] {
        let answer = transport.exchange(exchange("http://target.test/", "payload", patient())).await;
        assert_eq!(answer.reused, reused);
        assert_eq!(read(answer).await, (200, "ok".into()));
    }
    assert!(told.recv().await.unwrap().starts_with("CONNECT target.test:80 HTTP/1.1\r\n"));
    assert_eq!(proxy.accepted(), 1);
}

/// A TLS peer that answers every request with the request it read.
async fn echoing(alpn: &[&str]) -> (Peer, Vec<u8>) {
    let (config, root) = common::tls::server_config("target.test", alpn);
    let peer = common::tls::peer(config, |mut stream| async move {
        while let Some(request) = read_request(&mut stream).await {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", request.len());
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&request).await.unwrap();
        }
    })
    .await;
    (peer, root)
}

async fn send(transport: &Transport) -> Exchange {
    transport.exchange(exchange("https://target.test/hook", "payload", patient())).await
}

#[tokio::test]
async fn https_goes_through_a_tunnel_that_is_used_again_and_the_origin_sees_no_proxy_fields() {
    let (inner, root) = echoing(&["http/1.1"]).await;
    let (proxy, mut told) = tunnelling_to(inner.address).await;
    for versions in [HttpVersions::Http1Only, HttpVersions::Http2Preferred] {
        let transport = through(&proxy).tls_root_der(&root).http_version(versions).build().unwrap();
        for reused in [false, true] {
            let answer = send(&transport).await;
            assert_eq!(
                (answer.fate, answer.reused, answer.peer),
                (Fate::Answered, reused, Some(proxy.address))
            );
            let (_, request) = read(answer).await;
            let request = String::from_utf8(request.to_vec()).unwrap();
            assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
            assert!(request.contains("host: target.test\r\n") && !request.contains("proxy-"), "{request}");
        }
        assert!(told.recv().await.unwrap().starts_with("CONNECT target.test:443 HTTP/1.1\r\n"));
    }
    assert_eq!((proxy.accepted(), inner.accepted()), (2, 2));
}

#[tokio::test]
async fn a_certificate_is_checked_through_a_tunnel_too() {
    let (inner, _) = echoing(&["http/1.1"]).await;
    let (proxy, _told) = tunnelling_to(inner.address).await;
    let answer = send(&through(&proxy).build().unwrap()).await;
    assert_eq!(answer.fate, Fate::NeverSent(Proof::TlsCertificate));
    assert!(answer.error.unwrap().message.starts_with("make a tls handshake with target.test: "));
}
