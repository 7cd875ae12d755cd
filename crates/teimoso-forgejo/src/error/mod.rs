//! Why an operation did not succeed, as a sentence a person can act on; absent: words in other languages.

mod next_step;
mod said;

use std::fmt;
use std::time::Duration;

use http::Method;
use teimoso_http::retry::{Fate, Proof};

use crate::client::{Astray, Call};

pub use self::next_step::NextStep;
pub use self::said::Said;

/// An operation that did not succeed.
///
/// The text is lower case, stands by itself, and holds neither the token nor a query.
pub struct Error {
    // One pointer wide: an error is rare, and every `Result` carries room for it.
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    method: Method,
    path: String,
    what: What,
}

#[derive(Debug)]
enum What {
    /// No whole answer came.
    Transport(teimoso_http::Error),
    /// The answer is no success.
    Answered { status: u16, said: Said, retry_after: Option<Duration> },
    /// The answer is a success that cannot be read.
    Unreadable { status: u16, came: String },
    /// The answer is a redirect that is not followed.
    Redirected { status: u16, astray: Astray },
    /// The server reported a success, and what it reported is not so.
    NotSo(String),
}

impl Error {
    fn new(call: &Call, what: What) -> Self {
        Self { inner: Box::new(Inner { method: call.method.clone(), path: call.path.clone(), what }) }
    }

    pub(crate) fn transport(call: &Call, error: teimoso_http::Error) -> Self {
        Self::new(call, What::Transport(error))
    }

    pub(crate) fn answered(call: &Call, status: u16, said: Said, retry_after: Option<Duration>) -> Self {
        Self::new(call, What::Answered { status, said, retry_after })
    }

    pub(crate) fn unreadable(call: &Call, status: u16, came: String) -> Self {
        Self::new(call, What::Unreadable { status, came })
    }

    pub(crate) fn redirected(call: &Call, status: u16, astray: Astray) -> Self {
        Self::new(call, What::Redirected { status, astray })
    }

    /// The server reported a success of a write, and a look at what it says shows that it is not so.
    pub(crate) fn not_so(call: &Call, sentence: String) -> Self {
        Self::new(call, What::NotSo(sentence))
    }

