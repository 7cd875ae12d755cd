//! What the server's answer to an order to merge may mean; absent: belief in it, which needs a look at the pull request.

use std::time::Duration;

use crate::error::{Error, NextStep, Said};
use crate::ops::Merging;

/// What an answer to an order, or none, is evidence of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderAnswer {
    /// 200: merged.
    Done,
    /// 201, or a 409 that says so: the server will do it later.
    Scheduled,
    /// It was certainly not followed, and the next one may be: nothing was sent, a 429, another head or base, a check for
    /// conflicts that still runs.
    NotYet {
        /// Why.
        reason: String,
        /// Whether it is the server's "cannot be merged", which is to be believed only after a while.
        unmergeable: bool,
        /// How long the server wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// 409 with what Git said, or that the pull request is merged already.
    Conflict(String),
    /// The server refuses. A 403 may come after the merge was done.
    Refused {
        /// The status; `None` if the request could not be made.
        status: Option<u16>,
        /// In its words.
        reason: String,
        /// What to try next.
        next_step: Option<NextStep>,
    },
    /// 500: the server failed, before or after the merge.
    Failed(String),
    /// It may have been followed, or may yet be.
    Unclear {
        /// Why.
        reason: String,
        /// How long the server wants to be left alone.
        retry_after: Option<Duration>,
    },
}

impl From<&Result<Merging, Error>> for OrderAnswer {
    fn from(answer: &Result<Merging, Error>) -> Self {
        match answer {
            Ok(Merging::Done) => Self::Done,
            Ok(Merging::Scheduled) => Self::Scheduled,
            Err(error) => Self::of_error(error),
        }
    }
}

impl OrderAnswer {
    fn of_error(error: &Error) -> Self {
        let (reason, retry_after) = (error.to_string(), error.retry_after());
        let nothing = Said::Nothing;
        let said = error.said().unwrap_or(&nothing);
        let status = error.status().filter(|_| error.is_answer());
        match status {
            Some(405) if *said == Said::Nothing || said.mentions("try again later") => {
                Self::NotYet { reason, unmergeable: true, retry_after }
            }
            Some(409) => of_conflict(said, reason),
            Some(425 | 429) => Self::NotYet { reason, unmergeable: false, retry_after },
            Some(500) => Self::Failed(reason),
            Some(408 | 501..=599) => Self::Unclear { reason, retry_after },
            Some(status) => Self::Refused { status: Some(status), reason, next_step: error.next_step() },
            None if error.may_have_taken_effect() => Self::Unclear { reason, retry_after },
            None if error.is_transient() => Self::NotYet { reason, unmergeable: false, retry_after },
            None => Self::Refused { status: None, reason, next_step: error.next_step() },
        }
    }
}

/// A 409 in the server's words; those are searched only for what is not final.
fn of_conflict(said: &Said, reason: String) -> OrderAnswer {
    match said {
        Said::Git(_) => OrderAnswer::Conflict(reason),
        _ if said.mentions("out of date") => {
            OrderAnswer::NotYet { reason, unmergeable: false, retry_after: None }
        }
        _ if said.mentions("already scheduled") => OrderAnswer::Scheduled,
        // The structure that says it is merged already; if it is, the look will tell.
        Said::Other(_) => OrderAnswer::Conflict(reason),
        _ => OrderAnswer::Refused { status: Some(409), reason, next_step: None },
    }
}
