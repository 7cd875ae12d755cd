//! What the sink answers: a path is read into a [`Route`], and a route and a count into an [`Answer`].
//! Deliberately absent: sockets, clocks and counters; nothing here does anything.

use std::time::Duration;

/// The longest wait `/slow/MS` accepts, one day; a longer one is not a route.
pub const SLOW_MAX: Duration = Duration::from_secs(86_400);

/// The routes of the test destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// `/ok`: always 200 (S2.11).
    Ok,
    /// `/quebra`: always 500 (S2.11).
    Broken,
    /// `/teimoso`: 503 twice, then 200, counted per `webhook-id` (S2.11).
    Stubborn,
    /// `/status/NNN`: that status, 200 to 999.
    Status(u16),
    /// `/fail/N`: 503 N times, then 200, counted per `webhook-id`.
    Fail(u32),
    /// `/slow/MS`: 200 after that many milliseconds.
    Slow(Duration),
    /// `/hang`: the request is read and never answered.
    Hang,
    /// `/reset`: the request is read, then the connection is reset (RST).
    Reset,
    /// `/cut`: a 200 whose body ends before its declared length.
    Cut,
    /// `/retry-after/SECONDS`: 503 with that `Retry-After` once per `webhook-id`, then 200.
    RetryAfter(u64),
    /// `/gone`: 410.
    Gone,
    /// `/redirect`: 302 to `/ok`.
    Redirect,
    /// `/_requests`: what arrived.
    Requests,
    /// `/_count`: how many arrived.
    Count,
    /// Anything else: 404.
    Unknown,
}

/// What to do with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A plain response.
    Status(u16),
    /// A 503 with `Retry-After: SECONDS`.
    Unavailable {
        /// The value of the header, in seconds.
        retry_after_seconds: u64,
    },
    /// A 302 whose `Location` is `/ok`.
    Redirect,
    /// A 200 after a wait.
    Late(Duration),
    /// A 200 whose body is cut short.
    Cut,
    /// Silence until the client leaves.
    Hang,
    /// A connection reset.
    Reset,
}

impl Route {
    /// Reads the path of a request target; the query is no part of it.
    #[must_use]
    pub fn parse(path: &str) -> Route {
        let mut parts = path.strip_prefix('/').unwrap_or_default().splitn(2, '/');
        let name = parts.next().unwrap_or_default();
        match (name, parts.next()) {
            ("ok", None) => Route::Ok,
            ("quebra", None) => Route::Broken,
            ("teimoso", None) => Route::Stubborn,
            ("hang", None) => Route::Hang,
            ("reset", None) => Route::Reset,
            ("cut", None) => Route::Cut,
            ("gone", None) => Route::Gone,
            ("redirect", None) => Route::Redirect,
            ("_requests", None) => Route::Requests,
            ("_count", None) => Route::Count,
            (name, Some(number)) => Route::with_number(name, number).unwrap_or(Route::Unknown),
            _ => Route::Unknown,
        }
    }

    fn with_number(name: &str, digits: &str) -> Option<Route> {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        match name {
            // An interim status (1xx) cannot end an exchange.
            "status" => digits.parse().ok().filter(|code| (200..=999).contains(code)).map(Route::Status),
            "fail" => digits.parse().ok().map(Route::Fail),
            "slow" => {
                let wait = Duration::from_millis(digits.parse().ok()?);
                (wait <= SLOW_MAX).then_some(Route::Slow(wait))
            }
            "retry-after" => digits.parse().ok().map(Route::RetryAfter),
            _ => None,
        }
    }

    /// Whether the answer depends on how often this `webhook-id` was here before.
    #[must_use]
    pub fn is_counted(self) -> bool {
        matches!(self, Route::Stubborn | Route::Fail(_) | Route::RetryAfter(_))
    }

    /// Whether this is one of the sink's own pages, which are neither kept nor counted.
    #[must_use]
    pub fn is_control(self) -> bool {
        matches!(self, Route::Requests | Route::Count)
    }

