//! The store under test with everything a rule needs around it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use teimoso_retry::{Fate, WaitSource};

use crate::model::{
    AttemptNumber, AttemptRecord, DeadReason, DecisionName, DeliveryId, DeliveryState, ErrorKind, Lease,
    Millis, NextWhy, Nonce, PhaseTimings, Progress, ResponseRecord,
};
use crate::ports::{BoxFuture, Clock};
use crate::store::{
    Accepted, Claim, ClaimRequest, Claimed, Counts, DeliveryView, LEASE, LaneNews, Next, Rejection, Settled,
    Settlement, Store,
};
use crate::testkit::{ManualClock, Offer};

/// A store to test, and what must live as long as it does.
pub struct Fixture {
    store: Arc<dyn Store>,
    keep: Option<Box<dyn Any>>,
}

impl Fixture {
    /// A store that needs nothing else.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, keep: None }
    }

    /// Drops `keep` (a directory, a server) only after the store.
    #[must_use]
    pub fn keeping(self, keep: impl Any) -> Self {
        Self { keep: Some(Box::new(keep)), ..self }
    }
}

/// Makes an empty store that takes its time from the clock.
pub type Make<'a> = &'a dyn Fn(ManualClock) -> Fixture;

/// When every rule begins.
pub(crate) const START: Millis = Millis::new(1_700_000_000_000);
/// How long a rule waits in real time for what must come; only a broken store lets it pass.
const PATIENCE: Duration = Duration::from_secs(10);

/// A store under test.
pub struct Bench {
    pub(crate) clock: ManualClock,
    pub(crate) store: Arc<dyn Store>,
    nonce: AtomicU64,
    _keep: Option<Box<dyn Any>>,
}

/// Runs one rule on a fresh store.
pub(crate) fn rule(make: Make<'_>, rule: impl AsyncFnOnce(&Bench)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let clock = ManualClock::at(START);
    let Fixture { store, keep } = make(clock.clone());
    let bench = Bench { clock, store, nonce: AtomicU64::new(1), _keep: keep };
    runtime.expect("the machine gives a test a runtime").block_on(async {
        rule(&bench).await;
        bench.counts().await;
    });
}

