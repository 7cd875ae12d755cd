//! The embedded store under the comparison's verbs.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use teimoso_delivery::model::{
    Application, AttemptNumber, AttemptRecord, ContentType, DecisionName, Destination, Headers, Millis, Mode,
    NewEvent, NextWhy, Nonce, PhaseTimings,
};
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::store::{ClaimRequest, Claimed, LEASE, LaneNews, Next, Settlement, Store};
use teimoso_retry::{Fate, WaitSource};
use teimoso_store_embedded::{EmbeddedStore, Options};

use super::{Ended, Subject};
use crate::clock::{self, SystemClock};
use crate::trouble::{Doing, Result, Trouble};

/// Lanes that events are spread over: 16 in flight in each are more than the consumer ever holds.
const LANES: u64 = 64;
/// Slots of the process.
const FREE: usize = 1_024;
/// Events of one acceptance while pending ones are stored.
const PARKED_TOGETHER: u64 = 4_096;

/// Numbers instead of chance: ids need to differ, not to be secret.
struct Counting;

impl Entropy for Counting {
    fn next_u64(&self) -> u64 {
        0x9e37_79b9_7f4a_7c15
    }
}

/// An open store.
#[derive(Debug)]
pub struct Embedded {
    store: EmbeddedStore,
    destinations: Vec<Destination>,
    events: Cell<u64>,
    claims: Cell<u128>,
}

impl Embedded {
    /// Opens one in an empty folder and stores so many events for tomorrow.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(dir: &Path, pending: u64, payload: &Bytes) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let store = EmbeddedStore::open(dir, Options::default(), clock, &Counting).doing("open a store")?;
        let destinations = (0..=LANES).map(destination).collect();
        let embedded = Self { store, destinations, events: Cell::new(0), claims: Cell::new(0) };
        if pending > 0 {
            let runtime = tokio::runtime::Builder::new_current_thread().build().doing("start a runtime")?;
            // The comparison's own runtime is entered on this thread; another thread may block on one of its own.
            std::thread::scope(|scope| {
                scope.spawn(|| runtime.block_on(park(&embedded.store, pending, payload))).join()
            })
            .unwrap_or_else(|_| Err(Trouble::new("parking events panicked")))?;
        }
        Ok(embedded)
    }

    /// Events for the next lanes in turn.
    pub fn fresh(&self, count: u64, payload: &Bytes) -> Vec<NewEvent> {
        let first = self.events.replace(self.events.get() + count);
        (first..first + count).map(|number| event(self.turn(number), payload, None)).collect()
    }

    fn turn(&self, number: u64) -> &Destination {
        &self.destinations[usize::try_from(number % LANES).unwrap_or(0)]
    }

    /// The store itself.
    pub fn store(&self) -> &EmbeddedStore {
        &self.store
    }

    /// Takes up to so many.
    ///
    /// # Errors
    /// When the store cannot read.
    pub async fn take(&self, want: usize) -> Result<Vec<Claimed>> {
        let claim = self.claims.replace(self.claims.get() + 1);
        let now = clock::wall();
        let request = ClaimRequest {
            now,
            want,
            free: FREE,
            nonce: Nonce(claim << 64 | 7),
            lease_until: now.after(LEASE),
        };
        Ok(self.store.claim(request).await.doing("claim")?.taken)
    }
}

fn destination(lane: u64) -> Destination {
    let url = format!("http://127.0.0.1:9/lane/{lane:02}");
    Destination { url: url.as_str().into(), lane: url.as_str().into(), origin: "http://127.0.0.1:9".into() }
}

async fn park(store: &EmbeddedStore, pending: u64, payload: &Bytes) -> Result<()> {
    let elsewhere = destination(LANES);
    let due = Some(clock::wall().after(Duration::from_secs(24 * 3_600)));
    let mut left = pending;
    while left > 0 {
        let now = left.min(PARKED_TOGETHER);
        let batch = (0..now).map(|_| event(&elsewhere, payload, due)).collect();
        store.accept(batch).await.doing("store pending events")?;
        left -= now;
    }
    Ok(())
}

fn event(destination: &Destination, payload: &Bytes, deliver_at: Option<Millis>) -> NewEvent {
    NewEvent {
        application: Application::default(),
        id: None,
        idempotency_key: None,
        fingerprint: [0; 16],
        kind: None,
        content_type: ContentType::default(),
        headers: Headers::default(),
        payload: payload.clone(),
        destination: Some(destination.clone()),
        mode: Mode::AtLeastOnce,
        policy: None,
        deliver_at,
    }
}

/// A claim's end: delivered, or with `again` due at once.
pub fn settlement(claimed: Claimed, log: bool, again: bool) -> Settlement {
    let at = clock::wall();
    let number = AttemptNumber::after(claimed.progress.attempts);
    let mut progress = claimed.progress;
    progress.attempts += u32::from(log);
    progress.first_attempt_at = progress.first_attempt_at.or(Some(at));
    let next = if again { Next::Scheduled { due: at, why: NextWhy::Retry } } else { Next::Delivered };
    let record = log.then(|| Box::new(record(number, at, again)));
    Settlement { lease: claimed.lease, next, progress, record, news: LaneNews::Neutral, at }
}

fn record(number: AttemptNumber, at: Millis, failed: bool) -> AttemptRecord {
    AttemptRecord {
        number,
        started_at: at,
        fate: Fate::Answered,
        status: Some(if failed { 503 } else { 200 }),
        error_kind: None,
        error: None,
        decision: if failed { DecisionName::Retry } else { DecisionName::Done },
        wait: failed.then_some((Duration::ZERO, WaitSource::Schedule)),
        peer: Some(([127, 0, 0, 1], 9).into()),
        timings: PhaseTimings { total: Duration::from_millis(1), ..PhaseTimings::default() },
        response: None,
    }
}

impl Subject for Embedded {
    type Item = Claimed;

    async fn enqueue(&self, payload: &Bytes) -> Result<()> {
        let answers = self.store.accept(self.fresh(1, payload)).await.doing("accept")?;
        answers.into_iter().try_for_each(|answer| answer.map(drop)).doing("accept")
    }

    async fn claim(&self, want: usize) -> Result<Vec<Claimed>> {
        self.take(want).await
    }

    async fn end(&self, items: Vec<Claimed>, log: bool) -> Result<Ended> {
        let mut count = 0;
        let mut batch = Vec::with_capacity(items.len());
        for (index, claimed) in items.into_iter().enumerate() {
            let again = log && claimed.progress.attempts == 0 && index % 10 == 0;
            count += u64::from(!again);
            batch.push(settlement(claimed, log, again));
        }
        let settled = self.store.settle(batch).await.doing("settle")?;
        let saved = Box::pin(async move { settled.ticket.await.doing("save a settlement") });
        Ok(Ended { count, saved })
    }

    async fn wait(&self) {
        self.store.wait().await;
    }
}
