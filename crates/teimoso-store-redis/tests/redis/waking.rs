//! Waiting without polling: who is woken, by what, and what waiting costs.

use std::time::Duration;

use redis::Commands;
use redis_fixture::{Fsync, Server};
use teimoso_delivery::model::Millis;
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Next, Store};
use teimoso_delivery::testkit::offer;

use super::clock::RealClock;
use super::world::{World, entry, real, story};

const URL: &str = "http://loja.example/";

#[test]
fn s2_8_a_push_wakes_whoever_waits() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        for n in 0..50 {
            while !world.claim(9).await.is_empty() {}
            let store = world.store.clone();
            let waits = tokio::spawn(async move { store.wait().await });
            tokio::task::yield_now().await;
            let pushed = RealClock::start();
            world.push(entry(n, URL));
            world.within(waits).await.expect("nothing panics");
            let claimed = world.one().await;
            let took = pushed.monotonic();
            assert!(took < Duration::from_millis(900), "not by the check of every second: {took:?}");
            world.settle(claimed, Next::Delivered).await;
        }
    });
}

#[test]
fn s2_8_a_push_that_brought_no_news_does_not_make_the_next_one_unheard() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        while !world.claim(9).await.is_empty() {}
        let store = world.store.clone();
        let waits = tokio::spawn(async move { store.wait().await });
        let clock = RealClock::start();
        let armed = async |raw: &mut redis::Connection| {
            let is_armed = |raw: &mut redis::Connection| {
                let info: String = redis::cmd("INFO").arg("stats").query(raw).expect("the server answers");
                info.contains("tracking_total_keys:3\r")
            };
            while !is_armed(raw) {
                assert!(clock.monotonic() < Duration::from_secs(10), "it is never armed");
                clock.sleep(Duration::from_millis(1)).await;
            }
        };
        for _ in 0..3 {
            armed(&mut world.raw).await;
            // What it shows stays the same, as after a script of this process, which heard it already.
            let shows: Option<String> = world.raw.get("{webhooks:prontos}:bell").expect("it is a text");
            let shows = shows.unwrap_or_else(|| "0".to_owned());
            let _: () = world.raw.set("{webhooks:prontos}:bell", shows).expect("it is written");
        }
        armed(&mut world.raw).await;
        let pushed = RealClock::start();
        world.push(entry(1, URL));
        world.within(waits).await.expect("nothing panics");
        assert!(pushed.monotonic() < Duration::from_millis(900), "not by the check of every second");
    });
}

#[test]
fn an_acceptance_in_another_process_wakes_whoever_waits() {
    let world = World::real(Server::start(Fsync::EverySecond));
    let other = real(&world.server, 99);
    story(async {
        world.claim(9).await;
        world.claim(9).await;
        let accepted = async {
            let answers = other.accept(vec![offer(URL).event()]).await.expect("an open store accepts");
            assert!(answers[0].is_ok());
        };
        let ((), ()) = tokio::join!(accepted, world.within(world.store.wait()));
        assert_eq!(world.claim_until(1).await.len(), 1);
    });
}

#[test]
fn a_retry_scheduled_by_a_process_that_died_is_found_by_the_others() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        world.claim(9).await;
        let now: f64 = world.clock.now().get() as f64;
        let _: usize =
            world.raw.zadd(super::world::WAITING, entry(1, URL), now + 300.0).expect("it is a sorted set");
        let taken = world.claim_until(1).await;
        assert!(world.clock.now() >= Millis::new(now as u64 + 300), "never early");
        assert_eq!(taken[0].event.id.to_string(), "evt_1");
    });
}

#[test]
fn two_idle_processes_cost_next_to_nothing() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    let other = real(&world.server, 99);
    story(async {
        let clock = RealClock::start();
        let idle = async |store: &teimoso_store_redis::RedisStore| {
            loop {
                store.wait().await;
                store.claim(world.request(9)).await.expect("an open store answers");
            }
        };
        let settle_down = clock.sleep(Duration::from_millis(500));
        tokio::select! {
            () = settle_down => {}
            () = idle(&world.store) => {}
            () = idle(&other) => {}
        }
        let mut raw = world.server.raw();
        let calls = |raw: &mut redis::Connection| -> u64 {
            let info: String = redis::cmd("INFO").arg("commandstats").query(raw).expect("the server answers");
            let of = |name: &str| {
                let line = info.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:")));
                let calls =
                    line.and_then(|line| line.split("calls=").nth(1)?.split(',').next()?.parse().ok());
                calls.unwrap_or(0)
            };
            of("evalsha") + of("eval") + of("exists") + of("client|caching")
        };
        let before = calls(&mut raw);
        tokio::select! {
            () = clock.sleep(Duration::from_secs(4)) => {}
            () = idle(&world.store) => {}
            () = idle(&other) => {}
        }
        let spent = calls(&mut raw) - before;
        assert!(spent <= 4 * 2 * 2, "{spent} commands in four seconds");
    });
    let _: bool = world.raw.exists("x").expect("the server answers");
}
