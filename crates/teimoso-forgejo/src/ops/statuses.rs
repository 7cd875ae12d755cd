//! What is reported about a commit; absent: the server's own summary, which is made of one page and calls a commit
//! failed while others of its checks still run.

use super::{LIST_MAX, RepoName};
use crate::checks::Checks;
use crate::client::{Call, Client};
use crate::error::Error;
use crate::model::{CombinedPage, CommitStatus};

impl Client {
    /// The newest status of every context of a commit, over all pages; none of no commit, which is how the API writes a
    /// head that it cannot find. A read.
    ///
    /// # Errors
    ///
    /// Any failure of a request; a list shorter than the server said, for what is missing might be a failure.
    pub async fn checks(&self, repo: &RepoName, commit: &str) -> Result<Checks, Error> {
        if commit.is_empty() {
            return Ok(Checks::default());
        }
        let call = Call::get(&repo.path(&["commits", commit, "status"]));
        let statuses = self.complete::<CombinedPage>(&call).await?;
        Ok(Checks::of(statuses))
    }

    /// Every status that was ever reported about a commit, in no order. A read.
    ///
    /// # Errors
    ///
    /// Any failure of a request.
    pub async fn statuses(&self, repo: &RepoName, commit: &str) -> Result<Vec<CommitStatus>, Error> {
        let call = Call::get(&repo.path(&["commits", commit, "statuses"]));
        self.pages::<Option<Vec<Option<CommitStatus>>>>(&call, LIST_MAX).await
    }
}
