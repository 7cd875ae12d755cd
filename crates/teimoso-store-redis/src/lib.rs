//! The delivery store on Redis: everything that lasts is there, workers are interchangeable, any may be killed.
//!
//! | where | what |
//! |---|---|
//! | `scripts/` | every transition, as one atomic step on one slot; `cycle` is a worker's whole round trip |
//! | `cycle`, `claimed` | what ended, what is renewed and what is wanted, gathered and sent as one script |
//! | `outlying` | in a Cluster: what lies in the public keys of other slots is carried in and out |
//! | `ingress`, `entry` | S2's public keys: what anybody pushed is adopted, and goes back there to wait or die |
//! | `public` | what waits or is dead in the public keys, listed, found and ordered about where it lies |
//! | `accept` | events, names and counters of many requests, at a durability that is waited for |
//! | `wake` | waiting without polling: a bell, heard on a tracked connection |
//! | `query`, `command` | what is asked and ordered over the API |
//! | `doctor` | what belongs to nothing, found and healed beside a running fleet |
//! | `moving` | everything that is kept, out to another store and in from one |
//! | `link` | connections that come back by themselves |
//! | `codec` | stored values, each with its version |
//!
//! A shard is all keys of one tag: lanes, schedule, leases, counters. One prefix on one server, in one Sentinel group or
//! in one slot of a Cluster is one shard, in which applications take turns; several prefixes spread over a Cluster. Deliberately absent: retry policy, HTTP, JSON beyond S2's four fields (Lua never
//! decodes an event), and polling for due work.

