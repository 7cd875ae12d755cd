//! Comments of an issue; absent: pages, because the server gives all of them at once.

use http::Method;
use serde_json::json;

use super::RepoName;
use crate::client::{Call, Client};
use crate::error::Error;
use crate::model::Comment;

impl Client {
    /// All comments of an issue or pull request, by id. A read.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn comments(&self, repo: &RepoName, number: u64) -> Result<Vec<Comment>, Error> {
        let call = Call::get(&repo.path(&["issues", &number.to_string(), "comments"]));
        let answer: Option<Vec<Option<Comment>>> = self.request(call).await?.read()?;
        let mut comments: Vec<Comment> = answer.unwrap_or_default().into_iter().flatten().collect();
        comments.sort_by_key(|comment| comment.id);
        Ok(comments)
    }

    /// Writes a comment. Not repeatable.
    ///
    /// # Errors
    ///
    /// Any failure of the request; ask [`Error::may_have_taken_effect`].
    pub async fn create_comment(&self, repo: &RepoName, number: u64, body: &str) -> Result<Comment, Error> {
        let call = Call::once(Method::POST, &repo.path(&["issues", &number.to_string(), "comments"]));
        self.request(call.json(&json!({ "body": body }))).await?.read()
    }

    /// Changes a comment. Repeatable by value.
    ///
    /// # Errors
    ///
    /// Any failure of the request.
    pub async fn edit_comment(&self, repo: &RepoName, id: u64, body: &str) -> Result<(), Error> {
        let call = Call::by_value(Method::PATCH, &repo.path(&["issues", "comments", &id.to_string()]));
        self.request(call.json(&json!({ "body": body }))).await.map(drop)
    }

    /// Takes a comment away; fine if it is gone. Repeatable by value.
    ///
    /// # Errors
    ///
    /// Any failure of the request but a 404.
    pub async fn delete_comment(&self, repo: &RepoName, id: u64) -> Result<(), Error> {
        let call = Call::by_value(Method::DELETE, &repo.path(&["issues", "comments", &id.to_string()]));
        match self.request(call).await {
            Err(error) if !error.is_not_found() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
