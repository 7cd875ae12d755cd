//! `teimoso forgejo pr checks`: how the checks of a pull request stand, with the exit codes of `gh pr checks`.
//! Deliberately absent: waiting for them, which is `watch`'s.

use serde_json::json;
use teimoso_forgejo::{Check, Checks, Verdict};

use super::super::Context;
use super::connect::client;
use super::{about, failed, say, watch};
use crate::args::forgejo::ChecksArgs;
use crate::exit::{CliError, Exit};
use crate::messages::ForgejoWord;
use crate::output::table::{Cell, Table};

/// Prints the newest status of every context.
///
/// # Errors
/// No address, no token, or a request that did not succeed.
pub(super) async fn run(args: ChecksArgs, context: Context) -> Result<Exit, CliError> {
    let checks = match args.watch {
        true => watch::settled(&args, context).await?,
        false => {
            let client = client(&args.forge, context)?;
            watch::look(&client, &args).await.map_err(|error| failed(&error))?
        }
    };
    let text = if args.output.json { lines(&checks) } else { table(&checks) };
    context.output.data(&text)?;
    Ok(match checks.verdict() {
        Verdict::Green => Exit::OK,
        Verdict::Pending => Exit::PENDING,
        Verdict::Failed => Exit::FAILURE,
        Verdict::None => {
            say(context, &about(&args.which.repo, args.which.number.get()), ForgejoWord::NoChecks);
            Exit::FAILURE
        }
    })
}

fn lines(checks: &Checks) -> String {
    let line = |check: &Check| {
        let object = json!({
            "context": check.context,
            "state": check.state.word(),
            "verdict": word(check.verdict()),
            "description": check.description,
            "url": check.target_url,
            "reported_at": check.created_at,
        });
        format!("{object}\n")
    };
    checks.iter().map(line).collect()
}

fn table(checks: &Checks) -> String {
    let mut table = Table::new(&["VERDICT", "STATE", "CHECK", "DESCRIPTION"]);
    for check in checks.iter() {
        let verdict = Cell::plain(word(check.verdict()));
        let words = [check.state.word(), &check.context, &check.description].map(Cell::plain);
        table.row([verdict].into_iter().chain(words));
    }
    if table.is_empty() { String::new() } else { table.render() }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Green => "green",
        Verdict::Failed => "failed",
        Verdict::Pending | Verdict::None => "pending",
    }
}
