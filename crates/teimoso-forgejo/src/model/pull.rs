//! Pull requests as the API writes them; absent: the shape that `gh` gives them, which is `normal`'s.

use serde::{Deserialize, Serialize};

use super::{Label, Milestone, User, not_empty, or_default};

/// A pull request. Its number, state and head must be there; what else is missing is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Pull {
    /// The number in its repository.
    pub number: u64,
    /// `open` or `closed`; a merged one is closed.
    pub state: String,
    /// Whether it was merged.
    #[serde(default, deserialize_with = "or_default")]
    pub merged: bool,
    /// Whether it could be merged, as far as Git goes. `false` while that is still being found out, and for drafts.
    #[serde(default, deserialize_with = "or_default")]
    pub mergeable: bool,
    /// Whether its title marks it as work in progress.
    #[serde(default, deserialize_with = "or_default")]
    pub draft: bool,
    /// The title.
    #[serde(default, deserialize_with = "or_default")]
    pub title: String,
    /// The text.
    #[serde(default, deserialize_with = "or_default")]
    pub body: String,
    /// Where people see it.
    #[serde(default, deserialize_with = "or_default")]
    pub html_url: String,
    /// Who opened it.
    #[serde(default)]
    pub user: Option<User>,
    /// What is to be merged.
    pub head: Side,
    /// What it is to be merged into.
    pub base: Side,
    /// Its labels.
    #[serde(default, deserialize_with = "or_default")]
    pub labels: Vec<Label>,
    /// Who is to deal with it.
    #[serde(default, deserialize_with = "or_default")]
    pub assignees: Vec<User>,
    /// Its milestone.
    #[serde(default)]
    pub milestone: Option<Milestone>,
    /// The commit that merged it.
    #[serde(default, deserialize_with = "not_empty")]
    pub merge_commit_sha: Option<String>,
    /// Who merged it.
    #[serde(default)]
    pub merged_by: Option<User>,
    /// RFC 3339.
    #[serde(default)]
    pub merged_at: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    pub closed_at: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    pub created_at: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// Lines added.
    #[serde(default)]
    pub additions: Option<u64>,
    /// Lines taken away.
    #[serde(default)]
    pub deletions: Option<u64>,
    /// Files touched.
    #[serde(default)]
    pub changed_files: Option<u64>,
    /// Whether those who may merge may also push to its branch.
    #[serde(default)]
    pub allow_maintainer_edit: Option<bool>,
}

/// One side of a pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Side {
    /// The branch; `refs/pull/N/head` if it has none, or has none any more.
    #[serde(rename = "ref", deserialize_with = "or_default")]
    pub name: String,
    /// The commit; empty if the server cannot find it.
    #[serde(deserialize_with = "or_default")]
    pub sha: String,
    /// The repository's id; not positive if it is gone.
    #[serde(deserialize_with = "or_default")]
    pub repo_id: i64,
}

/// What changes about a pull request; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PullEdit {
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Open or closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<super::IssueState>,
    /// The branch to merge into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}
