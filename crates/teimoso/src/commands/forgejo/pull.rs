//! `teimoso forgejo pr view` and `pr ready`. Deliberately absent: what a field means, which is the library's.

use serde_json::{Map, Value};
use teimoso_forgejo::{PULL_FIELDS, PullEdit, pull_fields, ready_title, select};

use super::super::Context;
use super::connect::client;
use super::{about, failed, say};
use crate::args::forgejo::{ReadyArgs, ViewArgs};
use crate::exit::{CliError, Exit};
use crate::messages::{ForgejoWord, printable};

/// Prints a pull request.
///
/// # Errors
/// No address, no token, or a request that did not succeed.
pub(super) async fn view(args: ViewArgs, context: Context) -> Result<Exit, CliError> {
    let repo = &args.which.repo;
    let names = args.json.clone().unwrap_or_default();
    let client = client(&args.forge, context)?;
    let pull = client.pull(repo, args.which.number.get()).await.map_err(|error| failed(&error))?;
    let checks = client.checks(repo, &pull.head.sha).await.map_err(|error| failed(&error))?;
    let fields = select(pull_fields(&pull, &checks), &names, &PULL_FIELDS)
        .map_err(|error| CliError::usage(error.to_string()))?;
    let text = match args.json {
        Some(_) => format!("{}\n", Value::Object(fields)),
        None => words(&fields),
    };
    context.output.data(&text)?;
    Ok(Exit::OK)
}

fn words(fields: &Map<String, Value>) -> String {
    let text = |name: &str| match fields.get(name) {
        Some(Value::String(text)) => printable(text),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let names = |list: &str, name: &str| {
        let items = fields.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
        let names: Vec<String> = items.iter().filter_map(|item| item[name].as_str()).map(printable).collect();
        names.join(", ")
    };
    let checks = &fields["checks"];
    let rows = [
        ("title", text("title")),
        ("state", format!("{}{}", text("state"), if fields["isDraft"] == true { " (draft)" } else { "" })),
        ("branches", format!("{} into {}", text("headRefName"), text("baseRefName"))),
        ("head", text("headRefOid")),
        ("merge", format!("{}, {}", text("mergeable"), text("mergeStateStatus"))),
        (
            "checks",
            format!("{} green, {} pending, {} failed", checks["green"], checks["pending"], checks["failed"]),
        ),
        ("labels", names("labels", "name")),
        ("author", fields["author"]["login"].as_str().map(printable).unwrap_or_default()),
        ("url", text("url")),
    ];
    let shown = rows.iter().filter(|(_, value)| !value.is_empty());
    let mut words: String = shown.map(|(name, value)| format!("{name:<9} {value}\n")).collect();
    if let Some(body) = fields["body"].as_str().map(str::trim).filter(|body| !body.is_empty()) {
        words.push('\n');
        words.extend(body.lines().map(|line| printable(line) + "\n"));
    }
    words
}

/// Takes the mark of a draft out of a title, or puts it there.
///
/// # Errors
/// No address, no token, a pull request that is closed, a mark that is not known, or a request that did not succeed.
pub(super) async fn ready(args: ReadyArgs, context: Context) -> Result<Exit, CliError> {
    let (repo, number) = (&args.which.repo, args.which.number.get());
    let ready = !args.undo;
    let client = client(&args.forge, context)?;
    let pull = client.pull(repo, number).await.map_err(|error| failed(&error))?;
    let about = about(repo, number);
    if pull.draft != ready {
        say(context, &about, ForgejoWord::Ready { already: true, ready });
        return Ok(Exit::OK);
    }
    if pull.state == "closed" {
        return Err(CliError::failure(format!("{about} is closed, and stays as it is"))
            .with_next_step("open it again first, if it is not merged"));
    }
    let title = if ready {
        ready_title(&pull.title).map(str::to_owned)
    } else {
        Some(format!("WIP: {}", pull.title))
    };
    let Some(title) = title.filter(|title| !title.is_empty()) else {
        return Err(CliError::failure(
            "its title has no mark of a draft that is known here, or nothing else",
        )
        .with_next_step("change the title by hand"));
    };
    let edit = PullEdit { title: Some(title), ..PullEdit::default() };
    let edited = client.edit_pull(repo, number, &edit).await.map_err(|error| failed(&error))?;
    if edited.draft == ready {
        return Err(CliError::failure("the server took the title, and did not change the draft")
            .with_next_step("it may know other marks of a draft: look at the title"));
    }
    say(context, &about, ForgejoWord::Ready { already: false, ready });
    Ok(Exit::OK)
}
