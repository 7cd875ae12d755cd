//! S2's story, schedules, drains.

use std::collections::HashMap;

use super::*;
use crate::model::DeadReason;

/// S2.11's destination.
fn destination(request: &Dispatched) -> Play {
    match (&*request.url, request.number.get()) {
        ("http://loja/ok", _) | ("http://loja/teimoso", 3..) => Play::status(200),
        ("http://loja/teimoso", _) => Play::status(503),
        ("http://loja/quebra", _) => Play::status(500),
        ("http://fechado/", _) => Play::refused(),
        _ => Play::status(404),
    }
}

#[test]
fn s2_the_whole_story_in_virtual_time() {
    let world = World::new(destination);
    in_virtual_time(&world.clock, async {
        world.start(Preset::Webhook);
        let expected = [
            ("http://loja/ok", DeliveryState::Delivered, None, 1),
            ("http://loja/teimoso", DeliveryState::Delivered, None, 3),
            ("http://loja/quebra", DeliveryState::Dead, Some(DeadReason::AttemptsExhausted), 5),
            ("http://loja/nada", DeliveryState::Dead, Some(DeadReason::PermanentStatus), 1),
            ("http://fechado/", DeliveryState::Dead, Some(DeadReason::AttemptsExhausted), 5),
        ];
        let mut ids = Vec::new();
        for (url, ..) in expected {
            ids.push(world.accept(crate::testkit::offer(url)).await);
        }
        for (id, (url, state, reason, attempts)) in ids.into_iter().zip(expected) {
            let end = world.end_of(id).await;
            assert_eq!((end.state, end.reason, end.attempts), (state, reason, attempts), "{url}");
            assert_eq!(world.store.attempts(id).await.unwrap().len(), attempts as usize, "{url}");
            assert_eq!(world.wire.sent_to(url), attempts as usize, "{url}");
        }
        assert_eq!(world.counts().await.dead, 3);
    });
    waits_are_s2_3s(&world);
}

/// 2, 4, 8, 16 s plus 0–1 s; never early, and late by no more than the clock's grain (S2.3, G8).
fn waits_are_s2_3s(world: &World) {
    let mut starts: HashMap<_, Vec<Millis>> = HashMap::new();
    for sent in world.wire.sent() {
        starts.entry(sent.url).or_default().push(sent.at);
    }
    assert_eq!(starts["http://loja/quebra"].len(), 5);
    for starts in starts.values() {
        for (pair, base) in starts.windows(2).zip([2_000, 4_000, 8_000, 16_000]) {
            let waited = pair[1].since(pair[0]).as_millis();
            assert!((base..=base + 1_001).contains(&waited), "{waited} after {base}");
        }
    }
    for end in world.watch.ends() {
        assert!(end.lag <= Duration::from_millis(1), "{end:?}");
    }
}

#[test]
fn s2_14_the_observer_hears_every_attempt_with_its_wait_and_n_of_max() {
    let world = World::new(destination);
    in_virtual_time(&world.clock, async {
        world.start(Preset::Webhook);
        let id = world.accept(crate::testkit::offer("http://loja/teimoso")).await;
        world.end_of(id).await;
    });
    let ends = world.watch.ends();
    assert_eq!(ends.iter().map(|end| end.of).collect::<Vec<_>>(), [(1, 5), (2, 5), (3, 5)]);
    assert_eq!(ends.iter().map(|end| end.wait.is_some()).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn s2_9_a_dead_one_is_replayed_by_hand_with_a_fresh_budget_and_running_numbers() {
    let world = World::new(|request| Play::status(if request.number.get() > 6 { 200 } else { 500 }));
    in_virtual_time(&world.clock, async {
        world.start(Preset::Webhook);
        let id = world.accept(crate::testkit::offer("http://loja/quebra")).await;
        assert_eq!(world.end_of(id).await.attempts, 5);
        world.store.retry(id, false).await.unwrap();
        let end = world.end_of(id).await;
        assert_eq!((end.state, end.attempts, end.budget_from), (DeliveryState::Delivered, 7, 5));
    });
    let last = world.watch.ends().pop().unwrap();
    assert_eq!((last.number, last.of), (7, (2, 5)));
}

#[test]
fn g8_a_patient_delivery_tries_ten_times_over_75_hours_and_is_never_early() {
    let world = World::new(|_| Play::status(500));
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        let id = world.accept(crate::testkit::offer("http://loja/quebra")).await;
        while !world.view(id).await.state.is_final() {
            world.pass(seconds(600)).await;
        }
        assert_eq!(world.view(id).await.reason, Some(DeadReason::AttemptsExhausted));
    });
    let sent = world.wire.sent();
    assert_eq!(sent.len(), 10);
    let hours = sent[9].at.since(sent[0].at).as_secs_f64() / 3_600.0;
    assert!((68.0..=83.2).contains(&hours), "{hours}");
    assert!(world.watch.ends().iter().all(|end| end.lag <= Duration::from_millis(1)));
}

#[test]
fn a_drain_ends_what_is_in_flight_and_starts_nothing_new() {
    let world = World::new(|_| Play::status(200).after(seconds(5)));
    in_virtual_time(&world.clock, async {
        let one = EngineLimits { in_flight: 2, ..EngineLimits::default() };
        let engine = world.start_with(&patient(), one);
        world.accept_many(5, crate::testkit::offer("http://loja/lenta")).await;
        world.accept_many(5, crate::testkit::offer("http://loja/outra")).await;
        world.pass(seconds(1)).await;
        assert_eq!(world.wire.open(), 2);
        world.stop.notify_one();
        assert_eq!(engine.await.unwrap(), Ok(()));
        let counts = world.counts().await;
        assert_eq!((counts.delivered, counts.pending, counts.in_flight), (2, 8, 0));
    });
    assert_eq!(world.clock.monotonic(), seconds(5));
}

#[test]
fn an_idle_engine_stops_at_once() {
    let world = World::new(|_| Play::status(200));
    in_virtual_time(&world.clock, async {
        let engine = world.start(Preset::Patient);
        world.pass(seconds(1)).await;
        world.stop.notify_one();
        assert_eq!(engine.await.unwrap(), Ok(()));
    });
    assert_eq!(world.clock.monotonic(), seconds(1));
}

#[test]
fn g8_an_idle_engine_asks_the_store_nothing() {
    let world = World::new(|_| Play::status(200));
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        let later = Millis::new(START.get() + 4_000_000);
        world.accept(crate::testkit::offer("http://loja/depois").deliver_at(later)).await;
        world.pass(seconds(1)).await;
        let claims = world.store.claims();
        world.pass(seconds(3_600)).await;
        assert_eq!(world.store.claims(), claims);
        world.until(|counts| counts.delivered == 1).await;
    });
    assert_eq!(world.wire.sent()[0].at, Millis::new(START.get() + 4_000_000));
}
