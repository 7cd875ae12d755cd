//! Who works on an issue, decided by the order of comments, because the API has no compare-and-set; absent: trust: anyone
//! who may comment may claim.
//!
//! A claim is a comment whose first line is a marker. Comments have ids in the order in which they were made, so that of
//! several claims the one with the lowest id holds, and whoever made another takes it back. A release is a comment too:
//! only what comes after the last one counts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::client::Client;
use crate::create::Marker;
use crate::error::Error;
use crate::model::{Comment, IssueEdit};
use crate::ops::RepoName;
use crate::transition::{Scope, Transition};

/// The wait between a claim and the look at who was first: a comment with a lower id may still be about to be seen.
const SETTLE: Duration = Duration::from_secs(1);

/// How often one looks for a comment that may have been made.
const LOOKS: u32 = 3;

const CLAIM: &str = "<!-- teimoso:claim ";
const RELEASE: &str = "<!-- teimoso:release ";
const END: &str = " -->";

/// Who claims. Two that work at the same time need two names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant(Marker);

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It is ours.
    Ours {
        /// Whether it was before.
        already: bool,
        /// What became of the status.
        status: Transition,
    },
    /// It is somebody else's.
    Taken {
        /// The name of the claimant.
        by: String,
    },
    /// Somebody released the issue while it was being claimed, which took this claim with it.
    Released,
    /// The issue is closed.
    Closed,
}

/// A claim as it stands in a comment.
struct Mark<'a> {
    comment: u64,
    name: &'a str,
    operation: &'a str,
}

impl Client {
    /// Claims an issue, puts it into this state, and assigns it if so wished.
    ///
    /// # Errors
    ///
    /// Any failure of a request. A claim that was made before one of the later requests failed still holds: claiming
    /// again goes on from there. Of a comment that may have been made and is not found, ask
    /// [`Error::may_have_taken_effect`].
    pub async fn claim(
        &self,
        repo: &RepoName,
        number: u64,
        claimant: &Claimant,
        (scope, state): (&Scope, &str),
        assignee: Option<&str>,
    ) -> Result<Claim, Error> {
        let issue = self.issue(repo, number).await?;
        if issue.state == "closed" {
            return Ok(Claim::Closed);
        }
        let before = self.holder(repo, number).await?;
        let already = match before {
            Some(name) if name == claimant.name() => true,
            Some(by) => return Ok(Claim::Taken { by }),
            None => false,
        };
        if !already && let Some(lost) = self.contend(repo, number, claimant).await? {
            return Ok(lost);
        }
        let status = self.transition(repo, number, scope, state).await?;
        let missing = assignee.filter(|login| !issue.assignees.iter().any(|user| user.login == **login));
        if let Some(login) = missing {
            let known = issue.assignees.iter().map(|user| user.login.clone());
            let assignees = Some(known.chain([login.to_owned()]).collect());
            self.edit_issue(repo, number, &IssueEdit { assignees, ..IssueEdit::default() }).await?;
        }
        Ok(Claim::Ours { already, status })
    }

    /// Makes a claim and sees who was first; `None` if we were.
    async fn contend(
        &self,
        repo: &RepoName,
        number: u64,
        claimant: &Claimant,
    ) -> Result<Option<Claim>, Error> {
        let operation = Marker::random(self).to_string();
        let text = format!("{CLAIM}{} {operation}{END}\nClaimed by {0}.", claimant.name());
        self.comment_once(repo, number, &text).await?;
        self.clock().sleep(SETTLE).await;
        let comments = self.comments(repo, number).await?;
        let holder = holder(&comments);
        match holder {
            Some(mark) if mark.operation == operation || mark.name == claimant.name() => Ok(None),
            Some(other) => {
                let by = other.name.to_owned();
                let ours = comments.iter().filter_map(mark_of).find(|mark| mark.operation == operation);
                if let Some(ours) = ours {
                    self.delete_comment(repo, ours.comment).await?;
                }
                Ok(Some(Claim::Taken { by }))
            }
            None => Ok(Some(Claim::Released)),
        }
    }

