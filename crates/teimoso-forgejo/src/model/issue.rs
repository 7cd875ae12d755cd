//! Issues, labels and comments as the API writes them; absent: what a label means, which is `transition`'s.

use serde::{Deserialize, Serialize};

use super::{User, or_default};

/// An issue. Its number and state must be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Issue {
    /// The number in its repository.
    pub number: u64,
    /// `open` or `closed`.
    pub state: String,
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
    /// Its labels.
    #[serde(default, deserialize_with = "or_default")]
    pub labels: Vec<Label>,
    /// Who is to deal with it.
    #[serde(default, deserialize_with = "or_default")]
    pub assignees: Vec<User>,
    /// Its milestone.
    #[serde(default)]
    pub milestone: Option<Milestone>,
    /// RFC 3339.
    #[serde(default)]
    pub created_at: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// RFC 3339.
    #[serde(default)]
    pub closed_at: Option<String>,
}

/// The two states that an issue or pull request can be put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IssueState {
    /// To be dealt with.
    Open,
    /// Dealt with.
    Closed,
}

/// A label of a repository or of its organisation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Label {
    /// What the API knows it by.
    pub id: i64,
    /// What people know it by; several labels may have the same name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Six hexadecimal digits.
    #[serde(default, deserialize_with = "or_default")]
    pub color: String,
    /// What it is for.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Whether it drives out the others of its scope, which is what stands before the last `/` of its name.
    #[serde(default, deserialize_with = "or_default")]
    pub exclusive: bool,
}

/// A milestone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Milestone {
    /// What the API knows it by.
    pub id: i64,
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub title: String,
}

/// A comment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Comment {
    /// Comments that were made later have higher ones.
    pub id: u64,
    /// The text.
    #[serde(default, deserialize_with = "or_default")]
    pub body: String,
    /// Who wrote it.
    #[serde(default)]
    pub user: Option<User>,
}

/// An issue that is to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewIssue {
    /// The title.
    pub title: String,
    /// The text.
    pub body: String,
    /// Its labels, by id: names are not understood here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<i64>,
    /// Who is to deal with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assignees: Vec<String>,
}

/// What changes about an issue; what is `None` stays. Labels are changed by operations of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IssueEdit {
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Open or closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<IssueState>,
    /// Who is to deal with it, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignees: Option<Vec<String>>,
}
