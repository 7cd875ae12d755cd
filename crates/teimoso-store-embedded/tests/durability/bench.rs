//! A directory, a clock, and a store that is opened, used, ended and opened again.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use teimoso_delivery::lanes::Limits;
use teimoso_delivery::model::{
    AttemptNumber, AttemptRecord, ContentType, DecisionName, DeliveryId, ErrorKind, Millis, NextWhy, Nonce,
    PhaseTimings, ResponseRecord,
};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::retry::{Fate, WaitSource};
use teimoso_delivery::store::{
    Accepted, AttemptView, CancelOutcome, Claim, ClaimRequest, Claimed, Counts, DeliveryFilter, DeliveryView,
    EventFilter, EventView, LEASE, LaneNews, LanePause, MAX_PAGE, Next, Settlement, Stats, Store, StoreError,
};
use teimoso_delivery::testkit::{ManualClock, Offer, SeededEntropy};
use teimoso_store_embedded::{EmbeddedStore, OpenError, Options};
use tempfile::TempDir;

pub const URL: &str = "http://loja.example/a?x=1";
pub const START: Millis = Millis::new(1_700_000_000_000);
/// After an unclean end claims are journaled first for a minute.
pub const END_OF_CAUTION: Duration = Duration::from_secs(60);
/// How long a test waits in real time for what must come; only a broken store lets it pass.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a store ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Closed,
    Dropped,
    Killed,
}

pub const ENDS: [End; 3] = [End::Closed, End::Dropped, End::Killed];

/// Where a store lives, and how it is set up.
pub struct Home {
    pub dir: TempDir,
    /// Its own path, unless a test points elsewhere.
    pub path: PathBuf,
    pub clock: ManualClock,
    pub options: Options,
    pub limits: Limits,
    seed: AtomicU64,
}

impl Home {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            path: dir.path().to_owned(),
            dir,
            clock: ManualClock::at(START),
            options: Options::default(),
            limits: Limits::default(),
            seed: AtomicU64::new(1),
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn database(&self) -> PathBuf {
        self.file("teimoso.db")
    }

    pub fn open(self) -> Open {
        let store = self.try_open().unwrap();
        Open { store, home: self, nonce: AtomicU64::new(1) }
    }

    pub fn try_open(&self) -> Result<EmbeddedStore, OpenError> {
        // Another seed each time: what must last over a restart must not come from it.
        let entropy = SeededEntropy::new(self.seed.fetch_add(1, Ordering::Relaxed));
        let clock = Arc::new(self.clock.clone());
        let (options, limits) = (self.options.clone(), self.limits);
        EmbeddedStore::open_with_limits(&self.path, options, limits, clock, &entropy)
    }

    /// The files as a killed process leaves them.
    fn image(&self) -> TempDir {
        let image = tempfile::tempdir().unwrap();
        for name in ["teimoso.db", "teimoso.db-wal"] {
            fs::copy(self.file(name), image.path().join(name)).unwrap();
        }
        image
    }

    /// A look into the file, past the store.
    pub fn number(&self, sql: &str) -> i64 {
        let conn = rusqlite::Connection::open(self.database()).unwrap();
        conn.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

/// Runs a test on a runtime of one thread.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async { tokio::time::timeout(PATIENCE, test).await.unwrap() });
}

/// Everything a caller can read of a store.
#[derive(Debug, PartialEq)]
pub struct Picture {
    events: Vec<EventView>,
    deliveries: Vec<DeliveryView>,
    attempts: Vec<Vec<AttemptView>>,
    payloads: Vec<Option<(ContentType, Bytes)>>,
    counts: Counts,
    oldest_due: Option<Millis>,
}

/// An open store.
pub struct Open {
    pub store: EmbeddedStore,
    pub home: Home,
    nonce: AtomicU64,
}

impl Open {
    pub async fn end(self, how: End) -> Home {
        let Self { store, mut home, .. } = self;
        match how {
            End::Closed => store.close().await,
            End::Dropped => {}
            End::Killed => {
                let image = home.image();
                drop(store);
                home.path = image.path().to_owned();
                home.dir = image;
                return home;
            }
        }
        drop(store);
        home
    }

    /// Ends and opens again.
    pub async fn again(self, how: End) -> Self {
        self.end(how).await.open()
    }

    pub fn now(&self) -> Millis {
        self.home.clock.now()
    }

    pub fn pass(&self, time: Duration) {
        self.home.clock.advance(time);
    }

    /// Lets the writer go round once: it journals, refills, replays and expires what is due.
    pub async fn nudge(&self) {
        let unknown = "dlv_01890000-0000-7000-8000-000000000000".parse::<DeliveryId>().unwrap();
        assert_eq!(self.store.cancel(unknown).await, Ok(CancelOutcome::NotFound));
    }

    /// Lets what is leased be journaled.
    pub async fn journal(&self) {
        self.nudge().await;
        self.pass(Duration::from_millis(10));
        self.nudge().await;
    }

    // ---- accept

    pub async fn accept(&self, offer: Offer) -> Accepted {
        self.try_accept(vec![offer]).await.unwrap().remove(0)
    }

    pub async fn try_accept(&self, offers: Vec<Offer>) -> Result<Vec<Accepted>, StoreError> {
        let answers = self.store.accept(offers.into_iter().map(Offer::event).collect()).await?;
        self.stats().await;
        Ok(answers.into_iter().map(|answer| answer.unwrap()).collect())
    }

