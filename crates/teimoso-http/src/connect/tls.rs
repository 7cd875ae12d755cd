//! The TLS side of a connection: trust roots and client configuration; absent: the handshake, client certificates.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// Which trust roots certificates are checked against.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsRoots {
    /// The machine's own roots (`SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured); where the machine has none, as in
    /// an empty container, the bundled ones.
    #[default]
    System,
    /// The roots of the Mozilla programme, compiled in.
    Bundled,
    /// None but those that are added one by one.
    OnlyAdded,
}

/// The configuration for `https`, without an offer of protocols. The provider is passed explicitly: a library installs
/// no process-wide default.
///
/// # Errors
///
/// A root in `added` that is no certificate, or a provider without the protocol versions we ask for.
pub(crate) fn config(
    roots: &TlsRoots,
    added: Vec<CertificateDer<'static>>,
) -> Result<ClientConfig, rustls::Error> {
    let mut store = base_store(roots);
    for root in added {
        store.add(root)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(store)
        .with_no_client_auth())
}

/// A connector that offers these protocols (ALPN), the preferred one first.
pub(crate) fn offering(mut config: ClientConfig, protocols: &[&str]) -> TlsConnector {
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

fn base_store(roots: &TlsRoots) -> RootCertStore {
    let mut store = RootCertStore::empty();
    if *roots == TlsRoots::System {
        // Unreadable or malformed roots are skipped: one odd file must not close every destination.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if *roots == TlsRoots::Bundled || (*roots == TlsRoots::System && store.is_empty()) {
        store.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    store
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_roots_all_parse() {
        assert_eq!(base_store(&TlsRoots::Bundled).len(), webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
        assert!(base_store(&TlsRoots::OnlyAdded).is_empty());
    }

    #[test]
    fn a_machine_always_has_some_root() {
        assert!(!base_store(&TlsRoots::System).is_empty());
    }

    #[test]
    fn a_root_that_is_no_certificate_is_refused() {
        let refused = config(&TlsRoots::OnlyAdded, vec![CertificateDer::from(b"nonsense".to_vec())]);
        assert!(matches!(refused.err(), Some(rustls::Error::InvalidCertificate(_))));
    }
}