    /// The status of the answer, if one came.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match &self.inner.what {
            What::Transport(error) => error.status(),
            What::Answered { status, .. }
            | What::Unreadable { status, .. }
            | What::Redirected { status, .. } => Some(*status),
            What::NotSo(_) => None,
        }
    }

    /// What the server said about it (S1.9).
    #[must_use]
    pub fn said(&self) -> Option<&Said> {
        match &self.inner.what {
            What::Answered { said, .. } => Some(said),
            _ => None,
        }
    }

    /// The wait that the answer asks for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.inner.what {
            What::Answered { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the answer is a 404: not there, or not for this token, which the server does not tell apart.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.inner.what, What::Answered { status: 404, .. })
    }

    /// Whether the token was rejected.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        matches!(self.inner.what, What::Answered { status: 401, .. })
    }

    /// Whether the same request may succeed later, by itself: no answer, 408, 425, 429, any 5xx, or a page that is not
    /// the API's.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match &self.inner.what {
            What::Transport(error) => {
                !error.is_request() && error.fate() != Fate::NeverSent(Proof::TlsCertificate)
            }
            What::Answered { status, .. } => matches!(status, 408 | 425 | 429 | 500..=599),
            What::Unreadable { .. } => true,
            What::Redirected { .. } | What::NotSo(_) => false,
        }
    }

    /// Whether it may have taken effect all the same. Always `false` for a read. `false` rests on a proof, or on an
    /// answer that says so.
    #[must_use]
    pub fn may_have_taken_effect(&self) -> bool {
        if self.inner.method.is_safe() {
            return false;
        }
        match &self.inner.what {
            What::Transport(error) => error.may_have_taken_effect(),
            What::Answered { status, .. } => matches!(status, 408 | 500..=599),
            What::Unreadable { .. } | What::NotSo(_) => true,
            // A redirect comes before anything is done, but for 303, which shows the way to what was done.
            What::Redirected { status, .. } => *status == 303,
        }
    }

    /// Whether an answer came at all, whole enough to be one of the server's own.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self.inner.what, What::Answered { .. })
    }

    /// What to try next, if there is anything to try that the server's own words do not say.
    #[must_use]
    pub fn next_step(&self) -> Option<NextStep> {
        match &self.inner.what {
            What::Answered { status, .. } => match status {
                401 => Some(NextStep::NewToken),
                403 => Some(NextStep::Permission),
                404 => Some(NextStep::SpellingOrAccess),
                423 => Some(NextStep::Unarchive),
                408 | 425 | 429 | 500..=599 => Some(NextStep::Later),
                _ => None,
            },
            What::Transport(error) if error.is_request() => None,
            What::Transport(error) if error.is_connect() => Some(NextStep::Address),
            What::Transport(_) => Some(NextStep::Later),
            What::Unreadable { .. } => Some(NextStep::Address),
            What::Redirected { astray: Astray::OtherServer(_), .. } => Some(NextStep::AddressOfRedirect),
            What::Redirected { .. } => Some(NextStep::Address),
            What::NotSo(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { method, path, what } = &*self.inner;
        write!(f, "{method} {path}: ")?;
        match what {
            What::Transport(error) => write!(f, "{error}"),
            What::Answered { status: 404, said, .. } => {
                write!(f, "HTTP 404: not found, or the token lacks access")?;
                said.text().map_or(Ok(()), |text| write!(f, " ({text})"))
            }
            What::Answered { status, said, .. } => write!(f, "HTTP {status}: {said}"),
            What::Unreadable { status, came } => write!(f, "HTTP {status}, but the answer is {came}"),
            What::Redirected { status, astray } => write!(f, "HTTP {status}: {astray}"),
            What::NotSo(sentence) => f.write_str(sentence),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(method: Method, status: u16, body: &str) -> Error {
        let call = Call::by_value(method, &["repos", "o", "r"]);
        Error::answered(&call, status, Said::read(body.as_bytes()), None)
    }

    #[test]
    fn s1_9_an_error_carries_the_api_s_own_message() {
        let scope = "token does not have at least one of required scope(s): [write:repository]";
        let error = answered(Method::POST, 403, &format!(r#"{{"message":"{scope}","url":"http://f/api"}}"#));
        assert_eq!(error.to_string(), format!("POST /repos/o/r: HTTP 403: {scope}"));
        assert_eq!((error.is_transient(), error.may_have_taken_effect()), (false, false));
        let empty = answered(Method::PATCH, 403, "");
        assert_eq!(empty.to_string(), "PATCH /repos/o/r: HTTP 403: the server gives no reason");
    }

    #[test]
    fn a_404_says_both_things_that_it_may_mean() {
        let body =
            r#"{"message":"The target couldn't be found.","url":"u","errors":["user does not exist"]}"#;
        let error = answered(Method::GET, 404, body);
        let sentence = "GET /repos/o/r: HTTP 404: not found, or the token lacks access (user does not exist)";
        assert_eq!((error.to_string().as_str(), error.is_not_found()), (sentence, true));
    }

    #[test]
    fn what_to_try_next_follows_from_what_happened() {
        let rows = [
            (401, Some(NextStep::NewToken)),
            (403, Some(NextStep::Permission)),
            (404, Some(NextStep::SpellingOrAccess)),
            (409, None),
            (422, None),
            (423, Some(NextStep::Unarchive)),
            (429, Some(NextStep::Later)),
            (503, Some(NextStep::Later)),
        ];
        for (status, next_step) in rows {
            assert_eq!(answered(Method::GET, status, "").next_step(), next_step, "{status}");
        }
        let call = Call::get(&["version"]);
        let unreadable = Error::unreadable(&call, 200, "nothing".to_owned());
        assert_eq!(unreadable.next_step(), Some(NextStep::Address));
    }

    #[test]
    fn a_redirect_that_is_not_followed_says_why() {
        let call = Call::get(&["version"]);
        let other = || Astray::OtherServer("https://f.example".to_owned());
        let rows = [
            (
                other(),
                "it leads to https://f.example, where the token must not go",
                NextStep::AddressOfRedirect,
            ),
            (Astray::Page, "it leads to another page of the server, not to an answer", NextStep::Address),
            (Astray::Nowhere, "it leads nowhere", NextStep::Address),
            (Astray::InCircles, "it leads on and on", NextStep::Address),
        ];
        for (astray, sentence, next_step) in rows {
            let error = Error::redirected(&call, 302, astray);
            let told = (error.to_string(), error.next_step());
            assert_eq!(told, (format!("GET /version: HTTP 302: {sentence}"), Some(next_step)));
        }
    }

    #[test]
    fn what_may_pass_by_itself_is_told_from_what_stays() {
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert!(answered(Method::GET, status, "").is_transient(), "{status}");
        }
        for status in [400, 401, 403, 404, 405, 409, 413, 422, 423] {
            assert!(!answered(Method::GET, status, "").is_transient(), "{status}");
        }
    }

    #[test]
    fn only_writes_have_effects_and_5xx_leaves_them_open() {
        assert!(answered(Method::POST, 500, "").may_have_taken_effect());
        assert!(!answered(Method::GET, 500, "").may_have_taken_effect());
        assert!(!answered(Method::POST, 429, "").may_have_taken_effect());
    }
}
