//! `teimoso serve`: the store, the engine on threads of its own, the API on this one, until a signal.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use teimoso_delivery::engine::{Engine, EngineLimits, Policies, Ports};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::Store;
use teimoso_http::{Egress, Transport};
use teimoso_retry::{Preset, RetryPolicy};
use teimoso_server::{ApiConfig, App};
use teimoso_store_embedded::Options;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::{Context, cannot_listen};
use crate::args::{ServeArgs, StoreLocation};
use crate::clock::SystemClock;
use crate::exit::{CliError, Exit};
use crate::messages::{Message, StoreName};
use crate::wiring::attempt_lines::AttemptPrinter;
use crate::wiring::destinations::GuardedDestinations;
use crate::wiring::dispatch::HttpDispatch;
use crate::wiring::entropy::SystemEntropy;
use crate::wiring::store;

/// Accepts events and delivers them until stopped.
///
/// # Errors
/// When the address or the store cannot be used: one sentence, and nothing was changed.
pub async fn run(args: ServeArgs, context: Context) -> Result<Exit, CliError> {
    refuse_open_api(&args)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let mut signals = Signals::new()?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| cannot_listen(args.listen, &error))?;
    let listening = listener.local_addr().map_err(|error| cannot_listen(args.listen, &error))?;
    let options = Options { retention: args.retention, ..Options::default() };
    let store = store::open(&args.store, options, Arc::clone(&clock))?;

    let (stop, stopped) = watch::channel(false);
    let engines = Engines::start(&args, context, &store, &clock, &stopped)?;
    let app = api(&args, &store, &clock)?;
    announce(&args, context, listening);

    let api = teimoso_server::serve(listener, app, until(stopped));
    let mut api = std::pin::pin!(api);
    let exit = tokio::select! {
        _ended = &mut api => Exit::FAILURE,
        exit = signals.next() => exit,
    };
    let in_flight = store.stats().await.map_or(0, |stats| stats.counts.in_flight);
    let in_flight = usize::try_from(in_flight).unwrap_or(usize::MAX);
    context.output.say(&Message::Draining { in_flight });
    stop.send_replace(true);
    let drain = async {
        let _served = api.await;
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
    Ok(if exit == Exit::FAILURE { exit } else { Exit::OK })
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

fn api(args: &ServeArgs, store: &Arc<dyn Store>, clock: &Arc<dyn Clock>) -> Result<App, CliError> {
    let mut config = ApiConfig::new(env!("CARGO_PKG_VERSION"), policy(args)?);
    config.max_payload = args.max_payload;
    let destinations = GuardedDestinations::new(Egress::new(args.allow_net.clone()));
    Ok(App::new(Arc::clone(store), Arc::new(destinations), Arc::clone(clock), config))
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

async fn until(mut stopped: watch::Receiver<bool>) {
    // A dropped sender means that the process is going down, too.
    let _stopped = stopped.wait_for(|stopped| *stopped).await;
}

/// The delivery threads: one, and one more for every core beyond two.
struct Engines {
    threads: Vec<JoinHandle<Result<(), CliError>>>,
}

impl Engines {
    fn start(
        args: &ServeArgs,
        context: Context,
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        stopped: &watch::Receiver<bool>,
    ) -> Result<Self, CliError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let count = cores.saturating_sub(1).max(1);
        let printer = AttemptPrinter::start(args.attempt_lines, context.output.language, Arc::clone(clock));
        let observer = Arc::new(printer);
        let mut threads = Vec::new();
        for _ in 0..count {
            let transport = Transport::builder().egress(Egress::new(args.allow_net.clone())).build();
            let transport = transport.map_err(|error| CliError::failure(error.to_string()))?;
            let ports = Ports {
                store: Arc::clone(store),
                dispatch: Arc::new(HttpDispatch::new(transport, Arc::clone(clock))),
                clock: Arc::clone(clock),
                entropy: Arc::new(SystemEntropy),
                observer: observer.clone(),
            };
            let in_flight = (args.in_flight.get() as usize).div_ceil(count);
            let limits = EngineLimits { in_flight, ..EngineLimits::default() };
            let engine = Engine::new(ports, Policies::new(policy(args)?), limits)
                .map_err(|error| CliError::usage(error.to_string()))?;
            threads.push(spawn(engine, stopped.clone())?);
        }
        Ok(Self { threads })
    }

    /// Waits for the drain without holding up the signals.
    async fn join(self) -> Result<(), CliError> {
        for thread in self.threads {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            match joined {
                Ok(Ok(result)) => result?,
                _ => return Err(CliError::failure("a delivery thread ended by a panic")),
            }
        }
        Ok(())
    }
}

fn spawn(
    engine: Engine,
    stopped: watch::Receiver<bool>,
) -> Result<JoinHandle<Result<(), CliError>>, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::failure(format!("cannot start a runtime: {error}")))?;
    std::thread::Builder::new()
        .name("teimoso-engine".into())
        .spawn(move || {
            let ran = runtime.block_on(engine.run(until(stopped)));
            ran.map_err(|error| CliError::failure(error.to_string()))
        })
        .map_err(|error| CliError::failure(format!("cannot start a thread: {error}")))
}

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, CliError> {
        let cannot = |error| CliError::failure(format!("cannot listen to signals: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
            terminate: signal(SignalKind::terminate()).map_err(cannot)?,
        })
    }

    /// The exit code of the next signal.
    async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::INTERRUPTED,
            _ = self.terminate.recv() => Exit::TERMINATED,
        }
    }
}
