//! A destination URL, validated once, with everything an attempt needs prepared; absent: resolution and egress rules.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use http::header::HOST;
use http::{HeaderMap, HeaderValue, Uri};
use rustls::pki_types::ServerName;
use url::{Host, ParseError, Url};

/// The longest URL that is accepted, in bytes (G11).
pub const TARGET_BYTES_MAX: usize = 8 * 1024;

/// A validated `http` or `https` URL.
///
/// Hosts are read as browsers read them (WHATWG), so `2130706433`, `0x7f.1`, `0177.0.0.1` and `[::ffff:127.0.0.1]` all
/// become `127.0.0.1` before any rule looks at them (G12). A fragment is dropped: it is never sent.
#[derive(Clone)]
pub struct Target {
    text: String,
    path_end: usize,
    origin: Arc<Origin>,
    uri: Uri,
    host_header: HeaderValue,
}

/// Scheme, host and port: what a connection is for. Two origins are equal if their text is.
pub(crate) struct Origin {
    text: String,
    host: OriginHost,
    port: u16,
    tls_name: Option<ServerName<'static>>,
}

/// The host of an origin: a name to resolve, or the address itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OriginHost {
    Name(String),
    Address(IpAddr),
}

/// Why a URL cannot be a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidTarget {
    /// One sentence for a person, lower case; it never repeats the URL.
    pub sentence: String,
}

impl fmt::Display for InvalidTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for InvalidTarget {}

fn invalid(sentence: impl Into<String>) -> InvalidTarget {
    InvalidTarget { sentence: sentence.into() }
}

const WITHOUT_SCHEME: &str = "the url must start with http:// or https://";

fn malformed(error: ParseError) -> InvalidTarget {
    match error {
        ParseError::RelativeUrlWithoutBase => invalid(WITHOUT_SCHEME),
        other => invalid(format!("the url is malformed: {other}")),
    }
}

impl Target {
    /// Validates a URL.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`] for anything that is not an absolute `http` or `https` URL of at most [`TARGET_BYTES_MAX`]
    /// bytes with a usable host and port, for control characters anywhere in it, and for a user name or password.
    pub fn parse(text: &str) -> Result<Self, InvalidTarget> {
        if text.len() > TARGET_BYTES_MAX {
            return Err(invalid(format!("the url is longer than {TARGET_BYTES_MAX} bytes")));
        }
        // The URL parser would drop tabs and line ends silently and so send elsewhere than the text seems to say.
        if text.chars().any(char::is_control) {
            return Err(invalid("the url contains a control character"));
        }
        let mut url = Url::parse(text).map_err(malformed)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(WITHOUT_SCHEME));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("the url holds a user name or password; put credentials in a header"));
        }
        url.set_fragment(None);
        canonicalise_host(&mut url);
        Self::from_url(&url)
    }

    fn from_url(url: &Url) -> Result<Self, InvalidTarget> {
        let origin = Origin::from_url(url)?;
        let path_end = url.as_str().find('?').unwrap_or(url.as_str().len());
        let path_and_query = &url[url::Position::BeforePath..];
        let uri = path_and_query
            .parse()
            .map_err(|_| invalid("the path or query holds a character that http cannot send"))?;
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let host_header = HeaderValue::from_str(authority)
            .map_err(|_| invalid("the host holds a character that http cannot send"))?;
        Ok(Self { text: url.as_str().to_owned(), path_end, origin: Arc::new(origin), uri, host_header })
    }

    /// The URL, normalised, with its query. Queries may hold secrets: for logs take [`Target::without_query`].
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL up to its query, the name of an implicit lane.
    pub fn without_query(&self) -> String {
        self.text[..self.path_end].to_owned()
    }

    /// Scheme, host and, unless it is the scheme's default, port: `https://example.com:8443`.
    pub fn origin(&self) -> String {
        self.origin.text.clone()
    }

    /// The address, if the host is one, in whichever way it was written.
    pub fn host_literal(&self) -> Option<IpAddr> {
        match self.origin.host {
            OriginHost::Address(address) => Some(address),
            OriginHost::Name(_) => None,
        }
    }

    /// The host, without port and brackets.
    pub fn host(&self) -> String {
        self.origin.host.to_string()
    }

    /// The port, the scheme's default filled in; never 0.
    pub fn port(&self) -> u16 {
        self.origin.port
    }

    /// Whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.origin.tls_name.is_some()
    }

    pub(crate) fn shared_origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// Origin-form (RFC 9112 §3.2.1): path and query.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Absolute-form (RFC 9112 §3.2.2), for a proxy and for HTTP/2; `None` if it cannot be written as such, which no
    /// URL is known for whose path can be sent.
    pub(crate) fn absolute_uri(&self) -> Option<Uri> {
        self.text.parse().ok()
    }

    /// A header map with room for `fields` lines, which begins with this target's `Host` as RFC 9110 §7.2 asks for.
    /// Whoever fills it saves the transport a second one.
    pub fn headers(&self, fields: usize) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(fields + 1);
        headers.insert(HOST, self.host_header.clone());
        headers
    }

    pub(crate) fn host_header(&self) -> &HeaderValue {
        &self.host_header
    }
}

/// An IPv4-mapped literal *is* the IPv4 address; from here on it is written as such.
fn canonicalise_host(url: &mut Url) {
    if let Some(Host::Ipv6(address)) = url.host()
        && let mapped @ IpAddr::V4(_) = IpAddr::V6(address).to_canonical()
    {
        // Only a URL that cannot have a host refuses one, and this one has a host.
        let _ = url.set_ip_host(mapped);
    }
}

