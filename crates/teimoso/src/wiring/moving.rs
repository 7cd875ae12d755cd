//! A move between two stores: both opened, both found at rest, everything carried over, both counted.
//! Deliberately absent: what the stores make of it, and the words.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::sync::Arc;
use std::time::Duration;

use teimoso_delivery::model::{DeliveryState, Nonce};
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::store::{ClaimRequest, EventParcel, LEASE, Page, Parcel, Store, StoreError};
use teimoso_store_embedded::EmbeddedStore;
use teimoso_store_redis::RedisStore;

use super::direct::{KEEP_ALL, STORE_FILE, only_looking, switched_on};
use super::entropy::SystemEntropy;
use super::redis;
use crate::args::StoreLocation;
use crate::clock::SystemClock;
use crate::exit::CliError;

/// Longer than a server at work on a Redis goes without leaving a trace.
const QUIET: Duration = Duration::from_secs(7);
/// Between two looks at leases that have to end.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longer than a lease and the one of grace after an outage.
const LEASES_END: Duration = Duration::from_secs(90);
/// A name that is forgotten soon after need not have moved.
const NAMES_THAT_MATTER: Duration = Duration::from_secs(3_600);

/// What is told while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is made sure that nobody is at work.
    Listening(Duration),
    /// Leases of a server that is gone have to end.
    Leases(u64),
    /// Deliveries carried over, of how many.
    Carried(u64, u64),
    /// Deliveries counted in the target, of how many.
    Counted(u64, u64),
}

/// What is in a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Events.
    pub events: u64,
    /// Their payload bytes.
    pub payload_bytes: u64,
    /// Their deliveries, in the order of [`DeliveryState::ALL`].
    pub deliveries: [u64; 6],
    /// Settled attempts.
    pub attempts: u64,
    /// Names that are recognised for an hour or more.
    pub names: u64,
    /// Lanes of which something is remembered.
    pub lanes: u64,
    /// Replay jobs.
    pub replays: u64,
    /// Deliveries that were expunged.
    pub expunged: u64,
    /// Over every event and all that belongs to it, in any order.
    pub digest: u64,
}

impl Tally {
    /// How many deliveries there are.
    #[must_use]
    pub fn all_deliveries(&self) -> u64 {
        self.deliveries.iter().sum()
    }

    /// Whether everything of `source` is here. A name may be recognised a little longer than it was there.
    #[must_use]
    pub fn holds(&self, source: &Tally) -> bool {
        let exact = |tally: &Tally| Tally { names: 0, lanes: 0, ..tally.clone() };
        exact(self) == exact(source) && self.names >= source.names && self.lanes >= source.lanes
    }

    fn add(&mut self, parcel: &Parcel, names_until: u64) {
        match parcel {
            Parcel::Origin(_) => {}
            Parcel::Lane(_) => self.lanes += 1,
            Parcel::Name(name) => self.names += u64::from(name.until.get() > names_until),
            Parcel::Replay(_) => self.replays += 1,
            Parcel::End(end) => self.expunged = end.expunged,
            Parcel::Event(event) => self.add_event(event),
        }
    }

    fn add_event(&mut self, parcel: &EventParcel) {
        self.events += 1;
        self.payload_bytes += parcel.event.payload.len() as u64;
        for delivery in &parcel.deliveries {
            let state = DeliveryState::ALL.iter().position(|state| *state == delivery.state).unwrap_or(0);
            self.deliveries[state] += 1;
            self.attempts += delivery.attempts.len() as u64;
        }
        self.digest = self.digest.wrapping_add(digest(parcel));
    }
}

fn digest(parcel: &EventParcel) -> u64 {
    let EventParcel { key, event, deliveries } = parcel;
    let mut hasher = DefaultHasher::new();
    let head = format!(
        "{key:?} {} {} {:?} {} {:?} {:?} {:?} {deliveries:?}",
        event.id, event.application, event.kind, event.content_type, event.headers, event.url, event.policy
    );
    hasher.write(head.as_bytes());
    hasher.write(&event.payload);
    hasher.finish()
}

