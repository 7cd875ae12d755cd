//! Producers and workers that go on whatever happens to Redis, and the account of what they did.
//!
//! Every event is attempted twice: its first attempt is to be retried at once, its second delivers it. So a settlement
//! that was lost, or made twice, shows in the number that the next claim brings.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use teimoso_delivery::model::Nonce;
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::store::{ClaimRequest, Claimed, LEASE, Next, Store, StoreErrorKind};
use teimoso_delivery::testkit::{SeededEntropy, offer};
use teimoso_store_redis::{Options, RedisStore};

use super::clock::RealClock;
use super::world::{again, settlement};

/// Longer than a lease and the one of grace after an outage.
const LEASES: Duration = Duration::from_secs(90);

/// What is known of one event.
#[derive(Debug, Default, Clone, Copy)]
struct Known {
    attempts: u32,
    delivered: u32,
}

/// A load on one store.
pub struct Load {
    pub store: Arc<RedisStore>,
    pub clock: RealClock,
    nonces: SeededEntropy,
    accepting: tokio::sync::Mutex<()>,
    accepted: Mutex<Vec<String>>,
    known: Mutex<HashMap<String, Known>>,
    /// When a claim was last answered, in ms of the monotonic clock.
    answered: AtomicU64,
    claims: AtomicU64,
    ends: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no test thread panicked")
}

impl Load {
    pub fn at(url: &str, options: &Options) -> Arc<Self> {
        let (clock, entropy) = (Arc::new(RealClock::start()), Arc::new(SeededEntropy::new(7)));
        let store = RedisStore::open(url, options, clock, entropy).expect("a sound server opens");
        Arc::new(Self {
            store: Arc::new(store),
            clock: RealClock::start(),
            nonces: SeededEntropy::new(0x5eed),
            accepting: tokio::sync::Mutex::default(),
            accepted: Mutex::default(),
            known: Mutex::default(),
            answered: AtomicU64::new(0),
            claims: AtomicU64::new(0),
            ends: AtomicBool::new(false),
        })
    }

