//! Peers behind TLS with throw-away certificates.

use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Peer;

/// A server's configuration for `name`, offering these protocols, and the root that vouches for it (DER).
pub fn server_config(name: &str, alpn: &[&str]) -> (ServerConfig, Vec<u8>) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    (config, cert.der().to_vec())
}

/// Plays `script` on each connection whose handshake succeeds.
pub async fn peer<F, S>(config: ServerConfig, script: S) -> Peer
where
    S: Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (acceptor, script) = (TlsAcceptor::from(Arc::new(config)), Arc::new(script));
    Peer::start(move |_, tcp| {
        let (acceptor, script) = (acceptor.clone(), script.clone());
        async move {
            if let Ok(stream) = acceptor.accept(tcp).await {
                script(stream).await;
            }
        }
    })
    .await
}
