//! The name of a repository, checked where it enters; absent: whether it exists.

use std::fmt;
use std::str::FromStr;

/// `OWNER/REPO`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepoName {
    owner: String,
    repo: String,
}

/// A text that names no repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidName;

impl RepoName {
    /// The user or organisation.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The repository.
    #[must_use]
    pub fn repo(&self) -> &str {
        &self.repo
    }

    /// The segments of a path below this repository.
    pub(super) fn path<'a>(&'a self, below: &[&'a str]) -> Vec<&'a str> {
        [&["repos", self.owner.as_str(), self.repo.as_str()], below].concat()
    }
}

impl FromStr for RepoName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let (owner, repo) = text.split_once('/').ok_or(InvalidName)?;
        match is_name(owner) && is_name(repo) {
            true => Ok(Self { owner: owner.to_owned(), repo: repo.to_owned() }),
            false => Err(InvalidName),
        }
    }
}

/// What Forgejo allows in names; `.` and `..` would change the path that they stand in.
fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.len() <= 255 && text.bytes().all(allowed) && !matches!(text, "." | "..")
}

impl fmt::Display for RepoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.repo)
    }
}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a repository is OWNER/REPO, of letters, digits, `-`, `_` and `.`")
    }
}

impl std::error::Error for InvalidName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_two_words_that_change_no_path() {
        assert_eq!("acme/site.rs".parse::<RepoName>().unwrap().to_string(), "acme/site.rs");
        for text in ["", "acme", "/site", "acme/", "a/b/c", "../x", "a/..", "a b/c", "a/b?c", "a/%2e", "á/b"]
        {
            assert_eq!(text.parse::<RepoName>(), Err(InvalidName), "{text}");
        }
    }
}