mod accept;
mod claimed;
mod codec;
mod command;
mod cycle;
mod doctor;
mod entry;
mod error;
mod found;
mod ingress;
mod io;
mod keys;
mod link;
mod moving;
mod options;
mod outlying;
mod public;
mod push;
mod query;
mod reply;
mod scripts;
mod shared;
mod wake;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use teimoso_delivery::model::{ContentType, DeliveryId, EventId, Millis, NewEvent, ReplayId};
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::store::{
    Accepted, AttemptView, BoxFuture, CancelOutcome, Checkup, Claim, ClaimRequest, DeliveryFilter,
    DeliveryView, EventFilter, EventView, LeaseRef, NewReplay, Page, Parcel, Rejection, Replay, RetryOutcome,
    Settled, Settlement, Stats, Store, StoreError, StoreInfo,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use cycle::{BATCH, Cycles, Op, Until};
pub use doctor::{Examination, Watch};
pub use error::{OpenError, OpenErrorKind};
pub use found::Found;
use io::Io;
pub use keys::DEFAULT_PREFIX;
use link::{Address, Failure, Link, Sentinels};
pub use options::{Durability, Options, TimeSource};
pub use push::{PushError, push};
use shared::{Ports, Shared, closed};

/// A server that is there and not ready yet is waited for at most this long when a store is opened.
const STARTING: Duration = Duration::from_secs(10);

/// See the crate's documentation. Dropping it abandons what was not settled; its leases end by themselves.
pub struct RedisStore {
    shared: Arc<Shared>,
    cycles: UnboundedSender<Op>,
    accepts: UnboundedSender<accept::Op>,
    io: Io,
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("at", &self.shared.shown).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Connects to `url`, looks at what the server keeps, and starts.
    ///
    /// `redis://host[:port][/db]` is one server; `redis+sentinel://host,…/master[/db]` whoever the sentinels name;
    /// `redis+cluster://host,…` the owner of the slot that the prefix is in. `rediss` instead of `redis` is TLS.
    ///
    /// # Errors
    /// One sentence: it cannot be reached, it refuses us, it is too old or a replica, or it would lose deliveries
    /// and nobody allowed that. A server that is there and still loading is waited for, 10 s at most.
    pub fn open(
        url: &str,
        options: &Options,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, OpenError> {
        let unusable = |sentence: &str| OpenError::new(OpenErrorKind::Unusable, sentence);
        if !keys::is_usable_prefix(&options.prefix) {
            return Err(unusable("the key prefix must be 1 to 128 bytes of visible ASCII without braces"));
        }
        let address = Address::parse(url, options).map_err(|failure| unusable(&failure.to_string()))?;
        let ports = Ports::new(address.clone(), &options.prefix, clock, entropy);
        let failed = |sentence: String| OpenError::new(OpenErrorKind::Unreachable, sentence);
        let io = Io::start().map_err(|error| failed(format!("no thread for redis: {error}")))?;
        let (options, moving) = (options.clone(), options.moving);
        let started = io.run_blocking(async move { Self::connect(ports, &options).await });
        let shared = started.unwrap_or_else(|| Err(failed("redis could not be asked".to_owned())))?;
        Ok(Self::start(shared, io, address.sentinels(), moving))
    }

    async fn connect(ports: Ports, options: &Options) -> Result<Arc<Shared>, OpenError> {
        let (shown, is_cluster) = (ports.address.shown().to_owned(), ports.address.is_cluster());
        let failed = |failure| OpenError::connecting(&shown, &failure);
        let work = ports.link();
        let found = Self::first_look(&work, &*ports.clock).await.map_err(failed)?;
        found.check_mode(is_cluster)?;
        found.check(options)?;
        let shared = Shared::new(ports, work, found, options);
        if let Some(layout) = shared.strange_layout().await.map_err(failed)? {
            let sentence = format!(
                "redis holds deliveries in the layout {layout}, which another version of teimoso wrote; this one reads \
                 and writes the layout {}: use that version, or another prefix",
                codec::LAYOUT
            );
            return Err(OpenError::new(OpenErrorKind::Unsuitable, sentence));
        }
        shared.agree_on_ids().await.map_err(failed)?;
        if !options.moving {
            shared.check_whole().await?;
        }
        Ok(Arc::new(shared))
    }

    async fn first_look(work: &Link, clock: &dyn Clock) -> Result<Found, Failure> {
        let began = clock.monotonic();
        loop {
            match Found::look(work).await {
                Err(failure) if failure.is_starting() && clock.monotonic() - began < STARTING => {
                    work.pause().await;
                }
                answer => return answer,
            }
        }
    }

    fn start(shared: Arc<Shared>, io: Io, sentinels: Option<Arc<Sentinels>>, moving: bool) -> Self {
        let (cycles, cycle_ops) = unbounded_channel();
        let (accepts, accept_ops) = unbounded_channel();
        io.spawn(Cycles::new(shared.clone(), cycle_ops).run());
        io.spawn(accept::run(shared.clone(), accept_ops));
        // Who only moves a store waits for no work.
        if !moving {
            io.spawn(wake::listen(shared.clone()));
        }
        io.spawn(found::keep_looking(shared.clone()));
        if shared.outlying.is_some() {
            io.spawn(outlying::carry(shared.clone()));
        }
        if let Some(group) = sentinels {
            for index in 0..group.count() {
                io.spawn(group.clone().listen(index, shared.clock.clone(), shared.entropy.clone()));
            }
        }
        Self { shared, cycles, accepts, io }
    }

    /// What was found when it was last looked at: at the start, after every connection, and twice a minute.
    #[must_use]
    pub fn found(&self) -> Arc<Found> {
        self.shared.survey.found()
    }

    /// How far the server's clock last went back beyond what is believed (60 s), if it did: times were taken anew
    /// from it, so what was due stays due that much longer.
    #[must_use]
    pub fn clock_went_back(&self) -> Option<Duration> {
        Some(self.shared.went_back_ms()).filter(|ms| *ms > 0).map(Duration::from_millis)
    }

    /// Examines what is kept there, beside whatever fleet is at work; `watch` hears how far it is.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn examine(&self, examination: Examination, watch: Watch) -> Result<Checkup, StoreError> {
        self.run(move |shared| doctor::examine(shared, examination, watch)).await
    }

    /// What changes whenever a process that uses this Redis does anything, and at least every five seconds while one
    /// waits for work: two different answers say that somebody is there.
    ///
    /// # Errors
    /// When Redis cannot be asked.
    pub async fn sign_of_life(&self) -> Result<Option<i64>, StoreError> {
        self.run(|shared| async move { shared.last_moved().await }).await
    }

    fn send(&self, op: Op) -> Result<(), StoreError> {
        self.shared.check_open()?;
        self.cycles.send(op).map_err(|_| closed())
    }

    fn run<T, F>(&self, verb: impl FnOnce(Arc<Shared>) -> F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let open = self.shared.check_open();
        let verb = verb(self.shared.clone());
        Box::pin(async move {
            open?;
            self.io.run(verb).await
        })
    }

    async fn settle_all(&self, batch: Vec<Settlement>) -> Result<Settled, StoreError> {
        let mut answers = Vec::new();
        let mut left = batch.into_iter().peekable();
        // Everything is handed over before the first wait: a claim that follows comes after it.
        while left.peek().is_some() {
            let (reply, answer) = oneshot::channel();
            self.send(Op::Settle(left.by_ref().take(BATCH).collect(), reply))?;
            answers.push(answer);
        }
        let mut paused = Vec::new();
        for answer in answers {
            paused.extend(answer.await.map_err(|_| closed())??);
        }
        // The script's answer is as durable as this server's answers are.
        Ok(Settled { ticket: Box::pin(std::future::ready(Ok(()))), paused })
    }

    async fn extend_all(&self, leases: Vec<LeaseRef>, until: Millis) -> Result<Vec<LeaseRef>, StoreError> {
        let mut answers = Vec::new();
        for part in leases.chunks(BATCH) {
            let (reply, answer) = oneshot::channel();
            self.send(Op::Extend(part.to_vec(), Until { until, asked: self.shared.clock.now() }, reply))?;
            answers.push(answer);
        }
        let mut lost = Vec::new();
        for answer in answers {
            lost.extend(answer.await.map_err(|_| closed())??);
        }
        Ok(lost)
    }
}

impl Store for RedisStore {
    fn accept(
        &self,
        batch: Vec<NewEvent>,
    ) -> BoxFuture<'_, Result<Vec<Result<Accepted, Rejection>>, StoreError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            if batch.is_empty() {
                return Ok(Vec::new());
            }
            let (reply, answer) = oneshot::channel();
            self.accepts.send(accept::Op { batch, reply }).map_err(|_| closed())?;
            answer.await.map_err(|_| closed())?
        })
    }

    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, Result<Claim, StoreError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.send(Op::Claim(request, self.shared.clock.now(), reply))?;
            answer.await.map_err(|_| closed())?
        })
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Result<Settled, StoreError>> {
        Box::pin(self.settle_all(batch))
    }

    fn extend(
        &self,
        leases: Vec<LeaseRef>,
        until: Millis,
    ) -> BoxFuture<'_, Result<Vec<LeaseRef>, StoreError>> {
        Box::pin(self.extend_all(leases, until))
    }

    fn wait(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shared.wake.wait(&self.shared.closed))
    }

    fn cancel(&self, id: DeliveryId) -> BoxFuture<'_, Result<CancelOutcome, StoreError>> {
        self.run(move |shared| async move { command::cancel(&shared, id).await })
    }

    fn retry(&self, id: DeliveryId, explicit: bool) -> BoxFuture<'_, Result<RetryOutcome, StoreError>> {
        self.run(move |shared| async move { command::retry(&shared, id, explicit).await })
    }

    fn start_replay(&self, replay: NewReplay) -> BoxFuture<'_, Result<Replay, StoreError>> {
        self.run(move |shared| async move { command::start_replay(&shared, replay).await })
    }

    fn replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        self.run(move |shared| async move { command::replay(&shared, id).await })
    }

    fn cancel_replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        self.run(move |shared| async move { command::cancel_replay(&shared, id).await })
    }

    fn event(&self, id: EventId) -> BoxFuture<'_, Result<Option<EventView>, StoreError>> {
        self.run(move |shared| async move { query::event(&shared, id).await })
    }

    fn payload(&self, id: EventId) -> BoxFuture<'_, Result<Option<(ContentType, Bytes)>, StoreError>> {
        self.run(move |shared| async move { query::payload(&shared, id).await })
    }

    fn events(&self, filter: EventFilter) -> BoxFuture<'_, Result<Page<EventView>, StoreError>> {
        self.run(move |shared| async move { query::events(&shared, filter).await })
    }

    fn delivery(&self, id: DeliveryId) -> BoxFuture<'_, Result<Option<DeliveryView>, StoreError>> {
        self.run(move |shared| async move { query::delivery(&shared, id).await })
    }

    fn deliveries(&self, filter: DeliveryFilter) -> BoxFuture<'_, Result<Page<DeliveryView>, StoreError>> {
        self.run(move |shared| async move { query::deliveries(&shared, filter).await })
    }

    fn attempts(&self, id: DeliveryId) -> BoxFuture<'_, Result<Vec<AttemptView>, StoreError>> {
        self.run(move |shared| async move { query::attempts(&shared, id).await })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        self.run(move |shared| async move { query::stats(&shared).await })
    }

    fn export(&self, cursor: Option<String>) -> BoxFuture<'_, Result<Page<Parcel>, StoreError>> {
        self.run(move |shared| async move { moving::page(&shared, cursor).await })
    }

    fn import(&self, parcels: Vec<Parcel>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.run(move |shared| async move { moving::import(&shared, parcels).await })
    }

    fn info(&self) -> StoreInfo {
        let shared = &self.shared;
        let found = shared.survey.found();
        StoreInfo {
            kind: "redis",
            description: format!("redis at {} ({})", shared.shown, found.describe()),
            durability: shared.durability.name(),
            at_most_once: found.carries_at_most_once(),
        }
    }

    fn health(&self) -> Result<(), StoreError> {
        self.shared.check_open()?;
        self.shared.trouble().map_or(Ok(()), Err)?;
        self.shared.survey.sound()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let (reply, done) = oneshot::channel();
            let sent = self.send(Op::Close(reply));
            self.shared.closed.store(true, Ordering::SeqCst);
            self.shared.wake.nudge();
            if sent.is_ok() {
                drop(done.await);
            }
        })
    }
}
