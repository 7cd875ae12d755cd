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
    /// The labels of a repository, then those of its organisation, if the owner is one; all pages. A read.
    ///
    /// # Errors
    ///
    /// Any failure of a request but a 404 for the organisation.
    pub async fn labels(&self, repo: &RepoName) -> Result<Vec<Label>, Error> {
        let mut labels = self.pages::<Labels>(&Call::get(&repo.path(&["labels"])), LIST_MAX).await?;
        match self.pages::<Labels>(&Call::get(&["orgs", repo.owner(), "labels"]), LIST_MAX).await {
            Ok(of_organisation) => labels.extend(of_organisation),
            // The owner is a user, or the token may not see the organisation: it has none for us.
            Err(error) if error.is_not_found() || error.status() == Some(403) => {}
            Err(error) => return Err(error),
        }
        Ok(labels)
    }

    /// The label of this name: the repository's own before the organisation's. A read.
    ///
    /// # Errors
    ///
    /// Any failure of a request.
    pub async fn label(&self, repo: &RepoName, name: &str) -> Result<Option<Label>, Error> {
        Ok(self.labels(repo).await?.into_iter().find(|label| label.name == name))
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
