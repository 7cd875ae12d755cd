//! What the API speaks, as far as this client reads it: fields may be missing or `null`, values of enumerations may be
//! ones that nobody knows yet; absent: every field that nothing here needs, and any judgement.

mod issue;
mod protection;
mod pull;
mod status;

use serde::{Deserialize, Deserializer};

pub use self::issue::{Comment, Issue, IssueEdit, IssueState, Label, Milestone, NewIssue};
pub use self::protection::BranchProtection;
pub use self::pull::{Pull, PullEdit, Side};
pub(crate) use self::status::CombinedPage;
pub use self::status::{CheckState, CommitStatus};

/// A person or a bot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct User {
    /// The name that others mention.
    #[serde(deserialize_with = "or_default")]
    pub login: String,
}

/// What `GET /version` says: `12.0.1+gitea-1.22.0`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Version {
    /// The version of Forgejo, then the one of Gitea whose API it speaks.
    pub version: String,
}

/// Reads `null` as what is there by default: Go writes empty lists so.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Text, where an empty one means none.
pub(crate) fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}
