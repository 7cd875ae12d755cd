//! Statuses of a commit as the API writes them; absent: what they add up to, which is [`Checks`](crate::Checks)'.

use serde::{Deserialize, Deserializer};

use super::or_default;
use crate::client::Page;

/// One report about a commit. The newest of a context is the one with the highest id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CommitStatus {
    /// Counted per commit.
    pub id: u64,
    /// What is reported.
    #[serde(default)]
    pub status: CheckState,
    /// By what: `workflow / job (event)` for Actions.
    #[serde(default, deserialize_with = "or_default")]
    pub context: String,
    /// In more words.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Where to read more.
    #[serde(default, deserialize_with = "or_default")]
    pub target_url: String,
    /// RFC 3339.
    #[serde(default)]
    pub created_at: Option<String>,
}

/// What a status reports.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum CheckState {
    /// Not over yet; also what is taken for granted where nothing is said.
    #[default]
    Pending,
    /// All is well.
    Success,
    /// It did not have to run.
    Skipped,
    /// It could not be found out.
    Error,
    /// It is not well.
    Failure,
    /// Something is not well; a required check that warns holds a merge up.
    Warning,
    /// A word that this client does not know.
    Unknown(String),
}

impl<'de> Deserialize<'de> for CheckState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word: String = or_default(deserializer)?;
        Ok(match word.as_str() {
            "pending" | "" => Self::Pending,
            "success" => Self::Success,
            "skipped" => Self::Skipped,
            "error" => Self::Error,
            "failure" => Self::Failure,
            "warning" => Self::Warning,
            _ => Self::Unknown(word),
        })
    }
}

impl CheckState {
    /// The word of the API.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Skipped => "skipped",
            Self::Error => "error",
            Self::Failure => "failure",
            Self::Warning => "warning",
            Self::Unknown(word) => word,
        }
    }
}

/// One page of what `GET /commits/{ref}/status` says. Its own `state` is left out: it is made of one page only.
#[derive(Debug, Deserialize)]
pub(crate) struct CombinedPage {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) statuses: Vec<CommitStatus>,
}

impl Page for CombinedPage {
    type Item = CommitStatus;
    fn items(self) -> Vec<CommitStatus> {
        self.statuses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_state_is_read_and_a_missing_one_is_pending() {
        let read = |json: &str| serde_json::from_str::<CommitStatus>(json).unwrap().status;
        assert_eq!(read(r#"{"id":1,"status":"skipped"}"#), CheckState::Skipped);
        assert_eq!(read(r#"{"id":1,"status":"blessed"}"#), CheckState::Unknown("blessed".to_owned()));
        for json in [r#"{"id":1}"#, r#"{"id":1,"status":""}"#, r#"{"id":1,"status":null}"#] {
            assert_eq!(read(json), CheckState::Pending, "{json}");
        }
    }

    #[test]
    fn a_commit_without_statuses_is_an_empty_page() {
        let json = r#"{"state":"","sha":"","total_count":0,"statuses":null,"repository":null}"#;
        let page: CombinedPage = serde_json::from_str(json).unwrap();
        assert_eq!(page.items(), []);
    }

    #[test]
    fn a_status_that_the_server_failed_to_write_makes_the_page_unreadable() {
        assert!(serde_json::from_str::<CombinedPage>(r#"{"statuses":[null]}"#).is_err());
    }
}
