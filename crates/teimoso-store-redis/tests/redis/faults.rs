//! What Redis and the network do to us: full memory, restarts, forgotten scripts, cut connections, an empty server.

use std::collections::HashSet;
use std::time::Duration;

use redis_fixture::{Fsync, Proxy, Server};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Next, Store, StoreErrorKind};
use teimoso_delivery::testkit::offer;
use teimoso_store_redis::Options;

use super::clock::RealClock;
use super::opening::open;
use super::world::{BURIED, READY, World, again, entry, story};

/// Many lanes, so that no lane's sixteen slots bound a claim.
fn url(n: usize) -> String {
    format!("http://loja.example/{}", n % 40)
}

#[test]
fn s2_10_at_the_bound_of_memory_nothing_is_lost_and_everything_drains() {
    let server = Server::start_with(&[
        "--appendonly",
        "yes",
        "--maxmemory",
        "8mb",
        "--maxmemory-policy",
        "noeviction",
    ]);
    let mut world = World::real(server);
    story(async {
        for n in 0..50 {
            world.push(entry(n, &url(n)));
        }
        let mut accepted = 0;
        let full = loop {
            let batch = (0..50).map(|n| offer(&url(n)).payload(vec![b'x'; 2_000]).event()).collect();
            match world.store.accept(batch).await {
                Ok(answers) => accepted += answers.len(),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), StoreErrorKind::Full, "{full}");
        // Well below what is used: whatever adds first is refused from here on.
        world.command(&["CONFIG", "SET", "maxmemory", "4mb"]);
        assert_eq!(world.counts().await.accepted as usize, accepted + 50);
        let mut seen = HashSet::new();
        while seen.len() < accepted + 50 {
            let taken = world.claim_until(1).await;
            let (fresh, tried): (Vec<_>, Vec<_>) =
                taken.into_iter().partition(|one| seen.insert(one.lease.delivery()));
            world.settle_all(fresh, again(world.clock.now())).await;
            world.settle_all(tried, Next::Delivered).await;
        }
        while world.counts().await.delivered as usize != accepted + 50 {
            let taken = world.claim_until(1).await;
            world.settle_all(taken, Next::Delivered).await;
        }
        let counts = world.counts().await;
        assert_eq!((counts.dead, counts.in_flight, counts.scheduled), (0, 0, 0));
    });
}

/// Accepts one event, repeating it under its name until Redis is back.
async fn accept_stubbornly(world: &World, n: usize) {
    let clock = RealClock::start();
    loop {
        let event = offer(&url(n)).named(&format!("p-{n}")).event();
        match world.store.accept(vec![event]).await {
            Ok(answers) => return assert!(answers[0].is_ok()),
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}"),
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
}

/// Claims once, through whatever happens to the connection.
async fn claim_stubbornly(world: &World) -> Vec<teimoso_delivery::store::Claimed> {
    let clock = RealClock::start();
    loop {
        match world.store.claim(world.request(64)).await {
            Ok(claim) => return claim.taken,
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}"),
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn workers_go_on_after_every_restart_and_lose_nothing() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        let mut delivered = HashSet::new();
        for round in 0..5 {
            for n in 0..20 {
                accept_stubbornly(&world, round * 20 + n).await;
            }
            let held = claim_stubbornly(&world).await;
            world.server.restart();
            let back = RealClock::start();
            // Kept while Redis was away, and sent when it is back.
            delivered.extend(held.iter().map(|one| one.event.id.to_string()));
            world.settle_all(held, Next::Delivered).await;
            assert!(back.monotonic() < Duration::from_secs(8), "{:?}", back.monotonic());
        }
        while delivered.len() < 100 {
            let taken = claim_stubbornly(&world).await;
            delivered.extend(taken.iter().map(|one| one.event.id.to_string()));
            world.settle_all(taken, Next::Delivered).await;
        }
        let counts = world.counts().await;
        assert_eq!((counts.accepted, counts.delivered), (100, 100), "none lost, none twice");
        assert_eq!(world.store.health(), Ok(()));
    });
}

#[test]
fn while_redis_is_away_the_store_says_so() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        world.claim(1).await;
        world.server.kill();
        let refused = world.store.claim(world.request(1)).await.map(|claim| claim.taken.len());
        assert_eq!(refused.map_err(|error| error.kind()), Err(StoreErrorKind::Busy));
        assert!(world.store.health().is_err());
        let refused = world.store.accept(vec![offer("http://a/").event()]).await;
        assert_eq!(refused.map_err(|error| error.kind()), Err(StoreErrorKind::Busy));
    });
}