/// A store of either kind.
enum Either {
    Embedded(EmbeddedStore),
    Redis(RedisStore),
}

impl Either {
    fn store(&self) -> &dyn Store {
        match self {
            Either::Embedded(store) => store,
            Either::Redis(store) => store,
        }
    }

    /// What only somebody at work changes; a directory is locked, so nobody else is.
    async fn sign_of_life(&self) -> Result<Option<i64>, StoreError> {
        match self {
            Either::Embedded(_) => Ok(None),
            Either::Redis(store) => store.sign_of_life().await,
        }
    }
}

/// A move under way.
pub struct Move {
    clock: Arc<dyn Clock>,
    source: Either,
    target: Either,
    from: String,
    to: String,
}

impl std::fmt::Debug for Move {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Move").field("from", &self.from).field("to", &self.to).finish_non_exhaustive()
    }
}

fn failed(error: &StoreError) -> CliError {
    CliError::failure(error.to_string())
}

impl Move {
    /// Opens both stores.
    ///
    /// # Errors
    /// They are the same one; there is no source; one of them cannot be opened or is in use.
    pub fn open(from: &StoreLocation, to: &StoreLocation) -> Result<Self, CliError> {
        if is_same(from, to) {
            return Err(CliError::usage("--from and --to are the same store"));
        }
        if let StoreLocation::Directory(directory) = from
            && !directory.join(STORE_FILE).exists()
        {
            return Err(CliError::failure(format!("there is no store at {}", directory.display()))
                .with_next_step("name the directory that `teimoso serve --store` was given"));
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let source = open(from, true, &clock)?;
        let target = open(to, false, &clock)?;
        Ok(Self { clock, source, target, from: from.to_string(), to: to.to_string() })
    }

    /// Carries everything over and counts it on both sides; what was there already stays.
    ///
    /// # Errors
    /// Somebody is at work on one of them; the target holds something else; one of them fails.
    pub async fn run(&self, tell: &mut dyn FnMut(Step)) -> Result<(Tally, Tally), CliError> {
        self.listen(tell).await?;
        self.let_leases_end(tell).await?;
        let of = self.source.store().stats().await.map_err(|error| failed(&error))?;
        let of = of.counts.accepted.saturating_sub(of.counts.expunged);
        let names_until = self.clock.now().after(NAMES_THAT_MATTER).get();
        let (mut source, mut page) = (Tally::default(), self.export(&self.source, None).await?);
        // With its first page a Redis takes in what was ready in the public keys; from then on it rests.
        let quiet = self.source.sign_of_life().await.map_err(|error| failed(&error))?;
        loop {
            page.data.iter().for_each(|parcel| source.add(parcel, names_until));
            self.target.store().import(page.data).await.map_err(|error| failed(&error))?;
            tell(Step::Carried(source.all_deliveries(), of));
            let Some(cursor) = page.next_cursor else { break };
            page = self.export(&self.source, Some(cursor)).await?;
        }
        if self.source.sign_of_life().await.map_err(|error| failed(&error))? != quiet {
            return Err(self.at_work(&self.from).with_next_step(format!(
                "what came meanwhile did not move: stop it, empty {} and begin again",
                self.to
            )));
        }
        let target = self.count(names_until, of, tell).await?;
        Ok((source, target))
    }

    async fn export(&self, store: &Either, cursor: Option<String>) -> Result<Page<Parcel>, CliError> {
        store.store().export(cursor).await.map_err(|error| failed(&error))
    }

    async fn count(&self, names_until: u64, of: u64, tell: &mut dyn FnMut(Step)) -> Result<Tally, CliError> {
        let (mut tally, mut cursor) = (Tally::default(), None);
        loop {
            let page = self.export(&self.target, cursor).await?;
            page.data.iter().for_each(|parcel| tally.add(parcel, names_until));
            tell(Step::Counted(tally.all_deliveries(), of));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tally);
            }
        }
    }

    /// Makes everything durable and closes both.
    pub async fn close(self) {
        self.target.store().close().await;
        self.source.store().close().await;
    }

    fn at_work(&self, store: &str) -> CliError {
        CliError::failure(format!("a server is at work on {store}"))
            .with_next_step("stop every server on it first")
    }

    async fn listen(&self, tell: &mut dyn FnMut(Step)) -> Result<(), CliError> {
        if let (Either::Embedded(_), Either::Embedded(_)) = (&self.source, &self.target) {
            return Ok(());
        }
        tell(Step::Listening(QUIET));
        let signs = async || {
            let source = self.source.sign_of_life().await.map_err(|error| failed(&error))?;
            let target = self.target.sign_of_life().await.map_err(|error| failed(&error))?;
            Ok::<_, CliError>((source, target))
        };
        // From a stroke of our own on, a fleet that idles makes itself heard.
        self.recover().await?;
        let before = signs().await?;
        self.clock.sleep(QUIET).await;
        let after = signs().await?;
        match (before.0 == after.0, before.1 == after.1) {
            (true, true) => Ok(()),
            (false, _) => Err(self.at_work(&self.from)),
            (_, false) => Err(self.at_work(&self.to)),
        }
    }

    /// Recovers what a server held that is gone, and takes nothing.
    async fn recover(&self) -> Result<(), CliError> {
        if let Either::Redis(store) = &self.source {
            let now = self.clock.now();
            let nonce = u128::from(SystemEntropy.next_u64()) << 64 | u128::from(SystemEntropy.next_u64());
            let (nonce, lease_until) = (Nonce(nonce), now.after(LEASE));
            let request = ClaimRequest { now, want: 0, free: 0, nonce, lease_until };
            store.claim(request).await.map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    async fn let_leases_end(&self, tell: &mut dyn FnMut(Step)) -> Result<(), CliError> {
        let start = self.clock.monotonic();
        loop {
            let stats = self.source.store().stats().await.map_err(|error| failed(&error))?;
            if stats.counts.in_flight == 0 {
                return Ok(());
            }
            if self.clock.monotonic().saturating_sub(start) > LEASES_END {
                return Err(CliError::failure(format!(
                    "{} deliveries of {} are in flight and do not come back",
                    stats.counts.in_flight, self.from
                ))
                .with_next_step("`teimoso doctor --heal` finds out why"));
            }
            tell(Step::Leases(stats.counts.in_flight));
            self.clock.sleep(LOOK_EVERY).await;
            self.recover().await?;
        }
    }
}

fn is_same(from: &StoreLocation, to: &StoreLocation) -> bool {
    match (from, to) {
        (StoreLocation::Directory(from), StoreLocation::Directory(to)) => {
            let real = |path: &std::path::Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            real(from) == real(to)
        }
        (from, to) => from.to_string() == to.to_string(),
    }
}

/// Whoever only reads loses nothing; what is moved to must keep it.
fn open(location: &StoreLocation, is_source: bool, clock: &Arc<dyn Clock>) -> Result<Either, CliError> {
    match location {
        StoreLocation::Directory(directory) => {
            let options =
                teimoso_store_embedded::Options { retention: KEEP_ALL, moving: true, ..Default::default() };
            let opened = EmbeddedStore::open(directory, options, Arc::clone(clock), &SystemEntropy);
            opened.map(Either::Embedded).map_err(|error| CliError::failure(error.to_string()))
        }
        StoreLocation::Redis(url) => {
            let options = teimoso_store_redis::Options {
                allow_volatile: is_source || switched_on("TEIMOSO_ALLOW_VOLATILE")?,
                allow_eviction: is_source || switched_on("TEIMOSO_ALLOW_EVICTION")?,
                moving: true,
                ..only_looking()
            };
            redis::open(url, options, Arc::clone(clock)).map(Either::Redis)
        }
        StoreLocation::Memory => Err(CliError::usage("a store in memory is seen by its own process only")),
    }
}
