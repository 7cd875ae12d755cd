//! `teimoso forgejo issue transition`, `claim`, `ready` and `status`. Deliberately absent: who may do what, which the
//! server says.

use serde_json::{Value, json};
use teimoso_forgejo::{Claim, Claimant, Client, Error, Issue, IssueFilter, Scope, Transition};

use super::super::Context;
use super::connect::client;
use super::{about, failed, say};
use crate::args::forgejo::{ClaimArgs, IssueStatusArgs, ReadyIssueArgs, TransitionArgs};
use crate::exit::{CliError, Exit};
use crate::messages::ForgejoWord;
use crate::output::table::{Cell, Table};

/// Moves an issue to a status (S1.13).
///
/// # Errors
/// No address, no token, or a request that did not succeed.
pub(super) async fn transition(args: TransitionArgs, context: Context) -> Result<Exit, CliError> {
    let (repo, number) = (&args.which.repo, args.which.number.get());
    let client = client(&args.forge, context)?;
    let moved = client.transition(repo, number, &args.scope.scope, &args.status).await;
    let moved = moved.map_err(|error| failed(&error))?;
    Ok(say_moved(&moved, &args.scope.scope, &args.status, &about(repo, number), context))
}

fn say_moved(moved: &Transition, scope: &Scope, status: &str, about: &str, context: Context) -> Exit {
    say(context, about, ForgejoWord::Moved { transition: moved, label: &scope.label(status) });
    match moved {
        Transition::NoSuchState { .. } => Exit::FAILURE,
        Transition::Already | Transition::Moved { .. } => Exit::OK,
    }
}

/// Claims an issue.
///
/// # Errors
/// No address, no token, or a request that did not succeed; exit 7 where the claim may have been made.
pub(super) async fn claim(args: ClaimArgs, context: Context) -> Result<Exit, CliError> {
    let (repo, number) = (&args.which.repo, args.which.number.get());
    let client = client(&args.forge, context)?;
    let claimant = match args.claimant.clone() {
        Some(claimant) => claimant,
        None => claimant_of(&client).await?,
    };
    let status = (&args.scope.scope, args.status.as_str());
    let claim = client.claim(repo, number, &claimant, status, args.assign.as_deref()).await;
    let (about, name) = (about(repo, number), claimant.to_string());
    match claim.map_err(|error| unclaimed(&error))? {
        Claim::Ours { already, status } => {
            say(context, &about, ForgejoWord::Claimed { by: &name, already });
            Ok(say_moved(&status, &args.scope.scope, &args.status, &about, context))
        }
        lost => {
            say(
                context,
                &about,
                match &lost {
                    Claim::Taken { by } => ForgejoWord::Taken { by },
                    Claim::Released => ForgejoWord::ReleasedMeanwhile,
                    Claim::Closed | Claim::Ours { .. } => ForgejoWord::Closed,
                },
            );
            Ok(Exit::FAILURE)
        }
    }
}

async fn claimant_of(client: &Client) -> Result<Claimant, CliError> {
    let user = client.user().await.map_err(|error| {
        let failed = failed(&error);
        if failed.next_step.is_some() {
            failed
        } else {
            failed.with_next_step("say who claims, with --as NAME")
        }
    })?;
    user.login.parse().map_err(|sentence: String| CliError::usage(sentence).with_next_step("use --as NAME"))
}

/// A claim is a comment, which may be there although no answer came. To claim again under the same name finds it.
fn unclaimed(error: &Error) -> CliError {
    let failed = failed(error);
    let code = if error.may_have_taken_effect() { Exit::UNKNOWN_OUTCOME } else { failed.code };
    CliError { code, ..failed }
}

/// Gives an issue back.
///
/// # Errors
/// No address, no token, or a request that did not succeed.
pub(super) async fn ready(args: ReadyIssueArgs, context: Context) -> Result<Exit, CliError> {
    let (repo, number) = (&args.which.repo, args.which.number.get());
    let client = client(&args.forge, context)?;
    let about = about(repo, number);
    if let Some(by) = client.release(repo, number).await.map_err(|error| failed(&error))? {
        say(context, &about, ForgejoWord::Released { by: &by });
    }
    let moved = client.transition(repo, number, &args.scope.scope, &args.status).await;
    let moved = moved.map_err(|error| failed(&error))?;
    Ok(say_moved(&moved, &args.scope.scope, &args.status, &about, context))
}

/// Shows the status of one issue with who holds it, or of all that are open.
///
/// # Errors
/// No address, no token, or a request that did not succeed.
pub(super) async fn status(args: IssueStatusArgs, context: Context) -> Result<Exit, CliError> {
    let client = client(&args.forge, context)?;
    let scope = &args.scope.scope;
    let rows = match args.number {
        Some(number) => {
            let status = client.status(&args.repo, number.get(), scope).await;
            let issue = status.map_err(|error| failed(&error))?.issue;
            let holder = client.holder(&args.repo, number.get()).await.map_err(|error| failed(&error))?;
            vec![Row { issue, holder: Some(holder) }]
        }
        None => {
            let open = client.issues(&args.repo, &IssueFilter::default(), args.limit.into()).await;
            open.map_err(|error| failed(&error))?
                .into_iter()
                .map(|issue| Row { issue, holder: None })
                .collect()
        }
    };
    let text = match args.output.json {
        true => rows.iter().map(|row| format!("{}\n", row.json(scope))).collect(),
        false => table(&rows, scope),
    };
    context.output.data(&text)?;
    Ok(Exit::OK)
}

/// An issue, and who holds it where that was asked.
struct Row {
    issue: Issue,
    holder: Option<Option<String>>,
}

impl Row {
    fn states(&self, scope: &Scope) -> Vec<String> {
        let labels = self.issue.labels.iter();
        labels.filter_map(|label| scope.state(&label.name)).map(str::to_owned).collect()
    }

    fn json(&self, scope: &Scope) -> Value {
        let mut object = json!({
            "number": self.issue.number,
            "state": self.issue.state,
            "status": self.states(scope),
            "title": self.issue.title,
        });
        if let Some(holder) = &self.holder {
            object["claimed_by"] = holder.clone().into();
        }
        object
    }
}

fn table(rows: &[Row], scope: &Scope) -> String {
    let mut table = Table::new(&["ISSUE", "STATE", "STATUS", "CLAIMED BY", "TITLE"]);
    for row in rows {
        let holder = row.holder.clone().flatten().unwrap_or_default();
        let states = row.states(scope).join(", ");
        let cells =
            [row.issue.number.to_string(), row.issue.state.clone(), states, holder, row.issue.title.clone()];
        table.row(cells.map(Cell::from));
    }
    table.render()
}
