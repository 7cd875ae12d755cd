//! Renewal, loss, recovery, and clocks that step.

use super::*;
use crate::store::StoreErrorKind;
use crate::testkit::{Faults, offer};

#[test]
fn g5_what_is_held_is_renewed_every_ten_seconds() {
    let world = World::new(|_| Play::status(200).after(seconds(95)));
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        let id = world.accept(offer("http://lenta/")).await;
        assert_eq!(world.end_of(id).await.attempts, 1);
    });
    assert_eq!((world.wire.sent().len(), world.store.extends()), (1, 9));
}

#[test]
fn g5_a_lost_lease_abandons_its_attempt_and_settles_nothing() {
    let world = World::new(|request| match &*request.url {
        "http://presa/" => Play::Forever,
        _ => Play::status(200),
    });
    in_virtual_time(&world.clock, async {
        world.start_with(&patient(), EngineLimits { in_flight: 1, ..EngineLimits::default() });
        let stuck = world.accept(offer("http://presa/")).await;
        world.pass(seconds(1)).await;
        let other = world.accept(offer("http://loja/")).await;
        world.store.set(Faults { extend_loses: true, ..Faults::default() });
        world.pass(seconds(10)).await;
        assert_eq!(world.wire.abandoned(), 1);
        assert_eq!(world.view(other).await.state, DeliveryState::Delivered, "the slot came free");
        let view = world.view(stuck).await;
        assert_eq!((view.state, view.attempts), (DeliveryState::InFlight, 0));
        assert!(world.store.attempts(stuck).await.unwrap().is_empty());
    });
}

#[test]
fn g6_what_a_dropped_engine_held_is_sent_again_when_its_lease_ends() {
    let world = World::new(|_| Play::status(200).after(seconds(2)));
    in_virtual_time(&world.clock, async {
        let engine = world.start(Preset::Patient);
        let id = world.accept(offer("http://loja/")).await;
        world.pass(seconds(1)).await;
        engine.abort();
        assert!(engine.await.unwrap_err().is_cancelled());
        world.pass(Duration::from_millis(1)).await;
        assert_eq!(world.wire.abandoned(), 1);
        world.start(Preset::Patient);
        let end = world.end_of(id).await;
        assert_eq!((end.state, end.attempts), (DeliveryState::Delivered, 1));
    });
    let sent = world.wire.sent();
    assert_eq!(sent.iter().map(|sent| sent.number).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(sent[1].at.since(sent[0].at), seconds(30));
}

#[test]
fn g8_a_wall_clock_that_steps_forward_makes_due_what_is_due_by_it() {
    let world = World::new(|_| Play::status(200));
    in_virtual_time(&world.clock, async {
        let at = Millis::new(START.get() + 3_600_000);
        let id = world.accept(offer("http://loja/").deliver_at(at)).await;
        world.start(Preset::Patient);
        world.pass(seconds(1)).await;
        world.clock.step_forward(seconds(3_600));
        world.end_of(id).await;
    });
    assert!(world.clock.monotonic() <= seconds(7), "{:?}", world.clock.monotonic());
}

#[test]
fn g8_a_wall_clock_that_steps_back_makes_nothing_early() {
    let world = World::new(|_| Play::status(200));
    let at = Millis::new(START.get() + 60_000);
    in_virtual_time(&world.clock, async {
        let id = world.accept(offer("http://loja/").deliver_at(at)).await;
        world.start(Preset::Patient);
        world.pass(seconds(1)).await;
        world.clock.step_back(seconds(30));
        world.end_of(id).await;
    });
    assert_eq!(world.wire.sent()[0].at, at);
    assert!(world.clock.monotonic() >= seconds(90));
}

#[test]
fn g8_a_step_forward_does_not_take_live_leases_for_expired() {
    let world = World::new(|request| match &*request.url {
        "http://lenta/" => Play::status(200).after(seconds(12)),
        _ => Play::status(200),
    });
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        let slow = world.accept(offer("http://lenta/")).await;
        world.pass(seconds(1)).await;
        world.clock.step_forward(seconds(7_200));
        let other = world.accept(offer("http://loja/")).await;
        world.end_of(other).await;
        assert_eq!(world.end_of(slow).await.attempts, 1);
    });
    assert_eq!(world.wire.sent_to("http://lenta/"), 1);
}

#[test]
fn g8_after_a_step_a_renewal_that_fails_still_comes_before_any_claim() {
    let world = World::new(|request| match &*request.url {
        "http://lenta/" => Play::status(200).after(seconds(12)),
        _ => Play::status(200),
    });
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        let slow = world.accept(offer("http://lenta/")).await;
        world.pass(seconds(1)).await;
        world.store.set(Faults { extend_error: Some(StoreErrorKind::Failed), ..Faults::default() });
        world.clock.step_forward(seconds(7_200));
        let other = world.accept(offer("http://loja/")).await;
        world.pass(seconds(3)).await;
        assert_eq!(world.view(other).await.state, DeliveryState::Pending, "claims wait");
        world.store.set(Faults::default());
        world.end_of(other).await;
        assert_eq!(world.end_of(slow).await.attempts, 1);
    });
    assert_eq!(world.wire.sent_to("http://lenta/"), 1);
}

#[test]
fn g8_claims_wait_for_no_renewal_when_nothing_is_held() {
    let world = World::new(|_| Play::status(200).after(seconds(3)));
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        let held = world.accept(offer("http://lenta/")).await;
        world.pass(seconds(1)).await;
        world.store.set(Faults { extend_error: Some(StoreErrorKind::Failed), ..Faults::default() });
        world.clock.step_forward(seconds(7_200));
        let other = world.accept(offer("http://loja/")).await;
        assert_eq!(world.end_of(held).await.attempts, 1);
        assert_eq!(world.end_of(other).await.attempts, 1);
    });
    assert_eq!(world.wire.sent().len(), 2);
}

#[test]
fn g5_an_engine_whose_attempts_could_outlive_their_leases_does_not_start() {
    let world = World::new(|_| Play::status(200));
    let ports = || Ports {
        store: world.store.clone(),
        dispatch: Arc::new(world.wire.clone()),
        clock: Arc::new(world.clock.clone()),
        entropy: Arc::new(SeededEntropy::new(1)),
        observer: world.watch.clone(),
    };
    let refused =
        |policy: &RetryPolicy, limits| Engine::new(ports(), Policies::new(policy.clone()), limits).err();
    let slow = patient().to_builder().attempt_timeout(seconds(25)).build().unwrap();
    let short = InvalidEngine::ShortLease { lease: seconds(30), attempt: seconds(25) };
    assert_eq!(refused(&slow, EngineLimits::default()), Some(short));
    let zero = EngineLimits { in_flight: 0, ..EngineLimits::default() };
    assert_eq!(refused(&patient(), zero), Some(InvalidEngine::Zero("in_flight")));
    let rare = EngineLimits { renew_every: seconds(16), ..EngineLimits::default() };
    let error = InvalidEngine::RareRenewal { lease: seconds(30), renew_every: seconds(16) };
    assert_eq!(refused(&patient(), rare), Some(error));
    assert_eq!(refused(&patient(), EngineLimits::default()), None);
}
