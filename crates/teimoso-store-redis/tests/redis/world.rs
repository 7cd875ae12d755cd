//! A server, a store on it, and somebody who pushes and reads without any of our code.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::{Commands, cmd};
use redis_fixture::{Fsync, Server};
use teimoso_delivery::model::{
    AttemptNumber, AttemptRecord, DeadReason, DecisionName, Millis, NextWhy, Nonce, PhaseTimings, Progress,
};
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::retry::Fate;
use teimoso_delivery::store::{ClaimRequest, Claimed, Counts, LEASE, LaneNews, Next, Settlement, Store};
use teimoso_delivery::testkit::{ManualClock, SeededEntropy};
use teimoso_store_redis::{Options, RedisStore};

use super::clock::RealClock;
use super::fixture::by_hand;

/// Where a clock moved by hand begins.
pub const START: Millis = Millis::new(1_700_000_000_000);
pub const READY: &str = "webhooks:prontos";
pub const WAITING: &str = "webhooks:espera";
pub const BURIED: &str = "webhooks:mortos";

/// See the module.
pub struct World {
    pub store: Arc<RedisStore>,
    pub clock: Arc<dyn Clock>,
    pub raw: redis::Connection,
    pub server: Server,
    nonces: SeededEntropy,
}

/// A store in real time.
pub fn real(server: &Server, seed: u64) -> Arc<RedisStore> {
    let (clock, entropy) = (Arc::new(RealClock::start()), Arc::new(SeededEntropy::new(seed)));
    let store = RedisStore::open(&server.url(), &Options::default(), clock, entropy);
    Arc::new(store.expect("a sound server opens"))
}

impl World {
    /// Real time on a real server.
    pub fn real(server: Server) -> Self {
        let store = real(&server, 7);
        let raw = server.raw();
        let nonces = SeededEntropy::new(0x5eed);
        Self { store, clock: Arc::new(RealClock::start()), raw, server, nonces }
    }

    /// Time that the test moves.
    pub fn by_hand() -> (Self, ManualClock) {
        let server = Server::start(Fsync::EverySecond);
        let clock = ManualClock::at(START);
        let entropy = Arc::new(SeededEntropy::new(7));
        let store = RedisStore::open(&server.url(), &by_hand(), Arc::new(clock.clone()), entropy);
        let store = Arc::new(store.expect("a sound server opens"));
        let raw = server.raw();
        let nonces = SeededEntropy::new(0x5eed);
        (Self { store, clock: Arc::new(clock.clone()), raw, server, nonces }, clock)
    }

    pub fn request(&self, want: usize) -> ClaimRequest {
        let now = self.clock.now();
        let nonce = Nonce(u128::from(self.nonces.next_u64()) << 64 | u128::from(self.nonces.next_u64()));
        ClaimRequest { now, want, free: 1_024, nonce, lease_until: now.after(LEASE) }
    }

    /// A request for a claim that no other test makes.
    pub fn request_at(now: Millis) -> ClaimRequest {
        static BEFORE: AtomicU64 = AtomicU64::new(1);
        let nonce = Nonce(BEFORE.fetch_add(1, Ordering::SeqCst).into());
        ClaimRequest { now, want: 256, free: 1_024, nonce, lease_until: now.after(LEASE) }
    }

    /// What one claim gives.
    pub async fn claim(&self, want: usize) -> Vec<Claimed> {
        self.store.claim(self.request(want)).await.expect("an open store answers claims").taken
    }

    /// Claims until so many are there, as an engine does.
    pub async fn claim_until(&self, count: usize) -> Vec<Claimed> {
        let mut taken = self.claim(256).await;
        while taken.len() < count {
            self.within(self.store.wait()).await;
            taken.extend(self.claim(256).await);
        }
        taken
    }

    pub async fn one(&self) -> Claimed {
        let mut taken = self.claim_until(1).await;
        assert_eq!(taken.len(), 1);
        taken.remove(0)
    }

    /// Awaits what must come.
    pub async fn within<T>(&self, future: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(10), future).await.expect("it comes by itself")
    }

    pub async fn settle(&self, claimed: Claimed, next: Next) {
        self.settle_all(vec![claimed], next).await;
    }

    pub async fn settle_all(&self, claimed: Vec<Claimed>, next: Next) {
        let at = self.clock.now();
        let batch = claimed.into_iter().map(|claimed| settlement(claimed, next, at)).collect();
        let settled = self.store.settle(batch).await.expect("an open store settles");
        settled.ticket.await.expect("what is answered is kept");
    }

    pub async fn counts(&self) -> Counts {
        let stats = self.store.stats().await.expect("an open store counts");
        assert!(stats.counts.conserved(), "{:?}", stats.counts);
        stats.counts
    }

    // ---- as anybody

    pub fn push(&mut self, entry: impl AsRef<[u8]>) {
        let _: usize = self.raw.rpush(READY, entry.as_ref()).expect("the server takes it");
    }

    pub fn list(&mut self, key: &str) -> Vec<Vec<u8>> {
        self.raw.lrange(key, 0, -1).expect("it is a list")
    }

    pub fn texts(&mut self, key: &str) -> Vec<String> {
        self.list(key).into_iter().map(|text| String::from_utf8(text).expect("it is a text")).collect()
    }

    pub fn waiting(&mut self) -> Vec<(String, f64)> {
        self.raw.zrange_withscores(WAITING, 0, -1).expect("it is a sorted set")
    }

    pub fn command(&mut self, words: &[&str]) -> redis::Value {
        let mut command = cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut self.raw).expect("the server does it")
    }
}

/// The end of an attempt; `next` says which.
pub fn settlement(claimed: Claimed, next: Next, at: Millis) -> Settlement {
    let Claimed { lease, progress, .. } = claimed;
    let tried = next != Next::Released;
    let number = AttemptNumber::after(progress.attempts);
    let record = AttemptRecord {
        number,
        started_at: at,
        fate: Fate::Answered,
        status: Some(503),
        error_kind: None,
        error: None,
        decision: DecisionName::Retry,
        wait: None,
        peer: None,
        timings: PhaseTimings::default(),
        response: None,
    };
    let attempts = progress.attempts + u32::from(tried);
    let first_attempt_at = progress.first_attempt_at.or(tried.then_some(at));
    Settlement {
        lease,
        next,
        progress: Progress { attempts, first_attempt_at, ..progress },
        record: tried.then(|| Box::new(record)),
        news: LaneNews::Neutral,
        at,
    }
}

pub fn again(due: Millis) -> Next {
    Next::Scheduled { due, why: NextWhy::Retry }
}

pub const DEAD: Next = Next::Dead(DeadReason::PermanentStatus);

/// A JSON entry of the ready list.
pub fn entry(n: usize, url: &str) -> String {
    format!(r#"{{"id":"evt_{n}","url":"{url}","corpo":{{"n": {n}, "b":1.0}},"tentativas":0}}"#)
}

/// Runs a test's story on a runtime of its own.
pub fn story(run: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("the machine gives a test a runtime").block_on(run);
}
