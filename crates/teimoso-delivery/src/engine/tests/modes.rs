//! At-most-once, and attempts that panic.

use teimoso_retry::{Fate, Nack, Proof, Refusal, Why};

use super::*;
use crate::model::{DeadReason, ErrorKind};
use crate::testkit::{Faults, offer, report};

fn ends_after(first: Play) -> (DeliveryView, usize) {
    let world =
        World::new(move |request| if request.number.get() == 1 { first.clone() } else { Play::status(200) });
    let end = in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        let id = world.accept(offer("http://banco/").at_most_once()).await;
        world.end_of(id).await
    });
    (end, world.wire.sent().len())
}

#[test]
fn g4_what_may_have_taken_effect_is_never_followed_by_another_attempt() {
    let unknown = |why| Play::Report(report(Fate::Ambiguous(why), None));
    let lost = |status| Play::Report(report(Fate::BodyLost, Some(status)));
    let plays = [
        Play::Hang,
        Play::reset(),
        unknown(Why::Closed),
        unknown(Why::Protocol),
        unknown(Why::Other),
        Play::status(302),
        Play::status(408),
        Play::status(500),
        Play::retry_after(503, 1),
        lost(502),
        Play::Panic,
    ];
    for play in plays {
        let (end, sent) = ends_after(play.clone());
        assert_eq!((end.state, end.reason), (DeliveryState::Dead, Some(DeadReason::Ambiguous)), "{play:?}");
        assert_eq!(sent, 1, "{play:?}");
    }
}

#[test]
fn g4_what_has_certainly_not_taken_effect_is_tried_again() {
    let never = |proof| Play::Report(report(Fate::NeverSent(proof), None));
    let plays = [
        never(Proof::Dns),
        Play::refused(),
        never(Proof::ZeroBytesWritten),
        Play::Report(report(Fate::NotProcessed(Nack::GoAway), None)),
        Play::status(421),
        Play::status(425),
        Play::retry_after(429, 1),
    ];
    for play in plays {
        let (end, sent) = ends_after(play.clone());
        assert_eq!((end.state, sent), (DeliveryState::Delivered, 2), "{play:?}");
    }
}

#[test]
fn g4_an_answer_that_is_final_is_final() {
    let ends = [
        (Play::status(200), DeliveryState::Delivered, None),
        (Play::Report(report(Fate::BodyLost, Some(200))), DeliveryState::Delivered, None),
        (Play::status(404), DeliveryState::Dead, Some(DeadReason::PermanentStatus)),
        (
            Play::Report(report(Fate::Refused(Refusal::BlockedAddress), None)),
            DeliveryState::Dead,
            Some(DeadReason::BlockedAddress),
        ),
    ];
    for (play, state, reason) in ends {
        let (end, sent) = ends_after(play.clone());
        assert_eq!((end.state, end.reason, sent), (state, reason, 1), "{play:?}");
    }
}

#[test]
fn g4_a_lease_that_might_not_outlive_the_attempt_is_released_before_the_first_byte() {
    let world = World::new(|_| Play::status(200));
    in_virtual_time(&world.clock, async {
        world.store.set(Faults { claim_delay: seconds(16), ..Faults::default() });
        let careful = world.accept(offer("http://banco/").at_most_once()).await;
        let careless = world.accept(offer("http://loja/")).await;
        world.start(Preset::Patient);
        world.pass(seconds(20)).await;
        world.store.set(Faults::default());
        world.end_of(careless).await;
        let end = world.end_of(careful).await;
        assert_eq!((end.state, end.attempts), (DeliveryState::Delivered, 1));
    });
    // Each of the two slow claims takes 16 s of a lease of 30; the third answers at once.
    let sent: Vec<_> =
        world.wire.sent().iter().map(|sent| (sent.url.clone(), sent.at.since(START))).collect();
    assert_eq!(sent, [("http://loja/".into(), seconds(16)), ("http://banco/".into(), seconds(32))]);
}

#[test]
fn a_panic_in_an_attempt_counts_as_one_and_frees_the_slot() {
    let world = World::new(|request| match &*request.url {
        "http://bomba/" => Play::Panic,
        _ => Play::status(200),
    });
    in_virtual_time(&world.clock, async {
        world.start_with(
            &RetryPolicy::preset(Preset::Webhook),
            EngineLimits { in_flight: 1, ..EngineLimits::default() },
        );
        let bomb = world.accept(offer("http://bomba/")).await;
        let other = world.accept(offer("http://loja/")).await;
        assert_eq!(world.end_of(other).await.state, DeliveryState::Delivered);
        let end = world.end_of(bomb).await;
        assert_eq!((end.reason, end.attempts), (Some(DeadReason::AttemptsExhausted), 5));
        let attempts = world.store.attempts(bomb).await.unwrap();
        assert!(attempts.iter().all(|attempt| attempt.record.error_kind == Some(ErrorKind::Cancelled)));
        assert_eq!(attempts[0].record.fate, Fate::Ambiguous(Why::Cancelled));
    });
}

#[test]
fn the_default_mode_sends_again_whatever_may_have_happened() {
    let world =
        World::new(|request| if request.number.get() == 1 { Play::reset() } else { Play::status(200) });
    in_virtual_time(&world.clock, async {
        world.start(Preset::Patient);
        let id = world.accept(offer("http://loja/")).await;
        assert_eq!(world.end_of(id).await.state, DeliveryState::Delivered);
    });
    assert_eq!(world.wire.sent().len(), 2);
}
