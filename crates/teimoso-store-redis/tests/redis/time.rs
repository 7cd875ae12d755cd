//! Redis' clock decides: skewed workers, a server that goes back in time, outages.

use std::sync::Arc;
use std::time::Duration;

use redis::Commands;
use redis_fixture::{Fsync, Server};
use teimoso_delivery::model::Millis;
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{LEASE, Next, Store};
use teimoso_delivery::testkit::{ManualClock, SeededEntropy, offer};
use teimoso_store_redis::{Options, RedisStore};

use super::clock::RealClock;
use super::cost::Spent;
use super::world::{World, again, story};

const URL: &str = "http://loja.example/";
const META: &str = "{webhooks:prontos}:meta";
const LEASES: &str = "{webhooks:prontos}:leases";

fn only_score(world: &mut World, key: &str) -> i64 {
    let found: Vec<(Vec<u8>, f64)> = world.raw.zrange_withscores(key, 0, -1).expect("it is a sorted set");
    assert_eq!(found.len(), 1, "{key}");
    found[0].1 as i64
}

fn server_now(world: &mut World) -> i64 {
    let (seconds, micros): (i64, i64) = redis::cmd("TIME").query(&mut world.raw).expect("the server answers");
    seconds * 1_000 + micros / 1_000
}

async fn accept(world: &World) {
    let accepted = world.store.accept(vec![offer(URL).event()]).await.expect("an open store accepts");
    assert!(accepted[0].is_ok());
}

#[test]
fn g8_a_workers_skewed_clock_changes_no_lease_and_no_due_time() {
    let server = Server::start(Fsync::EverySecond);
    let mut world = World::real(server);
    let ahead = ManualClock::at(RealClock::start().now().after(Duration::from_secs(600)));
    let entropy = Arc::new(SeededEntropy::new(3));
    let store = RedisStore::open(&world.server.url(), &Options::default(), Arc::new(ahead.clone()), entropy);
    let (store, clock) = (Arc::new(store.expect("a sound server opens")), Arc::new(ahead.clone()));
    (world.store, world.clock) = (store, clock);
    story(async {
        accept(&world).await;
        let claimed = world.one().await;
        let lease = only_score(&mut world, LEASES) - server_now(&mut world);
        assert!((25_000..=30_000).contains(&lease), "the lease ends in {lease} ms");
        world.settle(claimed, again(ahead.now().after(Duration::from_secs(60)))).await;
        let due = only_score(&mut world, "{webhooks:prontos}:timers") - server_now(&mut world);
        assert!((55_000..=60_000).contains(&due), "due in {due} ms");
        let wake = world.store.claim(world.request(9)).await.expect("an open store answers").wake_at;
        let wait = wake.expect("it is known").since(ahead.now()).as_millis();
        assert!((55_000..=60_000).contains(&wait), "wakes in {wait} ms");
    });
}

#[test]
fn a_failover_to_a_slower_clock_does_not_go_back_and_a_broken_one_is_not_believed() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        accept(&world).await;
        let ahead = server_now(&mut world) + 40_000;
        let _: usize = world.raw.hset(META, "now", ahead).expect("it is a hash");
        world.one().await;
        assert!(
            only_score(&mut world, LEASES) >= ahead + 25_000,
            "time stood still until the clock caught up"
        );
        assert_eq!(world.store.clock_went_back(), None);
        let broken = server_now(&mut world) + 3_600_000;
        let _: usize = world.raw.hset(META, "now", broken).expect("it is a hash");
        world.claim(9).await;
        let mark: i64 = world.raw.hget(META, "now").expect("it is kept");
        assert!(mark - server_now(&mut world) < 1_000, "rebased");
        assert!(world.store.clock_went_back().is_some_and(|by| by > Duration::from_secs(3_500)));
    });
}

#[test]
fn after_an_outage_workers_that_live_have_a_lease_of_grace() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        accept(&world).await;
        let claimed = world.one().await;
        let id = claimed.lease.delivery();
        // The lease ran out while no script ran: Redis was away.
        let now = server_now(&mut world);
        let member: Vec<Vec<u8>> = world.raw.zrange(LEASES, 0, 0).expect("it is a sorted set");
        let _: usize = world.raw.zadd(LEASES, &member[0], now - 1_000).expect("it is a sorted set");
        let _: usize = world.raw.hset(META, "now", now - 16_000).expect("it is a hash");
        assert_eq!(world.claim(9).await.len(), 0, "grace");
        let grace: i64 = world.raw.hget(META, "grace").expect("it is kept");
        assert!((grace - now - 30_000).abs() < 5_000);
        // Nobody said that the worker lives.
        let _: usize = world.raw.hset(META, "grace", now - 1).expect("it is a hash");
        let second = world.one().await;
        assert_eq!((second.lease.delivery(), second.progress.recoveries), (id, 1));
        world.settle(claimed, Next::Delivered).await;
        assert_eq!(world.counts().await.in_flight, 1, "the stale worker settles nothing");
        let until = Millis::new(RealClock::start().now().get()).after(LEASE);
        let lost = world.store.extend(vec![(&second.lease).into()], until).await;
        assert_eq!(lost, Ok(Vec::new()));
    });
}

#[test]
fn the_grace_is_given_by_whichever_script_is_the_first_after_an_outage() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        accept(&world).await;
        world.one().await;
        let now = server_now(&mut world);
        let member: Vec<Vec<u8>> = world.raw.zrange(LEASES, 0, 0).expect("it is a sorted set");
        let _: usize = world.raw.zadd(LEASES, &member[0], now - 1_000).expect("it is a sorted set");
        let _: usize = world.raw.hset(META, "now", now - 16_000).expect("it is a hash");
        // Not a claim, which alone recovers what has expired.
        accept(&world).await;
        let fresh = world.claim(9).await;
        assert_eq!((fresh.len(), fresh[0].progress.recoveries), (1, 0), "what is held stays held");
    });
}

#[test]
fn while_the_grace_runs_nobody_claims_in_vain() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        accept(&world).await;
        world.one().await;
        let now = server_now(&mut world);
        let member: Vec<Vec<u8>> = world.raw.zrange(LEASES, 0, 0).expect("it is a sorted set");
        let _: usize = world.raw.zadd(LEASES, &member[0], now - 1_000).expect("it is a sorted set");
        let _: usize = world.raw.hset(META, "now", now - 16_000).expect("it is a hash");
        let before = Spent::read(&mut world).scripts;
        let claims = async {
            loop {
                let wake = world.store.claim(world.request(9)).await.expect("an open store answers").wake_at;
                let wait = wake.expect("the lease ends at some time").since(world.clock.now());
                assert!(wait > Duration::from_secs(25), "no lease ends before the grace does: {wait:?}");
                tokio::select! {
                    () = world.store.wait() => {}
                    () = world.clock.sleep(wait) => {}
                }
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(2), claims).await.is_err(), "it claims for ever");
        let scripts = Spent::read(&mut world).scripts - before;
        assert!((1..=12).contains(&scripts), "{scripts} scripts in two seconds");
    });
}