    /// Runs the load while `chaos` does its work on a thread of its own; then delivers what is left. What it gives back
    /// lives until then: servers, above all.
    pub async fn during<T: Send + 'static>(
        self: &Arc<Self>,
        chaos: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        let producer = tokio::spawn(self.clone().produce());
        let worker = tokio::spawn(self.clone().work());
        let load = self.clone();
        let chaos = tokio::task::spawn_blocking(move || chaos(&load));
        let done = chaos.await;
        self.ends.store(true, Ordering::SeqCst);
        let kept = done.expect("the chaos goes as planned");
        producer.await.expect("the producer goes on");
        worker.await.expect("the worker goes on and delivers everything");
        kept
    }

    async fn produce(self: Arc<Self>) {
        let mut number = 0;
        while !self.ends.load(Ordering::SeqCst) {
            let name = format!("p-{number}");
            let event = offer(&format!("http://loja.example/{}", number % 40)).named(&name).event();
            let accepting = self.accepting.lock().await;
            match self.store.accept(vec![event]).await {
                Ok(answers) => {
                    assert!(answers[0].is_ok(), "{answers:?}");
                    lock(&self.accepted).push(name);
                    number += 1;
                }
                // Repeated under its name until it is accepted.
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}"),
            }
            drop(accepting);
            self.clock.sleep(Duration::from_millis(2)).await;
        }
    }

    /// Until everything accepted is delivered.
    async fn work(self: Arc<Self>) {
        let mut ended = None;
        while ended.is_none() || self.left() > 0 {
            if self.ends.load(Ordering::SeqCst) {
                let since = *ended.get_or_insert(self.clock.monotonic());
                assert!(self.clock.monotonic() - since < LEASES, "{} never came", self.left());
            }
            match self.store.claim(self.request()).await {
                Ok(claim) => {
                    self.answered.store(self.clock.monotonic().as_millis() as u64, Ordering::SeqCst);
                    self.claims.fetch_add(1, Ordering::SeqCst);
                    self.settle(claim.taken).await;
                }
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}"),
            }
            self.clock.sleep(Duration::from_millis(5)).await;
        }
    }

    fn request(&self) -> ClaimRequest {
        let now = self.clock.now();
        let nonce = Nonce(u128::from(self.nonces.next_u64()) << 64 | u128::from(self.nonces.next_u64()));
        ClaimRequest { now, want: 64, free: 1_024, nonce, lease_until: now.after(LEASE) }
    }

    async fn settle(&self, taken: Vec<Claimed>) {
        let at = self.clock.now();
        let mut batch = Vec::with_capacity(taken.len());
        for claimed in taken {
            let id = claimed.event.id.to_string();
            let mut known = lock(&self.known);
            let known = known.entry(id.clone()).or_default();
            let counted = claimed.progress.attempts + u32::from(claimed.progress.recoveries);
            assert!(counted <= known.attempts, "{id}: {counted} attempts are counted of {known:?}");
            let next = if claimed.progress.attempts == 0 { again(at) } else { Next::Delivered };
            known.attempts += 1;
            known.delivered += u32::from(next == Next::Delivered);
            batch.push(settlement(claimed, next, at));
        }
        if !batch.is_empty() {
            self.store.settle(batch).await.expect("what ended is kept until Redis has it");
        }
    }

    fn left(&self) -> usize {
        let (accepted, known) = (lock(&self.accepted), lock(&self.known));
        accepted.iter().filter(|name| known.get(*name).is_none_or(|known| known.delivered == 0)).count()
    }

    // ---- for the chaos, which runs on a thread of its own

    /// Waits until so many more are accepted.
    pub fn more(&self, count: usize) {
        let goal = lock(&self.accepted).len() + count;
        self.until(Duration::from_secs(60), "events are accepted", || lock(&self.accepted).len() >= goal);
    }

    /// How long it takes from now until a claim is answered.
    pub fn resumes(&self, within: Duration) -> Duration {
        let (before, start) = (self.claims.load(Ordering::SeqCst), self.clock.monotonic());
        // One may have been under way.
        let is_back = || self.claims.load(Ordering::SeqCst) > before + 1;
        self.until(within, "a worker is back", is_back);
        self.clock.monotonic() - start
    }

    /// Whatever was accepted before the end of this is owed to nobody any more.
    pub fn forget(&self, empty: impl FnOnce()) {
        // Nothing is accepted on the way.
        let _alone = self.accepting.blocking_lock();
        empty();
        lock(&self.accepted).clear();
    }

    fn until(&self, within: Duration, what: &str, is_so: impl Fn() -> bool) {
        let start = self.clock.monotonic();
        while !is_so() {
            assert!(self.clock.monotonic() - start < within, "in vain for {within:?}: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    // ---- the account

    /// Everything accepted was delivered, each attempt counted once; how many there were.
    pub async fn account_exactly(&self) -> usize {
        let accepted = self.account().await;
        let counts = self.store.stats().await.expect("an open store counts").counts;
        assert_eq!((counts.accepted, counts.delivered), (accepted as u64, accepted as u64), "{counts:?}");
        let known = lock(&self.known);
        let twice = known.iter().find(|(_, known)| known.attempts != 2 || known.delivered != 1);
        assert!(twice.is_none(), "{twice:?}");
        accepted
    }

    /// Everything accepted was delivered; how many there were.
    pub async fn account(&self) -> usize {
        let counts = self.store.stats().await.expect("an open store counts").counts;
        assert!(counts.conserved(), "{counts:?}");
        assert_eq!(self.store.health(), Ok(()));
        let accepted: HashSet<String> = lock(&self.accepted).iter().cloned().collect();
        assert!(!accepted.is_empty());
        accepted.len()
    }
}
