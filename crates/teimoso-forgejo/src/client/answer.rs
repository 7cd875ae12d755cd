//! An answer of the API: a success that can be read, or an error; absent: what its fields mean.

use bytes::Bytes;
use http::header::{DATE, LINK, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response};
use serde::de::DeserializeOwned;
use std::time::Duration;
use teimoso_http::Clock;
use teimoso_http::retry::{HintWait, parse_retry_after};

use super::call::Call;
use crate::error::{Error, Said};

/// A success.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
    /// `X-Total-Count`: the length of the whole list.
    pub(crate) total: Option<u64>,
    /// Whether `Link` names a next page, if there is one. Its address is not looked at: a server whose `ROOT_URL` is wrong names another
    /// host, which must not see the token.
    pub(crate) more: Option<bool>,
    call: Call,
}

impl Answer {
    /// An answer of the API.
    ///
    /// # Errors
    ///
    /// It is no success, or a web page, which is nobody's answer to any operation here.
    pub(super) fn of(call: &Call, response: Response<Bytes>, clock: &dyn Clock) -> Result<Self, Error> {
        let (head, body) = response.into_parts();
        let status = head.status.as_u16();
        if !head.status.is_success() {
            let wait = retry_after(&head.headers, clock);
            return Err(Error::answered(call, status, Said::read(&body), wait));
        }
        if body.trim_ascii_start().starts_with(b"<") {
            // Somebody before the server answered, and what was asked for may not even have arrived there.
            let said = Said::read(&body);
            return Err(Error::unreadable(
                call,
                status,
                format!("a web page ({})", said.text().unwrap_or_default()),
            ));
        }
        let total = text(&head.headers, "x-total-count").and_then(|count| count.trim().parse().ok());
        let more = text(&head.headers, LINK.as_str()).map(|link| link.contains("rel=\"next\""));
        Ok(Self { status, body, total, more, call: call.clone() })
    }

    /// The body as this type.
    ///
    /// # Errors
    ///
    /// It is something else: `null`, nothing, half of it. A write has taken effect all the same.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let what = match self.body.trim_ascii() {
                b"" => "nothing".to_owned(),
                b"null" => "null".to_owned(),
                // The text of serde_json names a position and a type, and no content.
                _ => format!("something unexpected ({error})"),
            };
            Error::unreadable(&self.call, self.status, what)
        })
    }
}

/// The wait that a server or the proxy before it asks for; a number of seconds or a date (RFC 9110 §10.2.3).
fn retry_after(headers: &HeaderMap, clock: &dyn Clock) -> Option<Duration> {
    let lines = headers.get_all(RETRY_AFTER).iter().map(HeaderValue::as_bytes);
    let date = headers.get(DATE).map(HeaderValue::as_bytes);
    match parse_retry_after(lines, date, clock.unix_now())?.wait {
        HintWait::For(wait) => Some(wait),
        HintWait::BeyondAny => Some(Duration::MAX),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
