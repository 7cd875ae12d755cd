//! A forward proxy, as a setting; absent: any look at the environment, which is for the binary if anyone.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use percent_encoding::percent_decode_str;
use url::{ParseError, Url};

use crate::target::Origin;

/// A forward proxy that every connection goes through.
///
/// Requests for `http` go to it in absolute-form (RFC 9112 §3.2.2), everything else through a tunnel (`CONNECT`, RFC
/// 9110 §9.3.6). What is known of a request gets weaker with it: to an `http` target, an answer of 502 or 504 may be
/// the proxy's, and says nothing of the target. A tunnel that the proxy refuses proves that nothing was sent.
///
/// Names are the proxy's to resolve; [`Egress`](crate::Egress) then judges address literals only, and not the proxy's
/// own address, which an operator typed.
#[derive(Clone)]
pub struct Proxy {
    origin: Arc<Origin>,
    authorization: Option<HeaderValue>,
}

/// Why a URL cannot be a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidProxy {
    /// One sentence for a person, lower case; it never repeats the URL.
    pub sentence: String,
}

impl fmt::Display for InvalidProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for InvalidProxy {}

fn invalid(sentence: impl Into<String>) -> InvalidProxy {
    InvalidProxy { sentence: sentence.into() }
}

const NOT_HTTP: &str = "the proxy's url must start with http://";

fn malformed(error: ParseError) -> InvalidProxy {
    match error {
        ParseError::RelativeUrlWithoutBase => invalid(NOT_HTTP),
        other => invalid(format!("the proxy's url is malformed: {other}")),
    }
}

impl Proxy {
    /// A proxy that is spoken to in plain HTTP: `http://host:port`, or `http://user:password@host:port` for the
    /// `Basic` scheme (RFC 7617), percent-encoded where needed. Neither is ever printed. Without a port it is 80.
    ///
    /// # Errors
    ///
    /// [`InvalidProxy`] for anything else, such as another scheme, a path or a query.
    pub fn http(url: &str) -> Result<Self, InvalidProxy> {
        if url.chars().any(char::is_control) {
            return Err(invalid("the proxy's url contains a control character"));
        }
        let url = Url::parse(url).map_err(malformed)?;
        if url.scheme() != "http" {
            return Err(invalid(NOT_HTTP));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("the proxy's url must end after its port"));
        }
        let origin = Origin::from_url(&url)
            .map_err(|error| invalid(error.sentence.replace("the url", "the proxy's url")))?;
        Ok(Self { origin: Arc::new(origin), authorization: authorization(&url)? })
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Host and port, for messages.
    pub(crate) fn authority(&self) -> String {
        self.origin.authority()
    }

    /// The value of `Proxy-Authorization`, marked sensitive.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

fn authorization(url: &Url) -> Result<Option<HeaderValue>, InvalidProxy> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    if pair.contains(&b':') {
        return Err(invalid("the proxy's user name contains a colon, which its password would swallow"));
    }
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)))
        .map_err(|_| invalid("the proxy's credentials hold a character that http cannot send"))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

impl fmt::Debug for Proxy {
    /// Credentials are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxy").field(&self.authority()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_become_a_header_and_are_never_printed() {
        let proxy = Proxy::http("http://user:p%40ss@proxy.test:3128").unwrap();
        let value = proxy.authorization().unwrap();
        assert_eq!((value.as_bytes(), value.is_sensitive()), (&b"Basic dXNlcjpwQHNz"[..], true));
        assert_eq!(format!("{proxy:?}"), "Proxy(\"proxy.test:3128\")");
        assert!(Proxy::http("http://proxy.test").unwrap().authorization().is_none());
        assert_eq!(Proxy::http("http://[::1]").unwrap().authority(), "[::1]:80");
    }

    #[test]
    fn an_unusable_proxy_is_refused_in_a_sentence_without_its_url() {
        let sentence = |url: &str| Proxy::http(url).unwrap_err().sentence;
        assert_eq!(sentence("socks5://h:1"), "the proxy's url must start with http://");
        assert_eq!(sentence("https://u:secret@h"), "the proxy's url must start with http://");
        assert_eq!(sentence("http://u:secret@h/path"), "the proxy's url must end after its port");
        assert_eq!(sentence("http://u:secret@h:0"), "the proxy's url's port is 0, where nothing can listen");
        assert_eq!(sentence("u:secret"), "the proxy's url must start with http://");
        assert_eq!(sentence("u"), "the proxy's url must start with http://");
        assert_eq!(
            sentence("http://a%3Ab:secret@h"),
            "the proxy's user name contains a colon, which its password would swallow"
        );
    }
}
