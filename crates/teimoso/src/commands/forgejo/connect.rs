//! From arguments and environment to a client: the address, the token, and who hears of retries (S1.8).
//! Deliberately absent: any request.

use std::sync::Arc;

use teimoso_forgejo::{Client, InvalidServer, Server, Token};
use teimoso_http::RetryEvent;
use teimoso_retry::{Effect, Fate};

use super::super::Context;
use super::super::input::token_text;
use crate::args::Private;
use crate::args::forgejo::ForgeArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{FailedAttempt, Message, Requesting};
use crate::output::live::Live;

/// Holds the token when no flag names a file.
const TOKEN_VARIABLE: &str = "TEIMOSO_FORGEJO_TOKEN";

/// Who speaks in the lines of attempts (S1.8).
const TAG: &str = "forgejo-api";

/// A client that tells its retries on stderr.
///
/// # Errors
/// No address, or no token (S1.9): nothing is sent.
pub(super) fn client(args: &ForgeArgs, context: Context) -> Result<Client, CliError> {
    client_beside(args, Arc::new(Live::new(context.output)))
}

/// The same, beside a line that is written over.
///
/// # Errors
/// As [`client`].
pub(super) fn client_beside(args: &ForgeArgs, live: Arc<Live>) -> Result<Client, CliError> {
    let client = Client::builder(server(args)?, &token(args)?).observer(move |event| retry(event, &live));
    client.build().map_err(|error| CliError::failure(error.to_string()))
}

fn server(args: &ForgeArgs) -> Result<Server, CliError> {
    let text = args.server.as_ref().map(Private::text).unwrap_or_default();
    if text.is_empty() {
        return Err(CliError::usage("it is not said which Forgejo is meant")
            .with_next_step("give its address with --server URL or TEIMOSO_FORGEJO_URL"));
    }
    text.parse().map_err(|invalid: InvalidServer| {
        CliError::usage(format!("cannot use the address of the Forgejo: {invalid}"))
            .with_next_step("give it as https://HOST, with --server or TEIMOSO_FORGEJO_URL")
    })
}

fn token(args: &ForgeArgs) -> Result<Token, CliError> {
    let text = token_text(args.token_file.as_deref(), TOKEN_VARIABLE);
    let text = text.map_err(|unread| no_token(unread.sentence))?;
    Token::new(&text).map_err(|invalid| no_token(invalid.to_string()))
}

/// Nothing is sent without a token, for whatever reason there is none (S1.9).
fn no_token(sentence: String) -> CliError {
    CliError::new(Exit::AUTHENTICATION, sentence)
        .with_next_step(format!("put it into {TOKEN_VARIABLE}, or into a file given with --token-file"))
}

fn retry(event: &RetryEvent, live: &Live) {
    let effect = event.fate.may_have_taken_effect(event.status);
    let attempt = FailedAttempt {
        tag: TAG,
        method: event.method.as_str(),
        path: event.path(),
        number: event.number.get(),
        max: event.max_attempts.get(),
        fate: event.fate,
        status: event.status,
        reason: (event.fate != Fate::Answered).then_some(event.reason.as_str()),
        may_have_taken_effect: !event.method.is_safe() && effect != Effect::No,
    };
    live.say(&Message::Request(Requesting::Retry { attempt, wait: event.wait, source: event.source }));
}
