//! A store that no process holds, or a Redis, opened by a command for itself: the API in this process, on a loopback port that
//! lives as long as the command, so that a command speaks one language to a server and to a store.
//! Deliberately absent: expiry. How long finished deliveries are kept is the server's setting, and a look at the
//! store must not apply another.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::Store;
use teimoso_retry::{Preset, RetryPolicy};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::engines::{Engines, Settings, until};
use super::{api, store};
use crate::api_client::ServerUrl;
use crate::args::{AttemptLines, StoreLocation};
use crate::clock::SystemClock;
use crate::exit::CliError;
use crate::messages::Language;

/// The file an embedded store consists of; its name is part of the format.
pub const STORE_FILE: &str = "teimoso.db";

/// Longer than any store has lived: 100 years.
pub const KEEP_ALL: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Attempts on the wire at once while a command delivers.
const IN_FLIGHT: usize = 64;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Where it is.
    pub location: StoreLocation,
    /// Whether to create it when there is none; a Redis is then refused, too, when it would lose events.
    pub create: bool,
    /// Networks that events may go to beside the public ones (G12).
    pub allow_net: Vec<IpNet>,
    /// Whether to deliver what is due while it is open.
    pub deliver: bool,
}

/// An open store and its API.
#[derive(Debug)]
pub struct DirectStore {
    url: ServerUrl,
    store: Opened,
    stop: watch::Sender<bool>,
    api: JoinHandle<()>,
    engines: Option<Engines>,
}

struct Opened(Arc<dyn Store>);

impl std::fmt::Debug for Opened {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Opened").field(&self.0.info()).finish()
    }
}

impl DirectStore {
    /// Opens the store and serves its API on the current runtime.
    ///
    /// # Errors
    /// There is no such store, another process holds it, or it cannot be used: one sentence.
    pub async fn open(opening: &Opening, language: Language) -> Result<Self, CliError> {
        if let StoreLocation::Directory(directory) = &opening.location
            && !opening.create
            && !directory.join(STORE_FILE).exists()
        {
            return Err(CliError::failure(format!("there is no store at {}", directory.display()))
                .with_next_step("name the directory that `teimoso serve --store` was given"));
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await;
        let listener = listener.map_err(|error| no_port(&error))?;
        let listening = listener.local_addr().map_err(|error| no_port(&error))?;
        let url = format!("http://{listening}").parse().map_err(CliError::failure)?;
        let store = store::open(&opening.location, options(opening)?, Arc::clone(&clock))?;

        let policy = RetryPolicy::preset(Preset::Patient);
        let (stop, stopped) = watch::channel(false);
        let engines = match opening.deliver {
            true => Some(Engines::start(&settings(opening, &policy, language), &store, &clock, &stopped)?),
            false => None,
        };
        let app = api::app(&store, &clock, &opening.allow_net, api::config(policy, listening));
        let api = tokio::spawn(async {
            // It reports no error today, and its end is the command's.
            let _ended = teimoso_server::serve(listener, app, until(stopped)).await;
        });
        Ok(Self { url, store: Opened(store), stop, api, engines })
    }

    /// Where its API listens.
    #[must_use]
    pub fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// How many attempts this command has on the wire.
    #[must_use]
    pub fn on_wire(&self) -> usize {
        self.engines.as_ref().map_or(0, Engines::on_wire)
    }

    /// Ends the API, drains what is on the wire, and makes everything durable.
    ///
    /// # Errors
    /// The last settlements could not be made durable.
    pub async fn close(self) -> Result<(), CliError> {
        self.stop.send_replace(true);
        let _ended = self.api.await;
        match self.engines {
            Some(engines) => engines.finish(&self.store.0).await,
            None => {
                self.store.0.close().await;
                Ok(())
            }
        }
    }
}

fn options(opening: &Opening) -> Result<store::Options, CliError> {
    let embedded = teimoso_store_embedded::Options { retention: KEEP_ALL, ..Default::default() };
    let redis = teimoso_store_redis::Options {
        allow_volatile: !opening.create || switched_on("TEIMOSO_ALLOW_VOLATILE")?,
        allow_eviction: !opening.create || switched_on("TEIMOSO_ALLOW_EVICTION")?,
        ..only_looking()
    };
    Ok(store::Options { embedded, redis })
}

/// A Redis as it is opened to look at it: whoever only looks loses nothing and expunges nothing.
#[must_use]
pub fn only_looking() -> teimoso_store_redis::Options {
    teimoso_store_redis::Options {
        allow_volatile: true,
        allow_eviction: true,
        history: KEEP_ALL,
        history_rows: u32::MAX,
        prefix: redis_prefix(),
        ..Default::default()
    }
}

/// What the public keys of a Redis begin with, for the commands that have no flag for it.
#[must_use]
pub fn redis_prefix() -> String {
    let named = std::env::var("TEIMOSO_REDIS_PREFIX").ok().filter(|prefix| !prefix.is_empty());
    named.unwrap_or_else(|| teimoso_store_redis::DEFAULT_PREFIX.to_owned())
}

/// A variable that is a flag of `serve`: the same words as there.
///
/// # Errors
/// It says neither yes nor no.
pub fn switched_on(name: &str) -> Result<bool, CliError> {
    match std::env::var(name).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "0" | "false" | "no" | "off" | "n" | "f" => Ok(false),
        "1" | "true" | "yes" | "on" | "y" | "t" => Ok(true),
        value => Err(CliError::usage(format!("{name}: `{value}` is neither true nor false"))),
    }
}

fn settings(opening: &Opening, policy: &RetryPolicy, language: Language) -> Settings {
    Settings {
        policy: policy.clone(),
        allow_net: opening.allow_net.clone(),
        in_flight: IN_FLIGHT,
        // The command says itself how its own event stands.
        lines: AttemptLines::Off,
        language,
    }
}

fn no_port(error: &std::io::Error) -> CliError {
    CliError::failure(format!("cannot listen on a loopback port: {error}"))
}
