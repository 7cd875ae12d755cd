//! A Redis at the command line's URL: its credentials, its store, and the plain push of S2.12.
//! Deliberately absent: what is kept there and how, which is the store's.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{AsyncConnectionConfig, Client, ErrorKind, IntoConnectionInfo, RedisError};
use teimoso_delivery::ports::Clock;
use teimoso_store_redis::{Options, RedisStore};

use super::entropy::SystemEntropy;
use crate::args::RedisUrl;
use crate::exit::{CliError, Exit};

const PASSWORD: &str = "TEIMOSO_REDIS_PASSWORD";
const PASSWORD_FILE: &str = "TEIMOSO_REDIS_PASSWORD_FILE";

/// A push is one command: connected, and answered, within this each.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the server calls it when user, password or permission is not right.
const REFUSALS: [&str; 3] = ["NOAUTH", "WRONGPASS", "NOPERM"];

/// Opens the store there.
///
/// # Errors
/// The URL is none of a Redis; it cannot be reached, refuses us (exit 4), is too old, or would lose deliveries.
pub fn open(url: &RedisUrl, options: Options, clock: Arc<dyn Clock>) -> Result<RedisStore, CliError> {
    check_scheme(url)?;
    let options = Options { password: password(url)?, ..options };
    RedisStore::open(url.exposed(), &options, clock, Arc::new(SystemEntropy)).map_err(|error| {
        let code = if error.is_authentication() { Exit::AUTHENTICATION } else { Exit::FAILURE };
        let refused = CliError::new(code, error.to_string());
        // The store knows no command line; where it asks for leave, this is how leave is given.
        let may_be_allowed = refused.sentence.ends_with("allow it explicitly");
        if may_be_allowed { refused.with_next_step(ALLOWING) } else { refused }
    })
}

const ALLOWING: &str = "`teimoso serve` allows it with --allow-volatile (no append-only file) or --allow-eviction \
                        (allkeys-*), every command with TEIMOSO_ALLOW_VOLATILE=1 or TEIMOSO_ALLOW_EVICTION=1";

/// Appends one entry to a list, as any program may (S2.2), and nothing else.
///
/// # Errors
/// Redis cannot be reached or refuses us (exit 4): nothing was pushed. Its answer was lost (exit 7).
pub async fn push(url: &RedisUrl, list: &str, entry: &str) -> Result<(), CliError> {
    check_scheme(url)?;
    let failed = |error: &RedisError| unusable(url, error);
    let mut info = url.exposed().into_connection_info().map_err(|error| failed(&error))?;
    if let Some(password) = password(url)? {
        let settings = info.redis_settings().clone().set_password(password);
        info = info.set_redis_settings(settings);
    }
    let client = Client::open(info).map_err(|error| failed(&error))?;
    let patience = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let connected = client.get_multiplexed_async_connection_with_config(&patience).await;
    let mut connection = connected.map_err(|error| failed(&error))?;
    let pushed = ::redis::cmd("RPUSH").arg(list).arg(entry).exec_async(&mut connection).await;
    pushed.map_err(|error| match error.is_io_error() || error.is_timeout() {
        true => CliError::new(Exit::UNKNOWN_OUTCOME, format!("redis at {url} did not answer: {error}"))
            .with_next_step("the event may have been pushed"),
        false => failed(&error),
    })
}

fn check_scheme(url: &RedisUrl) -> Result<(), CliError> {
    match url.scheme() {
        "redis" | "rediss" => Ok(()),
        scheme => Err(CliError::usage(format!("a store at {scheme}:// is not known"))
            .with_next_step("name it redis://[user:password@]host[:port][/db], or rediss:// over TLS")),
    }
}

/// The environment's password, for a URL that brings none.
fn password(url: &RedisUrl) -> Result<Option<String>, CliError> {
    if url.has_password() {
        return Ok(None);
    }
    if let Some(password) = variable(PASSWORD) {
        return Ok(Some(password));
    }
    let Some(file) = variable(PASSWORD_FILE) else { return Ok(None) };
    let read = std::fs::read_to_string(&file);
    let text = read.map_err(|error| CliError::failure(format!("{PASSWORD_FILE}: {file}: {error}")))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn unusable(url: &RedisUrl, error: &RedisError) -> CliError {
    let refused = error.kind() == ErrorKind::AuthenticationFailed
        || error.code().is_some_and(|code| REFUSALS.contains(&code));
    let (code, hint) = match refused {
        true => (Exit::AUTHENTICATION, "check user, password and permissions"),
        false => (Exit::FAILURE, "is it running?"),
    };
    CliError::new(code, format!("redis at {url} cannot be used: {error}; {hint}"))
}
