//! Making an issue that must not exist twice: a marker in its text is looked for wherever it is not known what became of
//! the request; absent: a promise, for a request that is still on its way shows only later.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::client::Client;
use crate::error::Error;
use crate::model::{Issue, NewIssue};
use crate::ops::{IssueFilter, RepoName, StateFilter};

/// How often one looks for what may have been made.
const LOOKS: u32 = 3;

/// The wait before the first look; it doubles before each further one.
const FIRST_LOOK: Duration = Duration::from_millis(500);

/// How many of the newest issues are looked through.
const LOOKED_THROUGH: usize = 200;

/// What an issue is known by: `<!-- teimoso:op … -->` at the end of its text, which nobody sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker(String);

/// An issue that is there, and how it came there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It was made.
    Made(Issue),
    /// It was there before this run, by its marker.
    WasThere(Issue),
    /// No answer came, and it was found by its marker.
    Found(Issue),
}

/// What became of it.
#[derive(Debug)]
pub enum Filed {
    /// It is there.
    There(Box<Created>),
    /// It is not, and nothing was made.
    Failed(Error),
    /// It may be there, or come: it was looked for and not found.
    Unknown(Error),
}

impl Marker {
    /// A marker of 128 random bits.
    #[must_use]
    pub fn random(client: &Client) -> Self {
        let (high, low) = (client.entropy().bits(), client.entropy().bits());
        Self(format!("{high:016x}{low:016x}"))
    }

    fn line(&self) -> String {
        format!("<!-- teimoso:op {} -->", self.0)
    }

    fn marks(&self, issue: &Issue) -> bool {
        let line = self.line();
        issue.body.lines().any(|found| found.trim() == line)
    }
}

impl Client {
    /// Makes an issue, once. With a marker that was given before, it is looked for first.
    ///
    /// The request is repeated only if it provably did not arrive. After any other failure the newest issues are looked
    /// through for the marker, a few times, because a request may still be on its way.
    pub async fn file_issue(
        &self,
        repo: &RepoName,
        mut issue: NewIssue,
        marker: &Marker,
        look_first: bool,
    ) -> Filed {
        if look_first {
            match self.marked(repo, marker).await {
                Ok(Some(found)) => return Filed::There(Box::new(Created::WasThere(found))),
                Ok(None) => {}
                Err(error) => return Filed::Failed(error),
            }
        }
        let blank = if issue.body.is_empty() { "" } else { "\n\n" };
        issue.body = format!("{}{blank}{}", issue.body.trim_end(), marker.line());
        let error = match self.create_issue(repo, &issue).await {
            Ok(made) => return Filed::There(Box::new(Created::Made(made))),
            Err(error) => error,
        };
        if !error.may_have_taken_effect() {
            return Filed::Failed(error);
        }
        match self.look_for(repo, marker).await {
            Some(found) => Filed::There(Box::new(Created::Found(found))),
            None => Filed::Unknown(error),
        }
    }

    async fn look_for(&self, repo: &RepoName, marker: &Marker) -> Option<Issue> {
        let mut wait = FIRST_LOOK;
        for _ in 0..LOOKS {
            self.clock().sleep(wait).await;
            // A look that fails is one that found nothing.
            if let Ok(Some(found)) = self.marked(repo, marker).await {
                return Some(found);
            }
            wait = wait.saturating_mul(2);
        }
        None
    }

    async fn marked(&self, repo: &RepoName, marker: &Marker) -> Result<Option<Issue>, Error> {
        let filter = IssueFilter { state: StateFilter::All, ..IssueFilter::default() };
        let newest = self.issues(repo, &filter, LOOKED_THROUGH).await?;
        Ok(newest.into_iter().find(|issue| marker.marks(issue)))
    }
}

impl FromStr for Marker {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        let well = (1..=100).contains(&text.len()) && text.bytes().all(allowed) && !text.contains("--");
        match well {
            true => Ok(Self(text.to_owned())),
            false => {
                Err("a marker is 1 to 100 letters, digits, `-`, `_`, `.` or `:`, without `--`".to_owned())
            }
        }
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_marks_its_own_line_only() {
        let marker: Marker = "run-17".parse().unwrap();
        let issue = |body: &str| Issue { body: body.to_owned(), ..Issue::default() };
        assert!(marker.marks(&issue("text\r\n\r\n<!-- teimoso:op run-17 -->\r\n")));
        for other in ["", "<!-- teimoso:op run-170 -->", "> <!-- teimoso:op run-17 -->", "teimoso:op run-17"]
        {
            assert!(!marker.marks(&issue(other)), "{other}");
        }
        for bad in ["", "a b", "a-->", "a--b", "é"] {
            assert!(bad.parse::<Marker>().is_err(), "{bad}");
        }
    }
}