impl Bench {
    /// Another store under the same clock.
    pub(crate) fn beside(&self, store: Arc<dyn Store>) -> Self {
        Self { clock: self.clock.clone(), store, nonce: AtomicU64::new(1 << 32), _keep: None }
    }

    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) fn pass_millis(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    // ---- accept

    pub(crate) async fn offer(&self, offers: Vec<Offer>) -> Vec<Result<Accepted, Rejection>> {
        let batch = offers.into_iter().map(Offer::event).collect();
        let answers = self.store.accept(batch).await.expect("an open store accepts");
        self.counts().await;
        answers
    }

    pub(crate) async fn accept(&self, offer: Offer) -> Accepted {
        self.offer(vec![offer]).await.remove(0).expect("nothing speaks against this event")
    }

    /// The one delivery of an accepted event.
    pub(crate) async fn one(&self, offer: Offer) -> DeliveryId {
        self.accept(offer).await.deliveries[0].0
    }

    pub(crate) async fn many(&self, count: usize, offer: &Offer) -> Vec<DeliveryId> {
        let answers = self.offer(vec![offer.clone(); count]).await;
        let one = |answer: Result<Accepted, _>| answer.expect("nothing speaks against these").deliveries[0].0;
        answers.into_iter().map(one).collect()
    }

    // ---- claim

    pub(crate) fn request(&self, want: usize) -> ClaimRequest {
        let now = self.now();
        let nonce = u128::from(self.nonce.fetch_add(1, Ordering::Relaxed)) << 64 | 7;
        ClaimRequest { now, want, free: 1_024, nonce: Nonce(nonce), lease_until: now.after(LEASE) }
    }

    pub(crate) async fn ask(&self, request: ClaimRequest) -> Claim {
        let claim = self.store.claim(request).await.expect("an open store answers claims");
        self.counts().await;
        claim
    }

    pub(crate) async fn claim(&self, want: usize) -> Vec<Claimed> {
        self.ask(self.request(want)).await.taken
    }

    /// The one delivery that there must be to claim.
    pub(crate) async fn claim_one(&self) -> Claimed {
        let mut taken = self.claim(1).await;
        assert_eq!(taken.len(), 1, "one delivery is due");
        taken.remove(0)
    }

    /// Claims until `count` are there, waiting for the store to make them claimable.
    pub(crate) async fn claim_until(&self, count: usize) -> Vec<Claimed> {
        let mut taken = self.claim(256).await;
        while taken.len() < count {
            self.within(self.store.wait()).await;
            taken.extend(self.claim(256).await);
        }
        taken
    }

    /// Awaits what must come.
    pub(crate) async fn within<T>(&self, future: impl Future<Output = T>) -> T {
        tokio::time::timeout(PATIENCE, future).await.expect("it comes without the test's doing")
    }

    // ---- settle

    /// Settles and waits until it is durable.
    pub(crate) async fn settle(&self, batch: Vec<Settlement>) -> Vec<crate::store::LanePause> {
        let Settled { ticket, paused } = self.store.settle(batch).await.expect("an open store settles");
        ticket.await.expect("a sound store keeps what is settled");
        self.counts().await;
        paused
    }

    pub(crate) fn settlement(&self, claimed: Claimed, next: Next) -> Settlement {
        let number = AttemptNumber::after(claimed.progress.attempts);
        let record = (next != Next::Released).then(|| Box::new(self.record(number, next)));
        let attempts = claimed.progress.attempts + u32::from(record.is_some());
        let why = if let Next::Scheduled { why, .. } = next { why } else { claimed.progress.why };
        Settlement {
            lease: claimed.lease,
            next,
            progress: Progress {
                attempts,
                first_attempt_at: claimed.progress.first_attempt_at.or(Some(self.now())),
                why,
                ..claimed.progress
            },
            record,
            news: LaneNews::Neutral,
            at: self.now(),
        }
    }

    /// Settles one delivery, and waits until it is durable.
    pub(crate) async fn end(&self, claimed: Claimed, next: Next) {
        let settlement = self.settlement(claimed, next);
        self.settle(vec![settlement]).await;
    }

    /// Accepts an event and makes it a dead letter.
    pub(crate) async fn dead(&self, offer: Offer, reason: DeadReason) -> DeliveryId {
        let id = self.one(offer).await;
        let claimed = self.claim_one().await;
        assert_eq!(claimed.lease.delivery(), id);
        self.end(claimed, Next::Dead(reason)).await;
        id
    }

    /// A record with every field filled that a failure has.
    pub(crate) fn record(&self, number: AttemptNumber, next: Next) -> AttemptRecord {
        let delivered = next == Next::Delivered;
        let wait = match next {
            Next::Scheduled { due, .. } => Some((due.since(self.now()), WaitSource::Schedule)),
            _ => None,
        };
        let response = ResponseRecord {
            headers: "retry-after: 3\nx-a: é".into(),
            body: Bytes::from_static(b"no\xff\x00"),
            truncated: true,
        };
        AttemptRecord {
            number,
            started_at: self.now(),
            fate: Fate::Answered,
            status: Some(if delivered { 204 } else { 503 }),
            error_kind: (!delivered).then_some(ErrorKind::Http5xx),
            error: (!delivered).then(|| "answered 503".into()),
            decision: match next {
                Next::Delivered => DecisionName::Done,
                Next::Scheduled { .. } => DecisionName::Retry,
                Next::Dead(_) | Next::Released => DecisionName::GiveUp,
            },
            wait,
            peer: (!delivered).then(|| ([127, 0, 0, 1], 4_000).into()),
            timings: PhaseTimings { total: Duration::from_millis(12), ..PhaseTimings::default() },
            response: (!delivered).then(|| Box::new(response)),
        }
    }

    // ---- look

    pub(crate) async fn view(&self, id: DeliveryId) -> DeliveryView {
        self.store.delivery(id).await.expect("an open store reads").expect("the delivery is kept")
    }

    pub(crate) async fn state(&self, id: DeliveryId) -> DeliveryState {
        self.view(id).await.state
    }

    /// The counters, which must add up (G2).
    pub(crate) async fn counts(&self) -> Counts {
        // A closed store need not answer.
        let Ok(stats) = self.store.stats().await else { return Counts::default() };
        assert!(stats.counts.conserved(), "{:?}", stats.counts);
        stats.counts
    }
}

/// The ids of what was claimed, in order.
pub(crate) fn ids(taken: &[Claimed]) -> Vec<DeliveryId> {
    taken.iter().map(|claimed| claimed.lease.delivery()).collect()
}

/// A second lease with the same right, as a sender that was thought dead would hold.
pub(crate) fn twin(claimed: &Claimed) -> Claimed {
    Claimed {
        lease: Lease::grant(claimed.lease.delivery(), claimed.lease.nonce()),
        event: claimed.event.clone(),
        url: claimed.url.clone(),
        lane: claimed.lane.clone(),
        progress: claimed.progress,
        due: claimed.due,
    }
}

pub(crate) fn again_at(due: Millis) -> Next {
    Next::Scheduled { due, why: NextWhy::Retry }
}

/// Polls once: whether it is complete already.
pub(crate) async fn is_complete(future: &mut BoxFuture<'_, ()>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}
