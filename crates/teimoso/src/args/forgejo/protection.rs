//! The arguments of `teimoso forgejo protection`. Deliberately absent: taking rules away.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use teimoso_forgejo::RepoName;

use super::ForgeArgs;
use crate::args::OutputArgs;

const EXAMPLES: &str = "\
Examples:
  teimoso forgejo protection view acme/site > rules.json
  teimoso forgejo protection apply acme/site rules.json --dry-run
  teimoso forgejo protection apply acme/site rules.json

The file holds one rule, or a list of them, as JSON objects with a rule_name. Fields that it does
not name stay as they are, and so do rules. Only an administrator of the repository may see them.";

/// Branch protection.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct ProtectionArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ProtectionCommand,
}

/// What to do with branch protection.
#[derive(Debug, Clone, Subcommand)]
pub enum ProtectionCommand {
    /// Show the rules, as a file for `apply`
    View(ViewProtectionArgs),
    /// Make the rules what a file says, and show what that changes
    Apply(ApplyArgs),
}

/// Show the rules.
#[derive(Debug, Clone, Args)]
pub struct ViewProtectionArgs {
    /// The repository
    #[arg(value_name = "OWNER/REPO")]
    pub repo: RepoName,
    /// Only the rule of this name
    #[arg(value_name = "RULE")]
    pub rule: Option<String>,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Make the rules what a file says.
#[derive(Debug, Clone, Args)]
pub struct ApplyArgs {
    /// The repository
    #[arg(value_name = "OWNER/REPO")]
    pub repo: RepoName,
    /// The rules, as JSON; - for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}
