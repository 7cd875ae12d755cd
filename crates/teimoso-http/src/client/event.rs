//! What is said about a retry, as data: one event for the observer and one `warn` of it; absent: sentences for people
//! in any language, which the program that embeds the client writes.

use std::num::NonZeroU32;
use std::ops::Range;
use std::time::Duration;

use teimoso_retry::{Fate, WaitSource};

use super::marks::ShownPath;
use crate::attempt::ErrorKind;

/// An attempt that failed and will be followed by another (S1.8). It holds no secret: the URL has neither user name nor
/// password and none of its query's values; headers and bodies are not here at all.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RetryEvent {
    /// The method.
    pub method: http::Method,
    /// The URL without user information and without the values of its query: `https://h.example/a?page=***`. Secrets
    /// in a path cannot be told from other paths; put them in headers, or say with [`ShownPath`](crate::ShownPath)
    /// what is to be shown instead.
    pub url: String,
    /// The number of the attempt that failed, from 1.
    pub number: NonZeroU32,
    /// How many attempts there can be.
    pub max_attempts: NonZeroU32,
    /// What is known of the request.
    pub fate: Fate,
    /// The status code, if a response head arrived.
    pub status: Option<u16>,
    /// The stable kind of the failure; of an answer, its class. `None` where a [`Retry`](crate::Retry)'s service
    /// failed, whose errors have a type of their own.
    pub kind: Option<ErrorKind>,
    /// Why the attempt failed, in English and lower case: `connect to 127.0.0.1:9: connection refused`, `http 503`.
    pub reason: String,
    /// The wait that begins now.
    pub wait: Duration,
    /// Where the wait comes from.
    pub source: WaitSource,
    /// Since the start of the call.
    pub elapsed: Duration,
}

impl RetryEvent {
    /// The path of the URL, without the query.
    pub fn path(&self) -> &str {
        path_within(&self.url).map_or("/", |range| &self.url[range])
    }
}

/// Where the path of a URL stands, if it has one.
fn path_within(url: &str) -> Option<Range<usize>> {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let after_scheme = url[..end].find("://").map_or(0, |at| at + 3);
    url[after_scheme..end].find('/').map(|at| after_scheme + at..end)
}

/// Who hears of retries, beside the log.
pub(crate) type Observer = Box<dyn Fn(&RetryEvent) + Send + Sync>;

/// Says it: to the log, as one `warn` with the target `teimoso_http`, and to the observer.
pub(crate) fn say(event: &RetryEvent, observer: Option<&Observer>) {
    tracing::warn!(
        target: "teimoso_http",
        method = %event.method,
        url = %event.url,
        attempt = event.number.get(),
        max_attempts = event.max_attempts.get(),
        fate = event.fate.name(),
        status = event.status,
        kind = event.kind.map(ErrorKind::name),
        reason = %event.reason,
        wait_ms = u64::try_from(event.wait.as_millis()).unwrap_or(u64::MAX),
        source = event.source.name(),
        elapsed_ms = u64::try_from(event.elapsed.as_millis()).unwrap_or(u64::MAX),
        "attempt failed, will retry",
    );
    if let Some(observer) = observer {
        observer(event);
    }
}

/// The URL as it may be shown. What of a query is not `name=` is taken for a value.
fn redacted(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (rest, query) = match url.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (url, None),
    };
    let mut shown = without_user(rest);
    for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        shown.push(if index == 0 { '?' } else { '&' });
        if let Some((name, _)) = pair.split_once('=') {
            shown.push_str(name);
            shown.push('=');
        }
        shown.push_str("***");
    }
    shown
}

/// The URL as it may be shown, with the path that its caller wants shown.
pub(crate) fn shown(url: &str, path: Option<&ShownPath>) -> String {
    let shown = redacted(url);
    let Some(ShownPath(path)) = path else { return shown };
    let own = path_within(&shown).unwrap_or_else(|| {
        let end = shown.find('?').unwrap_or(shown.len());
        end..end
    });
    format!("{}{path}{}", &shown[..own.start], &shown[own.end..])
}