    pub async fn one(&self, offer: Offer) -> DeliveryId {
        self.accept(offer).await.deliveries[0].0
    }

    pub async fn many(&self, count: usize, offer: &Offer) -> Vec<DeliveryId> {
        let accepted = self.try_accept(vec![offer.clone(); count]).await.unwrap();
        accepted.into_iter().map(|accepted| accepted.deliveries[0].0).collect()
    }

    // ---- claim and settle

    pub async fn ask(&self, want: usize) -> Result<Claim, StoreError> {
        let now = self.now();
        let nonce = Nonce(u128::from(self.nonce.fetch_add(1, Ordering::Relaxed)));
        let request = ClaimRequest { now, want, free: 1_024, nonce, lease_until: now.after(LEASE) };
        self.store.claim(request).await
    }

    pub async fn claim(&self, want: usize) -> Vec<Claimed> {
        self.ask(want).await.unwrap().taken
    }

    pub async fn claim_one(&self) -> Claimed {
        let mut taken = self.claim(1).await;
        assert_eq!(taken.len(), 1, "one delivery is due");
        taken.remove(0)
    }

    pub fn settlement(&self, claimed: Claimed, next: Next, news: LaneNews) -> Settlement {
        let mut progress = claimed.progress;
        let record = (next != Next::Released).then(|| Box::new(self.record(progress.attempts, next)));
        if record.is_some() {
            progress.attempts += 1;
            progress.first_attempt_at.get_or_insert(self.now());
        }
        if let Next::Scheduled { why, .. } = next {
            progress.why = why;
        }
        Settlement { lease: claimed.lease, next, progress, record, news, at: self.now() }
    }

    /// Settles, and waits until it is durable.
    pub async fn settle(&self, claimed: Claimed, next: Next, news: LaneNews) -> Vec<LanePause> {
        let settled = self.store.settle(vec![self.settlement(claimed, next, news)]).await.unwrap();
        assert_eq!(settled.ticket.await, Ok(()));
        self.stats().await;
        settled.paused
    }

    pub async fn finish(&self, claimed: Claimed, next: Next) {
        self.settle(claimed, next, LaneNews::Neutral).await;
    }

    /// Claims and ends everything that is due.
    pub async fn finish_all(&self, next: Next) -> usize {
        let mut ended = 0;
        loop {
            let taken = self.claim(1_000).await;
            if taken.is_empty() {
                return ended;
            }
            ended += taken.len();
            let batch = taken.into_iter().map(|claimed| self.settlement(claimed, next, LaneNews::Neutral));
            let settled = self.store.settle(batch.collect()).await.unwrap();
            assert_eq!(settled.ticket.await, Ok(()));
        }
    }

    fn record(&self, attempts: u32, next: Next) -> AttemptRecord {
        let delivered = next == Next::Delivered;
        AttemptRecord {
            number: AttemptNumber::after(attempts),
            started_at: self.now(),
            fate: Fate::Answered,
            status: Some(if delivered { 204 } else { 503 }),
            error_kind: (!delivered).then_some(ErrorKind::Http5xx),
            error: (!delivered).then(|| "answered 503".into()),
            decision: if delivered { DecisionName::Done } else { DecisionName::Retry },
            wait: (!delivered).then_some((Duration::from_secs(5), WaitSource::RetryAfter)),
            peer: (!delivered).then(|| ([127, 0, 0, 1], 4_000).into()),
            timings: PhaseTimings { total: Duration::from_millis(12), ..PhaseTimings::default() },
            response: (!delivered).then(|| {
                Box::new(ResponseRecord {
                    headers: "retry-after: 5".into(),
                    body: Bytes::from_static(b"no\xff\x00"),
                    truncated: true,
                })
            }),
        }
    }

    // ---- look

    pub async fn view(&self, id: DeliveryId) -> DeliveryView {
        self.store.delivery(id).await.unwrap().unwrap()
    }

    /// The counters, which must add up (G2).
    pub async fn stats(&self) -> Stats {
        let stats = self.store.stats().await.unwrap();
        assert!(stats.counts.conserved(), "{:?}", stats.counts);
        stats
    }

    pub async fn counts(&self) -> Counts {
        self.stats().await.counts
    }

    pub async fn picture(&self) -> Picture {
        let store = &self.store;
        let events = EventFilter { limit: MAX_PAGE, ..EventFilter::default() };
        let events = store.events(events).await.unwrap().data;
        let deliveries = DeliveryFilter { limit: MAX_PAGE, ..DeliveryFilter::default() };
        let deliveries = store.deliveries(deliveries).await.unwrap().data;
        let (mut attempts, mut payloads) = (Vec::new(), Vec::new());
        for delivery in &deliveries {
            attempts.push(store.attempts(delivery.id).await.unwrap());
        }
        for event in &events {
            payloads.push(store.payload(event.id.clone()).await.unwrap());
        }
        let Stats { counts, oldest_due, .. } = self.stats().await;
        Picture { events, deliveries, attempts, payloads, counts, oldest_due }
    }
}

pub fn again_at(due: Millis) -> Next {
    Next::Scheduled { due, why: NextWhy::Retry }
}

pub fn ids(taken: &[Claimed]) -> Vec<DeliveryId> {
    taken.iter().map(|claimed| claimed.lease.delivery()).collect()
}
