//! `teimoso forgejo issue create`: an issue, once. Deliberately absent: what makes it once, which is the library's.

use serde_json::Value;
use teimoso_forgejo::{Client, Created, Error, Filed, Label, Marker, NewIssue, RepoName, issue_fields};

use super::super::Context;
use super::super::input::Input;
use super::connect::client;
use super::{Parting, failed, say, until_signal};
use crate::args::forgejo::CreateIssueArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{ForgejoWord, printable};

/// Makes the issue and prints where it is.
///
/// # Errors
/// No address, no token, an unknown label, or a request that did not succeed.
pub(super) async fn run(args: CreateIssueArgs, context: Context) -> Result<Exit, CliError> {
    if args.title.trim().is_empty() {
        return Err(CliError::usage("an issue needs a title").with_next_step("give it with --title"));
    }
    let body = body(&args.body)?;
    let client = client(&args.forge, context)?;
    let about = args.repo.to_string();
    let labels = labels(&client, &args.repo, &args.label).await?;
    let issue = NewIssue {
        title: args.title.clone(),
        body,
        labels: labels.iter().map(|label| label.id).collect(),
        assignees: args.assignee.clone(),
    };
    let marker = args.op.clone().unwrap_or_else(|| Marker::random(&client));
    let work = client.file_issue(&args.repo, issue, &marker, args.op.is_some());
    let parting = || Parting::Issue { key: marker.to_string() };
    match until_signal(work, context, &about, parting).await? {
        Err(signal) => Ok(signal),
        Ok(Filed::There(created)) => print(*created, &marker, &args, context),
        Ok(Filed::Failed(error)) => Err(failed(&error)),
        Ok(Filed::Unknown(error)) => Ok(unknown(&error, &marker, &about, context)),
    }
}

fn body(text: &str) -> Result<String, CliError> {
    let name = match text.strip_prefix('@') {
        Some(name) => name,
        None if text == "-" => text,
        None => return Ok(text.to_owned()),
    };
    let bytes = Input::default().read(name, "--body")?;
    String::from_utf8(bytes).map_err(|_| CliError::usage("--body: the text is not UTF-8"))
}

async fn labels(client: &Client, repo: &RepoName, names: &[String]) -> Result<Vec<Label>, CliError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let known = client.labels_for(repo, &wanted).await.map_err(|error| failed(&error))?;
    let find = |name: &String| {
        known.iter().find(|label| label.name == *name).cloned().ok_or_else(|| {
            CliError::failure(format!("{repo} has no label `{}`; nothing was made", printable(name)))
                .with_next_step("look at the spelling, or make the label first")
        })
    };
    names.iter().map(find).collect()
}

fn print(
    created: Created,
    marker: &Marker,
    args: &CreateIssueArgs,
    context: Context,
) -> Result<Exit, CliError> {
    let (issue, how) = match created {
        Created::Made(issue) => (issue, "made"),
        Created::WasThere(issue) => (issue, "was_there"),
        Created::Found(issue) => (issue, "found"),
    };
    if how != "made" {
        let about = super::about(&args.repo, issue.number);
        say(context, &about, ForgejoWord::Found { before: how == "was_there" });
    }
    let text = if args.output.json {
        let mut fields = issue_fields(&issue);
        fields.insert("created".to_owned(), how.into());
        fields.insert("op".to_owned(), marker.to_string().into());
        Value::Object(fields).to_string()
    } else {
        printable(&issue.html_url)
    };
    context.output.data(&format!("{text}\n"))?;
    Ok(Exit::OK)
}

fn unknown(error: &Error, marker: &Marker, about: &str, context: Context) -> Exit {
    let (key, reason) = (marker.to_string(), error.to_string());
    say(context, about, ForgejoWord::MayExist { key: &key, reason: &reason });
    Exit::UNKNOWN_OUTCOME
}
