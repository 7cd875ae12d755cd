//! Where the API is, and which redirects stay there; absent: names and addresses, which the transport resolves.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use http::Response;
use http::header::LOCATION;
use teimoso_http::Target;
use url::Url;

use super::call::Call;

/// What every path of the API begins with.
const API: &str = "/api/v1";

/// The address of a Forgejo: `https://codeberg.org`, also below a path.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Without a slash at its end and without [`API`].
    base: String,
    origin: String,
}

/// Why a URL is no server's; one sentence, lower case, that never repeats the URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidServer(String);

/// Why a redirect is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Astray {
    /// It leads to this other scheme, host and port, which must not see the token.
    OtherServer(String),
    /// It leads to a page of this server, such as the one where people log in: 301, 302 or 303 drop method and body.
    Page,
    /// It does not say where, or in no way that HTTP goes.
    Nowhere,
    /// Each leads to the next one.
    InCircles,
}

impl Server {
    /// The URL that people see, without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.base
    }

    pub(super) fn url(&self, call: &Call) -> String {
        let mark = if call.query.is_empty() { "" } else { "?" };
        format!("{}{API}{}{mark}{}", self.base, call.path, call.query)
    }

    /// Where an answer sends us; `None` if nowhere else.
    ///
    /// Only 307 and 308 keep method and body; the others come from proxies and mean that the address is not right.
    pub(super) fn moved(&self, response: &Response<Bytes>) -> Option<Result<String, Astray>> {
        let status = response.status().as_u16();
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let there = Url::parse(&self.base).ok().zip(location).and_then(|(base, to)| base.join(to).ok());
        let Some(there) = there.filter(|there| there.origin().is_tuple()) else {
            return Some(Err(Astray::Nowhere));
        };
        let origin = there.origin().ascii_serialization();
        Some(match status {
            _ if origin != self.origin => Err(Astray::OtherServer(origin)),
            307 | 308 => Ok(there.into()),
            _ => Err(Astray::Page),
        })
    }
}

impl FromStr for Server {
    type Err = InvalidServer;

    /// Takes `http` and `https` URLs without user, password and query; the path of the API at the end may be there.
    fn from_str(text: &str) -> Result<Self, InvalidServer> {
        let target = Target::parse(text).map_err(|invalid| InvalidServer(invalid.sentence))?;
        let url = Url::parse(target.as_str()).map_err(|error| InvalidServer(error.to_string()))?;
        if url.query().is_some() {
            return Err(InvalidServer("the url of a server has no query".to_owned()));
        }
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix(API).unwrap_or(path);
        let origin = url.origin().ascii_serialization();
        Ok(Self { base: format!("{origin}{path}"), origin })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.base)
    }
}

impl fmt::Display for Astray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherServer(origin) => write!(f, "it leads to {origin}, where the token must not go"),
            Self::Page => f.write_str("it leads to another page of the server, not to an answer"),
            Self::Nowhere => f.write_str("it leads nowhere"),
            Self::InCircles => f.write_str("it leads on and on"),
        }
    }
}

impl fmt::Display for InvalidServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidServer {}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Server {
        text.parse().unwrap()
    }

    fn redirect(status: u16, location: &str) -> Response<Bytes> {
        Response::builder().status(status).header(LOCATION, location).body(Bytes::new()).unwrap()
    }

    #[test]
    fn the_base_is_found_however_it_is_written() {
        for text in ["http://f.example/git", "http://f.example/git/", "http://f.example:80/git/api/v1/"] {
            let call = Call::get(&["version"]).query("a", "1");
            assert_eq!(server(text).url(&call), "http://f.example/git/api/v1/version?a=1", "{text}");
        }
    }

    #[test]
    fn what_cannot_be_a_server_is_refused_without_repeating_it() {
        for text in
            ["f.example", "ftp://f.example", "http://u:s3cret@f.example", "http://f.example/?t=s3cret"]
        {
            let invalid = text.parse::<Server>().unwrap_err().to_string();
            assert!(!invalid.contains("s3cret"), "{invalid}");
        }
    }

    #[test]
    fn a_rename_is_followed_on_the_same_host_only() {
        let here = server("http://f.example/git");
        let moved = |status, to: &str| here.moved(&redirect(status, to));
        let next = "http://f.example/git/api/v1/repos/n/r".to_owned();
        assert_eq!(moved(307, "/git/api/v1/repos/n/r"), Some(Ok(next.clone())));
        assert_eq!(moved(308, &next), Some(Ok(next)));
        for (status, to, origin) in [
            (307, "https://f.example/git/api/v1/x", "https://f.example"),
            (307, "http://f.example:8080/x", "http://f.example:8080"),
            (307, "//evil.example/x", "http://evil.example"),
        ] {
            assert_eq!(moved(status, to), Some(Err(Astray::OtherServer(origin.to_owned()))), "{to}");
        }
        assert_eq!(moved(302, "/git/user/login"), Some(Err(Astray::Page)));
        assert_eq!(moved(307, "data:text/plain,x"), Some(Err(Astray::Nowhere)));
        let silent = Response::builder().status(307).body(Bytes::new()).unwrap();
        assert_eq!(here.moved(&silent), Some(Err(Astray::Nowhere)));
        assert_eq!(here.moved(&Response::new(Bytes::new())), None);
    }
}
