//! A store that fails, stalls or is closed.

use super::*;
use crate::ports::Note;
use crate::store::StoreErrorKind;
use crate::testkit::{Faults, offer};

#[test]
fn a_settle_that_waits_stops_no_attempt_from_being_gathered() {
    let world = World::new(|_| Play::status(200).after(Duration::from_millis(1)));
    in_virtual_time(&world.clock, async {
        world.store.set(Faults { settle_stalls: true, ..Faults::default() });
        for lane in 0..20 {
            world.accept_many(1, offer(&format!("http://loja/{lane}"))).await;
        }
        world.start_with(&patient(), EngineLimits { in_flight: 4, ..EngineLimits::default() });
        world.pass(seconds(1)).await;
        let (first, held) = (4, 4);
        assert_eq!(world.watch.ends().len(), first + held, "the first batch waits, the next has ended");
        assert_eq!(world.wire.sent().len(), first + held, "and nothing more is claimed: back-pressure");
        world.store.set(Faults::default());
        world.until(|counts| counts.delivered == 20).await;
    });
}

#[test]
fn a_failing_store_is_named_once_and_the_engine_recovers_by_itself() {
    let world = World::new(|_| Play::status(200));
    in_virtual_time(&world.clock, async {
        world.store.set(Faults { claim_error: Some(StoreErrorKind::Full), ..Faults::default() });
        world.start(Preset::Patient);
        let id = world.accept(offer("http://loja/")).await;
        world.pass(seconds(60)).await;
        assert!((40..=90).contains(&world.store.claims()), "{}", world.store.claims());
        assert!(world.wire.sent().is_empty());
        world.store.set(Faults::default());
        world.end_of(id).await;
    });
    let failing = Note::StoreFailing { sentence: "a scripted fault".to_owned() };
    assert_eq!(world.watch.notes(), [failing, Note::StoreRecovered]);
    assert!(world.clock.monotonic() <= seconds(62), "within two seconds");
}

#[test]
fn a_renewal_that_fails_is_tried_again_within_the_lease() {
    let world = World::new(|_| Play::status(200).after(seconds(40)));
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        let id = world.accept(offer("http://lenta/")).await;
        world.store.set(Faults { extend_error: Some(StoreErrorKind::Failed), ..Faults::default() });
        world.pass(seconds(25)).await;
        world.store.set(Faults::default());
        assert_eq!(world.end_of(id).await.attempts, 1);
    });
    assert_eq!(world.wire.sent().len(), 1);
}

#[test]
fn a_store_that_is_closed_under_the_engine_ends_the_run() {
    let world = World::new(|_| Play::status(200).after(seconds(1)));
    in_virtual_time(&world.clock, async {
        let engine = world.start(Preset::Patient);
        world.accept(offer("http://loja/")).await;
        world.pass(Duration::from_millis(10)).await;
        world.store.close().await;
        let error = engine.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Closed);
    });
}

#[test]
fn a_drain_says_when_the_last_settlements_are_not_durable() {
    let world = World::new(|_| Play::status(200).after(seconds(1)));
    in_virtual_time(&world.clock, async {
        world.store.set(Faults { ticket_error: Some(StoreErrorKind::Failed), ..Faults::default() });
        let engine = world.start(Preset::Patient);
        world.accept(offer("http://loja/")).await;
        world.pass(Duration::from_millis(10)).await;
        world.stop.notify_one();
        assert_eq!(engine.await.unwrap().unwrap_err().kind(), StoreErrorKind::Failed);
    });
}

/// One attempt of a second is in flight when the engine is told to stop; what came of the drain, and when it ended.
fn drained_with(faults: Faults, healed_after: Option<Duration>) -> (Result<(), StoreErrorKind>, Duration) {
    let world = World::new(|_| Play::status(200).after(seconds(1)));
    let ended = in_virtual_time(&world.clock, async {
        world.store.set(faults);
        let engine = world.start(Preset::Patient);
        world.accept(offer("http://loja/")).await;
        world.pass(Duration::from_millis(10)).await;
        world.stop.notify_one();
        if let Some(healed_after) = healed_after {
            world.pass(healed_after).await;
            world.store.set(Faults::default());
        }
        engine.await.unwrap()
    });
    (ended.map_err(|error| error.kind()), world.clock.monotonic())
}

#[test]
fn a_drain_gives_a_store_that_cannot_save_five_seconds_after_the_last_attempt() {
    let given_up = (Err(StoreErrorKind::Busy), seconds(1) + LAST_SETTLEMENTS);
    assert_eq!(drained_with(Faults { settle_stalls: true, ..Faults::default() }, None), given_up);
    assert_eq!(drained_with(Faults { ticket_stalls: true, ..Faults::default() }, None), given_up);
    let full = Faults { ticket_stalls: true, ..Faults::default() };
    let healed = Duration::from_millis(3_010);
    assert_eq!(drained_with(full, Some(seconds(3))), (Ok(()), healed), "room was made in time");
}

#[test]
fn a_drain_does_not_wait_for_ever_for_a_claim() {
    let world = World::new(|_| Play::status(200));
    in_virtual_time(&world.clock, async {
        world.store.set(Faults { claim_delay: seconds(3_600), ..Faults::default() });
        let engine = world.start(Preset::Patient);
        world.pass(seconds(1)).await;
        world.stop.notify_one();
        assert_eq!(engine.await.unwrap().unwrap_err().kind(), StoreErrorKind::Busy);
    });
    assert_eq!(world.clock.monotonic(), seconds(1) + LAST_SETTLEMENTS);
}

#[test]
fn a_claim_that_answers_during_a_drain_is_given_back_unsent() {
    let world = World::new(|_| Play::status(200));
    in_virtual_time(&world.clock, async {
        world.store.set(Faults { claim_delay: seconds(3), ..Faults::default() });
        let id = world.accept(offer("http://loja/")).await;
        let engine = world.start(Preset::Patient);
        world.pass(seconds(1)).await;
        world.stop.notify_one();
        assert_eq!(engine.await.unwrap(), Ok(()));
        let view = world.view(id).await;
        assert_eq!((view.state, view.attempts), (DeliveryState::Pending, 0));
    });
    assert!(world.wire.sent().is_empty());
}
