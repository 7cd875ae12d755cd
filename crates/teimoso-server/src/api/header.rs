//! Request headers that are more than a name and a value. Deliberately absent: what they do to an event.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use teimoso_delivery::model::IdempotencyKey;

use super::problem::{At, Code, Problem};

/// The value of a header that may be given once.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let refuse = |rule: &str| {
        let at = At::Header(name.to_string());
        Problem::at(Code::MalformedRequest, at, format!("the header {name} {rule}"))
    };
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(refuse("is given more than once")),
        (Some(value), None) => {
            value.to_str().map(Some).map_err(|_| refuse("holds something else than visible ASCII"))
        }
    }
}

/// `Idempotency-Key`, bare or as a quoted string (RFC 8941 §3.3.3): `k`, `"k"`.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Problem> {
    static NAME: HeaderName = HeaderName::from_static("idempotency-key");
    let Some(text) = single(headers, &NAME)? else { return Ok(None) };
    let refuse = |rule: &str| {
        let at = At::Header("Idempotency-Key".to_owned());
        Problem::at(Code::MalformedRequest, at, format!("the header Idempotency-Key {rule}"))
    };
    let key = match text.strip_prefix('"') {
        None => text.to_owned(),
        Some(rest) => unquoted(rest).ok_or_else(|| refuse("is not one RFC 8941 string"))?,
    };
    IdempotencyKey::parse(&key).map(Some).map_err(|error| refuse(error.rule()))
}

/// What follows an opening quote, up to a closing one that ends the text.
fn unquoted(rest: &str) -> Option<String> {
    let mut key = String::with_capacity(rest.len());
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return chars.as_str().trim_end().is_empty().then_some(key),
            '\\' => key.push(chars.next().filter(|c| matches!(c, '"' | '\\'))?),
            c => key.push(c),
        }
    }
}

/// Refuses a body of another media type than `accepted`, and one that is compressed.
///
/// A missing type is refused as well: a browser can be made to send a body without one to a server on
/// the same machine, but not, without asking first, one that says `application/json`.
pub(crate) fn require_media_type(headers: &HeaderMap, accepted: &str) -> Result<(), Problem> {
    refuse_encoding(headers)?;
    let given = single(headers, &CONTENT_TYPE)?;
    let media_type = given.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case(accepted) {
        return Ok(());
    }
    let found =
        if media_type.is_empty() { "there is none".to_owned() } else { format!("it is {media_type}") };
    let at = At::Header("Content-Type".to_owned());
    Err(Problem::at(Code::UnsupportedMediaType, at, format!("Content-Type must be {accepted}; {found}")))
}

/// Refuses a body that would have to be unpacked: a payload is delivered as it came.
pub(crate) fn refuse_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    match single(headers, &CONTENT_ENCODING)? {
        None => Ok(()),
        Some(encoding) if encoding.eq_ignore_ascii_case("identity") => Ok(()),
        Some(encoding) => {
            let at = At::Header("Content-Encoding".to_owned());
            let detail = format!(
                "Content-Encoding {encoding} is not accepted; to have a compressed payload delivered as it is, \
                 send it to /v1/events/raw with Teimoso-Header-Content-Encoding"
            );
            Err(Problem::at(Code::UnsupportedMediaType, at, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn key(value: &'static str) -> Result<String, Code> {
        let mut headers = HeaderMap::new();
        headers.insert("idempotency-key", HeaderValue::from_static(value));
        match idempotency_key(&headers) {
            Ok(key) => Ok(key.map(|key| key.to_string()).unwrap_or_default()),
            Err(problem) => Err(problem.code()),
        }
    }

    #[test]
    fn a_key_is_bare_or_quoted() {
        assert_eq!(key("abc"), Ok("abc".to_owned()));
        assert_eq!(key("\"abc\""), Ok("abc".to_owned()));
        assert_eq!(key(r#""a\"b\\c" "#), Ok(r#"a"b\c"#.to_owned()));
        for bad in ["\"abc", "\"\"", "", "\"a\"b", r#""a\x""#] {
            assert_eq!(key(bad), Err(Code::MalformedRequest), "{bad}");
        }
    }

    #[test]
    fn a_header_given_twice_is_no_guess() {
        let mut headers = HeaderMap::new();
        headers.append("idempotency-key", HeaderValue::from_static("a"));
        headers.append("idempotency-key", HeaderValue::from_static("a"));
        assert_eq!(idempotency_key(&headers).unwrap_err().code(), Code::MalformedRequest);
    }
}
