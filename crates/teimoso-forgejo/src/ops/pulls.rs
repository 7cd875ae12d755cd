//! Pull requests: get, find, list, edit, bring up to date; absent: merging, which has a file of its own.

use http::Method;

use super::issues::StateFilter;
use super::{LIST_MAX, RepoName};
use crate::client::{Call, Client};
use crate::error::Error;
use crate::model::{Pull, PullEdit};

/// Which pull requests are wanted; the default is every open one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullFilter {
    /// In which state.
    pub state: StateFilter,
    /// Into this branch.
    pub base: Option<String>,
    /// From this branch, `branch` or `owner:branch`.
    pub head: Option<String>,
}

/// How a branch is brought up to date with the one it goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateStyle {
    /// By a merge commit.
    Merge,
    /// By moving its commits.
    Rebase,
}

impl Client {
    /// One pull request. A read.
    ///
    /// # Errors
    ///
    /// It is not there, or any failure of the request.
    pub async fn pull(&self, repo: &RepoName, number: u64) -> Result<Pull, Error> {
        let call = Call::get(&repo.path(&["pulls", &number.to_string()]));
        self.request(call).await?.read()
    }

    /// The pull request from one branch into another; `head` is `branch` or `owner:branch`. A read.
    ///
    /// # Errors
    ///
    /// There is none, or any failure of the request.
    pub async fn find_pull(&self, repo: &RepoName, base: &str, head: &str) -> Result<Pull, Error> {
        let call = Call::get(&repo.path(&["pulls", base, head]));
        self.request(call).await?.read()
    }

    /// Pull requests, all pages of them. A read. Servers that do not know a filter ignore it, so that it is applied here
    /// too.
    ///
    /// # Errors
    ///
    /// Any failure of a request.
    pub async fn pulls(&self, repo: &RepoName, filter: &PullFilter) -> Result<Vec<Pull>, Error> {
        let call = Call::get(&repo.path(&["pulls"]))
            .query("state", filter.state.word())
            .query_some("base", filter.base.as_deref())
            .query_some("head", filter.head.as_deref());
        let mut pulls: Vec<Pull> = self.pages::<Option<Vec<Option<Pull>>>>(&call, LIST_MAX).await?;
        let fits = |wanted: &Option<String>, is: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted.rsplit(':').next() == Some(is))
        };
        pulls.retain(|pull| {
            filter.state.allows(&pull.state)
                && fits(&filter.base, &pull.base.name)
                && fits(&filter.head, &pull.head.name)
        });
        Ok(pulls)
    }

    /// Changes a pull request. Repeatable by value.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn edit_pull(&self, repo: &RepoName, number: u64, edit: &PullEdit) -> Result<Pull, Error> {
        let call = Call::by_value(Method::PATCH, &repo.path(&["pulls", &number.to_string()]));
        self.request(call.json(edit)).await?.read()
    }

    /// Brings the branch up to date. Not repeatable: each time may add a commit.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn update_pull(&self, repo: &RepoName, number: u64, style: UpdateStyle) -> Result<(), Error> {
        let style = match style {
            UpdateStyle::Merge => "merge",
            UpdateStyle::Rebase => "rebase",
        };
        let call = Call::once(Method::POST, &repo.path(&["pulls", &number.to_string(), "update"]));
        self.request(call.query("style", style)).await.map(drop)
    }
}
