//! A Redis at the command line's URL: its credentials, its store, and the plain push of S2.12.
//! Deliberately absent: what is kept there and how, and how a server is found, which are the store's.

use std::sync::Arc;

use teimoso_delivery::ports::Clock;
use teimoso_store_redis::{OpenError, OpenErrorKind, Options, PushError, RedisStore};

use super::entropy::SystemEntropy;
use crate::args::RedisUrl;
use crate::exit::{CliError, Exit};

const PASSWORD: &str = "TEIMOSO_REDIS_PASSWORD";
const PASSWORD_FILE: &str = "TEIMOSO_REDIS_PASSWORD_FILE";
const SENTINEL_PASSWORD: &str = "TEIMOSO_REDIS_SENTINEL_PASSWORD";
const SENTINEL_PASSWORD_FILE: &str = "TEIMOSO_REDIS_SENTINEL_PASSWORD_FILE";
/// Names the file of who vouches for certificates; without it the machine's own authorities do, or `SSL_CERT_FILE`'s.
const AUTHORITY: &str = "TEIMOSO_REDIS_CA";

/// Opens the store there.
///
/// # Errors
/// The URL is none of a Redis (exit 2); it cannot be reached, refuses us (exit 4), is too old, or would lose deliveries.
pub fn open(url: &RedisUrl, options: Options, clock: Arc<dyn Clock>) -> Result<RedisStore, CliError> {
    check_scheme(url)?;
    let options = with_secrets(url, options)?;
    let opened = RedisStore::open(url.exposed(), &options, clock, Arc::new(SystemEntropy));
    opened.map_err(|error| refused(&error))
}

/// Appends one entry to the ready list, as any program may (S2.2), and nothing else.
///
/// # Errors
/// The URL is none of a Redis (exit 2); it cannot be reached or refuses us (exit 4): nothing was pushed. Its answer was
/// lost (exit 7).
pub async fn push(url: &RedisUrl, prefix: String, entry: &str, clock: &dyn Clock) -> Result<(), CliError> {
    check_scheme(url)?;
    let options = with_secrets(url, Options { prefix, ..Options::default() })?;
    let pushed = teimoso_store_redis::push(url.exposed(), &options, entry.as_bytes(), clock).await;
    pushed.map_err(|error| match error {
        PushError::NotPushed(error) => refused(&error),
        PushError::Unanswered(sentence) => {
            CliError::new(Exit::UNKNOWN_OUTCOME, sentence).with_next_step("the event may have been pushed")
        }
    })
}

/// The store knows no command line: where it asks for leave or for a file, this is how either is given.
fn refused(error: &OpenError) -> CliError {
    let code = match error.kind() {
        OpenErrorKind::Authentication => Exit::AUTHENTICATION,
        OpenErrorKind::Unusable => Exit::USAGE,
        _ => Exit::FAILURE,
    };
    let refused = CliError::new(code, error.to_string());
    match error.kind() {
        OpenErrorKind::Volatile => refused.with_next_step(
            "`teimoso serve` allows it with --allow-volatile, every command with TEIMOSO_ALLOW_VOLATILE=1",
        ),
        OpenErrorKind::Evicting => refused.with_next_step(
            "`teimoso serve` allows it with --allow-eviction, every command with TEIMOSO_ALLOW_EVICTION=1",
        ),
        OpenErrorKind::Untrusted => {
            refused.with_next_step("put its certificate (PEM) into a file and name that in TEIMOSO_REDIS_CA")
        }
        _ => refused,
    }
}

const FORMS: &str = "name it redis://[user:password@]host[:port][/db], redis+sentinel://host,…/master[/db] or \
                     redis+cluster://host,…; with rediss instead of redis over TLS";

fn check_scheme(url: &RedisUrl) -> Result<(), CliError> {
    let scheme = url.scheme();
    let way = scheme.strip_prefix("rediss").or(scheme.strip_prefix("redis"));
    match way {
        Some("" | "+sentinel" | "+cluster") => Ok(()),
        _ => Err(CliError::usage(format!("a store at {scheme}:// is not known")).with_next_step(FORMS)),
    }
}

/// With what the environment says of passwords and certificates; a password in the URL goes before.
fn with_secrets(url: &RedisUrl, options: Options) -> Result<Options, CliError> {
    let password = if url.has_password() { None } else { secret(PASSWORD, PASSWORD_FILE)? };
    let sentinel_password = match url.has_sentinel_password() {
        true => None,
        false => secret(SENTINEL_PASSWORD, SENTINEL_PASSWORD_FILE)?,
    };
    let authority = variable(AUTHORITY).map(|file| read(AUTHORITY, &file)).transpose()?;
    Ok(Options { password, sentinel_password, authority, ..options })
}

/// A variable's value, or the content of the file that another names.
fn secret(name: &str, file: &str) -> Result<Option<String>, CliError> {
    if let Some(secret) = variable(name) {
        return Ok(Some(secret));
    }
    let Some(path) = variable(file) else { return Ok(None) };
    let text = String::from_utf8(read(file, &path)?);
    let text = text.map_err(|_| CliError::failure(format!("{file}: {path} is no text")))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

fn read(variable: &str, file: &str) -> Result<Vec<u8>, CliError> {
    std::fs::read(file).map_err(|error| CliError::failure(format!("{variable}: {file}: {error}")))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
