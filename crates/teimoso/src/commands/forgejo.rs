//! `teimoso forgejo`: pull requests, issues and branch protection of a Forgejo, one file per group of commands.
//! Deliberately absent: what is asked of the server and when it is repeated, which is the library's.

mod automerge;
mod checks;
mod connect;
mod create;
mod events;
mod issue;
mod protection;
mod pull;
mod watch;

use std::future::Future;

use teimoso_forgejo::{Error, NextStep, RepoName};

use super::Context;
use super::signals::Signals;
use crate::args::ForgejoArgs;
use crate::args::forgejo::{ForgejoCommand, IssueCommand, ProtectionCommand, PullCommand};
use crate::exit::{CliError, Exit};
use crate::messages::{Forgejo, ForgejoWord, Language, Message, next_step, printable};

/// Runs one of the commands.
///
/// # Errors
/// Arguments that make no sense, no token, or a request that did not succeed.
pub async fn run(args: ForgejoArgs, context: Context) -> Result<Exit, CliError> {
    match args.command {
        ForgejoCommand::Pr(args) => match args.command {
            PullCommand::View(args) => pull::view(args, context).await,
            PullCommand::Checks(args) => checks::run(args, context).await,
            PullCommand::Ready(args) => pull::ready(args, context).await,
            PullCommand::Automerge(args) => automerge::run(*args, context).await,
        },
        ForgejoCommand::Issue(args) => match args.command {
            IssueCommand::Create(args) => create::run(*args, context).await,
            IssueCommand::Transition(args) => issue::transition(args, context).await,
            IssueCommand::Claim(args) => issue::claim(args, context).await,
            IssueCommand::Ready(args) => issue::ready(args, context).await,
            IssueCommand::Status(args) => issue::status(args, context).await,
        },
        ForgejoCommand::Protection(args) => match args.command {
            ProtectionCommand::View(args) => protection::view(args, context).await,
            ProtectionCommand::Apply(args) => protection::apply(args, context).await,
        },
    }
}

/// What a command talks about: `acme/site#7`.
fn about(repo: &RepoName, number: u64) -> String {
    format!("{repo}#{number}")
}

/// Says a line about something.
fn say(context: Context, about: &str, word: ForgejoWord<'_>) {
    context.output.say(&Message::Forgejo(Forgejo { about, word }));
}

/// Why a request did not succeed. What it asked for is the same however often it arrives, so that it may be repeated.
fn failed(error: &Error) -> CliError {
    let code = if error.is_unauthorized() { Exit::AUTHENTICATION } else { Exit::FAILURE };
    let next_step = match error.next_step() {
        None | Some(NextStep::Later) if error.may_have_taken_effect() => {
            Some("it does no harm to repeat the command")
        }
        step => step.map(|step| next_step(step, Language::English)),
    };
    let failed = CliError::new(code, printable(&error.to_string()));
    match next_step {
        Some(next_step) => failed.with_next_step(next_step),
        None => failed,
    }
}

/// Waits for the end of `work`, or for a signal, which is answered with these words.
async fn until_signal<T>(
    work: impl Future<Output = T>,
    context: Context,
    about: &str,
    parting: impl Fn() -> Parting,
) -> Result<Result<T, Exit>, CliError> {
    let mut signals = Signals::new()?;
    tokio::select! {
        done = work => Ok(Ok(done)),
        exit = signals.next() => {
            let parting = parting();
            let word = match &parting {
                Parting::Merge { ordered } => ForgejoWord::Stopped { ordered: *ordered },
                Parting::Issue { key } => ForgejoWord::StoppedMaking { key },
            };
            let words = Message::Forgejo(Forgejo { about, word }).text(context.output.language);
            context.output.say_apart(&words);
            Ok(Err(exit))
        }
    }
}

/// What a signal leaves behind.
enum Parting {
    /// A wait for a merge.
    Merge {
        /// Whether an order was under way.
        ordered: bool,
    },
    /// An issue in the making.
    Issue {
        /// Its key.
        key: String,
    },
}
