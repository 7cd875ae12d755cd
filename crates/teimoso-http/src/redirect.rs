//! Where a redirect leads and what goes along, by the rules of RFC 9110 §15.4; absent: following it, which the client
//! does above its retries: each hop is a request of its own, and nothing before it is ever sent again.

use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_TYPE,
    COOKIE, LOCATION, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use url::Url;

use crate::client::IDEMPOTENCY_KEY;
use crate::target::Target;

/// Whether a client follows redirects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Redirects {
    /// A redirect is returned like any other answer.
    #[default]
    None,
    /// This many are followed within one call; the next one is returned.
    Limit(u32),
}

impl Redirects {
    pub(crate) fn limit(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Limit(limit) => limit,
        }
    }
}

/// The next request that a redirect asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) target: Target,
    pub(crate) method: Method,
    /// Whether the body goes along.
    pub(crate) with_body: bool,
}

impl Redirect {
    /// Reads an answer to `method` from `from`. `None` when it asks for no other request, or for one that cannot be
    /// made: an unusable `Location`, a body that cannot be sent again, or one that came over TLS and would go on in the
    /// clear. `replayable` says whether it can be sent again.
    pub(crate) fn read(
        from: &Target,
        method: &Method,
        status: StatusCode,
        headers: &HeaderMap,
        replayable: bool,
    ) -> Option<Self> {
        let (method, with_body) = next_method(status, method)?;
        if with_body && !replayable {
            return None;
        }
        let location = std::str::from_utf8(headers.get(LOCATION)?.as_bytes()).ok()?;
        let here = Url::parse(from.as_str()).ok()?;
        let there = here.join(location).ok()?;
        let into_the_clear = here.scheme() == "https" && there.scheme() == "http";
        if into_the_clear && with_body && !matches!(method, Method::GET | Method::HEAD) {
            return None;
        }
        let target = Target::parse(there.as_str()).ok()?;
        Some(Self { target, method, with_body })
    }

    /// Takes out of the headers what must not go along: what described a body that stays behind, and, when scheme,
    /// host or port change, every credential.
    pub(crate) fn strip(&self, from: &Target, headers: &mut HeaderMap) {
        if !self.with_body {
            for name in OF_THE_BODY {
                headers.remove(name);
            }
            // It belongs to the request that was answered, and this is another one.
            headers.remove(&IDEMPOTENCY_KEY);
        }
        if self.target.origin() != from.origin() {
            strip_credentials(headers);
        }
    }
}

const OF_THE_BODY: [HeaderName; 6] =
    [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, TRANSFER_ENCODING];

const CREDENTIALS: [HeaderName; 3] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];

/// The credentials that HTTP knows, and every header that its owner marked as sensitive.
fn strip_credentials(headers: &mut HeaderMap) {
    for name in CREDENTIALS {
        headers.remove(name);
    }
    let marked =
        |(name, value): (&HeaderName, &http::HeaderValue)| value.is_sensitive().then(|| name.clone());
    let sensitive: Vec<HeaderName> = headers.iter().filter_map(marked).collect();
    for name in sensitive {
        headers.remove(name);
    }
}

