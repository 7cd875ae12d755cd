//! Why a request to the server came to nothing, and what a person reads then.
//! Deliberately absent: what the commands make of particular problems.

use http::StatusCode;
use serde_json::Value;

use crate::exit::{CliError, Exit};
use crate::messages::printable;

/// Why a request to the server came to nothing.
#[derive(Debug)]
pub enum ApiError {
    /// Nothing was sent: there is no connection to the server.
    Unreachable {
        /// Its URL.
        server: String,
        /// What the system said.
        reason: String,
    },
    /// The request was sent, at least in part, and no whole answer came: it may have taken effect.
    Lost(String),
    /// What answered does not speak this API.
    NotOurs,
    /// The server reports a problem.
    Problem(Problem),
}

/// A problem object (RFC 9457), as far as the commands care.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    sentence: String,
    retry_after: Option<String>,
}

impl Problem {
    pub(super) fn read(status: StatusCode, retry_after: Option<String>, body: &[u8]) -> Problem {
        let sentence = serde_json::from_slice(body).ok().and_then(|value| sentence(&value));
        let sentence = sentence.unwrap_or_else(|| format!("the server answered {status}"));
        Problem { status, sentence, retry_after }
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    fn code(&self) -> Exit {
        match self.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Exit::AUTHENTICATION,
            StatusCode::NOT_FOUND => Exit::NOT_FOUND,
            _ => Exit::FAILURE,
        }
    }
}

/// The words of a problem object: its `detail`, else its `title`, and then each error that says more.
#[must_use]
pub fn sentence(problem: &Value) -> Option<String> {
    let text = |value: &Value, name| value.get(name).and_then(Value::as_str).map(printable);
    let main = text(problem, "detail").or_else(|| text(problem, "title"))?;
    let errors = problem.get("errors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let more = errors.iter().filter_map(|error| {
        let detail = text(error, "detail").filter(|detail| !main.contains(detail.as_str()))?;
        let place = ["pointer", "header", "parameter"].into_iter().find_map(|name| text(error, name));
        Some(format!("\n  {}: {detail}", place.unwrap_or_default()))
    });
    let main = main.trim_end_matches('.').to_owned();
    Some(more.fold(main.clone(), |all, line| all + &line))
}

impl From<ApiError> for CliError {
    fn from(error: ApiError) -> CliError {
        match error {
            ApiError::Unreachable { server, reason } => {
                CliError::failure(format!("no server at {server} ({})", printable(&reason)))
                    .with_next_step("start one with `teimoso serve`, or name another with --server URL")
            }
            ApiError::Lost(reason) => {
                CliError::failure(format!("the server gave no answer: {}", printable(&reason)))
            }
            ApiError::NotOurs => CliError::failure("what answers there is no teimoso server")
                .with_next_step("check --server or TEIMOSO_SERVER"),
            ApiError::Problem(problem) => {
                let error = CliError::new(problem.code(), problem.sentence);
                match problem.retry_after {
                    Some(seconds) => error.with_next_step(format!("try again in {} s", printable(&seconds))),
                    None => error,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, body: &str) -> CliError {
        let status = StatusCode::from_u16(status).expect("a status");
        ApiError::Problem(Problem::read(status, None, body.as_bytes())).into()
    }

    #[test]
    fn a_problem_speaks_in_its_own_words() {
        let body = r#"{"title":"Unprocessable","detail":"the url cannot be used.","code":"invalid_url",
            "errors":[{"pointer":"/url","detail":"the scheme is ftp"},{"pointer":"/x","detail":"cannot be used"}]}"#;
        let error = problem(422, body);
        assert_eq!(error.sentence, "the url cannot be used\n  /url: the scheme is ftp");
        assert_eq!(error.code, Exit::FAILURE);
    }

    #[test]
    fn the_status_chooses_the_exit_code() {
        assert_eq!(problem(404, "{}").code, Exit::NOT_FOUND);
        assert_eq!(problem(401, "{}").code, Exit::AUTHENTICATION);
        assert_eq!(problem(403, "{}").code, Exit::AUTHENTICATION);
        assert_eq!(problem(409, "{}").code, Exit::FAILURE);
    }

    #[test]
    fn an_answer_without_a_problem_object_is_named_by_its_status() {
        assert_eq!(problem(502, "<html>").sentence, "the server answered 502 Bad Gateway");
    }

    #[test]
    fn a_problem_cannot_steer_the_terminal() {
        assert_eq!(problem(400, r#"{"detail":"a\u001b[2Jb"}"#).sentence, "a\\u{1b}[2Jb");
    }
}
