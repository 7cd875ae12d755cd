//! From arguments and environment to a connector: the account, its tokens, and who hears of retries (S1.8).
//! Deliberately absent: any request.

use std::path::Path;

use teimoso_retry::Fate;
use teimoso_whatsapp::client::RetryEvent;
use teimoso_whatsapp::{
    Connector, Instance, InvalidAccount, InvalidConnector, Repeat, Secret, Settings, provider,
};

use super::super::Context;
use super::super::input::token_text;
use crate::args::{AccountArgs, Private};
use crate::exit::{CliError, Exit};
use crate::messages::{FailedAttempt, Message, Requesting};
use crate::output::Output;

/// Holds the token when no flag names a file.
const TOKEN_VARIABLE: &str = "TEIMOSO_WHATSAPP_TOKEN";

/// Holds the account's second token when no flag names a file.
const CLIENT_TOKEN_VARIABLE: &str = "TEIMOSO_WHATSAPP_CLIENT_TOKEN";

/// A connector that tells its retries on stderr.
///
/// # Errors
/// No token, or something else that the provider needs: nothing is sent.
pub(super) fn connector(args: &AccountArgs, context: Context) -> Result<Connector, CliError> {
    let adapter = provider(&args.provider).map_err(|unknown| CliError::usage(unknown.to_string()))?;
    let facts = adapter.facts();
    let token = secret(args.token_file.as_deref(), TOKEN_VARIABLE)?.ok_or(InvalidAccount::MissingToken);
    let client_token = match facts.client_token {
        Some(_) => secret(args.client_token_file.as_deref(), CLIENT_TOKEN_VARIABLE)?,
        None => None,
    };
    let settings = Settings {
        server: args.server.as_ref().map(Private::text),
        instance: args.instance.as_deref(),
        token: token.map_err(|invalid| unusable(&invalid, facts.instance))?,
        client_token,
    };
    let (name, output) = (facts.name, context.output);
    let mut builder = Connector::builder(adapter, settings).observer(move |event| retry(event, name, output));
    if let Some(time) = args.max_time {
        builder = builder.attempt_timeout(time);
    }
    builder.build().map_err(|invalid| match invalid {
        InvalidConnector::Account(invalid) => unusable(&invalid, facts.instance),
        InvalidConnector::Client(error) => CliError::failure(error.to_string()),
    })
}

/// Whether a write may be repeated.
pub(super) fn repeat(idempotent: bool) -> Repeat {
    if idempotent { Repeat::Idempotent } else { Repeat::Never }
}

/// A token from a file, else from a variable; a variable that is empty holds none.
fn secret(file: Option<&Path>, variable: &str) -> Result<Option<Secret>, CliError> {
    let step = match file {
        Some(path) => format!("look into {}", path.display()),
        None => format!("look at {variable}"),
    };
    let text = token_text(file, variable).map_err(|unread| unread.with_next_step(step.clone()))?;
    match Secret::new(&text) {
        Ok(secret) => Ok(Some(secret)),
        Err(InvalidAccount::MissingToken) if file.is_none() => Ok(None),
        Err(invalid) => Err(CliError::new(Exit::AUTHENTICATION, invalid.to_string()).with_next_step(step)),
    }
}

fn unusable(invalid: &InvalidAccount, instance: Instance) -> CliError {
    let error = CliError::usage(invalid.to_string());
    match invalid {
        InvalidAccount::MissingServer => {
            error.with_next_step("give it with --server URL or TEIMOSO_WHATSAPP_SERVER")
        }
        InvalidAccount::UnusableServer(_) => {
            error.with_next_step("write it as https://host or http://host:port")
        }
        InvalidAccount::MissingInstance | InvalidAccount::UnusableInstance => {
            let step = "give it with --instance NAME or TEIMOSO_WHATSAPP_INSTANCE";
            match instance {
                Instance::Default(name) if !name.is_empty() => {
                    error.with_next_step(format!("{step}; without one it is {name}"))
                }
                _ => error.with_next_step(step),
            }
        }
        InvalidAccount::MissingToken | InvalidAccount::UnusableToken => {
            CliError { code: Exit::AUTHENTICATION, ..error }.with_next_step(format!(
                "put it into {TOKEN_VARIABLE}, or into a file given with --token-file"
            ))
        }
    }
}

fn retry(event: &RetryEvent, provider: &str, output: Output) {
    let attempt = FailedAttempt {
        tag: provider,
        method: event.method.as_str(),
        path: event.path(),
        number: event.number.get(),
        max: event.max_attempts.get(),
        fate: event.fate,
        status: event.status,
        reason: (event.fate != Fate::Answered).then_some(event.reason.as_str()),
        // Of what is repeated, a repetition does no harm.
        may_have_taken_effect: false,
    };
    output.say(&Message::Request(Requesting::Retry { attempt, wait: event.wait, source: event.source }));
}
