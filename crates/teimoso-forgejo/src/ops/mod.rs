//! What may be asked of a Forgejo, one typed operation each; absent: retries and their reasons, which each operation
//! only names (S1.2), and anything that takes more than one kind of request.

mod comments;
mod issues;
mod labels;
mod merge;
mod name;
mod protections;
mod pulls;
mod server;
mod statuses;

pub use self::issues::{IssueFilter, StateFilter};
pub use self::merge::{MergeMethod, MergeOrder, Merging};
pub use self::name::{InvalidName, RepoName};
pub use self::pulls::{PullFilter, UpdateStyle};

/// The most items that a list operation reads.
const LIST_MAX: usize = 10_000;
