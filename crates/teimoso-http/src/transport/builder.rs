//! The settings of a transport, and their check; absent: anything that happens after it is built.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::{Shared, Transport};
use crate::connect::Connector;
use crate::connect::proxy::Proxy;
use crate::connect::tls::{self, TlsRoots};
use crate::egress::Egress;
use crate::h1::pool::{POOL_IDLE_PER_HOST, POOL_IDLE_TIMEOUT, Pool};
use crate::h2::origins::Origins;
use crate::resolve::{Resolve, Resolver, SystemResolver};
use crate::target::Origin;

/// Which versions of HTTP [`Transport::exchange`] speaks. [`Transport::attempt`] speaks HTTP/1.1 whatever this says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpVersions {
    /// HTTP/1.1 alone, the version with the strongest evidence: its byte counter is per request.
    #[default]
    Http1Only,
    /// HTTP/2 where a TLS peer agrees to it (ALPN), else HTTP/1.1. Without TLS, HTTP/1.1.
    Http2Preferred,
    /// HTTP/2 alone; without TLS by prior knowledge (RFC 9113 §3.3).
    Http2Only,
}

impl HttpVersions {
    /// What a TLS connection that may become HTTP/2 offers.
    fn offered_with_http2(self) -> &'static [&'static str] {
        match self {
            Self::Http2Only => &["h2"],
            Self::Http1Only | Self::Http2Preferred => &["h2", "http/1.1"],
        }
    }

    /// Whether an exchange with this origin may be HTTP/2.
    pub(super) fn may_be_http2(self, origin: &Origin) -> bool {
        match self {
            Self::Http1Only => false,
            Self::Http2Preferred => origin.tls_name().is_some(),
            Self::Http2Only => true,
        }
    }
}

/// Settings of a [`Transport`].
pub struct TransportBuilder {
    egress: Egress,
    user_agent: String,
    idle_per_host: usize,
    idle_timeout: Duration,
    roots: TlsRoots,
    added_pem: Vec<Vec<u8>>,
    added_der: Vec<Vec<u8>>,
    resolver: Box<dyn Resolve>,
    versions: HttpVersions,
    proxy: Option<Proxy>,
}

/// A transport that cannot be built; the message names the setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError {
    message: String,
}

impl BuildError {
    /// `message` is lower case and reads after "failed to".
    pub(crate) fn new(message: String) -> Self {
        Self { message }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {}", self.message)
    }
}

impl std::error::Error for BuildError {}

impl Default for TransportBuilder {
    fn default() -> Self {
        Self {
            egress: Egress::default(),
            user_agent: concat!("teimoso/", env!("CARGO_PKG_VERSION")).to_owned(),
            idle_per_host: POOL_IDLE_PER_HOST,
            idle_timeout: POOL_IDLE_TIMEOUT,
            roots: TlsRoots::default(),
            added_pem: Vec::new(),
            added_der: Vec::new(),
            resolver: Box::new(SystemResolver),
            versions: HttpVersions::default(),
            proxy: None,
        }
    }
}

impl TransportBuilder {
    /// The egress rules; default: globally reachable addresses only.
    #[must_use]
    pub fn egress(mut self, egress: Egress) -> Self {
        self.egress = egress;
        self
    }

    /// The `User-Agent` of requests that bring none; default `teimoso/<version>`.
    #[must_use]
    pub fn user_agent(mut self, user_agent: &str) -> Self {
        user_agent.clone_into(&mut self.user_agent);
        self
    }

    /// Idle connections kept per origin; default 16; 0 means one connection per attempt.
    #[must_use]
    pub fn pool_idle_per_host(mut self, connections: usize) -> Self {
        self.idle_per_host = connections;
        self
    }

    /// How long a connection may lie idle; default 30 s; zero means one connection per attempt.
    #[must_use]
    pub fn pool_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// The trust roots; default: the machine's own, else the bundled ones.
    #[must_use]
    pub fn tls_roots(mut self, roots: TlsRoots) -> Self {
        self.roots = roots;
        self
    }

    /// Adds every certificate of a PEM text to the trust roots.
    #[must_use]
    pub fn tls_root_pem(mut self, pem: &[u8]) -> Self {
        self.added_pem.push(pem.to_vec());
        self
    }

    /// Adds one DER certificate to the trust roots.
    #[must_use]
    pub fn tls_root_der(mut self, der: &[u8]) -> Self {
        self.added_der.push(der.to_vec());
        self
    }

    /// The resolver; default [`SystemResolver`].
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Box::new(resolver);
        self
    }

    /// The HTTP versions of exchanges; default [`HttpVersions::Http1Only`].
    #[must_use]
    pub fn http_version(mut self, versions: HttpVersions) -> Self {
        self.versions = versions;
        self
    }

    /// A forward proxy for every connection; default none. The environment is never looked at.
    #[must_use]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Reads the trust roots and makes the transport.
    ///
    /// # Errors
    ///
    /// A user agent that no header can carry, an added root that is no certificate, or an added text without one.
    pub fn build(self) -> Result<Transport, BuildError> {
        let user_agent = HeaderValue::from_str(&self.user_agent)
            .map_err(|_| BuildError { message: USER_AGENT_REFUSED.to_owned() })?;
        let unusable = |error: &dyn fmt::Display| BuildError { message: format!("use a tls root: {error}") };
        let mut added: Vec<_> = self.added_der.into_iter().map(CertificateDer::from).collect();
        for pem in &self.added_pem {
            let before = added.len();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                added.push(certificate.map_err(|error| unusable(&error))?);
            }
            if added.len() == before {
                return Err(unusable(&"the pem text holds no certificate"));
            }
        }
        let config = tls::config(&self.roots, added).map_err(|error| unusable(&error))?;
        let tls_http2 = tls::offering(config.clone(), self.versions.offered_with_http2());
        let connector = Connector {
            resolver: Resolver::new(self.resolver),
            egress: self.egress,
            tls_http1: tls::offering(config, &["http/1.1"]),
            tls_http2,
            proxy: self.proxy,
        };
        let pool = Arc::new(Pool::new(self.idle_per_host, self.idle_timeout));
        let (versions, origins) = (self.versions, Origins::default());
        Ok(Transport { shared: Arc::new(Shared { pool, origins, connector, user_agent, versions }) })
    }
}

const USER_AGENT_REFUSED: &str = "use the user agent: it holds a character that http cannot send";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_settings_are_named() {
        let error = Transport::builder().user_agent("line\nbreak").build().unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to use the user agent: it holds a character that http cannot send"
        );
        let error = Transport::builder()
            .tls_roots(TlsRoots::OnlyAdded)
            .tls_root_der(b"nonsense")
            .build()
            .unwrap_err();
        assert!(error.to_string().starts_with("failed to use a tls root: "), "{error}");
        for empty in [b"".as_slice(), b"no certificate here"] {
            let error = Transport::builder().tls_root_pem(empty).build().unwrap_err();
            assert_eq!(error.to_string(), "failed to use a tls root: the pem text holds no certificate");
        }
    }
}
