//! Of many processes that wait a few are told of pushes: who, for how long, and what an event costs among them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use redis_fixture::{Fsync, Server};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Next, Store};
use teimoso_delivery::testkit::offer;
use teimoso_store_redis::RedisStore;
use tokio::task::JoinSet;

use super::clock::RealClock;
use super::world::{World, entry, real, settlement, story};

const URL: &str = "http://loja.example/";
/// As many as are armed at once.
const SEATS: usize = 4;
/// Tracked keys of one process.
const TRACKED: u64 = 3;

/// Who sits where.
fn holders(world: &mut World) -> Vec<Option<String>> {
    let mut ask = redis::cmd("MGET");
    for seat in 0..SEATS + 1 {
        ask.arg(format!("{{webhooks:prontos}}:seat:{seat}"));
    }
    ask.query(&mut world.raw).expect("the server answers")
}

fn stat(world: &mut World, name: &str) -> u64 {
    let info: String = redis::cmd("INFO").arg("stats").query(&mut world.raw).expect("the server answers");
    let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.and_then(|value| value.trim().parse().ok()).expect("it is a statistic")
}

/// How often a command was called, by a client or a script.
fn calls(world: &mut World, name: &str) -> u64 {
    let info: String =
        redis::cmd("INFO").arg("commandstats").query(&mut world.raw).expect("the server answers");
    let line = info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
    line.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or(0)
}

/// Waits and claims for ever, as a worker does; what it claims is delivered at once, with the next claim beside it.
async fn work(store: Arc<RedisStore>) {
    let clock = RealClock::start();
    loop {
        let request = World::request_at(clock.now());
        let mut taken = store.claim(request).await.expect("an open store answers").taken;
        while !taken.is_empty() {
            let at = clock.now();
            let ends = taken.into_iter().map(|one| settlement(one, Next::Delivered, at)).collect();
            let again = store.claim(World::request_at(clock.now()));
            let (settled, claim) = tokio::join!(store.settle(ends), again);
            settled.expect("an open store settles");
            taken = claim.expect("an open store answers").taken;
        }
        store.wait().await;
    }
}

async fn until(clock: &RealClock, what: &str, mut is_so: impl FnMut() -> bool) {
    let began = clock.monotonic();
    while !is_so() {
        assert!(clock.monotonic() - began < Duration::from_secs(15), "never: {what}");
        clock.sleep(Duration::from_millis(2)).await;
    }
}

/// So many at work, until `during` is over.
fn fleet(count: u64, during: impl AsyncFnOnce(&mut World, &mut JoinSet<()>, &RealClock)) {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    let clock = RealClock::start();
    story(async {
        let mut workers = JoinSet::new();
        for seed in 0..count {
            workers.spawn(work(real(&world.server, 100 + seed)));
        }
        let seated = SEATS.min(count as usize);
        until(&clock, "everybody who can sits and listens", || {
            let sit = holders(&mut world).into_iter().flatten().count() == seated;
            sit && stat(&mut world, "tracking_total_items") == TRACKED * seated as u64
        })
        .await;
        during(&mut world, &mut workers, &clock).await;
        workers.shutdown().await;
    });
}

#[test]
fn of_many_that_wait_four_are_armed_and_an_event_is_claimed_by_one() {
    fleet(7, async |world, _, clock| {
        for n in 0..20 {
            world.push(entry(n, URL));
            let delivered = n as u64 + 1;
            let began = clock.monotonic();
            while world.counts().await.delivered < delivered {
                assert!(clock.monotonic() - began < Duration::from_secs(15), "{n} never came");
            }
            let armed = stat(world, "tracking_total_items");
            assert!(armed <= TRACKED * SEATS as u64, "{armed}");
        }
        assert_eq!(holders(world).last(), Some(&None), "there is no fifth seat");
        let different: HashSet<_> = holders(world).into_iter().flatten().collect();
        assert_eq!(different.len(), SEATS);
    });
}

#[test]
fn the_seat_of_a_process_that_died_ends_and_somebody_else_sits() {
    fleet(4, async |world, workers, clock| {
        let died: HashSet<_> = holders(world).into_iter().flatten().collect();
        // Their stores go with them.
        workers.shutdown().await;
        for seed in 200..206 {
            workers.spawn(work(real(&world.server, seed)));
        }
        until(clock, "the living sit in all seats", || {
            let sit: HashSet<_> = holders(world).into_iter().flatten().collect();
            sit.len() == SEATS && sit.is_disjoint(&died)
        })
        .await;
        let pushed = clock.monotonic();
        world.push(entry(1, URL));
        while world.counts().await.delivered < 1 {
            assert!(clock.monotonic() - pushed < Duration::from_secs(15), "nobody was woken");
        }
    });
}

