//! From `-H` to the headers of a request. Deliberately absent: printing a value, even a refused one: it may be a secret.

use http::header::{CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::input::Input;
use crate::args::Private;
use crate::exit::CliError;

const FLAG: &str = "-H";

/// Parts of names under which credentials travel, beside those that HTTP itself knows.
const SECRET_PARTS: [&str; 8] =
    ["auth", "cookie", "key", "password", "secret", "session", "signature", "token"];

/// The headers of these arguments. What comes from a file, and what by its name is a credential, is marked as
/// sensitive: it does not follow a redirect to another scheme, host or port.
///
/// # Errors
/// A line that is no header, by its place; a file that cannot be read.
pub(super) fn read(arguments: &[Private], input: &mut Input) -> Result<HeaderMap, CliError> {
    let mut headers = HeaderMap::new();
    for (index, argument) in arguments.iter().enumerate() {
        let text = argument.text();
        let Some(name) = text.strip_prefix('@') else {
            add(&mut headers, text.as_bytes(), false, || format!("{FLAG} number {}", index + 1))?;
            continue;
        };
        let file = input.read(name, FLAG)?;
        for (index, line) in file.split(|byte| *byte == b'\n').enumerate() {
            if !line.trim_ascii().is_empty() {
                add(&mut headers, line, true, || format!("line {} of {}", index + 1, shown(name)))?;
            }
        }
    }
    Ok(headers)
}

fn shown(name: &str) -> &str {
    if name == "-" { "stdin" } else { name }
}

fn add(
    headers: &mut HeaderMap,
    line: &[u8],
    secret: bool,
    place: impl Fn() -> String,
) -> Result<(), CliError> {
    let unusable = |why: &str| CliError::usage(format!("{}: {why}", place()));
    let (name, mut value) = parse(line).map_err(unusable)?;
    if is_of_the_connection(&name) {
        return Err(unusable(&format!("the header {name} belongs to the connection and cannot be given")));
    }
    value.set_sensitive(secret || is_credential(&name));
    headers.append(name, value);
    Ok(())
}

/// Reads `NAME: VALUE`, or `NAME;` for an empty value.
fn parse(line: &[u8]) -> Result<(HeaderName, HeaderValue), &'static str> {
    let line = line.trim_ascii();
    let colon = line.iter().position(|byte| *byte == b':');
    let (name, value) = match (colon, line.split_last()) {
        (Some(colon), _) => (&line[..colon], line[colon + 1..].trim_ascii()),
        (None, Some((b';', name))) => (name, &b""[..]),
        (None, _) => return Err("a header is NAME: VALUE"),
    };
    if value.is_empty() && colon.is_some() {
        return Err("the header has no value; to send it empty, write NAME;");
    }
    let name = HeaderName::from_bytes(name.trim_ascii()).map_err(|_| "that is no header name")?;
    let value = HeaderValue::from_bytes(value).map_err(|_| "the value holds a control character")?;
    Ok((name, value))
}

/// The fields that describe the connection and the framing of a message (RFC 9110 §7.6.1), which the transport writes
/// itself. It would drop them silently; here they are refused, because somebody meant them.
fn is_of_the_connection(name: &HeaderName) -> bool {
    [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, http::header::CONNECTION, TE, TRAILER, UPGRADE].contains(name)
        || ["keep-alive", "proxy-connection"].contains(&name.as_str())
}

fn is_credential(name: &HeaderName) -> bool {
    name != super::plan::IDEMPOTENCY_KEY && SECRET_PARTS.iter().any(|part| name.as_str().contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(arguments: &[&str]) -> Result<HeaderMap, String> {
        let arguments: Vec<_> = arguments.iter().map(|text| Private::from((*text).to_owned())).collect();
        read(&arguments, &mut Input::default()).map_err(|error| error.sentence)
    }

    #[test]
    fn headers_keep_their_order_and_may_repeat() {
        let headers = headers(&["A: 1", "b:x: y ", "a:2", "Empty;", "C: \u{e9}"]).expect("headers");
        let a: Vec<_> = headers.get_all("a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(a, [b"1", b"2"]);
        assert_eq!((&headers["b"], &headers["empty"]), (&"x: y".parse().unwrap(), &"".parse().unwrap()));
        assert_eq!(headers["c"].as_bytes(), "\u{e9}".as_bytes());
    }

    #[test]
    fn a_refused_header_is_named_by_its_place_and_never_shown() {
        let cases = [
            ("s3cret", "-H number 2: a header is NAME: VALUE"),
            ("a:", "-H number 2: the header has no value; to send it empty, write NAME;"),
            ("s3 cret: x", "-H number 2: that is no header name"),
            (": x", "-H number 2: that is no header name"),
            ("a: s3cret\u{7}", "-H number 2: the value holds a control character"),
            ("Host: x", "-H number 2: the header host belongs to the connection and cannot be given"),
            ("@", "-H: a file name is missing after @"),
        ];
        for (argument, sentence) in cases {
            assert_eq!(headers(&["ok: 1", argument]).expect_err(argument), sentence);
        }
    }

    #[test]
    fn credentials_are_marked_by_their_name_and_all_of_a_file() {
        let marked = headers(&["X-Api-Key: 1", "accept: x", "Idempotency-Key: k"]).expect("headers");
        assert!(marked["x-api-key"].is_sensitive());
        assert!(!marked["accept"].is_sensitive() && !marked["idempotency-key"].is_sensitive());
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("headers");
        std::fs::write(&file, "a: 1\r\n\n  \nb: 2").expect("written");
        let read = headers(&[&format!("@{}", file.display())]).expect("headers");
        assert!(read["a"].is_sensitive() && read["b"].is_sensitive());
        assert_eq!(read["a"], "1");
        std::fs::write(&file, "a: 1\ns3cret").expect("written");
        let error = headers(&[&format!("@{}", file.display())]).expect_err("no header");
        assert_eq!(error, format!("line 2 of {}: a header is NAME: VALUE", file.display()));
    }
}
