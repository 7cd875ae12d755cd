//! `teimoso forgejo protection view` and `apply`. Deliberately absent: what a rule may say, which is the library's.

use std::fmt::Write as _;

use serde_json::{Value, json};
use teimoso_forgejo::{BranchProtection, Rule, RuleChange, rules_of};

use super::super::Context;
use super::super::input::Input;
use super::connect::client;
use super::{failed, say};
use crate::args::forgejo::{ApplyArgs, ViewProtectionArgs};
use crate::exit::{CliError, Exit};
use crate::messages::{ForgejoWord, printable};

/// Prints the rules.
///
/// # Errors
/// No address, no token, no such rule, or a request that did not succeed.
pub(super) async fn view(args: ViewProtectionArgs, context: Context) -> Result<Exit, CliError> {
    let client = client(&args.forge, context)?;
    let rules = match &args.rule {
        None => client.protections(&args.repo).await.map_err(|error| failed(&error))?,
        Some(name) => {
            let rule = client.protection(&args.repo, name).await.map_err(|error| failed(&error))?;
            let none = || {
                CliError::failure(format!("{} has no rule `{}`", args.repo, printable(name)))
                    .with_next_step("leave the name away, to see those that there are")
            };
            vec![rule.ok_or_else(none)?]
        }
    };
    let rules: Vec<Value> = rules.into_iter().map(whole).collect();
    let text = match args.output.json {
        true => rules.iter().map(|rule| format!("{rule}\n")).collect(),
        false => format!("{:#}\n", Value::Array(rules)),
    };
    context.output.data(&text)?;
    Ok(Exit::OK)
}

fn whole(rule: BranchProtection) -> Value {
    let mut object = json!({ "rule_name": rule.rule_name });
    for (field, value) in rule.fields {
        object[field] = value;
    }
    object
}

/// Makes the rules what the file says, and prints what that changes.
///
/// # Errors
/// No address, no token, a file that makes no sense, or a request that did not succeed.
pub(super) async fn apply(args: ApplyArgs, context: Context) -> Result<Exit, CliError> {
    let name = args.file.display().to_string();
    let bytes = Input::default().read(&name, "FILE")?;
    let rules = rules_of(&bytes)
        .map_err(|invalid| CliError::usage(format!("{name}: {}", printable(&invalid.to_string()))))?;
    let client = client(&args.forge, context)?;
    let (mut made, mut changed, mut same) = (0, 0, 0);
    for rule in &rules {
        let change =
            client.apply_rule(&args.repo, rule, args.dry_run).await.map_err(|error| failed(&error))?;
        match change {
            RuleChange::Create => made += 1,
            RuleChange::Edit(_) => changed += 1,
            RuleChange::Same => same += 1,
        }
        let text = if args.output.json { line(rule, &change) } else { difference(rule, &change) };
        context.output.data(&text)?;
    }
    let applied = ForgejoWord::Applied { made, changed, same, dry_run: args.dry_run };
    say(context, &args.repo.to_string(), applied);
    Ok(Exit::OK)
}

/// Each field that changes: its name, what it was, what it is to be.
fn fields(rule: &Rule, change: &RuleChange) -> Vec<(String, Value, Value)> {
    match change {
        RuleChange::Same => Vec::new(),
        RuleChange::Create => {
            let fields = rule.fields().iter();
            fields.map(|(field, to)| (field.clone(), Value::Null, to.clone())).collect()
        }
        RuleChange::Edit(changes) => {
            let each = changes.iter();
            each.map(|change| (change.field.clone(), change.from.clone(), change.to.clone())).collect()
        }
    }
}

fn line(rule: &Rule, change: &RuleChange) -> String {
    let word = match change {
        RuleChange::Same => "same",
        RuleChange::Create => "create",
        RuleChange::Edit(_) => "edit",
    };
    let fields: Vec<Value> = fields(rule, change)
        .into_iter()
        .map(|(field, from, to)| json!({"field": field, "from": from, "to": to}))
        .collect();
    format!("{}\n", json!({"rule": rule.name(), "change": word, "fields": fields}))
}

fn difference(rule: &Rule, change: &RuleChange) -> String {
    let name = printable(rule.name());
    let mut text = match change {
        RuleChange::Same => return format!("  {name}\n"),
        RuleChange::Create => format!("+ {name}\n"),
        RuleChange::Edit(_) => format!("~ {name}\n"),
    };
    for (field, from, to) in fields(rule, change) {
        let (from, to) = (printable(&from.to_string()), printable(&to.to_string()));
        // Writing to a string cannot fail.
        let _never = match change {
            RuleChange::Create => writeln!(text, "    + {field}: {to}"),
            _ => writeln!(text, "    ~ {field}: {from} -> {to}"),
        };
    }
    text
}