#[test]
fn forgotten_scripts_are_sent_again() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        for n in 0..100 {
            world.command(&["SCRIPT", "FLUSH"]);
            accept_stubbornly(&world, n).await;
            world.command(&["SCRIPT", "FLUSH"]);
            let claimed = world.one().await;
            world.command(&["SCRIPT", "FLUSH"]);
            world.settle(claimed, Next::Delivered).await;
        }
        assert_eq!(world.counts().await.delivered, 100);
    });
}

#[test]
fn cut_connections_cost_nothing_but_time() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        let mut delivered = HashSet::new();
        for n in 0..60 {
            world.push(entry(n, &url(n)));
            if n % 3 == 0 {
                world.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            }
            let taken = claim_stubbornly(&world).await;
            delivered.extend(taken.iter().map(|one| one.event.id.to_string()));
            world.settle_all(taken, Next::Delivered).await;
        }
        let patience = RealClock::start();
        while delivered.len() < 60 {
            assert!(patience.monotonic() < Duration::from_secs(60), "{} came", delivered.len());
            world.within(world.store.wait()).await;
            let taken = claim_stubbornly(&world).await;
            delivered.extend(taken.iter().map(|one| one.event.id.to_string()));
            world.settle_all(taken, Next::Delivered).await;
        }
        assert_eq!((world.list(READY).len(), world.list(BURIED).len()), (0, 0));
        assert_eq!(world.counts().await.delivered, 60);
    });
}

#[test]
fn s2_10_an_answer_that_ends_in_the_middle_costs_neither_a_settlement_nor_a_claim() {
    let server = Server::start(Fsync::EverySecond);
    let proxy = Proxy::start(&server, |_| None);
    let behind = open(&proxy.url(), &Options::default()).expect("a proxy is no hindrance");
    let mut world = World::real(server);
    // The world looks on; whoever works is behind the proxy.
    world.store = std::sync::Arc::new(behind);
    story(async {
        for n in 0..10 {
            accept_stubbornly(&world, n).await;
            proxy.cut_answers();
            let held = claim_stubbornly(&world).await;
            let names: Vec<_> = held.iter().map(|one| one.event.id.to_string()).collect();
            assert_eq!(names, [format!("p-{n}")], "the claim whose answer was cut is asked for again");
            proxy.cut_answers();
            world.settle_all(held, Next::Delivered).await;
            assert_eq!(world.counts().await.delivered, n as u64 + 1, "and so is the settlement");
        }
        assert_eq!(world.counts().await.in_flight, 0);
    });
}

#[test]
fn a_password_that_changes_while_a_worker_runs_is_said_and_waited_out() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        accept_stubbornly(&world, 1).await;
        let claimed = world.one().await;
        world.command(&["CONFIG", "SET", "requirepass", "segredo"]);
        world.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        let refused = loop {
            match world.store.claim(world.request(1)).await {
                Err(error) if error.kind() == StoreErrorKind::Failed => break error,
                other => assert_eq!(other.map_err(|error| error.kind()).err(), Some(StoreErrorKind::Busy)),
            }
        };
        assert!(refused.to_string().starts_with("redis refuses us: "), "{refused}");
        assert!(world.store.health().is_err());
        let store = world.store.clone();
        let batch = vec![super::world::settlement(claimed, Next::Delivered, world.clock.now())];
        let settled = tokio::spawn(async move { store.settle(batch).await.map(|_| ()) });
        tokio::task::yield_now().await;
        world.command(&["CONFIG", "SET", "requirepass", ""]);
        assert_eq!(world.within(settled).await.expect("nothing panics"), Ok(()));
        assert_eq!(world.counts().await.delivered, 1);
    });
}

#[test]
fn an_emptied_server_is_a_fresh_one() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        accept_stubbornly(&world, 1).await;
        world.one().await;
        world.command(&["FLUSHALL"]);
        accept_stubbornly(&world, 2).await;
        let claimed = world.one().await;
        assert_eq!(claimed.event.id.to_string(), "p-2");
        world.settle(claimed, Next::Delivered).await;
        assert_eq!(world.counts().await.accepted, 1);
    });
}
