//! Issues: list, get, create, edit; absent: their labels and comments, and creating one safely, which is `create`'s.

use http::Method;

use super::RepoName;
use crate::client::{Call, Client};
use crate::error::Error;
use crate::model::{Issue, IssueEdit, NewIssue};

/// In which state something is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateFilter {
    /// To be dealt with.
    #[default]
    Open,
    /// Dealt with.
    Closed,
    /// Either.
    All,
}

impl StateFilter {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::All => "all",
        }
    }

    pub(super) fn allows(self, state: &str) -> bool {
        self == Self::All || self.word() == state
    }
}

/// Which issues are wanted; the default is every open one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssueFilter {
    /// In which state.
    pub state: StateFilter,
    /// With all of these labels, by name.
    pub labels: Vec<String>,
    /// By this author.
    pub created_by: Option<String>,
}

impl Client {
    /// Issues, without pull requests, the newest first, at most `max` of them. A read.
    ///
    /// # Errors
    ///
    /// Any failure of a request.
    pub async fn issues(
        &self,
        repo: &RepoName,
        filter: &IssueFilter,
        max: usize,
    ) -> Result<Vec<Issue>, Error> {
        let labels = (!filter.labels.is_empty()).then(|| filter.labels.join(","));
        let call = Call::get(&repo.path(&["issues"]))
            .query("type", "issues")
            .query("state", filter.state.word())
            .query_some("labels", labels.as_deref())
            .query_some("created_by", filter.created_by.as_deref());
        self.pages::<Option<Vec<Option<Issue>>>>(&call, max).await
    }

    /// One issue. A read.
    ///
    /// # Errors
    ///
    /// It is not there, or any failure of the request.
    pub async fn issue(&self, repo: &RepoName, number: u64) -> Result<Issue, Error> {
        let call = Call::get(&repo.path(&["issues", &number.to_string()]));
        self.request(call).await?.read()
    }

    /// Makes an issue, in one request that is not repeatable: [`file_issue`](Self::file_issue) finds out what became of
    /// it where this cannot.
    ///
    /// # Errors
    ///
    /// Any failure of the request; ask [`Error::may_have_taken_effect`].
    pub async fn create_issue(&self, repo: &RepoName, issue: &NewIssue) -> Result<Issue, Error> {
        let call = Call::once(Method::POST, &repo.path(&["issues"]));
        self.request(call.json(issue)).await?.read()
    }

    /// Changes an issue. Repeatable by value.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn edit_issue(&self, repo: &RepoName, number: u64, edit: &IssueEdit) -> Result<Issue, Error> {
        let call = Call::by_value(Method::PATCH, &repo.path(&["issues", &number.to_string()]));
        self.request(call.json(edit)).await?.read()
    }
}
