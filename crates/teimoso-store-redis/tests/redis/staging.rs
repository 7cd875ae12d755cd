//! Waiting where there is no tracking: who is woken, and what is never lost on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::Commands;
use redis_fixture::{Fsync, Proxy, Server};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Next, Store, StoreErrorKind};
use teimoso_delivery::testkit::{SeededEntropy, offer};
use teimoso_store_redis::{Options, RedisStore};

use super::clock::RealClock;
use super::opening::open;
use super::world::{READY, World, entry, settlement, story};

const URL: &str = "http://loja.example/";
const STAGED: &str = "{webhooks:prontos}:staged";

struct Behind {
    server: Server,
    raw: redis::Connection,
    store: Arc<RedisStore>,
    clock: RealClock,
}

impl Behind {
    fn a_proxy() -> Self {
        let server = Server::start(Fsync::EverySecond);
        let store = Self::another(&server);
        Self { raw: server.raw(), store, server, clock: RealClock::start() }
    }

    fn another(server: &Server) -> Arc<RedisStore> {
        // Each process has chances of its own.
        static SEED: AtomicU64 = AtomicU64::new(1);
        let entropy = Arc::new(SeededEntropy::new(SEED.fetch_add(1, Ordering::SeqCst)));
        let (proxy, clock) = (Proxy::without_tracking(server), Arc::new(RealClock::start()));
        let store = RedisStore::open(&proxy.url(), &Options::default(), clock, entropy);
        Arc::new(store.expect("a proxy is no hindrance"))
    }

    async fn claim(&self) -> Vec<teimoso_delivery::store::Claimed> {
        let request = World::request_at(self.clock.now());
        self.store.claim(request).await.expect("an open store answers").taken
    }

    /// The same, through whatever happens to the connection.
    async fn claim_stubbornly(&self) -> Vec<teimoso_delivery::store::Claimed> {
        loop {
            match self.store.claim(World::request_at(self.clock.now())).await {
                Ok(claim) => return claim.taken,
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}"),
            }
            self.clock.sleep(Duration::from_millis(10)).await;
        }
    }

    /// Claims until nothing is left, as an engine does before it waits.
    async fn rest(&self) {
        while !self.claim_stubbornly().await.is_empty() {}
    }

    fn blocked(&mut self) -> usize {
        let info: String =
            redis::cmd("INFO").arg("clients").query(&mut self.raw).expect("the server answers");
        let line = info.lines().find_map(|line| line.strip_prefix("blocked_clients:"));
        line.and_then(|count| count.trim().parse().ok()).expect("it counts them")
    }

    async fn until_blocked(&mut self, count: usize) {
        let start = self.clock.monotonic();
        while self.blocked() != count {
            assert!(self.clock.monotonic() - start < Duration::from_secs(10), "{} block", self.blocked());
            self.clock.sleep(Duration::from_millis(2)).await;
        }
    }
}

#[test]
fn s2_8_a_push_wakes_whoever_waits_without_tracking() {
    let mut behind = Behind::a_proxy();
    story(async {
        for n in 0..20 {
            behind.rest().await;
            let store = behind.store.clone();
            let waits = tokio::spawn(async move { store.wait().await });
            behind.until_blocked(1).await;
            let pushed = RealClock::start();
            let _: usize = behind.raw.rpush(READY, entry(n, URL)).expect("it is a list");
            waits.await.expect("nothing panics");
            let claimed = behind.claim().await;
            let took = pushed.monotonic();
            assert_eq!(claimed.len(), 1);
            assert_eq!(claimed[0].event.id.to_string(), format!("evt_{n}"));
            assert!(took < Duration::from_millis(700), "not by the check of every second: {took:?}");
            let batch = claimed.into_iter().map(|one| settlement(one, Next::Delivered, behind.clock.now()));
            behind.store.settle(batch.collect()).await.expect("an open store settles");
        }
        let counts = behind.store.stats().await.expect("an open store counts").counts;
        assert_eq!((counts.accepted, counts.delivered), (20, 20));
    });
}

