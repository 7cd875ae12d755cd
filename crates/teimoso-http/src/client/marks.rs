//! What a caller says about one request: marks in its extensions, and the header that is a mark; absent: anything that
//! guesses at a request's meaning from its URL or body (S3.6).

use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderName};
use teimoso_retry::{Preset, RetryPolicy};

/// Marks a request as safe to send twice (S3.1): its caller knows that a repetition does no harm. Put it into the
/// request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idempotent;

/// Allows a request one attempt only, whatever the policy says. Put it into the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRetry;

/// The time for the whole call, all attempts, waits and redirects together, from its start. The policy's own total
/// holds too; the earlier one wins. Zero leaves no time for any attempt. Put it into the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(
    /// From the start of the call.
    pub Duration,
);

/// The path that is told in place of a request's own, for APIs that want a credential in the path itself: the
/// [`RetryEvent`](crate::RetryEvent) and the log line of its retries show this one, on every hop. Put it into the
/// request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPath(
    /// Begins with `/`, and has no query: that of the request is shown without its values, as ever.
    pub String,
);

/// The marks of one request, read once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) replay_safe: bool,
    pub(crate) once: bool,
    pub(crate) deadline: Option<Duration>,
}

/// The header by which a caller promises that a receiver recognises a repetition (draft-ietf-httpapi-idempotency-key).
pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl Marks {
    pub(crate) fn read(extensions: &Extensions, headers: &HeaderMap) -> Self {
        let keyed = has_key(headers);
        if extensions.is_empty() {
            return Self { replay_safe: keyed, ..Self::default() };
        }
        Self {
            replay_safe: keyed || extensions.get::<Idempotent>().is_some(),
            once: extensions.get::<NoRetry>().is_some(),
            deadline: extensions.get::<Deadline>().map(|deadline| deadline.0),
        }
    }
}

/// The policy that one request brings: a whole one, or the name of one.
pub(crate) fn own_policy(extensions: &Extensions) -> Option<RetryPolicy> {
    let named = || extensions.get::<Preset>().copied().map(RetryPolicy::preset);
    extensions.get::<RetryPolicy>().cloned().or_else(named)
}

/// A blank key tells a receiver nothing, so it is none.
fn has_key(headers: &HeaderMap) -> bool {
    headers.get(&IDEMPOTENCY_KEY).is_some_and(|key| !key.as_bytes().trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn keyed(value: &'static str) -> bool {
        let headers = HeaderMap::from_iter([(IDEMPOTENCY_KEY.clone(), HeaderValue::from_static(value))]);
        Marks::read(&Extensions::new(), &headers).replay_safe
    }

    #[test]
    fn s3_1_the_mark_is_off_unless_set() {
        let mut extensions = Extensions::new();
        assert_eq!(Marks::read(&extensions, &HeaderMap::new()), Marks::default());
        extensions.insert(Idempotent);
        let marks = Marks::read(&extensions, &HeaderMap::new());
        assert_eq!(marks, Marks { replay_safe: true, once: false, deadline: None });
    }

    #[test]
    fn marks_do_not_stand_in_each_other_s_way() {
        let mut extensions = Extensions::new();
        extensions.insert(NoRetry);
        extensions.insert(Deadline(Duration::from_secs(3)));
        let marks = Marks::read(&extensions, &HeaderMap::new());
        let deadline = Some(Duration::from_secs(3));
        assert_eq!(marks, Marks { replay_safe: false, once: true, deadline });
    }

    #[test]
    fn a_request_may_bring_a_policy_or_the_name_of_one() {
        let mut extensions = Extensions::new();
        assert_eq!(own_policy(&extensions), None);
        extensions.insert(Preset::Connector);
        assert_eq!(own_policy(&extensions), Some(RetryPolicy::preset(Preset::Connector)));
        extensions.insert(RetryPolicy::preset(Preset::Forgejo));
        assert_eq!(own_policy(&extensions), Some(RetryPolicy::preset(Preset::Forgejo)));
    }

    #[test]
    fn an_idempotency_key_is_a_mark_unless_it_is_blank() {
        assert_eq!(["order-1", "\"8e03978e\"", "", " \t"].map(keyed), [true, true, false, false]);
    }
}
