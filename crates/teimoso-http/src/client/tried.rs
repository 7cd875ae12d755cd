//! What came of one attempt of a call, until it is either handed over or dropped for the next; absent: what follows.

use std::net::SocketAddr;
use std::time::Duration;

use teimoso_retry::{Fate, Hint, Outcome, Proof, Refusal};
use tokio::time::Instant;

use super::receive::Receive;
use crate::attempt::{AttemptError, ErrorKind, Timings};
use crate::body::{RequestBody, ResponseBody};
use crate::exchange::Exchange;
use crate::redirect::Redirect;

/// What is known of one attempt.
pub(crate) struct Tried {
    pub(crate) fate: Fate,
    /// What the policy judges by: the fate, but for a body that we refuse ourselves.
    judged: Fate,
    pub(crate) status: Option<u16>,
    pub(crate) hint: Option<Hint>,
    pub(crate) error: Option<AttemptError>,
    pub(crate) started_after: Duration,
    begun: Option<Instant>,
    pub(crate) timings: Timings,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) reused: bool,
    /// The request's body, if nothing of it was read.
    pub(crate) unsent: Option<RequestBody>,
}

/// What there is to hand over.
pub(crate) enum Came<B> {
    Nothing,
    Response(http::Response<B>),
    /// A redirect that is to be followed.
    Redirect(Redirect),
}

/// How a request ended that is not repeated.
pub(crate) enum Ended<B> {
    Answer(http::Response<B>),
    Failed(Fate, AttemptError),
    /// A redirect that is to be followed, and the body to go along.
    Moved(Redirect, RequestBody),
}

impl Tried {
    /// An exchange that ended, and its response.
    pub(crate) fn of(
        exchange: Exchange,
        started_after: Duration,
        begun: Instant,
    ) -> (Self, Option<http::Response<ResponseBody>>) {
        let Exchange { fate, response, error, timings, peer, reused, unsent } = exchange;
        let tried = Self {
            fate,
            judged: fate,
            status: response.as_ref().map(|response| response.status().as_u16()),
            hint: None,
            error,
            started_after,
            begun: Some(begun),
            timings,
            peer,
            reused,
            unsent,
        };
        (tried, response)
    }

    /// The call's time ended before the attempt began.
    pub(crate) fn out_of_time(started_after: Duration, body: RequestBody) -> Self {
        let fate = Fate::NeverSent(Proof::NoConnection);
        let message = "send the request: no time was left for it".to_owned();
        Self {
            fate,
            judged: fate,
            status: None,
            hint: None,
            error: Some(AttemptError { kind: ErrorKind::Timeout, message }),
            started_after,
            begun: None,
            timings: Timings::default(),
            peer: None,
            reused: false,
            unsent: Some(body),
        }
    }

    fn lose_body(&mut self, error: AttemptError) {
        match error.kind {
            // It would all be there, but not for us: another one would be as large.
            ErrorKind::TooLarge => self.judged = Fate::Refused(Refusal::TooLarge),
            _ => (self.fate, self.judged) = (Fate::BodyLost, Fate::BodyLost),
        }
        self.error = Some(error);
    }

    /// Whether a head came and its body did not.
    pub(crate) fn lost_body(&self) -> bool {
        self.status.is_some() && self.error.is_some()
    }

    pub(crate) fn outcome(&self) -> Outcome {
        Outcome { fate: self.judged, status: self.status, hint: self.hint }
    }

    /// The stable kind of the failure; of an answer, its class.
    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        match &self.error {
            Some(error) => Some(error.kind),
            None => self.status.and_then(kind_of_status),
        }
    }

    /// Why it failed, for a person.
    pub(crate) fn reason(&self) -> String {
        match &self.error {
            Some(error) => error.message.clone(),
            None => reason_of(self.fate, self.status),
        }
    }
}

impl Came<ResponseBody> {
    /// With its body received. One that is to be followed needs none.
    pub(crate) async fn received<R: Receive>(self, receive: R, tried: &mut Tried) -> Came<R::Body> {
        let (head, body) = match self {
            Self::Nothing => return Came::Nothing,
            Self::Redirect(redirect) => return Came::Redirect(redirect),
            Self::Response(response) => response.into_parts(),
        };
        let received = receive.receive(body).await;
        if R::WHOLE {
            tried.timings.total = tried.begun.map(|begun| begun.elapsed());
        }
        match received {
            Ok(body) => Came::Response(http::Response::from_parts(head, body)),
            Err(error) => {
                tried.lose_body(error.into());
                Came::Nothing
            }
        }
    }
}

impl<B> Came<B> {
    /// The last word; `rest` is the request's body, where it can be sent once more.
    pub(crate) fn end(self, tried: Tried, rest: Option<RequestBody>) -> Ended<B> {
        match self {
            Self::Response(response) => Ended::Answer(response),
            Self::Redirect(redirect) => {
                let body = rest.filter(|_| redirect.with_body).unwrap_or_default();
                Ended::Moved(redirect, body)
            }
            Self::Nothing => {
                let error = tried.error.unwrap_or_else(|| AttemptError {
                    kind: ErrorKind::Closed,
                    message: "get a response".to_owned(),
                });
                Ended::Failed(tried.fate, error)
            }
        }
    }
}

pub(crate) fn kind_of_status(status: u16) -> Option<ErrorKind> {
    http::StatusCode::from_u16(status).ok().and_then(ErrorKind::of_status)
}

/// Why an attempt failed that has no error to tell.
pub(crate) fn reason_of(fate: Fate, status: Option<u16>) -> String {
    match status {
        Some(status) => format!("http {status}"),
        None => fate.name().to_owned(),
    }
}
