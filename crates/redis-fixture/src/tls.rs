//! A server that answers over TLS only, and the authority that vouches for it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::server::{READY, Server, Start};

/// A server behind TLS.
#[derive(Debug)]
pub struct Tls {
    /// Takes no plain connection, so none of its own ways to talk work.
    pub server: Server,
    authority: String,
    stranger: String,
}

impl Tls {
    /// Starts one with an append-only file, whose certificate is for 127.0.0.1.
    #[must_use]
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let write = |name: &str, content: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).expect("written");
            path.display().to_string()
        };
        let authority = authority();
        let key = KeyPair::generate().expect("a key");
        let names = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
        let certificate = names.signed_by(&key, &authority).expect("a certificate");
        write("certificate.pem", &pem("CERTIFICATE", certificate.der()));
        write("key.pem", &pem("PRIVATE KEY", &key.serialize_der()));
        let vouching = |issuer: &CertifiedIssuer<'_, KeyPair>| pem("CERTIFICATE", issuer.der());
        let authority = write("authority.pem", &vouching(&authority));
        let stranger = write("stranger.pem", &vouching(&self::authority()));
        let arguments = "--port 0 --tls-port {port} --bind 127.0.0.1 --dir {dir} --appendonly yes \
                         --tls-cert-file {dir}/certificate.pem --tls-key-file {dir}/key.pem \
                         --tls-ca-cert-file {dir}/authority.pem --tls-auth-clients no";
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        let server = Server::launch(Start { arguments, ready: READY }, directory, |_, _| {});
        Self { server, authority, stranger }
    }

    /// For the store.
    #[must_use]
    pub fn url(&self) -> String {
        format!("rediss://{}/0", self.server.address())
    }

    /// The file of the authority that vouches for it, in PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The file of one that does not.
    #[must_use]
    pub fn stranger(&self) -> &str {
        &self.stranger
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate")
}

fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
