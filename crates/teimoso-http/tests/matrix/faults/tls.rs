//! What the peers do within a TLS handshake.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::http1;
use super::peer::Stage;

/// A peer's certificate, which is also the root that vouches for it, and its key.
pub(super) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    pub(super) fn of(name: &str) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        Self { certificate: cert.der().clone(), key }
    }

    pub(super) fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    fn server(&self) -> ServerConnection {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .unwrap();
        ServerConnection::new(Arc::new(config)).unwrap()
    }
}

pub(super) fn answer_in_plain(stage: &Stage, mut stream: TcpStream) -> io::Result<()> {
    stage.arrive();
    let _ = stream.read(&mut [0; 4096])?;
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
    http1::end(stream)
}

/// Sends the whole of its handshake and the end of the connection in one piece: whoever has read the one has the
/// other, too, before a request can be written.
pub(super) fn close_after_handshake(stage: &Stage, mut stream: TcpStream) -> io::Result<()> {
    stage.arrive();
    let mut tls = stage.identity.server();
    while !tls.wants_write() {
        if tls.read_tls(&mut stream)? == 0 {
            return Ok(());
        }
        tls.process_new_packets().map_err(io::Error::other)?;
    }
    tls.send_close_notify();
    let mut piece = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut piece)?;
    }
    stream.write_all(&piece)?;
    http1::end(stream)
}
