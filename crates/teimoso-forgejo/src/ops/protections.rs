//! Rules of branch protection, which only an administrator of the repository may even see; absent: what a rule should
//! say, which is `protect`'s.

use http::Method;
use serde_json::{Map, Value};

use super::RepoName;
use crate::client::{Call, Client};
use crate::error::Error;
use crate::model::BranchProtection;

impl Client {
    /// All rules of a repository. A read.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn protections(&self, repo: &RepoName) -> Result<Vec<BranchProtection>, Error> {
        let call = Call::get(&repo.path(&["branch_protections"]));
        let answer: Option<Vec<Option<BranchProtection>>> = self.request(call).await?.read()?;
        Ok(answer.unwrap_or_default().into_iter().flatten().collect())
    }

    /// The rule of this name, if there is one. A read.
    ///
    /// # Errors
    ///
    /// Any failure of the request but a 404.
    pub async fn protection(&self, repo: &RepoName, name: &str) -> Result<Option<BranchProtection>, Error> {
        let call = Call::get(&repo.path(&["branch_protections", name]));
        match self.request(call).await {
            Ok(answer) => answer.read().map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a rule. Not repeatable: the second time is refused.
    ///
    /// # Errors
    ///
    /// Any failure of the request; a rule of this name that exists is a 403.
    pub async fn create_protection(
        &self,
        repo: &RepoName,
        name: &str,
        fields: &Map<String, Value>,
    ) -> Result<BranchProtection, Error> {
        let mut body = fields.clone();
        body.insert("rule_name".to_owned(), name.into());
        let call = Call::once(Method::POST, &repo.path(&["branch_protections"]));
        self.request(call.json(&body)).await?.read()
    }

    /// Changes fields of a rule. Repeatable by value.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn edit_protection(
        &self,
        repo: &RepoName,
        name: &str,
        fields: &Map<String, Value>,
    ) -> Result<BranchProtection, Error> {
        let call = Call::by_value(Method::PATCH, &repo.path(&["branch_protections", name]));
        self.request(call.json(fields)).await?.read()
    }

    /// Takes a rule away; fine if it is gone. Repeatable by value.
    ///
    /// # Errors
    ///
    /// Any failure of the request but a 404.
    pub async fn delete_protection(&self, repo: &RepoName, name: &str) -> Result<(), Error> {
        let call = Call::by_value(Method::DELETE, &repo.path(&["branch_protections", name]));
        match self.request(call).await {
            Err(error) if !error.is_not_found() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
