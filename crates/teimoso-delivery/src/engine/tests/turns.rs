//! Isolation between lanes, pauses, and the bounds of what is held.

use super::*;
use crate::model::PauseWhy;
use crate::ports::Note;
use crate::store::{NewReplay, ReplayFilter};
use crate::testkit::{Faults, offer};

#[test]
fn g9_a_lane_that_hangs_holds_its_share_and_delays_nobody() {
    let world = World::new(|request| match &*request.url {
        "http://presa/" => Play::Hang,
        _ => Play::status(200).after(Duration::from_millis(10)),
    });
    in_virtual_time(&world.clock, async {
        let limits = EngineLimits { in_flight: 32, ..EngineLimits::default() };
        world.accept_many(500, offer("http://presa/")).await;
        world.accept_many(200, offer("http://livre/")).await;
        world.start_with(&patient(), limits);
        world.until(|counts| counts.delivered == 200).await;
        assert!(world.wire.sent_to("http://presa/") <= 16);
    });
    assert!(world.clock.monotonic() < seconds(2), "{:?}", world.clock.monotonic());
}

#[test]
fn g11_no_more_is_in_flight_than_the_limit() {
    let world = World::new(|_| Play::status(200).after(seconds(1)));
    in_virtual_time(&world.clock, async {
        for lane in 0..10 {
            world.accept_many(5, offer(&format!("http://loja/{lane}"))).await;
        }
        world.store.set(Faults { deaf: true, ..Faults::default() });
        world
            .start_with(&patient(), EngineLimits { in_flight: 8, claim_batch: 3, ..EngineLimits::default() });
        world.pass(Duration::from_millis(500)).await;
        assert_eq!(world.wire.open(), 8);
        world.until(|counts| counts.delivered == 50).await;
    });
}

#[test]
fn g10_a_retry_after_pauses_the_lane_and_the_backlog_burns_no_attempts() {
    let world = World::new(|request| match request.at.since(START).as_secs() {
        0..60 => Play::retry_after(503, 60),
        _ => Play::status(200),
    });
    in_virtual_time(&world.clock, async {
        world.accept_many(100, offer("http://cheia/")).await;
        world.start_with(&patient(), EngineLimits { in_flight: 2, ..EngineLimits::default() });
        world.until(|counts| counts.delivered == 100).await;
    });
    let early = world.wire.sent().iter().filter(|sent| sent.at.since(START) < seconds(60)).count();
    assert_eq!(early, 1, "half of two slots is one");
    let until = Millis::new(START.get() + 60_000);
    let pause = Note::LanePaused { lane: "http://cheia/".into(), until, why: PauseWhy::RetryAfter };
    assert_eq!(world.watch.notes(), [pause]);
}

#[test]
fn g8_an_accept_wakes_a_sleeping_engine_at_once() {
    let world = World::new(|_| Play::status(200));
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        world.pass(seconds(100)).await;
        let id = world.accept(offer("http://loja/ok")).await;
        world.end_of(id).await;
    });
    assert_eq!(world.wire.sent()[0].at, Millis::new(START.get() + 100_000));
}

#[test]
fn a_freed_slot_is_filled_without_waiting_for_anything_else() {
    let world = World::new(|_| Play::status(200).after(Duration::from_millis(7)));
    in_virtual_time(&world.clock, async {
        world.accept_many(64, offer("http://loja/ok")).await;
        world.start(Preset::Patient);
        world.until(|counts| counts.delivered == 64).await;
    });
    let last = world.wire.sent().pop().unwrap();
    assert_eq!(last.at.since(START), Duration::from_millis(3 * 7), "16 at a time, back to back");
}

#[test]
fn g5_two_engines_on_one_store_share_the_work_and_send_nothing_twice() {
    let world = World::new(|_| Play::status(200).after(Duration::from_millis(50)));
    in_virtual_time(&world.clock, async {
        for lane in 0..20 {
            world.accept_many(20, offer(&format!("http://loja/{lane}"))).await;
        }
        let limits = EngineLimits { in_flight: 50, ..EngineLimits::default() };
        let engines = [world.start_with(&patient(), limits), world.start_with(&patient(), limits)];
        world.pass(Duration::from_millis(20)).await;
        // Both are at work; a few slots stay free for lanes that have none (G9).
        assert!((80..=100).contains(&world.wire.open()), "{} in flight", world.wire.open());
        world.until(|counts| counts.delivered == 400).await;
        world.stop.notify_waiters();
        for engine in engines {
            assert_eq!(engine.await.unwrap(), Ok(()));
        }
    });
    assert_eq!(world.wire.sent().len(), 400);
}

#[test]
fn an_engine_may_run_on_a_runtime_of_several_threads() {
    fn is_send<T: Send>(_: &T) {}
    let world = World::new(|_| Play::status(200));
    let engine = world.engine(&patient(), EngineLimits::default());
    is_send(&engine.run(std::future::pending()));
}

#[test]
fn a_replay_job_runs_at_its_rate_while_the_engine_has_nothing_else_to_do() {
    let world = World::new(|request| Play::status(if request.number.get() == 1 { 404 } else { 200 }));
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        world.accept_many(5, offer("http://loja/")).await;
        world.until(|counts| counts.dead == 5).await;
        let filter = ReplayFilter::default();
        world.store.start_replay(NewReplay { filter, rate: 2, dry_run: false }).await.unwrap();
        world.until(|counts| counts.delivered == 5).await;
    });
    let replayed = world.wire.sent().split_off(5);
    let gaps: Vec<_> = replayed.windows(2).map(|pair| pair[1].at.since(pair[0].at).as_millis()).collect();
    assert_eq!(gaps, [500; 4]);
}
