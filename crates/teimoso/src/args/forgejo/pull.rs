//! The arguments of `teimoso forgejo pr`. Deliberately absent: creating and reviewing.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Map;
use teimoso_forgejo::{ContextPattern, MergeMethod, PULL_FIELDS, UnknownField, select};

use super::{ForgeArgs, NumberedArgs};
use crate::args::OutputArgs;
use crate::units;

const AUTOMERGE: &str = "\
Examples:
  teimoso forgejo pr automerge acme/site 7 --method squash --delete-branch
  teimoso forgejo pr automerge acme/site 7 --dry-run       what it would do right now
  teimoso forgejo pr automerge acme/site 7 --poll 30s --timeout 2h --json
  teimoso forgejo pr automerge acme/site 7 --ignore 'automerge / *'

All checks of the head must be green, at two looks in a row. A look that fails costs one poll and
never the run. The head that was judged goes with the order to merge, so that no other is merged;
after an answer that leaves anything open the pull request is read before the order is repeated.

Exit codes:
  0 merged                1 a check failed, closed, a draft, a conflict, or refused
  4 token                 6 time ran out            7 outcome unknown: look at the pull request";

/// Work with pull requests.
#[derive(Debug, Clone, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct PullArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PullCommand,
}

/// What to do with a pull request.
#[derive(Debug, Clone, Subcommand)]
pub enum PullCommand {
    /// Show a pull request, in the shape of `gh pr view`
    View(ViewArgs),
    /// Show how its checks stand; exits 0 green, 1 failed or none, 8 pending
    Checks(ChecksArgs),
    /// Take the mark of a draft out of its title
    Ready(ReadyArgs),
    /// Wait until its checks are green, and merge it
    Automerge(Box<AutomergeArgs>),
}

/// Show a pull request.
#[derive(Debug, Clone, Args)]
pub struct ViewArgs {
    /// Which.
    #[command(flatten)]
    pub which: NumberedArgs,
    /// Print one JSON object, of these fields, separated by commas; without them, of all
    #[arg(long, value_name = "FIELDS", num_args = 0..=1, value_delimiter = ',', value_parser = field)]
    pub json: Option<Vec<String>>,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
}

/// The name of a field that there is.
fn field(text: &str) -> Result<String, UnknownField> {
    let name = text.to_owned();
    select(Map::new(), std::slice::from_ref(&name), &PULL_FIELDS).map(|_| name)
}

/// Show how the checks of a pull request stand.
#[derive(Debug, Clone, Args)]
pub struct ChecksArgs {
    /// Which.
    #[command(flatten)]
    pub which: NumberedArgs,
    /// Leave out the checks of this name, where * stands for anything; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub ignore: Vec<ContextPattern>,
    /// Look again until none of them is pending; a look that fails costs one poll
    #[arg(long)]
    pub watch: bool,
    /// The wait between two looks
    #[arg(long, visible_alias = "interval", value_name = "TIME", default_value = "15s", requires = "watch")]
    #[arg(value_parser = units::positive_duration)]
    pub poll: Duration,
    /// How long to watch; what is pending then is exit 8
    #[arg(long, value_name = "TIME", default_value = "45m", requires = "watch")]
    #[arg(value_parser = units::positive_duration)]
    pub timeout: Duration,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Take the mark of a draft out of the title of a pull request.
#[derive(Debug, Clone, Args)]
pub struct ReadyArgs {
    /// Which.
    #[command(flatten)]
    pub which: NumberedArgs,
    /// Make it a draft again
    #[arg(long)]
    pub undo: bool,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
}

/// Wait until the checks of a pull request are green, and merge it.
#[derive(Debug, Clone, Args)]
#[command(after_help = AUTOMERGE)]
pub struct AutomergeArgs {
    /// Which.
    #[command(flatten)]
    pub which: NumberedArgs,
    /// merge, squash, rebase, rebase-merge or fast-forward-only
    #[arg(long, value_name = "HOW", default_value = "merge")]
    pub method: MergeMethod,
    /// Delete its branch after the merge
    #[arg(long)]
    pub delete_branch: bool,
    /// The wait between two looks
    #[arg(long, visible_alias = "interval", value_name = "TIME", default_value = "15s")]
    #[arg(value_parser = units::positive_duration)]
    pub poll: Duration,
    /// The time for all of it
    #[arg(long, value_name = "TIME", default_value = "45m", value_parser = units::positive_duration)]
    pub timeout: Duration,
    /// How long to wait for the first check to appear
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub grace: Duration,
    /// How long the server may say that it cannot merge, before that is believed
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = units::duration)]
    pub settle: Duration,
    /// Leave out the checks of this name, where * stands for anything; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub ignore: Vec<ContextPattern>,
    /// Merge a head without checks, after the grace
    #[arg(long)]
    pub allow_no_checks: bool,
    /// Look once, say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where.
    #[command(flatten)]
    pub forge: ForgeArgs,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}
