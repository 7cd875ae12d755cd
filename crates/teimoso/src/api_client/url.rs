//! The server's URL, and the paths and queries made for it. Deliberately absent: resolving names.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use http::Uri;
use http::header::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What needs no encoding in a path segment or a query (RFC 3986 section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of a server: `http://HOST[:PORT][/BASE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    authority: String,
    host: String,
    port: u16,
    base_path: String,
    host_header: HeaderValue,
}

impl ServerUrl {
    /// The host, an IPv6 address without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 80 when the URL names none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What stands before every path, without a slash at its end.
    #[must_use]
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// The value of the `Host` header.
    #[must_use]
    pub fn host_header(&self) -> HeaderValue {
        self.host_header.clone()
    }
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerUrl, String> {
        const SHAPE: &str = "a server is http://HOST:PORT";
        let uri: Uri = text.parse().map_err(|_| SHAPE)?;
        let authority = uri.authority().ok_or(SHAPE)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err("this build speaks plain HTTP to its server: http://HOST:PORT".to_owned());
            }
            _ => return Err(SHAPE.to_owned()),
        }
        if authority.as_str().contains('@') {
            return Err("a server URL carries no credentials".to_owned());
        }
        if uri.query().is_some() || authority.host().is_empty() {
            return Err(SHAPE.to_owned());
        }
        // `http://host:` and `http://host:99999` parse as an authority without a port.
        if authority.port().is_none() && authority.as_str() != authority.host() {
            return Err(SHAPE.to_owned());
        }
        Ok(ServerUrl {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(80),
            base_path: uri.path().trim_end_matches('/').to_owned(),
            host_header: HeaderValue::from_str(authority.as_str()).map_err(|_| SHAPE)?,
            authority: authority.to_string(),
        })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.base_path)
    }
}

/// A text as one path segment.
#[must_use]
pub fn segment(text: &str) -> String {
    match text {
        // A segment of dots would climb out of the path.
        "." | ".." => text.replace('.', "%2E"),
        _ => utf8_percent_encode(text, ENCODED).to_string(),
    }
}

/// A query string in the making.
#[derive(Debug, Clone)]
pub struct Query {
    path: String,
    pairs: usize,
}

impl Query {
    /// A path without a query.
    #[must_use]
    pub fn new(path: &str) -> Query {
        Query { path: path.to_owned(), pairs: 0 }
    }

    /// With `name=value`, if there is a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl fmt::Display>) -> Query {
        let Some(value) = value else { return self };
        let mark = if self.pairs == 0 { '?' } else { '&' };
        let value = value.to_string();
        let encoded = utf8_percent_encode(&value, ENCODED);
        // Writing to a string cannot fail.
        let _never = write!(self.path, "{mark}{name}={encoded}");
        self.pairs += 1;
        self
    }

    /// Path and query.
    #[must_use]
    pub fn finish(self) -> String {
        self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ServerUrl {
        text.parse().expect(text)
    }

    #[test]
    fn a_server_url_has_a_host_and_a_port() {
        let local = url("http://127.0.0.1:8080");
        assert_eq!((local.host(), local.port(), local.base_path()), ("127.0.0.1", 8080, ""));
        let six = url("http://[::1]:81/base/");
        assert_eq!((six.host(), six.port(), six.base_path()), ("::1", 81, "/base"));
        assert_eq!(six.to_string(), "http://[::1]:81/base");
        assert_eq!(url("http://example.com").port(), 80);
    }

    #[test]
    fn what_is_no_server_url_is_refused() {
        let texts = [
            "",
            "127.0.0.1:8080",
            "https://x",
            "ftp://x",
            "http://",
            "http://x:99999",
            "http://x:",
            "http://u:p@x",
            "http://x/?a=b",
            "/path",
            "http:// x",
        ];
        for text in texts {
            assert!(text.parse::<ServerUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn segments_and_queries_are_encoded() {
        assert_eq!(segment("evt_1/../x?y"), "evt_1%2F..%2Fx%3Fy");
        assert_eq!(segment(".."), "%2E%2E");
        let query = Query::new("/v1/events").with("type", Some("a&b ç")).with("since", None::<&str>);
        assert_eq!(query.with("limit", Some(5)).finish(), "/v1/events?type=a%26b%20%C3%A7&limit=5");
    }
}
