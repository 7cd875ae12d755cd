//! The arguments of `teimoso forgejo issue`. Deliberately absent: comments and milestones.

use std::num::NonZeroU64;

use clap::{Args, Subcommand};
use teimoso_forgejo::{Claimant, Marker, RepoName, Scope};

use super::{ForgeArgs, NumberedArgs, number};
use crate::args::OutputArgs;

const EXAMPLES: &str = "\
Examples:
  teimoso forgejo issue create acme/site --title 'It broke' --body @report.md --label bug
  teimoso forgejo issue create acme/site --title 'Agent 7' --op register-agent-7
  teimoso forgejo issue claim acme/site 3 --as agent-1 && work || echo 'somebody else has it'
  teimoso forgejo issue transition acme/site 3 review
  teimoso forgejo issue ready acme/site 3                  give it back
  teimoso forgejo issue status acme/site                   all open issues

A status is a label such as status/ready. Make the labels of a scope exclusive, so that the server
moves an issue from one to the other in one step.";

/// Work with issues.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct IssueArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: IssueCommand,
}

/// What to do with issues.
#[derive(Debug, Clone, Subcommand)]
pub enum IssueCommand {
    /// Make an issue, once
    Create(Box<CreateIssueArgs>),
    /// Move an issue to a status
    Transition(TransitionArgs),
    /// Claim an issue; exits 1 if somebody else has it
    Claim(ClaimArgs),
    /// Give an issue back: release the claim, and move it to ready
    Ready(ReadyIssueArgs),
    /// Show the status of one issue, or of all that are open
    Status(IssueStatusArgs),
}

/// Make an issue, once.
#[derive(Debug, Clone, Args)]
pub struct CreateIssueArgs {
    /// The repository
    #[arg(value_name = "OWNER/REPO")]
    pub repo: RepoName,
    /// The title
    #[arg(long)]
    pub title: String,
    /// The text: TEXT, @FILE, or - for stdin
    #[arg(long, value_name = "TEXT|@FILE|-", default_value = "", hide_default_value = true)]
    #[arg(allow_hyphen_values = true)]
    pub body: String,
    /// A label; may be repeated
    #[arg(long, value_name = "NAME")]
    pub label: Vec<String>,
    /// Who is to deal with it; may be repeated
    #[arg(long, value_name = "LOGIN")]
    pub assignee: Vec<String>,
    /// A key of your own: under the same key no second issue is made
    #[arg(long, value_name = "KEY")]
    pub op: Option<Marker>,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which labels are statuses.
#[derive(Debug, Clone, Args)]
pub struct ScopeArgs {
    /// What stands before the slash of the labels
    #[arg(long, value_name = "SCOPE", default_value = "status")]
    pub scope: Scope,
}

/// A status: one word behind the last slash of a label.
fn status(text: &str) -> Result<String, &'static str> {
    match !text.is_empty() && !text.contains(['/', ',']) && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err("a status is what stands behind the last slash of its label, such as ready"),
    }
}

/// Move an issue to a status.
#[derive(Debug, Clone, Args)]
pub struct TransitionArgs {
    /// Which.
    #[command(flatten)]
    pub which: NumberedArgs,
    /// The status: what stands behind the slash of the label
    #[arg(value_name = "STATUS", value_parser = status)]
    pub status: String,
    /// Which labels.
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
}

/// Claim an issue.
#[derive(Debug, Clone, Args)]
pub struct ClaimArgs {
    /// Which.
    #[command(flatten)]
    pub which: NumberedArgs,
    /// Who claims [default: the name of the token's user]
    #[arg(long = "as", value_name = "NAME")]
    pub claimant: Option<Claimant>,
    /// The status of what is claimed
    #[arg(long, value_name = "STATUS", default_value = "in-progress", value_parser = status)]
    pub status: String,
    /// Assign it, too
    #[arg(long, value_name = "LOGIN")]
    pub assign: Option<String>,
    /// Which labels.
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
}

/// Give an issue back.
#[derive(Debug, Clone, Args)]
pub struct ReadyIssueArgs {
    /// Which.
    #[command(flatten)]
    pub which: NumberedArgs,
    /// The status of what can be claimed
    #[arg(long, value_name = "STATUS", default_value = "ready", value_parser = status)]
    pub status: String,
    /// Which labels.
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
}

/// Show the status of one issue, or of all that are open.
#[derive(Debug, Clone, Args)]
pub struct IssueStatusArgs {
    /// The repository
    #[arg(value_name = "OWNER/REPO")]
    pub repo: RepoName,
    /// The number; without it, all that are open
    #[arg(value_name = "N", value_parser = number)]
    pub number: Option<NonZeroU64>,
    /// Show at most so many
    #[arg(long, value_name = "N", default_value = "200")]
    pub limit: u16,
    /// Which labels.
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}
