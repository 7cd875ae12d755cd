//! The safety net: waits until a ready pull request may be merged, and merges it once (S1.11, S1.13).
//!
//! ```text
//!             ┌──────────────── Wait ◀──────────────────────────────┐
//!             ▼                                                     │ not yet, or a read failed
//!   start ─▶ ReadPull ── open, same head ─▶ ReadChecks ── green ─▶ Merge
//!             │  ▲                              │                   │
//!             ▼  └──────────── whatever the server answered ────────┘
//!            End: merged, closed, a draft    End: a check failed
//! ```
//!
//! [`Machine`] decides and does nothing; [`run`] does what it says: it is the only one that asks the server, and the
//! only one that waits. What the machine relies on:
//!
//! - An order to merge names the head that was judged, so that the server refuses any other, and an order that arrives
//!   twice finds the pull request merged. Between two orders the pull request is always read.
//! - An answer to an order is evidence and no more: a 403, a 405, a 500 may stand for a merge that was done. What the
//!   pull request says of itself decides.
//! - A read that fails for a reason that may pass costs one tick, never the run.
//! - What is green must be green twice, one poll apart, with the same checks: some register late.
//!
//! Deliberately absent: the server's own "merge when checks succeed", which this is the net for; words for people.

mod answer;
mod machine;
mod run;
mod seen;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::checks::Counts;
use crate::error::NextStep;
use crate::ops::MergeMethod;
use crate::pattern::ContextPattern;

pub use self::answer::OrderAnswer;
pub use self::machine::Machine;
pub use self::run::run;
pub use self::seen::{PullSeen, Seen, Step, Trouble, Turn};

/// What is to be done, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How it is merged.
    pub method: MergeMethod,
    /// Whether its branch goes afterwards.
    pub delete_branch: bool,
    /// The wait between two looks; default 15 s.
    pub poll: Duration,
    /// The time for all of it; default 45 min.
    pub timeout: Duration,
    /// How long a head may have no checks before it counts as one that has none; default 60 s.
    pub grace: Duration,
    /// How long the server may say that it cannot merge before that is believed; default 2 min. It says so while it is
    /// still finding out, too.
    pub settle: Duration,
    /// Whether a head without checks is merged.
    pub allow_no_checks: bool,
    /// Checks that do not count, such as the one that this run itself is.
    pub ignore: Vec<ContextPattern>,
    /// One look, and no order.
    pub dry_run: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            method: MergeMethod::Merge,
            delete_branch: false,
            poll: Duration::from_secs(15),
            timeout: Duration::from_mins(45),
            grace: Duration::from_secs(60),
            settle: Duration::from_mins(2),
            allow_no_checks: false,
            ignore: Vec::new(),
            dry_run: false,
        }
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The first look.
    Beginning,
    /// The first check of this head.
    NoChecks,
    /// The checks that run.
    Checks(Counts),
    /// A second look at what is green.
    Confirming(Counts),
    /// The server, to find out whether it can be merged.
    Mergeable,
    /// The server, to find the head.
    Head,
    /// A time at which the server merges.
    Merging,
}

/// Something happened; each is said once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// What is waited for has changed.
    Now(Standing),
    /// Somebody pushed: the judgement starts anew.
    HeadMoved {
        /// The commit that was judged.
        from: String,
        /// The one that will be.
        to: String,
    },
    /// A look failed; the next one is as planned. Said for the first of several.
    LookFailed {
        /// Why.
        reason: String,
    },
    /// A look succeeded again.
    LooksAgain {
        /// How many had failed.
        failed: u32,
    },
    /// The order goes out.
    Ordering {
        /// How.
        method: MergeMethod,
        /// What.
        head: String,
    },
    /// The order was not followed, for a reason that may pass.
    NotYet {
        /// Why, in the server's words.
        reason: String,
    },
    /// The order may have been followed, and no answer says so: the pull request is read.
    Unclear {
        /// Why.
        reason: String,
    },
    /// The server wants to merge by itself, later.
    Scheduled,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is merged.
    Merged {
        /// The commit that did it, if it is known.
        commit: Option<String>,
        /// Whether an order of this run went out before; if not, somebody else merged it.
        ordered: bool,
        /// What else the server said, such as that the branch could not be deleted.
        warning: Option<String>,
    },
    /// The server said that it merged, and the pull request could not be read since.
    MergedUnseen,
    /// A dry run: the order would go out.
    WouldMerge {
        /// How.
        method: MergeMethod,
        /// What.
        head: String,
    },
    /// A dry run: it would wait.
    WouldWait(Standing),
    /// Checks are over, and not well.
    ChecksFailed {
        /// Their contexts.
        contexts: Vec<String>,
    },
    /// There are no checks, and no leave to merge without.
    NoChecks,
    /// Somebody closed it.
    Closed,
    /// It is a draft.
    Draft,
    /// It conflicts with the branch it goes into, in the server's words.
    Conflict(String),
    /// The server said for [`Plan::settle`] that it cannot merge: a conflict, or it is still finding out.
    NotMergeable(String),
    /// The server does not let it be merged, or not be seen, in its own words.
    Blocked {
        /// Whether it is the token that was rejected.
        unauthorized: bool,
        /// What the server said.
        reason: String,
        /// What to try next.
        next_step: Option<NextStep>,
    },
    /// Time ran out.
    TimedOut {
        /// What was waited for, as far as could be seen.
        standing: Standing,
        /// Why the last look failed, if it did.
        trouble: Option<String>,
    },
    /// Time, or the way to the server, ran out after an order that may have been followed.
    Unknown {
        /// What became of the order.
        reason: String,
    },
}

/// What the caller hears of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Something happened.
    Note(Note),
    /// A wait begins.
    Waiting {
        /// For what.
        standing: Standing,
        /// How long.
        wait: Duration,
        /// The time that is left before the run gives up.
        left: Duration,
    },
}
