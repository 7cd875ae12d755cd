//! The status of an issue as one label of a scope (`status/ready`), moved from one to another so that a crash leaves two
//! labels rather than none; absent: what the states mean, and who may move what.

use std::fmt;
use std::str::FromStr;

use crate::client::Client;
use crate::error::Error;
use crate::model::{Issue, Label};
use crate::ops::RepoName;

/// What stands before the slash of labels that drive each other out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope(String);

/// The status of an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its labels of the scope, without it. More than one is the trace of a change that was cut short.
    pub states: Vec<String>,
    /// The issue.
    pub issue: Issue,
}

/// What became of a change of status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// It was so before.
    Already,
    /// It is so now.
    Moved {
        /// The states before.
        from: Vec<String>,
    },
    /// There is no such label.
    NoSuchState {
        /// The states that there are labels for.
        known: Vec<String>,
    },
}

impl Scope {
    /// The label of a state.
    #[must_use]
    pub fn label(&self, state: &str) -> String {
        format!("{}/{state}", self.0)
    }

    /// The state that a label of this scope stands for.
    #[must_use]
    pub fn state<'a>(&self, label: &'a str) -> Option<&'a str> {
        // The scope ends at the last slash, as on the server.
        let (scope, state) = label.rsplit_once('/')?;
        (scope == self.0).then_some(state)
    }

    fn states(&self, labels: &[Label]) -> Vec<String> {
        labels.iter().filter_map(|label| self.state(&label.name)).map(str::to_owned).collect()
    }
}

impl Client {
    /// The status of an issue. A read.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn status(&self, repo: &RepoName, number: u64, scope: &Scope) -> Result<Status, Error> {
        let issue = self.issue(repo, number).await?;
        Ok(Status { states: scope.states(&issue.labels), issue })
    }

    /// Moves an issue to a state. Repeatable by value: each of its requests is.
    ///
    /// The new label is put on first; where it is exclusive, the server takes the others off in the same step, and where
    /// it is not, they are taken off afterwards.
    ///
    /// # Errors
    ///
    /// Any failure of a request; a success of the server's that left the issue as it was.
    pub async fn transition(
        &self,
        repo: &RepoName,
        number: u64,
        scope: &Scope,
        state: &str,
    ) -> Result<Transition, Error> {
        let from = self.status(repo, number, scope).await?.states;
        if from == [state] {
            return Ok(Transition::Already);
        }
        let wanted = scope.label(state);
        let labels = self.labels_for(repo, &[&wanted]).await?;
        let Some(label) = labels.iter().find(|label| label.name == wanted) else {
            let mut known = scope.states(&labels);
            known.sort();
            known.dedup();
            return Ok(Transition::NoSuchState { known });
        };
        let now = self.add_labels(repo, number, std::slice::from_ref(label)).await?;
        let rivals = now.iter().filter(|other| scope.state(&other.name).is_some() && other.id != label.id);
        for rival in rivals {
            self.remove_label(repo, number, rival).await?;
        }
        Ok(Transition::Moved { from })
    }
}

/// Prefixes of a title that make a draft, unless the server was told others.
const DRAFT_PREFIXES: [&str; 2] = ["wip:", "[wip]"];

/// The title of a draft without what makes it one; `None` if it is none.
#[must_use]
pub fn ready_title(title: &str) -> Option<&str> {
    let title = title.trim_start();
    DRAFT_PREFIXES.iter().find_map(|prefix| {
        let start = title.get(..prefix.len())?;
        start.eq_ignore_ascii_case(prefix).then(|| title[prefix.len()..].trim_start())
    })
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let well = !text.is_empty() && !text.starts_with('/') && !text.ends_with('/');
        let well = well && !text.contains(char::is_control) && !text.contains(',');
        match well {
            true => Ok(Self(text.to_owned())),
            false => Err("a scope is what stands before the slash of labels, such as status".to_owned()),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_belongs_to_the_scope_before_its_last_slash() {
        let scope: Scope = "status".parse().unwrap();
        assert_eq!(scope.label("ready"), "status/ready");
        assert_eq!(scope.state("status/ready"), Some("ready"));
        for other in ["status", "ready", "status/in/review", "statusx/ready"] {
            assert_eq!(scope.state(other), None, "{other}");
        }
        let nested: Scope = "status/in".parse().unwrap();
        assert_eq!(nested.state("status/in/review"), Some("review"));
        for bad in ["", "/a", "a/", "a,b", "a\n"] {
            assert!(bad.parse::<Scope>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_title_of_a_draft_loses_its_prefix() {
        assert_eq!(ready_title("WIP: add it"), Some("add it"));
        assert_eq!(ready_title(" [wip]add it"), Some("add it"));
        for ready in ["add it", "WIPE: it", "é", "", "Draft: x"] {
            assert_eq!(ready_title(ready), None, "{ready}");
        }
    }
}
