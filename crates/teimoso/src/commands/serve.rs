//! `teimoso serve`: the store, the engine on threads of its own, the API on this one, until a signal.
//! Deliberately absent: how the parts are made, which is [`crate::wiring`]'s.

use std::net::SocketAddr;
use std::sync::Arc;

use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::Store;
use teimoso_retry::{Preset, RetryPolicy};
use teimoso_store_embedded::Options;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::signals::Signals;
use super::{Context, cannot_listen};
use crate::args::{ServeArgs, StoreLocation};
use crate::clock::SystemClock;
use crate::exit::{CliError, Exit};
use crate::messages::{Message, StoreName};
use crate::wiring::engines::{Engines, Settings, until};
use crate::wiring::{api, store};

/// Accepts events and delivers them until stopped.
///
/// # Errors
/// When the address or the store cannot be used: one sentence, and nothing was changed.
pub async fn run(args: ServeArgs, context: Context) -> Result<Exit, CliError> {
    refuse_open_api(&args)?;
    let policy = policy(&args)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let mut signals = Signals::new()?;
    let listener =
        TcpListener::bind(args.listen).await.map_err(|error| cannot_listen(args.listen, &error))?;
    let listening = listener.local_addr().map_err(|error| cannot_listen(args.listen, &error))?;
    let options = Options { retention: args.retention, max_bytes: args.max_store_size };
    let store = store::open(&args.store, options, Arc::clone(&clock))?;

    let (stop, stopped) = watch::channel(false);
    let engines = Engines::start(&settings(&args, &policy, context), &store, &clock, &stopped)?;
    let mut config = api::config(policy);
    config.max_payload = args.max_payload;
    let app = api::app(&store, &clock, &args.allow_net, config);
    announce(&args, context, listening);

    let api = teimoso_server::serve(listener, app, until(stopped));
    let mut api = std::pin::pin!(api);
    let signalled = tokio::select! {
        _ended = &mut api => false,
        _exit = signals.next() => true,
    };
    if signalled {
        context.output.say(&Message::Draining { in_flight: in_flight(&store).await });
    }
    stop.send_replace(true);
    let drain = async {
        if signalled {
            let _served = api.await;
        }
        let drained = engines.join().await;
        store.close().await;
        drained
    };
    tokio::select! {
        drained = drain => drained?,
        // Nothing is lost: what is in flight is due again at the next start.
        exit = signals.next() => std::process::exit(exit.number().into()),
    }
    context.output.say(&Message::Drained);
    if signalled { Ok(Exit::OK) } else { Err(CliError::failure("the API ended by itself")) }
}

async fn in_flight(store: &Arc<dyn Store>) -> usize {
    let in_flight = store.stats().await.map_or(0, |stats| stats.counts.in_flight);
    usize::try_from(in_flight).unwrap_or(usize::MAX)
}

/// Until there are tokens, whoever reaches the API may use it.
fn refuse_open_api(args: &ServeArgs) -> Result<(), CliError> {
    if args.listen.ip().to_canonical().is_loopback() || args.insecure_no_auth {
        return Ok(());
    }
    let sentence = format!("refusing to listen on {}: the API asks nobody who they are", args.listen);
    Err(CliError::usage(sentence)
        .with_next_step("listen on 127.0.0.1, or accept that anyone may use it with --insecure-no-auth"))
}

fn policy(args: &ServeArgs) -> Result<RetryPolicy, CliError> {
    let policy = RetryPolicy::preset(args.policy.unwrap_or(Preset::Patient));
    let Some(timeout) = args.attempt_timeout else { return Ok(policy) };
    let changed = policy.to_builder().attempt_timeout(timeout).build();
    changed.map_err(|error| CliError::usage(error.to_string()))
}

fn settings(args: &ServeArgs, policy: &RetryPolicy, context: Context) -> Settings {
    Settings {
        policy: policy.clone(),
        allow_net: args.allow_net.clone(),
        in_flight: args.in_flight.get() as usize,
        lines: args.attempt_lines,
        language: context.output.language,
    }
}

fn announce(args: &ServeArgs, context: Context, listening: SocketAddr) {
    let url = format!("http://{listening}");
    let directory;
    let store = match &args.store {
        StoreLocation::Memory => StoreName::Memory,
        StoreLocation::Directory(path) => {
            directory = path.display().to_string();
            StoreName::Embedded(&directory)
        }
    };
    context.output.say(&Message::Ready { url: &url, store });
    context.output.say(&Message::SenderUp { url: &url, redis: false });
}
