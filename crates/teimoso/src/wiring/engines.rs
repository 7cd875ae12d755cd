//! The delivery threads: engines on runtimes of their own, so that the API and deliveries never wait for each other.
//! Deliberately absent: when they stop, which is the caller's to say.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::JoinHandle;

use ipnet::IpNet;
use teimoso_delivery::engine::{Engine, EngineLimits, Policies, Ports};
use teimoso_delivery::ports::{Clock, Observer};
use teimoso_delivery::store::Store;
use teimoso_http::{Egress, Transport};
use teimoso_retry::RetryPolicy;
use tokio::sync::watch;

use super::attempt_lines::AttemptPrinter;
use super::dispatch::HttpDispatch;
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
    threads: Vec<JoinHandle<Result<(), CliError>>>,
}

impl Engines {
    /// Starts them. They drain and end once `stopped` is true.
    ///
    /// # Errors
    /// An attempt could outlive its lease, or the system has no thread left.
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
        let mut threads = Vec::new();
        for _ in 0..count {
            let ports = Ports {
                store: Arc::clone(store),
                dispatch: Arc::new(HttpDispatch::new(transport(settings, in_flight)?, Arc::clone(clock))),
                clock: Arc::clone(clock),
                entropy: Arc::new(SystemEntropy),
                observer: Arc::clone(&observer),
            };
            let limits = EngineLimits { in_flight, ..EngineLimits::default() };
            let engine = Engine::new(ports, Policies::new(settings.policy.clone()), limits)
                .map_err(|error| CliError::usage(error.to_string()))?;
            threads.push(spawn(engine, stopped.clone())?);
        }
        Ok(Self { threads })
    }

    /// Waits for the drain without holding up the signals.
    ///
    /// # Errors
    /// The last settlements could not be made durable, or a thread panicked.
    pub async fn join(self) -> Result<(), CliError> {
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

fn transport(settings: &Settings, in_flight: usize) -> Result<Transport, CliError> {
    // Lanes of one host share its connections: a smaller pool would reconnect all the time.
    let builder =
        Transport::builder().egress(Egress::new(settings.allow_net.clone())).pool_idle_per_host(in_flight);
    builder.build().map_err(|error| CliError::failure(error.to_string()))
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

/// Completes once it is true. A dropped sender means that the process is going down, too.
pub async fn until(mut stopped: watch::Receiver<bool>) {
    let _stopped = stopped.wait_for(|stopped| *stopped).await;
}
