//! `teimoso serve`: the store, the engine on threads of its own, the API on this one, until a signal, or until one of
//! them ends unasked. Deliberately absent: how the parts are made, which is [`crate::wiring`]'s.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use teimoso_delivery::engine::Policies;
use teimoso_delivery::ports::{BoxFuture, Clock};
use teimoso_delivery::store::{Store, StoreInfo};
use teimoso_retry::{Preset, RetryPolicy};
use teimoso_server::App;
use teimoso_store_redis::Durability;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::signals::Signals;
use super::{Context, cannot_listen};
use crate::args::{AcceptedWhen, ServeArgs, StoreLocation};
use crate::clock::SystemClock;
use crate::exit::{CliError, Exit};
use crate::messages::{Message, StoreName};
use crate::wiring::engines::{Engines, Settings, in_flight, not_saved, until};
use crate::wiring::{api, store};

/// A drain that lasts this much longer than any attempt will not end by itself: the API is given 10 s, the last
/// settlements 5 s.
const DRAIN_MARGIN: Duration = Duration::from_secs(15);

/// What an entry pushed to Redis may be longer than its payload.
const ENTRY_MARGIN_BYTES: usize = 64 << 10;

/// Accepts events and delivers them until stopped.
///
/// # Errors
/// When the address or the store cannot be used: one sentence, and nothing was changed. When a part of it ends
/// unasked, or the drain could not save everything: nothing is lost, and some of it is attempted again.
pub async fn run(args: ServeArgs, context: Context) -> Result<Exit, CliError> {
    refuse_what_has_no_effect(&args)?;
    refuse_open_api(&args)?;
    let policy = policy(&args)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let mut signals = Signals::new()?;
    let door = if args.workers_only { None } else { Some(listen(args.listen).await?) };
    let store = store::open(&args.store, options(&args, &policy), Arc::clone(&clock))?;

    let (stop, stopped) = watch::channel(false);
    let (stop_api, api_stopped) = watch::channel(false);
    let engines = Engines::start(&settings(&args, &policy, context), &store, &clock, &stopped)?;
    let patience = Policies::new(policy.clone()).longest_attempt().saturating_add(DRAIN_MARGIN);
    announce(&args, context, door.as_ref().map(|(_, listening)| *listening), &store.info());
    let (api, app) = front(door, &args, policy, &store, &clock, api_stopped);
    let running = Running { api, app, engines, store, clock, stop, stop_api, patience };
    match running.until_ended(async || signals.next().await, context).await {
        End::Drained(Ok(())) => {
            context.output.say(&Message::Drained);
            Ok(Exit::OK)
        }
        End::Drained(Err(error)) => Err(error),
        // Nothing here may be waited for, a store that hangs least of all. What is in flight is due again at the
        // next start.
        End::Abandoned(exit) => std::process::exit(exit.number().into()),
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), CliError> {
    let listener = TcpListener::bind(address).await.map_err(|error| cannot_listen(address, &error))?;
    let listening = listener.local_addr().map_err(|error| cannot_listen(address, &error))?;
    Ok((listener, listening))
}

/// The API until it is stopped; without a door there is none, and nothing ends by itself.
fn front(
    door: Option<(TcpListener, SocketAddr)>,
    args: &ServeArgs,
    policy: RetryPolicy,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    stopped: watch::Receiver<bool>,
) -> (BoxFuture<'static, ()>, Option<App>) {
    let Some((listener, listening)) = door else { return (Box::pin(until(stopped)), None) };
    let mut config = api::config(policy, listening);
    config.max_payload = args.max_payload;
    let app = api::app(store, clock, &args.allow_net, config);
    let served = teimoso_server::serve(listener, app.clone(), until(stopped));
    let api = Box::pin(async move {
        // It reports no error today.
        let _ended = served.await;
    });
    (api, Some(app))
}

/// Everything that runs at once.
struct Running<A> {
    api: A,
    /// The API, if there is one.
    app: Option<App>,
    engines: Engines,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Stops the engines when true.
    stop: watch::Sender<bool>,
    /// Stops the API when true: last, so that whoever asks while it drains is told so.
    stop_api: watch::Sender<bool>,
    /// How long the drain may take.
    patience: Duration,
}

/// How it ended.
#[derive(Debug)]
enum End {
    /// In order: everything is closed.
    Drained(Result<(), CliError>),
    /// By a second signal, or because the drain took too long; in the second case that was said.
    Abandoned(Exit),
}

impl<A: Future> Running<A> {
    /// Until a signal, or until a part ends unasked; then drains.
    async fn until_ended(self, mut signal: impl AsyncFnMut() -> Exit, context: Context) -> End {
        let Self { api, app, mut engines, store, clock, stop, stop_api, patience } = self;
        let (mut api, mut api_runs) = (pin!(api), true);
        let failed = tokio::select! {
            _ended = &mut api => {
                api_runs = false;
                Some(CliError::failure("the API ended by itself"))
            }
            failed = engines.failed() => Some(failed),
            _exit = signal() => None,
        };
        if failed.is_none() {
            context.output.say(&Message::Draining { in_flight: engines.on_wire() });
        }
        if let Some(app) = app {
            app.set_draining();
        }
        stop.send_replace(true);
        let finish = async {
            let finished = engines.finish(&store).await;
            stop_api.send_replace(true);
            finished
        };
        let serve_on = async {
            if api_runs {
                let _served = api.await;
            }
        };
        let drain = async { tokio::join!(finish, serve_on).0 };
        tokio::select! {
            drained = drain => End::Drained(failed.map_or(drained, Err)),
            exit = signal() => End::Abandoned(exit),
            () = clock.sleep(patience) => {
                let overdue = not_saved(in_flight(&store).await, "the drain does not end");
                context.output.report(&failed.unwrap_or(overdue));
                End::Abandoned(Exit::FAILURE)
            }
        }
    }
}

/// What the store cannot do is not promised.
fn refuse_what_has_no_effect(args: &ServeArgs) -> Result<(), CliError> {
    if matches!(args.store, StoreLocation::Redis(_)) {
        return Ok(());
    }
    if args.workers_only {
        let sentence = "--workers-only would leave nobody to accept events: only a Redis is shared";
        return Err(CliError::usage(sentence).with_next_step("name it with --store redis://HOST"));
    }
    match args.durability {
        Some(_) => Err(CliError::usage("--durability is for a store on Redis")
            .with_next_step("the embedded store always answers when the event is fsynced")),
        None => Ok(()),
    }
}

/// Until there are tokens, whoever reaches the API may use it.
fn refuse_open_api(args: &ServeArgs) -> Result<(), CliError> {
    if args.workers_only || args.listen.ip().to_canonical().is_loopback() || args.insecure_no_auth {
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

fn options(args: &ServeArgs, policy: &RetryPolicy) -> store::Options {
    let mut options = store::Options::default();
    let (embedded, redis) = (&mut options.embedded, &mut options.redis);
    embedded.max_bytes = args.max_store_size;
    if let Some(retention) = args.retention {
        embedded.retention = retention;
        redis.history = retention;
    }
    redis.prefix.clone_from(&args.redis_prefix);
    redis.allow_volatile = args.allow_volatile;
    redis.allow_eviction = args.allow_eviction;
    redis.durability = args.durability.map(|level| match level {
        AcceptedWhen::Fast => Durability::Fast,
        AcceptedWhen::Replica => Durability::Replica,
        AcceptedWhen::Disk => Durability::Disk,
    });
    redis.max_entry_bytes = args.max_payload.saturating_add(ENTRY_MARGIN_BYTES);
    // What is pushed keeps S2's five attempts unless a policy is named.
    if args.policy.is_some() {
        redis.ingress_policy = None;
        redis.ingress_attempts = policy.max_attempts().get();
    }
    options
}

fn announce(args: &ServeArgs, context: Context, listening: Option<SocketAddr>, info: &StoreInfo) {
    let place = args.store.to_string();
    let store = match &args.store {
        StoreLocation::Memory => StoreName::Memory,
        StoreLocation::Directory(_) => StoreName::Embedded(&place),
        StoreLocation::Redis(_) => StoreName::Redis {
            found: info.description.strip_prefix("redis at ").unwrap_or(&info.description),
            durability: info.durability,
        },
    };
    let url = listening.map(|listening| format!("http://{listening}"));
    match &url {
        Some(url) => context.output.say(&Message::Ready { url, store }),
        None => context.output.say(&Message::WorkersReady { store }),
    }
    let redis = matches!(args.store, StoreLocation::Redis(_));
    let source = url.as_ref().filter(|_| !redis).unwrap_or(&place);
    context.output.say(&Message::SenderUp { url: source, redis });
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use teimoso_delivery::memory::MemoryStore;
    use teimoso_delivery::model::Millis;
    use teimoso_delivery::testkit::{Faults, FaultyStore, ManualClock};

    use super::*;
    use crate::args::AttemptLines;
    use crate::messages::Language;
    use crate::output::Output;

    const PATIENCE: Duration = Duration::from_secs(30);
    const CONTEXT: Context = Context { output: Output { language: Language::English } };

    struct Parts {
        store: Arc<FaultyStore>,
        clock: ManualClock,
    }

    fn parts() -> Parts {
        let clock = ManualClock::at(Millis::new(1_700_000_000_000));
        let memory = MemoryStore::new(Arc::new(clock.clone()), 7);
        Parts { store: Arc::new(FaultyStore::new(Arc::new(memory), &clock)), clock }
    }

    impl Parts {
        /// Engines over these, and an API that ends with them or, if it hangs, never.
        fn run(&self, api_hangs: bool) -> Running<impl Future<Output = ()>> {
            let (stop, stopped) = watch::channel(false);
            let settings = Settings {
                policy: RetryPolicy::preset(Preset::Patient),
                allow_net: Vec::new(),
                in_flight: 1,
                lines: AttemptLines::Off,
                language: Language::English,
            };
            let store: Arc<dyn Store> = self.store.clone();
            let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
            let engines = Engines::start(&settings, &store, &clock, &stopped).expect("it starts");
            let (stop_api, api_stopped) = watch::channel(false);
            let listening = SocketAddr::from(([127, 0, 0, 1], 0));
            let config = api::config(RetryPolicy::preset(Preset::Patient), listening);
            let app = Some(api::app(&store, &clock, &[], config));
            let api = async move {
                until(api_stopped).await;
                if api_hangs {
                    pending::<()>().await;
                }
            };
            Running { api, app, engines, store, clock, stop, stop_api, patience: PATIENCE }
        }
    }

    /// The error of a process that ended in order and not well.
    fn failed(end: End) -> String {
        match end {
            End::Drained(Err(error)) if error.code == Exit::FAILURE => error.sentence,
            end => panic!("{end:?}"),
        }
    }

    #[tokio::test]
    async fn a_delivery_thread_that_panics_ends_the_process_in_words() {
        let parts = parts();
        parts.store.set(Faults { claim_panics: true, ..Faults::default() });
        let end = parts.run(false).until_ended(async || pending().await, CONTEXT).await;
        let words = "a delivery thread ended by a panic; what it held is attempted again at the next start";
        assert_eq!(failed(end), words);
        assert!(parts.store.health().is_err(), "the store is closed");
    }

    #[tokio::test]
    async fn a_store_that_ends_the_deliveries_ends_the_process_in_words() {
        let parts = parts();
        parts.store.close().await;
        let end = parts.run(false).until_ended(async || pending().await, CONTEXT).await;
        let words = failed(end);
        assert!(words.starts_with("deliveries have ended: "), "{words}");
    }

    #[tokio::test]
    async fn an_api_that_ends_by_itself_ends_the_process_in_words() {
        let parts = parts();
        let running = parts.run(false);
        let running = Running {
            api: ready(()),
            app: running.app,
            engines: running.engines,
            store: running.store,
            clock: running.clock,
            stop: running.stop,
            stop_api: running.stop_api,
            patience: PATIENCE,
        };
        let end = running.until_ended(async || pending().await, CONTEXT).await;
        assert_eq!(failed(end), "the API ended by itself");
    }

    #[tokio::test]
    async fn a_drain_that_does_not_end_is_abandoned_and_one_that_does_is_not() {
        let first_signal_only = || {
            let mut told = false;
            async move || if std::mem::replace(&mut told, true) { pending().await } else { Exit::TERMINATED }
        };
        let parts = parts();
        let end = parts.run(false).until_ended(first_signal_only(), CONTEXT).await;
        assert!(matches!(end, End::Drained(Ok(()))), "{end:?}");

        let parts = self::parts();
        let time_passes = async {
            loop {
                parts.clock.advance(Duration::from_secs(1));
                tokio::task::yield_now().await;
            }
        };
        let end = tokio::select! {
            end = parts.run(true).until_ended(first_signal_only(), CONTEXT) => end,
            () = time_passes => unreachable!("it has no end"),
        };
        assert!(matches!(end, End::Abandoned(Exit::FAILURE)), "{end:?}");
    }
}
