//! What the machine is told and what it answers, as data; absent: how the one follows from the other.

use std::time::Duration;

use super::{Note, OrderAnswer, Outcome, Standing};
use crate::checks::Checks;
use crate::error::{Error, NextStep};
use crate::model::Pull;
use crate::ops::MergeOrder;

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Nothing yet.
    Start,
    /// The pull request, or why not.
    Pull(Result<PullSeen, Trouble>),
    /// The checks of its head, or why not.
    Checks(Result<Checks, Trouble>),
    /// What became of an order to merge.
    Order(OrderAnswer),
    /// A wait is over.
    Waited,
}

/// What counts of a pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullSeen {
    /// Whether it is merged.
    pub merged: bool,
    /// The commit that merged it.
    pub commit: Option<String>,
    /// Whether it is closed; a merged one is.
    pub closed: bool,
    /// Whether it is a draft.
    pub draft: bool,
    /// Whether the server says that it could merge it.
    pub mergeable: bool,
    /// The commit at its head; empty if the server cannot find it.
    pub head: String,
}

/// Why a look failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Whether it may pass by itself.
    pub transient: bool,
    /// Whether it is a 404.
    pub missing: bool,
    /// Whether the token was rejected.
    pub unauthorized: bool,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
    /// Why, for a person.
    pub reason: String,
    /// What to try next.
    pub next_step: Option<NextStep>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Read the pull request.
    ReadPull,
    /// Read the checks of this commit.
    ReadChecks(String),
    /// Send this order.
    Order(MergeOrder),
    /// Wait until then.
    Wait {
        /// On the clock that the machine is told.
        until: Duration,
        /// For what.
        standing: Standing,
        /// When the run gives up.
        deadline: Duration,
    },
    /// It is over.
    End(Outcome),
}

/// What is to be said and done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// To be said, in order.
    pub notes: Vec<Note>,
    /// To be done.
    pub step: Step,
}

impl From<&Pull> for PullSeen {
    fn from(pull: &Pull) -> Self {
        Self {
            merged: pull.merged,
            commit: pull.merge_commit_sha.clone().filter(|_| pull.merged),
            closed: pull.state == "closed",
            draft: pull.draft,
            mergeable: pull.mergeable,
            head: pull.head.sha.clone(),
        }
    }
}

impl From<&Error> for Trouble {
    fn from(error: &Error) -> Self {
        Self {
            transient: error.is_transient(),
            missing: error.is_not_found(),
            unauthorized: error.is_unauthorized(),
            retry_after: error.retry_after(),
            reason: error.to_string(),
            next_step: error.next_step(),
        }
    }
}