#[test]
fn what_another_process_accepted_is_found_by_the_check_of_every_second() {
    let mut behind = Behind::a_proxy();
    let other = Behind::another(&behind.server);
    story(async {
        behind.rest().await;
        let store = behind.store.clone();
        let waits = tokio::spawn(async move { store.wait().await });
        behind.until_blocked(1).await;
        let accepted = RealClock::start();
        other.accept(vec![offer(URL).event()]).await.expect("an open store accepts");
        waits.await.expect("nothing panics");
        assert!(accepted.monotonic() < Duration::from_secs(3), "{:?}", accepted.monotonic());
        assert_eq!(behind.claim().await.len(), 1);
    });
}

#[test]
fn an_entry_moved_for_a_process_that_died_is_anybodys_again() {
    let mut behind = Behind::a_proxy();
    // Its process died between the move and its next step; its registration has ended.
    let _: usize = behind.raw.rpush("{webhooks:prontos}:staged:dead", entry(7, URL)).expect("it is a list");
    let _: usize = behind.raw.zadd(STAGED, "dead", 1).expect("it is a sorted set");
    story(async {
        let counts = behind.store.stats().await.expect("an open store counts").counts;
        assert_eq!((counts.accepted, counts.pending), (1, 1), "it is counted where it is");
        let mut claimed = behind.claim().await;
        while claimed.is_empty() {
            assert!(behind.clock.monotonic() < Duration::from_secs(20), "it never comes");
            behind.store.wait().await;
            claimed = behind.claim().await;
        }
        assert_eq!(claimed[0].event.id.to_string(), "evt_7");
        let left: usize = behind.raw.exists("{webhooks:prontos}:staged:dead").expect("the server answers");
        assert_eq!(left, 0);
    });
}

#[test]
fn an_answer_lost_with_its_connection_swallows_nothing() {
    let mut behind = Behind::a_proxy();
    story(async {
        for n in 0..10 {
            behind.rest().await;
            let store = behind.store.clone();
            let waits = tokio::spawn(async move { store.wait().await });
            behind.until_blocked(1).await;
            // The move is made in the server, and whoever asked for it is gone before it hears.
            let mut both = redis::pipe();
            both.atomic().cmd("RPUSH").arg(READY).arg(entry(n, URL)).ignore();
            both.cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes").ignore();
            let _: () = both.query(&mut behind.raw).expect("the server does it");
            waits.await.expect("nothing panics");
            let mut claimed = behind.claim_stubbornly().await;
            while claimed.is_empty() {
                assert!(behind.clock.monotonic() < Duration::from_secs(60), "it never comes");
                behind.store.wait().await;
                claimed = behind.claim_stubbornly().await;
            }
            assert_eq!(claimed[0].event.id.to_string(), format!("evt_{n}"));
        }
    });
}

#[test]
fn of_many_that_wait_without_tracking_four_block() {
    let mut behind = Behind::a_proxy();
    let others: Vec<_> = (0..6).map(|_| Behind::another(&behind.server)).collect();
    story(async {
        behind.rest().await;
        let stores = others.iter().chain([&behind.store]).cloned().collect::<Vec<_>>();
        let waits: Vec<_> = stores
            .into_iter()
            .map(|store| {
                tokio::spawn(async move {
                    let clock = RealClock::start();
                    store.claim(World::request_at(clock.now())).await.expect("an open store answers");
                    store.wait().await;
                })
            })
            .collect();
        behind.until_blocked(4).await;
        let armed: usize = behind.raw.zcard(STAGED).expect("it is a sorted set");
        assert_eq!(armed, 4);
        for n in 0..7 {
            let _: usize = behind.raw.rpush(READY, entry(n, &format!("{URL}{n}"))).expect("it is a list");
        }
        for waits in waits {
            waits.await.expect("nothing panics");
        }
    });
}

#[test]
fn a_server_that_is_still_loading_is_waited_for() {
    let server = Server::start(Fsync::EverySecond);
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let proxy = Proxy::start(&server, move |words| {
        let is_info = words[0].eq_ignore_ascii_case(b"INFO");
        (is_info && counter.fetch_add(1, Ordering::SeqCst) < 4).then(|| {
            let loading = "return redis.error_reply('LOADING Redis is loading the dataset in memory')";
            vec![b"EVAL".to_vec(), loading.into(), b"0".to_vec()]
        })
    });
    let store = open(&proxy.url(), &Options::default()).expect("it is there by and by");
    assert_eq!(store.info().durability, "fast");
    assert!(asked.load(Ordering::SeqCst) >= 5);
}
