//! What is said about a Forgejo, as data; the words of each language are beside it.
//! Deliberately absent: what the server and the client say in English, which is passed on as it came.

mod en;
mod pt_br;
#[cfg(test)]
mod tests;

use std::time::Duration;

use teimoso_forgejo::automerge::{Note, Outcome, Standing};
use teimoso_forgejo::{NextStep, Transition};

use super::Language;

/// A line about a pull request or an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgejo<'a> {
    /// What it is about: `acme/site#7`.
    pub about: &'a str,
    /// What is said.
    pub word: ForgejoWord<'a>,
}

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgejoWord<'a> {
    /// Something happened while a merge was waited for.
    Note(&'a Note),
    /// A wait is under way.
    Waiting {
        /// For what.
        standing: Standing,
        /// The time that is left.
        left: Duration,
    },
    /// How the wait for a merge ended.
    Ended(&'a Outcome),
    /// A signal ended the wait.
    Stopped {
        /// Whether an order to merge was under way.
        ordered: bool,
    },
    /// A pull request changed between draft and ready.
    Ready {
        /// Whether it was so before.
        already: bool,
        /// Whether it is ready; else it is a draft.
        ready: bool,
    },
    /// A pull request without checks.
    NoChecks,
    /// What became of a status.
    Moved {
        /// What.
        transition: &'a Transition,
        /// The label that was asked for.
        label: &'a str,
    },
    /// It is claimed.
    Claimed {
        /// By whom.
        by: &'a str,
        /// Whether it was before.
        already: bool,
    },
    /// It is somebody else's.
    Taken {
        /// Whose.
        by: &'a str,
    },
    /// It was released while it was being claimed.
    ReleasedMeanwhile,
    /// It is closed.
    Closed,
    /// A claim was given back.
    Released {
        /// Whose.
        by: &'a str,
    },
    /// An issue was found instead of made.
    Found {
        /// Whether it was there before this run; else its answer was lost.
        before: bool,
    },
    /// It is not known whether an issue was made.
    MayExist {
        /// The key under which the command may be repeated.
        key: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A signal ended the making of an issue.
    StoppedMaking {
        /// The key under which the command may be repeated.
        key: &'a str,
    },
    /// What applying rules changed.
    Applied {
        /// Rules made.
        made: usize,
        /// Rules changed.
        changed: usize,
        /// Rules that were so before.
        same: usize,
        /// Whether nothing was done.
        dry_run: bool,
    },
}

impl Forgejo<'_> {
    pub(super) fn text(self, language: Language) -> String {
        match language {
            Language::English => en::text(self),
            Language::Portuguese => pt_br::text(self),
        }
    }
}

/// What to try next, in words.
#[must_use]
pub fn next_step(step: NextStep, language: Language) -> &'static str {
    match language {
        Language::English => en::next_step(step),
        Language::Portuguese => pt_br::next_step(step),
    }
}

/// A commit as people read it.
fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