/// The URL without what stands between scheme and host.
fn without_user(url: &str) -> String {
    let authority = match url.find("://") {
        Some(at) => at + 3,
        None if url.starts_with('/') => return url.to_owned(),
        // A bare authority, as CONNECT has it.
        None => 0,
    };
    let (scheme, rest) = url.split_at(authority);
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}{}", &rest[host..])
}

#[cfg(test)]
mod tests {
    use teimoso_retry::Why;

    use super::*;

    #[test]
    fn a_url_is_shown_without_user_and_query_values() {
        let cases = [
            ("http://h.example", "http://h.example"),
            ("http://h.example/a@b/c", "http://h.example/a@b/c"),
            ("https://user:s3cret@h.example:8443/a", "https://h.example:8443/a"),
            ("https://a@b@h.example/", "https://h.example/"),
            ("http://h.example/a?token=s3cret&page=2", "http://h.example/a?token=***&page=***"),
            ("http://h.example/?s3cret", "http://h.example/?***"),
            ("http://h.example/?a=s3cret=s3cret&&#s3cret", "http://h.example/?a=***&***&***"),
            ("/a?b=s3cret", "/a?b=***"),
            ("/a@b", "/a@b"),
            ("user:s3cret@h.example:443", "h.example:443"),
            ("", ""),
        ];
        for (url, shown) in cases {
            assert_eq!(redacted(url), shown);
        }
    }

    #[test]
    fn a_path_that_holds_a_credential_is_shown_as_its_caller_says() {
        let cases = [
            ("https://u:p@h.example/token/s3cret/send?a=s3cret", "https://h.example/token/***/send?a=***"),
            ("http://h.example", "http://h.example/token/***/send"),
            ("http://h.example?a=s3cret", "http://h.example/token/***/send?a=***"),
        ];
        for (url, shown) in cases {
            assert_eq!(super::shown(url, Some(&ShownPath("/token/***/send".to_owned()))), shown);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_url_leaks_its_password_or_a_query_value(
            host in "[a-z]{1,8}", path in "(/[a-z]{0,5}){0,3}", name in "[a-z]{0,5}",
        ) {
            let url = format!("https://u:S3CRET@{host}{path}?{name}=S3CRET&S3CRET#S3CRET");
            proptest::prop_assert!(!redacted(&url).contains("S3CRET"));
        }
    }

    fn event(url: &str) -> RetryEvent {
        RetryEvent {
            method: http::Method::GET,
            url: redacted(url),
            number: NonZeroU32::MIN,
            max_attempts: NonZeroU32::new(4).unwrap(),
            fate: Fate::Ambiguous(Why::Reset),
            status: None,
            kind: Some(ErrorKind::Reset),
            reason: "get a response: the peer reset the connection".to_owned(),
            wait: Duration::from_millis(312),
            source: WaitSource::Schedule,
            elapsed: Duration::from_millis(7),
        }
    }

    #[test]
    fn s1_8_an_event_holds_all_that_the_line_of_a_retry_says() {
        let event = event("https://f.example/api/v1/pulls/7?access_token=s3cret");
        let line = format!(
            "[forgejo-api] {} {} falhou (tentativa {}/{}): {} — retry em {}ms",
            event.method,
            event.path(),
            event.number,
            event.max_attempts,
            event.reason,
            event.wait.as_millis()
        );
        let expected = "[forgejo-api] GET /api/v1/pulls/7 falhou (tentativa 1/4): \
                        get a response: the peer reset the connection — retry em 312ms";
        assert_eq!(line, expected);
    }

    #[test]
    fn the_path_of_a_url_without_one_is_the_root() {
        assert_eq!(event("https://f.example").path(), "/");
        assert_eq!(event("https://f.example?a=b").path(), "/");
    }
}
