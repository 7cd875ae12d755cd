//! Merging: the order, and what the server makes of it; absent: what to do about that, which is `automerge`'s.

use std::fmt;
use std::str::FromStr;

use http::Method;
use serde::Serialize;

use super::RepoName;
use crate::client::{Call, Client};
use crate::error::Error;

/// How a pull request is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeMethod {
    /// By a merge commit.
    #[default]
    Merge,
    /// By moving its commits.
    Rebase,
    /// By moving its commits, and a merge commit.
    RebaseMerge,
    /// As one commit.
    Squash,
    /// By moving the branch forward, if it can be.
    FastForwardOnly,
}

impl MergeMethod {
    /// Every method.
    pub const ALL: [Self; 5] =
        [Self::Merge, Self::Squash, Self::Rebase, Self::RebaseMerge, Self::FastForwardOnly];

    /// The name, as the API and the command line have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::RebaseMerge => "rebase-merge",
            Self::Squash => "squash",
            Self::FastForwardOnly => "fast-forward-only",
        }
    }
}

impl fmt::Display for MergeMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MergeMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|method| method.name() == text);
        known.ok_or_else(|| {
            "the methods are merge, squash, rebase, rebase-merge and fast-forward-only".to_owned()
        })
    }
}

/// An order to merge. It always names the commit that was judged: the server refuses to merge any other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeOrder {
    /// How.
    #[serde(rename = "Do")]
    pub method: MergeMethod,
    /// The commit at the head of the pull request.
    #[serde(rename = "head_commit_id")]
    pub head: String,
    /// Whether its branch goes afterwards.
    #[serde(rename = "delete_branch_after_merge")]
    pub delete_branch: bool,
}

/// What a server that accepts an order has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merging {
    /// It has merged.
    Done,
    /// It will, once its own conditions hold; nothing has been merged.
    Scheduled,
}

impl Client {
    /// Orders a merge. Guarded by the head: a second arrival of the order finds the pull request merged. It is sent
    /// again only if it provably did not arrive; in every other case the pull request is to be read first.
    ///
    /// # Errors
    ///
    /// Any failure of the request; several of them mean that the merge was done all the same.
    pub async fn merge(&self, repo: &RepoName, number: u64, order: &MergeOrder) -> Result<Merging, Error> {
        let call = Call::once(Method::POST, &repo.path(&["pulls", &number.to_string(), "merge"]));
        let answer = self.request(call.json(order)).await?;
        Ok(if answer.status == 201 { Merging::Scheduled } else { Merging::Done })
    }

    /// Takes a scheduled merge back; `false` if none was scheduled. Repeatable by value.
    ///
    /// # Errors
    ///
    /// Any failure of the request but a 404.
    pub async fn cancel_scheduled_merge(&self, repo: &RepoName, number: u64) -> Result<bool, Error> {
        let call = Call::by_value(Method::DELETE, &repo.path(&["pulls", &number.to_string(), "merge"]));
        match self.request(call).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}