/// The method of the next request, and whether it has the body of this one. 301 and 302 turn a POST into a GET, as
/// every browser does (RFC 9110 §15.4.2, §15.4.3); 303 turns everything but HEAD into a GET; 307 and 308 change
/// nothing.
fn next_method(status: StatusCode, method: &Method) -> Option<(Method, bool)> {
    match status.as_u16() {
        301 | 302 if *method == Method::POST => Some((Method::GET, false)),
        303 if *method == Method::HEAD => Some((Method::HEAD, false)),
        303 => Some((Method::GET, false)),
        301 | 302 | 307 | 308 => Some((method.clone(), true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const HERE: &str = "http://h.example/a/b?c=d";

    fn read(status: u16, method: &Method, location: &[u8], replayable: bool) -> Option<Redirect> {
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_bytes(location).unwrap())]);
        let from = Target::parse(HERE).unwrap();
        Redirect::read(&from, method, StatusCode::from_u16(status).unwrap(), &headers, replayable)
    }

    fn next(status: u16, method: &Method) -> Option<(Method, bool)> {
        read(status, method, b"/", true).map(|next| (next.method, next.with_body))
    }

    #[test]
    fn rfc_9110_says_with_which_method_a_redirect_goes_on() {
        for status in [301, 302] {
            assert_eq!(next(status, &Method::POST), Some((Method::GET, false)));
            assert_eq!(next(status, &Method::GET), Some((Method::GET, true)));
            assert_eq!(next(status, &Method::PUT), Some((Method::PUT, true)));
        }
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            assert_eq!(next(303, &method), Some((Method::GET, false)));
            assert_eq!(next(307, &method), Some((method.clone(), true)));
            assert_eq!(next(308, &method), Some((method, true)));
        }
        assert_eq!(next(303, &Method::HEAD), Some((Method::HEAD, false)));
        for status in [200, 300, 304, 305, 306, 399, 404, 503] {
            assert_eq!(next(status, &Method::GET), None, "{status}");
        }
    }

    #[test]
    fn a_location_is_resolved_against_the_url_it_came_from() {
        let to = |location: &[u8]| {
            read(302, &Method::GET, location, true).map(|next| next.target.as_str().to_owned())
        };
        assert_eq!(to(b"c").as_deref(), Some("http://h.example/a/c"));
        assert_eq!(to(b"/c#part").as_deref(), Some("http://h.example/c"));
        assert_eq!(to(b"?e=f").as_deref(), Some("http://h.example/a/b?e=f"));
        assert_eq!(to(b"//other.example/x").as_deref(), Some("http://other.example/x"));
        assert_eq!(to(b"HTTPS://Other.Example").as_deref(), Some("https://other.example/"));
        for unusable in [
            b"ftp://h.example/".as_slice(),
            b"http://user:pw@h.example/",
            b"http://",
            b"\xff\xfe",
            b"http://h:0/",
        ] {
            assert_eq!(to(unusable), None);
        }
    }

    #[test]
    fn a_body_that_exists_once_is_not_taken_along() {
        assert_eq!(read(307, &Method::POST, b"/", false), None);
        assert!(read(303, &Method::POST, b"/", false).is_some());
    }

    #[test]
    fn a_body_that_came_over_tls_does_not_go_on_in_the_clear() {
        let from = Target::parse("https://h.example/").unwrap();
        let next = |method: &Method, status: u16, location: &'static str| {
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))]);
            let status = StatusCode::from_u16(status).unwrap();
            Redirect::read(&from, method, status, &headers, true).map(|next| next.method)
        };
        assert_eq!(next(&Method::POST, 307, "http://h.example/"), None);
        assert_eq!(next(&Method::PUT, 301, "http://other.example/"), None);
        assert_eq!(next(&Method::POST, 307, "https://other.example/"), Some(Method::POST));
        assert_eq!(next(&Method::POST, 303, "http://h.example/"), Some(Method::GET));
        assert_eq!(next(&Method::GET, 302, "http://h.example/"), Some(Method::GET));
    }

    fn stripped(location: &[u8], status: u16) -> Vec<String> {
        let mut sensitive = HeaderValue::from_static("s3cret");
        sensitive.set_sensitive(true);
        let mut headers = HeaderMap::new();
        for name in
            ["accept", "authorization", "cookie", "proxy-authorization", "content-type", "idempotency-key"]
        {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("x"));
        }
        headers.insert("x-api-key", sensitive);
        let from = Target::parse(HERE).unwrap();
        read(status, &Method::POST, location, true).unwrap().strip(&from, &mut headers);
        let mut left: Vec<String> = headers.keys().map(ToString::to_string).collect();
        left.sort();
        left
    }

    #[test]
    fn credentials_stay_with_scheme_host_and_port() {
        let all = [
            "accept",
            "authorization",
            "content-type",
            "cookie",
            "idempotency-key",
            "proxy-authorization",
            "x-api-key",
        ];
        assert_eq!(stripped(b"/elsewhere", 307), all);
        assert_eq!(stripped(b"http://h.example:80/", 307), all);
        for location in [b"https://h.example/".as_slice(), b"http://h.example:81/", b"http://www.h.example/"]
        {
            assert_eq!(stripped(location, 307), ["accept", "content-type", "idempotency-key"]);
        }
    }

    #[test]
    fn what_described_the_body_stays_behind_with_it() {
        let left = stripped(b"/elsewhere", 303);
        assert_eq!(left, ["accept", "authorization", "cookie", "proxy-authorization", "x-api-key"]);
    }
}