impl Origin {
    pub(crate) fn from_url(url: &Url) -> Result<Self, InvalidTarget> {
        let host = match url.host() {
            Some(Host::Domain(name)) => OriginHost::Name(name.to_owned()),
            Some(Host::Ipv4(address)) => OriginHost::Address(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => OriginHost::Address(IpAddr::V6(address)),
            None => return Err(invalid("the url has no host")),
        };
        let port = match url.port_or_known_default() {
            Some(port) if port != 0 => port,
            _ => return Err(invalid("the url's port is 0, where nothing can listen")),
        };
        let tls_name = if url.scheme() == "https" { Some(host.tls_name()?) } else { None };
        Ok(Self { text: url.origin().ascii_serialization(), host, port, tls_name })
    }

    pub(crate) fn host(&self) -> &OriginHost {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Host and port (RFC 9110 §7.1, authority-form), the port always written.
    pub(crate) fn authority(&self) -> String {
        match &self.host {
            OriginHost::Name(name) => format!("{name}:{}", self.port),
            OriginHost::Address(address) => SocketAddr::new(*address, self.port).to_string(),
        }
    }

    /// The name the peer's certificate must hold; `None` for `http`.
    pub(crate) fn tls_name(&self) -> Option<&ServerName<'static>> {
        self.tls_name.as_ref()
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Origin {}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl OriginHost {
    fn tls_name(&self) -> Result<ServerName<'static>, InvalidTarget> {
        match self {
            Self::Address(address) => Ok(ServerName::from(*address)),
            Self::Name(name) => ServerName::try_from(name.clone())
                .map_err(|_| invalid("the host is no name that a tls certificate can hold")),
        }
    }
}

impl fmt::Display for OriginHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

impl FromStr for Target {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&&self.text[..self.path_end]).finish()
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Target {}

/// An address and the origin's port, ready to connect to.
pub(crate) fn socket_address(address: IpAddr, origin: &Origin) -> SocketAddr {
    SocketAddr::new(address, origin.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    fn sentence(text: &str) -> String {
        Target::parse(text).unwrap_err().sentence
    }

    #[test]
    fn g12_every_way_to_write_loopback_is_the_same_address() {
        for host in
            ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0x7f000001", "[::ffff:127.0.0.1]"]
        {
            let target = target(&format!("http://{host}:8080/hook"));
            assert_eq!(target.host_literal(), Some("127.0.0.1".parse().unwrap()), "{host}");
            assert_eq!(target.as_str(), "http://127.0.0.1:8080/hook", "{host}");
        }
    }

    #[test]
    fn the_parts_of_a_url_are_prepared() {
        let target = target("HTTPS://Example.COM:8443/a/b?key=1#part");
        assert_eq!(target.as_str(), "https://example.com:8443/a/b?key=1");
        assert_eq!(target.without_query(), "https://example.com:8443/a/b");
        assert_eq!(target.origin(), "https://example.com:8443");
        assert_eq!((target.host(), target.port(), target.is_https()), ("example.com".into(), 8443, true));
        assert_eq!(target.host_literal(), None);
        assert_eq!(target.uri(), "/a/b?key=1");
        assert_eq!(target.host_header(), "example.com:8443");
    }

    #[test]
    fn a_default_port_is_not_written_but_known() {
        let target = target("http://example.com:80");
        assert_eq!(target.as_str(), "http://example.com/");
        assert_eq!(target.origin(), "http://example.com");
        assert_eq!(target.port(), 80);
        assert_eq!(target.host_header(), "example.com");
        assert_eq!(target.uri(), "/");
    }

    #[test]
    fn an_ipv6_literal_keeps_its_brackets_in_the_host_header() {
        let target = target("http://[2606:4700::1111]:81/x");
        assert_eq!(target.host_header(), "[2606:4700::1111]:81");
        assert_eq!(target.host_literal(), Some("2606:4700::1111".parse().unwrap()));
    }

    #[test]
    fn debug_output_never_shows_a_query() {
        assert_eq!(
            format!("{:?}", target("http://h.example/p?token=s3cret")),
            "Target(\"http://h.example/p\")"
        );
    }

    #[test]
    fn credentials_in_a_url_are_refused_with_the_way_out() {
        let said = "the url holds a user name or password; put credentials in a header";
        assert_eq!(sentence("http://user@h.example/"), said);
        assert_eq!(sentence("http://:pw@h.example/"), said);
    }

    #[test]
    fn an_unusable_url_is_refused_in_a_sentence() {
        assert_eq!(sentence("ftp://h.example/"), "the url must start with http:// or https://");
        assert_eq!(sentence("/relative"), "the url must start with http:// or https://");
        assert_eq!(sentence("h.example"), "the url must start with http:// or https://");
        assert_eq!(sentence("http://"), "the url is malformed: empty host");
        assert_eq!(sentence("http://h.example:0/"), "the url's port is 0, where nothing can listen");
        assert_eq!(sentence("http://h.exa\nmple/"), "the url contains a control character");
        assert_eq!(
            sentence(&format!("http://h.example/{}", "a".repeat(TARGET_BYTES_MAX))),
            "the url is longer than 8192 bytes"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_what_is_accepted_stays_as_it_is(text in "(https?://)?[ -~]{0,40}") {
            if let Ok(target) = Target::parse(&text) {
                proptest::prop_assert_eq!(Target::parse(target.as_str()).unwrap(), target);
            }
        }
    }
}
