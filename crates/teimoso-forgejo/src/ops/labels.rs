//! Labels: which there are, and which an issue has; absent: names in requests, because servers ignore, without a word,
//! the names that they do not know.

use http::Method;
use serde_json::json;

use super::{LIST_MAX, RepoName};
use crate::client::{Call, Client};
use crate::error::Error;
use crate::model::Label;

type Labels = Option<Vec<Option<Label>>>;

impl Client {
    /// The labels of a repository, all pages. A read.
    ///
    /// # Errors
    ///
    /// Any failure of a request.
    pub async fn repo_labels(&self, repo: &RepoName) -> Result<Vec<Label>, Error> {
        self.pages::<Labels>(&Call::get(&repo.path(&["labels"])), LIST_MAX).await
    }

    /// The labels of an organisation, all pages; none if it is a user. A read.
    ///
    /// # Errors
    ///
    /// Any failure of a request but a 404.
    pub async fn org_labels(&self, owner: &str) -> Result<Vec<Label>, Error> {
        match self.pages::<Labels>(&Call::get(&["orgs", owner, "labels"]), LIST_MAX).await {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            labels => labels,
        }
    }

    /// The labels among which these names are to be looked for: the repository's, and the organisation's too if one of
    /// the names is not among those. So a token that may not see the organisation will do for labels that are not its.
    ///
    /// # Errors
    ///
    /// Any failure of a request but a 404 for the organisation.
    pub async fn labels_for(&self, repo: &RepoName, names: &[&str]) -> Result<Vec<Label>, Error> {
        let mut labels = self.repo_labels(repo).await?;
        if names.iter().any(|name| !labels.iter().any(|label| label.name == *name)) {
            labels.extend(self.org_labels(repo.owner()).await?);
        }
        Ok(labels)
    }

    /// The label of this name: the repository's own before the organisation's. A read.
    ///
    /// # Errors
    ///
    /// As [`labels_for`](Self::labels_for).
    pub async fn label(&self, repo: &RepoName, name: &str) -> Result<Option<Label>, Error> {
        Ok(self.labels_for(repo, &[name]).await?.into_iter().find(|label| label.name == name))
    }

    /// Puts labels on an issue, and sees that they are there. Repeatable by value.
    ///
    /// # Errors
    ///
    /// Any failure of the request; a success that did not put them there.
    pub async fn add_labels(
        &self,
        repo: &RepoName,
        number: u64,
        labels: &[Label],
    ) -> Result<Vec<Label>, Error> {
        let ids: Vec<i64> = labels.iter().map(|label| label.id).collect();
        let call = Call::by_value(Method::POST, &repo.path(&["issues", &number.to_string(), "labels"]))
            .json(&json!({ "labels": ids }));
        let answer: Labels = self.request(call.clone()).await?.read()?;
        let now: Vec<Label> = answer.unwrap_or_default().into_iter().flatten().collect();
        let is_there = |wanted: &&Label| now.iter().any(|label| label.id == wanted.id);
        match labels.iter().find(|wanted| !is_there(wanted)) {
            None => Ok(now),
            Some(absent) => Err(Error::not_so(
                &call,
                format!("the server reported a success, and the label `{}` is not there", absent.name),
            )),
        }
    }

    /// Takes a label off an issue; fine if it was not there. Repeatable by value.
    ///
    /// # Errors
    ///
    /// Any failure of the request but that the label was not there.
    pub async fn remove_label(&self, repo: &RepoName, number: u64, label: &Label) -> Result<(), Error> {
        let (number, id) = (number.to_string(), label.id.to_string());
        let call = Call::by_value(Method::DELETE, &repo.path(&["issues", &number, "labels", &id]));
        match self.request(call).await {
            Err(error) if !matches!(error.status(), Some(404 | 422)) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