    /// The answer for a request that was preceded by `earlier` requests of the same route and `webhook-id`.
    /// The control pages are answered elsewhere; here they are a 404.
    #[must_use]
    pub fn answer(self, earlier: u32) -> Answer {
        match self {
            Route::Ok => Answer::Status(200),
            Route::Broken => Answer::Status(500),
            Route::Stubborn => fail_first(2, earlier),
            Route::Fail(times) => fail_first(times, earlier),
            Route::Status(code) => Answer::Status(code),
            Route::Slow(wait) => Answer::Late(wait),
            Route::Hang => Answer::Hang,
            Route::Reset => Answer::Reset,
            Route::Cut => Answer::Cut,
            Route::RetryAfter(seconds) if earlier == 0 => {
                Answer::Unavailable { retry_after_seconds: seconds }
            }
            Route::RetryAfter(_) => Answer::Status(200),
            Route::Gone => Answer::Status(410),
            Route::Redirect => Answer::Redirect,
            Route::Requests | Route::Count | Route::Unknown => Answer::Status(404),
        }
    }
}

fn fail_first(times: u32, earlier: u32) -> Answer {
    Answer::Status(if earlier < times { 503 } else { 200 })
}

impl Answer {
    /// The status the client reads, or `None` when it reads none.
    #[must_use]
    pub fn status(self) -> Option<u16> {
        match self {
            Answer::Status(code) => Some(code),
            Answer::Unavailable { .. } => Some(503),
            Answer::Redirect => Some(302),
            Answer::Late(_) | Answer::Cut => Some(200),
            Answer::Hang | Answer::Reset => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_path_is_its_route() {
        let table = [
            ("/ok", Route::Ok),
            ("/quebra", Route::Broken),
            ("/teimoso", Route::Stubborn),
            ("/status/418", Route::Status(418)),
            ("/fail/3", Route::Fail(3)),
            ("/slow/250", Route::Slow(Duration::from_millis(250))),
            ("/hang", Route::Hang),
            ("/reset", Route::Reset),
            ("/cut", Route::Cut),
            ("/retry-after/7", Route::RetryAfter(7)),
            ("/gone", Route::Gone),
            ("/redirect", Route::Redirect),
            ("/_requests", Route::Requests),
            ("/_count", Route::Count),
        ];
        for (path, route) in table {
            assert_eq!(Route::parse(path), route, "{path}");
        }
    }

    #[test]
    fn what_is_not_exactly_a_route_is_unknown() {
        let paths = [
            "",
            "/",
            "*",
            "/OK",
            "/ok/",
            "/ok/1",
            "ok",
            "/status",
            "/status/",
            "/status/99",
            "/status/199",
            "/status/1000",
            "/status/+200",
            "/status/-1",
            "/fail/-1",
            "/fail/4294967296",
            "/fail/1/2",
            "/slow/86400001",
            "/slow/99999999999999999999",
            "/retry-after/x",
            "/nowhere/1",
        ];
        for path in paths {
            assert_eq!(Route::parse(path), Route::Unknown, "{path}");
        }
    }

    #[test]
    fn s2_11_teimoso_fails_twice_then_succeeds_for_good() {
        let statuses: Vec<_> = (0..5).map(|earlier| Route::Stubborn.answer(earlier).status()).collect();
        assert_eq!(statuses, [Some(503), Some(503), Some(200), Some(200), Some(200)]);
    }

    #[test]
    fn fail_zero_never_fails() {
        assert_eq!(Route::Fail(0).answer(0), Answer::Status(200));
    }

    #[test]
    fn retry_after_is_told_once() {
        assert_eq!(Route::RetryAfter(9).answer(0), Answer::Unavailable { retry_after_seconds: 9 });
        assert_eq!(Route::RetryAfter(9).answer(1), Answer::Status(200));
    }

    #[test]
    fn s2_11_ok_quebra_and_anything_else() {
        assert_eq!(Route::Ok.answer(u32::MAX).status(), Some(200));
        assert_eq!(Route::Broken.answer(u32::MAX).status(), Some(500));
        assert_eq!(Route::Unknown.answer(0).status(), Some(404));
    }
}
