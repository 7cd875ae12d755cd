//! A client for the API of Forgejo that repeats what is safe to repeat, and a net that merges a ready pull request
//! although the network fails in the middle of the wait.
//!
//! Every request goes through one choke point, [`Client`]'s own `request`, which is the retrying client of
//! `teimoso_http` with the preset `forgejo` (S1.1). What an operation *is* decides what may be repeated (S1.2):
//!
//! | operation | what it is | after a failure that may have taken effect |
//! |---|---|---|
//! | every `GET` | a read | sent again |
//! | edit a pull request or issue, labels, protections that exist, deletions | repeatable by value | sent again: twice is once |
//! | merge | guarded by `head_commit_id` | the pull request is read first, see [`automerge`] |
//! | create an issue or a comment, update a branch, create a protection | not repeatable | looked up, never sent again |
//!
//! A client cannot be made without a [`Token`], so that without one nothing is ever sent (S1.9).
//!
//! ```no_run
//! use teimoso_forgejo::automerge::{self, Heard, Outcome, Plan};
//! use teimoso_forgejo::{Client, Token};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let token = Token::new(&std::env::var("TEIMOSO_FORGEJO_TOKEN")?)?;
//! let client = Client::builder("https://forge.example".parse()?, &token).build()?;
//! let hear = |heard| {
//!     if let Heard::Note(note) = heard {
//!         eprintln!("{note:?}");
//!     }
//! };
//! let outcome = automerge::run(&client, &"acme/site".parse()?, 7, Plan::default(), hear).await;
//! assert!(matches!(outcome, Outcome::Merged { .. }));
//! # Ok(())
//! # }
//! ```
//!
//! Deliberately absent: a cache, Git itself, webhooks, administration of a server, and words in any language but the
//! short English ones of an [`Error`].

pub mod automerge;
mod checks;
mod claim;
mod client;
mod create;
mod error;
mod model;
mod normal;
mod ops;
mod pattern;
mod protect;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
#[cfg(test)]
mod tests;
mod transition;

pub use checks::{Check, Checks, Counts, Verdict};
pub use claim::{Claim, Claimant};
pub use client::{Client, ClientBuilder, InvalidServer, InvalidToken, Server, Token};
pub use create::{Created, Filed, Marker};
pub use error::{Error, NextStep, Said};
pub use model::{
    BranchProtection, CheckState, Comment, CommitStatus, Issue, IssueEdit, IssueState, Label, Milestone,
    NewIssue, Pull, PullEdit, Side, User, Version,
};
pub use normal::{ISSUE_FIELDS, PULL_FIELDS, UnknownField, issue_fields, pull_fields, select};
pub use ops::{InvalidName, RepoName};
pub use ops::{IssueFilter, MergeMethod, MergeOrder, Merging, PullFilter, StateFilter, UpdateStyle};
pub use pattern::{ContextPattern, InvalidPattern};
pub use protect::{Change, InvalidRule, Rule, RuleChange, rules_of};
pub use transition::{Scope, Status, Transition, ready_title};
