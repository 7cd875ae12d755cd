//! TLS: trust, refusals and what a broken handshake proves.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::sync::Arc;

use common::{OK, Peer, answered, builder, hasty, patient, post, read_request};
use rcgen::{CertificateParams, CertifiedKey, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use teimoso_http::{ErrorKind, Transport};
use teimoso_retry::{Fate, Proof, Why};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A server's identity, which is also the root that vouches for it.
struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn of(name: &str) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        Self {
            certificate: cert.der().clone(),
            key: PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap(),
        }
    }

    fn expired(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { certificate, key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() }
    }

    fn trusting_transport(&self) -> Transport {
        builder().tls_root_der(&self.certificate).build().unwrap()
    }
}

fn server_config(identity: &Identity) -> ServerConfig {
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key())
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

async fn tls_peer<F, S>(config: ServerConfig, script: S) -> (Peer, String)
where
    S: Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (acceptor, script) = (TlsAcceptor::from(Arc::new(config)), Arc::new(script));
    let peer = Peer::start(move |_, tcp| {
        let (acceptor, script) = (acceptor.clone(), script.clone());
        async move {
            if let Ok(stream) = acceptor.accept(tcp).await {
                script(stream).await;
            }
        }
    })
    .await;
    let url = peer.url().replace("http:", "https:");
    (peer, url)
}

async fn answer_all(mut stream: TlsStream<TcpStream>) {
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]), "h2 is not offered");
    while read_request(&mut stream).await.is_some() {
        stream.write_all(OK).await.unwrap();
    }
}

#[tokio::test]
async fn a_trusted_peer_is_answered_and_its_connection_reused() {
    let identity = Identity::of("127.0.0.1");
    let (peer, url) = tls_peer(server_config(&identity), answer_all).await;
    let transport = identity.trusting_transport();
    for reused in [false, true] {
        let attempt = transport.attempt(post(&url, vec![b'x'; 200_000], patient())).await;
        assert_eq!((attempt.fate, answered(&attempt)), (Fate::Answered, Some((200, &b"ok"[..], false))));
        assert_eq!((attempt.reused, attempt.timings.tls.is_some()), (reused, !reused));
    }
    assert_eq!(peer.accepted(), 1);
}

async fn assert_certificate_rejected(identity: Identity, transport: Transport, reason: &str) {
    let (peer, url) = tls_peer(server_config(&identity), answer_all).await;
    let attempt = transport.attempt(post(&url, "payload", patient())).await;
    assert_eq!(attempt.fate, Fate::NeverSent(Proof::TlsCertificate));
    let error = attempt.error.unwrap();
    assert_eq!(error.kind, ErrorKind::TlsCertificate);
    let rejected = format!("make a tls handshake with {}: the peer's certificate is rejected", peer.address);
    assert_eq!(error.message, format!("{rejected}: {reason}"));
}

#[tokio::test]
async fn canary_an_untrusted_certificate_was_never_sent() {
    let transport = builder().build().unwrap();
    assert_certificate_rejected(
        Identity::of("127.0.0.1"),
        transport,
        "it is signed by nobody who is trusted here",
    )
    .await;
}

#[tokio::test]
async fn canary_a_certificate_of_another_name_was_never_sent() {
    let identity = Identity::of("other.test");
    let transport = identity.trusting_transport();
    assert_certificate_rejected(identity, transport, "it is not valid for the name 127.0.0.1").await;
}

#[tokio::test]
async fn canary_an_expired_certificate_was_never_sent() {
    let identity = Identity::expired("127.0.0.1");
    let transport = identity.trusting_transport();
    assert_certificate_rejected(identity, transport, "it has expired, by this machine's clock").await;
}

#[tokio::test]
async fn canary_a_handshake_with_something_else_was_never_sent() {
    for reply in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"", b"\x15\x03\x03\x00\x02\x02\x28"] {
        let peer = Peer::start(move |_, mut stream| async move {
            stream.readable().await.unwrap();
            stream.write_all(reply).await.unwrap();
            stream.shutdown().await.unwrap();
            common::drain(stream).await;
        })
        .await;
        let url = peer.url().replace("http:", "https:");
        let attempt = builder().build().unwrap().attempt(post(&url, "payload", patient())).await;
        assert_eq!(
            (attempt.fate, attempt.error_kind()),
            (Fate::NeverSent(Proof::TlsHandshake), Some(ErrorKind::TlsHandshake))
        );
    }
}

#[tokio::test]
async fn a_deadline_inside_the_handshake_proves_never_sent() {
    let peer = Peer::start(|_, stream| common::drain(stream)).await;
    let url = peer.url().replace("http:", "https:");
    let attempt = builder().build().unwrap().attempt(post(&url, "payload", hasty())).await;
    assert_eq!(attempt.fate, Fate::NeverSent(Proof::TlsHandshake));
    assert_eq!(attempt.error_kind(), Some(ErrorKind::TlsHandshake));
    assert!(attempt.timings.connect.is_some() && attempt.timings.tls.is_some());
}

#[tokio::test]
async fn canary_a_peer_that_refuses_us_after_the_handshake_leaves_it_ambiguous() {
    // In TLS 1.3 our side is done before the peer has looked for the client certificate that we do not have.
    let identity = Identity::of("127.0.0.1");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let demanding =
        rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(demanding)
        .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key())
        .unwrap();
    let (_peer, url) = tls_peer(config, answer_all).await;
    let attempt = identity.trusting_transport().attempt(post(&url, "payload", patient())).await;
    assert_eq!(
        (attempt.fate, attempt.error_kind()),
        (Fate::Ambiguous(Why::Protocol), Some(ErrorKind::Protocol))
    );
}

#[tokio::test]
async fn a_body_that_ends_without_a_tls_close_is_lost() {
    // Anyone on the path can end a TCP connection; only close_notify says that the peer did (RFC 8446 §6.1).
    let identity = Identity::of("127.0.0.1");
    let (_peer, url) = tls_peer(server_config(&identity), |mut stream| async move {
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 201 Created\r\n\r\nhalf").await.unwrap();
        stream.flush().await.unwrap();
        let (mut tcp, _tls) = stream.into_inner();
        tcp.shutdown().await.unwrap();
        common::drain(tcp).await;
    })
    .await;
    let attempt = identity.trusting_transport().attempt(post(&url, "payload", patient())).await;
    assert_eq!((attempt.fate, attempt.error_kind()), (Fate::BodyLost, Some(ErrorKind::Closed)));
    assert_eq!(answered(&attempt), Some((201, &b"half"[..], true)));
}

#[tokio::test]
async fn an_idle_tls_connection_that_the_peer_closed_is_not_used() {
    let identity = Identity::of("127.0.0.1");
    let closed = Arc::new(tokio::sync::Notify::new());
    let (peer, url) = tls_peer(server_config(&identity), {
        let closed = closed.clone();
        move |mut stream| {
            let closed = closed.clone();
            async move {
                read_request(&mut stream).await.unwrap();
                stream.write_all(OK).await.unwrap();
                stream.shutdown().await.unwrap();
                closed.notify_one();
            }
        }
    })
    .await;
    let transport = identity.trusting_transport();
    for accepted in 1..=2 {
        let attempt = transport.attempt(post(&url, "payload", patient())).await;
        assert_eq!((attempt.fate, attempt.reused, peer.accepted()), (Fate::Answered, false, accepted));
        closed.notified().await;
    }
}
