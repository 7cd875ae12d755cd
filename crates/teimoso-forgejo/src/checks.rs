//! What the statuses of a commit add up to; absent: the rule for when that is enough, which is `automerge`'s.

use std::collections::BTreeMap;

use crate::model::{CheckState, CommitStatus};
use crate::pattern::ContextPattern;

/// The newest status of each context, by context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks(Vec<Check>);

/// The newest status of one context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What reports.
    pub context: String,
    /// What it reports.
    pub state: CheckState,
    /// In more words.
    pub description: String,
    /// Where to read more.
    pub target_url: String,
    /// RFC 3339.
    pub created_at: Option<String>,
}

/// What one check, or all of them, come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// There are none.
    None,
    /// At least one failed; others may still run.
    Failed,
    /// At least one is not over, and none has failed.
    Pending,
    /// All are over, and all are well.
    Green,
}

/// How many checks there are, and how they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All of them.
    pub all: usize,
    /// Over, and well.
    pub green: usize,
    /// Not over.
    pub pending: usize,
    /// Over, and not well.
    pub failed: usize,
}

impl Check {
    /// What it comes to. A word that nobody knows is not over: it must not let a merge pass, and not stop one for good.
    /// A warning is not well, because the server itself does not take it for a success.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.state {
            CheckState::Success | CheckState::Skipped => Verdict::Green,
            CheckState::Failure | CheckState::Error | CheckState::Warning => Verdict::Failed,
            CheckState::Pending | CheckState::Unknown(_) => Verdict::Pending,
        }
    }
}

impl Checks {
    /// Takes statuses in any order and keeps the one with the highest id of each context.
    #[must_use]
    pub fn of(statuses: impl IntoIterator<Item = CommitStatus>) -> Self {
        let mut newest: BTreeMap<String, CommitStatus> = BTreeMap::new();
        for status in statuses {
            match newest.get(&status.context) {
                Some(known) if known.id >= status.id => {}
                _ => {
                    newest.insert(status.context.clone(), status);
                }
            }
        }
        Self(newest.into_values().map(Check::from).collect())
    }

    /// Those whose context fits none of these patterns.
    #[must_use]
    pub fn without(&self, ignored: &[ContextPattern]) -> Self {
        let counts = |check: &&Check| !ignored.iter().any(|pattern| pattern.fits(&check.context));
        Self(self.0.iter().filter(counts).cloned().collect())
    }

    /// Each of them, by context.
    pub fn iter(&self) -> impl Iterator<Item = &Check> {
        self.0.iter()
    }

    /// Their contexts, in order.
    pub fn contexts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|check| check.context.as_str())
    }

    /// The contexts of those that come to this.
    #[must_use]
    pub fn that_are(&self, verdict: Verdict) -> Vec<String> {
        let fitting = self.0.iter().filter(|check| check.verdict() == verdict);
        fitting.map(|check| check.context.clone()).collect()
    }

    /// How many there are, and how they stand.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |verdict| self.0.iter().filter(|check| check.verdict() == verdict).count();
        Counts {
            all: self.0.len(),
            green: of(Verdict::Green),
            pending: of(Verdict::Pending),
            failed: of(Verdict::Failed),
        }
    }

    /// What they come to together.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.counts() {
            Counts { all: 0, .. } => Verdict::None,
            Counts { failed: 1.., .. } => Verdict::Failed,
            Counts { pending: 1.., .. } => Verdict::Pending,
            Counts { .. } => Verdict::Green,
        }
    }
}

impl From<CommitStatus> for Check {
    fn from(status: CommitStatus) -> Self {
        let CommitStatus { status: state, context, description, target_url, created_at, .. } = status;
        Self { context, state, description, target_url, created_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(id: u64, context: &str, state: CheckState) -> CommitStatus {
        CommitStatus {
            id,
            status: state,
            context: context.to_owned(),
            description: String::new(),
            target_url: String::new(),
            created_at: None,
        }
    }

    fn verdict(states: &[CheckState]) -> Verdict {
        let statuses = (1..).zip(states).map(|(id, state)| status(id, &id.to_string(), state.clone()));
        Checks::of(statuses).verdict()
    }

    #[test]
    fn the_highest_id_of_a_context_counts_in_whatever_order_they_come() {
        let history = [
            status(2, "build", CheckState::Success),
            status(1, "build", CheckState::Pending),
            status(3, "lint", CheckState::Failure),
            status(4, "lint", CheckState::Success),
        ];
        for rotation in 0..history.len() {
            let mut history = history.clone();
            history.rotate_left(rotation);
            let checks = Checks::of(history);
            assert_eq!(checks.contexts().collect::<Vec<_>>(), ["build", "lint"]);
            assert_eq!(checks.verdict(), Verdict::Green, "{rotation}");
        }
    }

    #[test]
    fn what_is_unknown_is_pending_and_a_warning_is_not_green() {
        use CheckState::{Error, Failure, Pending, Skipped, Success, Unknown, Warning};
        let odd = || Unknown("blessed".to_owned());
        assert_eq!(verdict(&[]), Verdict::None);
        assert_eq!(verdict(&[Success, Skipped]), Verdict::Green);
        assert_eq!(verdict(&[Success, Pending]), Verdict::Pending);
        assert_eq!(verdict(&[Success, odd()]), Verdict::Pending);
        for bad in [Failure, Error, Warning] {
            assert_eq!(verdict(&[Pending, bad.clone(), Success]), Verdict::Failed, "{bad:?}");
        }
    }
}