#[test]
fn whoever_sits_moves_up_when_a_better_seat_is_free() {
    fleet(2, async |world, _, clock| {
        let second = holders(world).swap_remove(1).expect("two sit");
        // Somebody who is no more took the first seat over, so its holder has to stand, too.
        let took: String = redis::cmd("SET")
            .arg("{webhooks:prontos}:seat:0")
            .arg("nobody")
            .arg("PX")
            .arg(3_000)
            .query(&mut world.raw)
            .expect("the server takes it");
        assert_eq!(took, "OK");
        let third = |world: &mut World| holders(world).swap_remove(2);
        until(clock, "who lost its seat takes another", || third(world).is_some()).await;
        assert_eq!(holders(world).swap_remove(1), Some(second), "nobody else had to move");
        until(clock, "they move up", || {
            let sit = holders(world);
            sit.iter().take(2).all(|seat| seat.as_ref().is_some_and(|who| who != "nobody"))
                && sit.iter().skip(2).all(Option::is_none)
        })
        .await;
    });
}

#[test]
fn whoever_is_too_busy_to_wait_gives_its_seat_up_and_is_woken_when_it_waits_again() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    let clock = RealClock::start();
    story(async {
        while !world.claim(9).await.is_empty() {}
        let store = world.store.clone();
        let waits = tokio::spawn(async move { store.wait().await });
        until(&clock, "it sits", || holders(&mut world)[0].is_some()).await;
        waits.abort();
        until(&clock, "it stands", || holders(&mut world)[0].is_none()).await;
        let store = world.store.clone();
        let waits = tokio::spawn(async move { store.wait().await });
        until(&clock, "it sits again", || stat(&mut world, "tracking_total_items") == TRACKED).await;
        let pushed = clock.monotonic();
        world.push(entry(1, URL));
        waits.await.expect("nothing panics");
        assert!(clock.monotonic() - pushed < Duration::from_millis(700), "not by a look of every second");
    });
}

#[test]
fn s2_8_an_event_costs_four_scripts_at_most_however_many_wait() {
    const EVENTS: u64 = 40;
    fleet(6, async |world, workers, clock| {
        let acceptor = world.store.clone();
        workers.spawn(work(acceptor.clone()));
        let (scripts, began) = (calls(world, "evalsha"), clock.monotonic());
        let (reads, rung) = (calls(world, "client|caching"), calls(world, "incr"));
        for n in 0..EVENTS {
            acceptor.accept(vec![offer(URL).event()]).await.expect("an open store accepts");
            // Not by `counts`, which is a script.
            until(clock, "it is delivered", || {
                let delivered: Option<u64> = redis::cmd("HGET")
                    .arg("{webhooks:prontos}:counts")
                    .arg("delivered")
                    .query(&mut world.raw)
                    .expect("the server answers");
                delivered == Some(n + 1)
            })
            .await;
        }
        let looks = clock.monotonic().saturating_sub(began).as_secs() + 1;
        let spent = calls(world, "evalsha") - scripts;
        // The acceptance, a claim, the settlement with the next claim; one who looked at the same time; and the look of
        // every second of those who sit or of their settling.
        let most = 4 * EVENTS + 2 * SEATS as u64 * looks;
        let read = (calls(world, "client|caching") - reads) / 2;
        eprintln!("{EVENTS} events: {spent} scripts, {read} looks, {looks} s");
        assert_eq!(calls(world, "incr") - rung, EVENTS);
        assert!(spent <= most, "{spent} scripts, at most {most}");
        assert!(read <= 2 * SEATS as u64 * EVENTS + SEATS as u64 * looks, "{read} looks");
    });
}

#[test]
fn without_a_seat_a_process_that_waits_makes_one_plain_command_a_second() {
    fleet(9, async |world, _, clock| {
        let before: Vec<u64> = ["exists", "evalsha", "client|caching"].map(|name| calls(world, name)).into();
        clock.sleep(Duration::from_secs(4)).await;
        let after: Vec<u64> = ["exists", "evalsha", "client|caching"].map(|name| calls(world, name)).into();
        let spent: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after - before).collect();
        // Looks are at least three quarters of a second apart.
        let most = |processes: u64| processes * 6;
        assert!(spent[0] <= most(5) && spent[0] >= 5, "{spent:?}");
        assert!(spent[1] <= most(SEATS as u64) && spent[1] >= SEATS as u64, "{spent:?}");
        assert_eq!(spent[2], 0, "nothing was pushed, so nobody read");
    });
}
