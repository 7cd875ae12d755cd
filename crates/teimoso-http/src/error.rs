//! Why a call has no answer; absent: answers. A status, whatever it is, is no error here.

use std::fmt;
use std::time::Duration;

use teimoso_retry::{Fate, Refusal};

use crate::attempt::{AttemptError, ErrorKind};
use crate::target::InvalidTarget;
use crate::trace::RetryTrace;

/// A call that ended without a response, or without the body of one: the last attempt's own failure, with the history
/// of the call beside it.
///
/// The text is lower case, stands by itself ("failed to connect to …"), and holds neither header values nor query
/// strings.
pub struct Error {
    // One pointer wide: an error is rare, and every `Result` carries room for it.
    inner: Box<Inner>,
}

struct Inner {
    fate: Fate,
    error: AttemptError,
    trace: RetryTrace,
}

impl Error {
    pub(crate) fn new(fate: Fate, error: AttemptError, trace: RetryTrace) -> Self {
        Self { inner: Box::new(Inner { fate, error, trace }) }
    }

    /// Found before anything was tried: there is no attempt in the trace.
    fn unusable(kind: ErrorKind, message: String) -> Self {
        let fate = Fate::Refused(Refusal::InvalidDestination);
        Self::new(fate, AttemptError { kind, message }, RetryTrace::default())
    }

    pub(crate) fn invalid_target(invalid: &InvalidTarget) -> Self {
        Self::unusable(ErrorKind::InvalidDestination, format!("use the url: {}", invalid.sentence))
    }

    /// The stable kind of the last attempt's failure.
    pub fn kind(&self) -> ErrorKind {
        self.inner.error.kind
    }

    /// What is known of the last attempt's request. Of the whole call, ask [`Error::may_have_taken_effect`].
    pub fn fate(&self) -> Fate {
        self.inner.fate
    }

    /// Whether time ran out while connecting to an address, or over the whole attempt. **Not** for a name lookup or a
    /// TLS handshake that took too long: their kinds are `dns` and `tls_handshake`, and [`Error::is_connect`] holds.
    pub fn is_timeout(&self) -> bool {
        matches!(self.kind(), ErrorKind::Timeout | ErrorKind::ConnectTimeout)
    }

    /// Whether the last attempt never got a connection: lookup, connect, TLS handshake.
    pub fn is_connect(&self) -> bool {
        use teimoso_retry::Proof::{Connect, Dns, NoConnection, TlsCertificate, TlsHandshake};
        let Fate::NeverSent(proof) = self.fate() else { return false };
        matches!(proof, Dns | Connect | TlsHandshake | TlsCertificate | NoConnection)
    }

    /// Whether the request itself cannot be sent: its URL, its method or a header is unusable. Such a call is never
    /// retried.
    pub fn is_request(&self) -> bool {
        matches!(self.kind(), ErrorKind::InvalidDestination | ErrorKind::InvalidHeader)
    }

    /// Whether a response head had come and its body was lost on the way, or is larger than allowed.
    pub fn is_body(&self) -> bool {
        matches!(self.fate(), Fate::Answered | Fate::BodyLost)
    }

    /// Whether any attempt of this call may have taken effect at the peer. `false` rests on a proof, or on what the peer
    /// stated or answered: sending the request again doubles nothing. Always `false` for safe methods, which have no
    /// effect to take.
    pub fn may_have_taken_effect(&self) -> bool {
        self.inner.trace.may_have_taken_effect()
    }

    /// The wait that the last attempt's answer asked for, if one came
    /// ([`AttemptTrace::retry_after`](crate::AttemptTrace::retry_after)).
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.trace.retry_after()
    }

    /// How many attempts were made, over all hops; 0 if the URL could not be used.
    pub fn attempts(&self) -> u32 {
        u32::try_from(self.trace().attempts().len()).unwrap_or(u32::MAX)
    }

    /// The status code of the answer whose body was lost.
    pub fn status(&self) -> Option<u16> {
        self.trace().last()?.status
    }

    /// The history of the call.
    pub fn trace(&self) -> &RetryTrace {
        &self.inner.trace
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.error.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind())
            .field("fate", &self.fate())
            .field("message", &self.inner.error.message)
            .field("attempts", &self.attempts())
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {}

impl From<http::Error> for Error {
    /// A request that could not be built: `Request::get(url).header(name, value).body(())?` reads well in a function
    /// that returns this error.
    fn from(error: http::Error) -> Self {
        let of_the_url = error.is::<http::uri::InvalidUri>()
            || error.is::<http::uri::InvalidUriParts>()
            || error.is::<http::method::InvalidMethod>();
        match of_the_url {
            true => Self::unusable(ErrorKind::InvalidDestination, format!("use the request: {error}")),
            false => Self::unusable(ErrorKind::InvalidHeader, format!("use a header: {error}")),
        }
    }
}

impl From<InvalidTarget> for Error {
    fn from(invalid: InvalidTarget) -> Self {
        Self::invalid_target(&invalid)
    }
}

#[cfg(test)]
mod tests {
    use teimoso_retry::{Proof, Why};

    use super::*;

    fn error(fate: Fate, kind: ErrorKind) -> Error {
        Error::new(fate, AttemptError { kind, message: "do it".to_owned() }, RetryTrace::default())
    }

    #[test]
    fn an_error_is_small_and_can_be_passed_on() {
        fn assert_error<T: std::error::Error + Send + Sync + 'static>() {}
        assert_error::<Error>();
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn each_predicate_answers_its_own_question() {
        let asked =
            |error: Error| [error.is_timeout(), error.is_connect(), error.is_request(), error.is_body()];
        let connect = |kind| asked(error(Fate::NeverSent(Proof::Connect), kind));
        assert_eq!(connect(ErrorKind::ConnectRefused), [false, true, false, false]);
        assert_eq!(connect(ErrorKind::ConnectTimeout), [true, true, false, false]);
        let late = error(Fate::Ambiguous(Why::Timeout), ErrorKind::Timeout);
        assert_eq!(asked(late), [true, false, false, false]);
        let handed_back = error(Fate::NeverSent(Proof::ZeroBytesWritten), ErrorKind::Reset);
        assert_eq!(asked(handed_back), [false; 4]);
        let cut = error(Fate::BodyLost, ErrorKind::Closed);
        assert_eq!(asked(cut), [false, false, false, true]);
        let unusable = Error::invalid_target(&InvalidTarget { sentence: "the url is odd".to_owned() });
        assert_eq!(unusable.to_string(), "failed to use the url: the url is odd");
        assert_eq!((unusable.attempts(), unusable.may_have_taken_effect()), (0, false));
        assert_eq!(asked(unusable), [false, false, true, false]);
    }

    #[test]
    fn a_request_that_could_not_be_built_says_which_part() {
        let url = http::Request::get("http://h.example/a b").body(()).unwrap_err();
        assert_eq!(Error::from(url).kind(), ErrorKind::InvalidDestination);
        let header = http::Request::get("http://h.example/").header("b\nd", "x").body(()).unwrap_err();
        let header = Error::from(header);
        assert_eq!(header.kind(), ErrorKind::InvalidHeader);
        assert_eq!(header.to_string(), "failed to use a header: invalid HTTP header name");
        let value = http::Request::get("http://h.example/").header("a", "s3cret\n").body(()).unwrap_err();
        assert!(!Error::from(value).to_string().contains("s3cret"));
    }
}