    /// Gives an issue back, whoever holds it; `None` if nobody did, else the name.
    ///
    /// # Errors
    ///
    /// Any failure of a request.
    pub async fn release(&self, repo: &RepoName, number: u64) -> Result<Option<String>, Error> {
        let Some(name) = self.holder(repo, number).await? else { return Ok(None) };
        self.comment_once(repo, number, &format!("{RELEASE}{name}{END}\nReleased by {name}.")).await?;
        Ok(Some(name))
    }

    /// The name of who holds an issue. A read.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn holder(&self, repo: &RepoName, number: u64) -> Result<Option<String>, Error> {
        let comments = self.comments(repo, number).await?;
        Ok(holder(&comments).map(|mark| mark.name.to_owned()))
    }

    /// Writes a comment; where it is not known whether it was written, it is looked for and never written again.
    async fn comment_once(&self, repo: &RepoName, number: u64, text: &str) -> Result<(), Error> {
        let newest = self.comments(repo, number).await?.last().map_or(0, |comment| comment.id);
        let error = match self.create_comment(repo, number, text).await {
            Ok(_) => return Ok(()),
            Err(error) if !error.may_have_taken_effect() => return Err(error),
            Err(error) => error,
        };
        for _ in 0..LOOKS {
            self.clock().sleep(SETTLE).await;
            let Ok(comments) = self.comments(repo, number).await else { continue };
            let same = |comment: &Comment| comment.id > newest && comment.body.trim() == text;
            if comments.iter().any(same) {
                return Ok(());
            }
        }
        Err(error)
    }
}

/// The claim that holds: the first after the last release.
fn holder(comments: &[Comment]) -> Option<Mark<'_>> {
    let last_release = comments.iter().rposition(|comment| comment.body.starts_with(RELEASE));
    let since = last_release.map_or(0, |at| at + 1);
    comments[since..].iter().find_map(mark_of)
}

fn mark_of(comment: &Comment) -> Option<Mark<'_>> {
    let line = comment.body.lines().next()?.trim_end();
    let words = line.strip_prefix(CLAIM)?.strip_suffix(END)?;
    let (name, operation) = words.split_once(' ')?;
    Some(Mark { comment: comment.id, name, operation })
}

impl Claimant {
    fn name(&self) -> String {
        self.0.to_string()
    }
}

impl FromStr for Claimant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_: String| {
            "a name is 1 to 100 letters, digits, `-`, `_`, `.` or `:`, without `--`".to_owned()
        })
    }
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comments(bodies: &[&str]) -> Vec<Comment> {
        (1..).zip(bodies).map(|(id, body)| Comment { id, body: (*body).to_owned(), user: None }).collect()
    }

    fn held(bodies: &[&str]) -> Option<String> {
        holder(&comments(bodies)).map(|mark| mark.name.to_owned())
    }

    #[test]
    fn the_first_claim_after_the_last_release_holds() {
        let (a, b) = ("<!-- teimoso:claim ana 01 -->\nClaimed", "<!-- teimoso:claim bo 02 -->\r\nClaimed");
        let free = "<!-- teimoso:release ana -->\nReleased";
        assert_eq!(held(&[]), None);
        assert_eq!(held(&["hello", a, b]).as_deref(), Some("ana"));
        assert_eq!(held(&[a, b, free]), None);
        assert_eq!(held(&[a, free, b]).as_deref(), Some("bo"));
    }

    #[test]
    fn a_quoted_or_broken_marker_is_none() {
        for other in [
            "> <!-- teimoso:claim ana 01 -->",
            "see <!-- teimoso:claim ana 01 -->",
            "<!-- teimoso:claim ana -->",
            "<!-- teimoso:claim ana 01",
            "",
        ] {
            assert_eq!(held(&[other]), None, "{other}");
        }
    }
}
