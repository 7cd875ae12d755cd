//! From the headers of a 429 or 503 to what the policy makes of its `Retry-After`; absent: the header's grammar and the
//! policy's rule, which are `teimoso_retry`'s.

use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use teimoso_retry::{Hint, HintWait, RetryAfterRule, Told, parse_retry_after};

use crate::clock::Clock;

/// The hint of a response; the clock is read only when there is something to read against it.
pub(crate) fn hint(status: StatusCode, headers: &HeaderMap, clock: &dyn Clock) -> Option<Hint> {
    let may_hint = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    if !may_hint || !headers.contains_key(RETRY_AFTER) {
        return None;
    }
    let lines = headers.get_all(RETRY_AFTER).iter().map(HeaderValue::as_bytes);
    parse_retry_after(lines, headers.get(DATE).map(HeaderValue::as_bytes), clock.unix_now())
}

/// The wait that a hint asks for, as the rule reads it: within the cap, or in full where the rule gives up beyond it.
pub(crate) fn told(rule: RetryAfterRule, hint: Option<Hint>) -> Option<Duration> {
    let hint = hint?;
    match (rule.told(hint), hint.wait) {
        (Told::Ignored, _) => None,
        (Told::Wait(wait), _) | (Told::BeyondCap, HintWait::For(wait)) => Some(wait),
        (Told::BeyondCap, HintWait::BeyondAny) => Some(Duration::MAX),
    }
}

#[cfg(test)]
mod tests {
    use teimoso_retry::{Preset, RetryPolicy};

    use super::*;
    use crate::clock::SystemClock;

    fn wait(preset: Preset, status: u16, value: &'static [u8]) -> Option<Duration> {
        let headers = HeaderMap::from_iter([
            (RETRY_AFTER, HeaderValue::from_bytes(value).unwrap()),
            (DATE, HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT")),
        ]);
        let status = StatusCode::from_u16(status).unwrap();
        let hint = hint(status, &headers, &SystemClock::new());
        told(RetryPolicy::preset(preset).retry_after(), hint)
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn s3_4_the_wait_is_known_for_429_and_503_with_a_number_and_already_capped() {
        for status in [429, 503] {
            assert_eq!(wait(Preset::Connector, status, b"7"), Some(7 * SECOND));
            assert_eq!(wait(Preset::Connector, status, b"31"), Some(30 * SECOND));
            assert_eq!(wait(Preset::Connector, status, b"99999999999999999999999"), Some(30 * SECOND));
            for invalid in
                [b"Sun, 06 Nov 1994 08:49:40 GMT".as_slice(), b"soon", b"-1", b"+7", b"1.5", b"", b"\xff"]
            {
                assert_eq!(wait(Preset::Connector, status, invalid), None);
            }
        }
        for status in [200, 408, 500, 502, 504] {
            assert_eq!(wait(Preset::Connector, status, b"7"), None);
        }
    }

    #[test]
    fn a_date_counts_from_the_response_s_own_date() {
        assert_eq!(wait(Preset::Standard, 503, b"Sun, 06 Nov 1994 08:49:40 GMT"), Some(3 * SECOND));
    }

    #[test]
    fn beyond_a_cap_that_gives_up_the_wait_is_told_in_full() {
        assert_eq!(wait(Preset::Standard, 429, b"3600"), Some(3600 * SECOND));
        assert_eq!(wait(Preset::Standard, 429, b"99999999999999999999999"), Some(Duration::MAX));
        assert_eq!(wait(Preset::Forgejo, 429, b"1"), None);
    }
}
