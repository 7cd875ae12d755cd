//! The delivery threads: engines on runtimes of their own, so that the API and deliveries never wait for each other.
//! Deliberately absent: when they stop, which is the caller's to say, and starting one again: a thread that ends
//! unasked is a defect, and the process ends with it.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::JoinHandle;

use ipnet::IpNet;
use teimoso_delivery::engine::{Engine, EngineLimits, Policies, Ports};
use teimoso_delivery::ports::{Clock, Observer};
use teimoso_delivery::store::{Store, StoreError};
use teimoso_http::{Egress, Transport};
use teimoso_retry::RetryPolicy;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::attempt_lines::AttemptPrinter;
use super::dispatch::{HttpDispatch, OnWire};
use super::entropy::SystemEntropy;
use crate::args::AttemptLines;
use crate::exit::CliError;
use crate::messages::Language;

/// How deliveries are made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The policy of events that name none.
    pub policy: RetryPolicy,
    /// Networks that deliveries may reach beside the public ones (G12).
    pub allow_net: Vec<IpNet>,
    /// Attempts on the wire at once, over all threads; at least 1.
    pub in_flight: usize,
    /// Which attempts get a line on stderr.
    pub lines: AttemptLines,
    /// The language of those lines.
    pub language: Language,
}

/// Running delivery threads: one, and one more for every core beyond two.
#[derive(Debug)]
pub struct Engines {
    threads: JoinSet<Result<(), Failure>>,
    on_wire: OnWire,
}

/// Why a delivery thread ended as it should not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Failure {
    /// A defect of ours.
    #[error("a delivery thread ended by a panic; what it held is attempted again at the next start")]
    Panicked,
    /// Nobody had asked it to.
    #[error("a delivery thread ended by itself")]
    Unasked,
    /// The store does not work.
    #[error("deliveries have ended: {0}")]
    Store(StoreError),
}

impl Engines {
    /// Starts them. They drain and end once `stopped` is true.
    ///
    /// # Errors
    /// An attempt could outlive its lease, or the system has no thread left.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        settings: &Settings,
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        stopped: &watch::Receiver<bool>,
    ) -> Result<Self, CliError> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let count = cores.saturating_sub(1).max(1);
        let in_flight = settings.in_flight.div_ceil(count);
        let printer = AttemptPrinter::start(settings.lines, settings.language, Arc::clone(clock));
        let observer: Arc<dyn Observer> = Arc::new(printer);
        let (mut threads, on_wire) = (JoinSet::new(), OnWire::default());
        for _ in 0..count {
            let dispatch = HttpDispatch::new(transport(settings, in_flight)?, Arc::clone(clock));
            let ports = Ports {
                store: Arc::clone(store),
                dispatch: Arc::new(dispatch.counted_by(on_wire.clone())),
                clock: Arc::clone(clock),
                entropy: Arc::new(SystemEntropy),
                observer: Arc::clone(&observer),
            };
            let limits = EngineLimits { in_flight, ..EngineLimits::default() };
            let engine = Engine::new(ports, Policies::new(settings.policy.clone()), limits)
                .map_err(|error| CliError::usage(error.to_string()))?;
            let thread = spawn(engine, stopped.clone())?;
            // A thread that waits for the other, so that nothing here is held up.
            threads.spawn_blocking(move || thread.join().unwrap_or(Err(Failure::Panicked)));
        }
        Ok(Self { threads, on_wire })
    }

    /// How many attempts they have on the wire.
    #[must_use]
    pub fn on_wire(&self) -> usize {
        self.on_wire.count()
    }

    /// Completes when a thread ends before it was told to, and says why. Nothing is delivered by it any more.
    pub async fn failed(&mut self) -> CliError {
        let failure = match self.threads.join_next().await {
            Some(Ok(Ok(()))) | None => Failure::Unasked,
            Some(Ok(Err(failure))) => failure,
            Some(Err(_)) => Failure::Panicked,
        };
        CliError::failure(failure.to_string())
    }

    /// Waits for every thread's drain, then closes the store, which some thread may need until its end.
    ///
    /// # Errors
    /// The last settlements could not be made durable, or a thread panicked: the first of several.
    pub async fn finish(mut self, store: &Arc<dyn Store>) -> Result<(), CliError> {
        let mut ended = Ok(());
        while let Some(joined) = self.threads.join_next().await {
            ended = ended.and(joined.unwrap_or(Err(Failure::Panicked)));
        }
        // Nothing is on the wire any more: what the store takes for that was not saved.
        let unsaved = in_flight(store).await;
        store.close().await;
        ended.map_err(|failure| match failure {
            Failure::Store(error) if unsaved > 0 => not_saved(unsaved, &error.to_string()),
            failure => CliError::failure(failure.to_string()),
        })
    }
}

/// How many deliveries are in flight by the store's books; on a Redis, those of every process.
pub async fn in_flight(store: &Arc<dyn Store>) -> usize {
    let in_flight = store.stats().await.map_or(0, |stats| stats.counts.in_flight);
    usize::try_from(in_flight).unwrap_or(usize::MAX)
}

/// The end of a drain after which `unsaved` deliveries are still in flight by the store's books.
#[must_use]
pub fn not_saved(unsaved: usize, why: &str) -> CliError {
    let settlements = if unsaved == 1 { "settlement" } else { "settlements" };
    CliError::failure(format!(
        "{unsaved} {settlements} could not be saved and will be attempted again: {why}"
    ))
    .with_next_step("of at-most-once deliveries nothing is repeated: they end as dead letters, ambiguous")
}

fn transport(settings: &Settings, in_flight: usize) -> Result<Transport, CliError> {
    // Lanes of one host share its connections: a smaller pool would reconnect all the time.
    let builder =
        Transport::builder().egress(Egress::new(settings.allow_net.clone())).pool_idle_per_host(in_flight);
    builder.build().map_err(|error| CliError::failure(error.to_string()))
}

fn spawn(
    engine: Engine,
    stopped: watch::Receiver<bool>,
) -> Result<JoinHandle<Result<(), Failure>>, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::failure(format!("cannot start a runtime: {error}")))?;
    std::thread::Builder::new()
        .name("teimoso-engine".into())
        .spawn(move || runtime.block_on(engine.run(until(stopped))).map_err(Failure::Store))
        .map_err(|error| CliError::failure(format!("cannot start a thread: {error}")))
}

/// Completes once it is true. A dropped sender means that the process is going down, too.
pub async fn until(mut stopped: watch::Receiver<bool>) {
    let _stopped = stopped.wait_for(|stopped| *stopped).await;
}

#[cfg(test)]
mod tests {
    use teimoso_delivery::memory::MemoryStore;
    use teimoso_delivery::model::Millis;
    use teimoso_delivery::testkit::ManualClock;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn the_store_is_closed_only_when_every_thread_has_ended() {
        let clock = Arc::new(ManualClock::at(Millis::new(1)));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock, 7));
        let (release, released) = oneshot::channel();
        let mut threads = JoinSet::new();
        threads.spawn(async { Err(Failure::Panicked) });
        threads.spawn(async {
            released.await.expect("the test releases it");
            Ok(())
        });
        let finishing = tokio::spawn({
            let store = Arc::clone(&store);
            async move { Engines { threads, on_wire: OnWire::default() }.finish(&store).await }
        });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(store.health().is_ok(), "the other thread may need it");
        release.send(()).expect("it waits");
        let error = finishing.await.expect("no panic").expect_err("one had failed");
        assert_eq!(error.sentence, Failure::Panicked.to_string());
        assert!(store.health().is_err());
    }
}
