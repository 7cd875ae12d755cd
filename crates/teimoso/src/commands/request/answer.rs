//! What came of a call, and how it is printed. Deliberately absent: request headers, which may hold secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Response, Version};
use serde_json::{Map, Value, json};
use teimoso_http::{AttemptTrace, Error, RetryTrace};
use teimoso_retry::Decision;

use super::super::Context;
use super::place::Place;
use super::verdict::End;
use crate::args::RequestArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{LastWord, Requesting};

/// What came of a call.
pub(super) struct Answer {
    came: Result<Response<Bytes>, Error>,
    trace: RetryTrace,
}

impl Answer {
    /// Takes what the client hands over.
    pub(super) fn new(came: Result<Response<Bytes>, Error>) -> Answer {
        let trace = match &came {
            Ok(response) => response.extensions().get().cloned().unwrap_or_default(),
            Err(error) => error.trace().clone(),
        };
        Answer { came, trace }
    }

    /// Every attempt.
    pub(super) fn trace(&self) -> &RetryTrace {
        &self.trace
    }

    /// Why there is no response.
    pub(super) fn error(&self) -> Option<&Error> {
        self.came.as_ref().err()
    }

    /// The status, also of an answer whose body was lost.
    pub(super) fn status(&self) -> Option<u16> {
        match &self.came {
            Ok(response) => Some(response.status().as_u16()),
            Err(error) => error.status(),
        }
    }

    /// How many attempts were made, over all redirects.
    pub(super) fn attempts(&self) -> u32 {
        u32::try_from(self.trace.attempts().len()).unwrap_or(u32::MAX)
    }

    /// Whether any attempt may have taken effect.
    pub(super) fn may_have_taken_effect(&self) -> bool {
        self.trace.may_have_taken_effect()
    }

    /// How the process ends.
    pub(super) fn exit(&self) -> Exit {
        self.end().exit()
    }

    /// What is said of a call without a response.
    pub(super) fn last_word(&self) -> Option<LastWord> {
        self.end().last_word()
    }

    fn end(&self) -> End {
        End {
            answered: self.came.as_ref().ok().map(|response| response.status().as_u16()),
            decision: self.trace.last().map(|last| last.decision),
            may_have_taken_effect: self.may_have_taken_effect(),
        }
    }

    /// A redirect as the last answer, for those who wanted them followed.
    pub(super) fn unfollowed(&self) -> Option<Requesting<'static>> {
        let status = self.came.as_ref().ok()?.status().as_u16();
        let followed = self.trace.last().map_or(0, |last| last.hop);
        matches!(status, 301 | 302 | 303 | 307 | 308).then_some(Requesting::NotFollowed { status, followed })
    }

    /// Prints it as the arguments ask.
    ///
    /// # Errors
    /// The place cannot be written.
    pub(super) fn print(&self, args: &RequestArgs, place: Place, context: Context) -> Result<(), CliError> {
        if args.output.json {
            let object = self.json(!place.is_file());
            if let (true, Ok(response)) = (place.is_file(), &self.came) {
                place.write(&[response.body()], context.output)?;
            }
            return context.output.data(&format!("{object}\n"));
        }
        let Ok(response) = &self.came else { return Ok(()) };
        let head = if args.include { head(response) } else { Vec::new() };
        place.write(&[&head, response.body()], context.output)
    }

    /// The stable object. The body is text where it is UTF-8, and `null` where it went into a file.
    fn json(&self, with_body: bool) -> Value {
        let attempts: Vec<Value> = self.trace.attempts().iter().map(attempt).collect();
        let headers = self.came.as_ref().ok().map(|response| joined(response.headers()));
        let mut object = json!({
            "fate": self.trace.last().map(|last| last.fate.name()),
            "status": self.status(),
            "headers": headers,
            "body": null,
            "attempts": attempts,
            "may_have_taken_effect": self.may_have_taken_effect(),
        });
        if let (true, Ok(response)) = (with_body, &self.came) {
            match std::str::from_utf8(response.body()) {
                Ok(text) => object["body"] = text.into(),
                Err(_) => object["body_base64"] = STANDARD.encode(response.body()).into(),
            }
        }
        object
    }
}

fn attempt(attempt: &AttemptTrace) -> Value {
    let (wait_ms, source) = match attempt.decision {
        Decision::RetryIn { wait, source } => {
            (Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)), Some(source.name()))
        }
        Decision::Done | Decision::GiveUp(_) => (None, None),
    };
    json!({
        "number": attempt.number,
        "fate": attempt.fate.name(),
        "status": attempt.status,
        "error": attempt.error.as_ref().map(ToString::to_string),
        "wait_ms": wait_ms,
        "wait_source": source,
    })
}

/// Headers as an object; values of one name are joined (RFC 9110 §5.3).
fn joined(headers: &HeaderMap) -> Map<String, Value> {
    let of = |name| {
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        values.join(", ")
    };
    headers.keys().map(|name| (name.as_str().to_owned(), of(name).into())).collect()
}

/// The head as HTTP/1.1 would write it, byte for byte but for the case of names.
fn head(response: &Response<Bytes>) -> Vec<u8> {
    let version = match response.version() {
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    let reason = response.status().canonical_reason().filter(|_| response.version() != Version::HTTP_2);
    let mut head = format!("{version} {} {}", response.status().as_u16(), reason.unwrap_or_default())
        .trim_end()
        .as_bytes()
        .to_vec();
    for (name, value) in response.headers() {
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
    }
    head.extend_from_slice(b"\r\n\r\n");
    head
}
