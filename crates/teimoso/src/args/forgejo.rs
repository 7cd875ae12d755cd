//! The arguments of `teimoso forgejo`. Deliberately absent: a token among them, because every process can read a command
//! line.

mod issue;
mod protection;
mod pull;

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use teimoso_forgejo::RepoName;

pub use issue::{
    ClaimArgs, CreateIssueArgs, IssueArgs, IssueCommand, IssueStatusArgs, ReadyIssueArgs, ScopeArgs,
    TransitionArgs,
};
pub use protection::{ApplyArgs, ProtectionArgs, ProtectionCommand, ViewProtectionArgs};
pub use pull::{AutomergeArgs, ChecksArgs, PullArgs, PullCommand, ReadyArgs, ViewArgs};

use super::{LAST, Private};

const EXAMPLES: &str = "\
Examples:
  teimoso forgejo pr automerge acme/site 7            wait for green checks, then merge, once
  teimoso forgejo pr checks acme/site 7               how the checks stand, also as exit code
  teimoso forgejo pr view acme/site 7 --json state,mergeable
  teimoso forgejo issue claim acme/site 3 --as agent-1
  teimoso forgejo issue transition acme/site 3 review
  teimoso forgejo protection apply acme/site rules.json --dry-run

The token comes from TEIMOSO_FORGEJO_TOKEN or --token-file; without one nothing is sent.

Exit codes:
  0 ok                    1 failure: refused, failed check, closed, retries exhausted
  2 usage                 4 no token, or it was rejected
  6 automerge waited out  7 outcome unknown: look before you repeat it
  8 pr checks: pending    130 interrupted, 143 terminated";

/// Work with pull requests and issues of a Forgejo.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct ForgejoArgs {
    /// What to work with.
    #[command(subcommand)]
    pub command: ForgejoCommand,
}

/// What to work with.
#[derive(Debug, Clone, Subcommand)]
pub enum ForgejoCommand {
    /// Pull requests: view, checks, ready, automerge
    Pr(PullArgs),
    /// Issues: create, transition, claim, ready, status
    Issue(IssueArgs),
    /// Branch protection: view it, or make it what a file says
    Protection(ProtectionArgs),
}

/// Which Forgejo, and with which token.
#[derive(Debug, Clone, Args)]
pub struct ForgeArgs {
    /// The Forgejo to talk to, such as `https://codeberg.org`
    // Read as text: whoever parses arguments repeats a refused one on the terminal, and this one may hold a password.
    #[arg(long, env = "TEIMOSO_FORGEJO_URL", hide_env_values = true, value_name = "URL", display_order = LAST)]
    pub server: Option<Private>,
    /// Read the token from this file instead of TEIMOSO_FORGEJO_TOKEN
    #[arg(long, value_name = "FILE", display_order = LAST)]
    pub token_file: Option<PathBuf>,
}

/// A pull request or an issue.
#[derive(Debug, Clone, Args)]
pub struct NumberedArgs {
    /// The repository
    #[arg(value_name = "OWNER/REPO")]
    pub repo: RepoName,
    /// The number
    #[arg(value_name = "N", value_parser = number)]
    pub number: NonZeroU64,
}

/// The number of an issue or a pull request, as people write it: `7` or `#7`.
fn number(text: &str) -> Result<NonZeroU64, &'static str> {
    text.strip_prefix('#').unwrap_or(text).parse().map_err(|_| "it must be a number from 1 on, such as 7")
}
