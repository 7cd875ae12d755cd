//! Random histories: engines that die, clocks that step, stores that fail, destinations that do anything.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;

use super::*;
use crate::model::{DeadReason, Mode};
use crate::store::StoreErrorKind;
use crate::testkit::{Faults, offer};

/// What the destination does at each request of one delivery; later requests are answered 200.
type Plays = Vec<u8>;

fn play(kind: u8) -> Play {
    match kind % 9 {
        0 => Play::status(200).after(Duration::from_millis(300)),
        1 => Play::status(404),
        2 => Play::status(500),
        3 => Play::retry_after(429, 2),
        4 => Play::refused(),
        5 => Play::reset().after(seconds(2)),
        6 => Play::Hang,
        7 => Play::Panic,
        _ => Play::status(200),
    }
}

/// Whether a request that was played so, or abandoned before its end, may have taken effect.
const fn may_have_taken_effect(kind: u8) -> bool {
    !matches!(kind % 9, 1 | 3 | 4)
}

/// Everything that was sent for each delivery, by URL: what the destination did with it.
type Ledger = Arc<Mutex<HashMap<Arc<str>, Vec<u8>>>>;

fn world(deliveries: &[(bool, Plays)]) -> (World, Ledger) {
    let ledger = Ledger::default();
    let (book, plays) = (ledger.clone(), deliveries.to_vec());
    let world = World::new(move |request| {
        let index = request.url.rsplit('?').next().and_then(|index| index.parse::<usize>().ok());
        let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = book.entry(request.url.clone()).or_default();
        let kind = index.and_then(|index| plays[index].1.get(sent.len()).copied()).unwrap_or(8);
        sent.push(kind);
        play(kind)
    });
    (world, ledger)
}

/// Something that goes wrong while the engine runs.
async fn accident(world: &World, kind: u8, engine: &mut JoinHandle<Result<(), StoreError>>) {
    let store = &world.store;
    match kind % 7 {
        0 => {
            engine.abort();
            *engine = world.start(Preset::Webhook);
        }
        1 => {
            store.set(Faults::default());
            world.stop.notify_one();
            // A claim that is slower than the drain's patience is given up: what it leased is recovered later.
            let drained = (&mut *engine).await.unwrap().map_err(|error| error.kind());
            assert!(matches!(drained, Ok(()) | Err(StoreErrorKind::Busy)), "{drained:?}");
            *engine = world.start(Preset::Webhook);
        }
        2 => world.clock.step_forward(seconds(100)),
        3 => world.clock.step_back(seconds(10)),
        4 => store.set(Faults { claim_error: Some(StoreErrorKind::Full), ..Faults::default() }),
        5 => store.set(Faults { extend_loses: true, ..Faults::default() }),
        _ => store.set(Faults { settle_stalls: true, claim_delay: seconds(11), ..Faults::default() }),
    }
}

fn run(deliveries: &[(bool, Plays)], accidents: &[(u16, u8)]) {
    let (world, ledger) = world(deliveries);
    let views = in_virtual_time(&world.clock, async {
        let mut ids = Vec::new();
        for (index, (at_most_once, _)) in deliveries.iter().enumerate() {
            let event = offer(&format!("http://loja/{}?{index}", index % 3));
            ids.push(world.accept(if *at_most_once { event.at_most_once() } else { event }).await);
        }
        let mut engine = world.start(Preset::Webhook);
        for (wait, kind) in accidents {
            world.pass(Duration::from_millis(u64::from(*wait) / 4)).await;
            accident(&world, *kind, &mut engine).await;
        }
        world.store.set(Faults::default());
        let total = deliveries.len() as u64;
        world.until(|counts| counts.delivered + counts.dead == total).await;
        let mut views = Vec::new();
        for id in ids {
            views.push(world.view(id).await);
        }
        views
    });
    let book = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    for view in views {
        let sent = book.get(&view.url).map_or(&[] as &[u8], Vec::as_slice);
        check(&view, sent);
    }
}

fn check(view: &DeliveryView, sent: &[u8]) {
    let answered_200 = sent.iter().any(|kind| matches!(kind % 9, 0 | 8));
    assert!(view.state != DeliveryState::Delivered || answered_200, "{view:?} {sent:?}");
    assert!(view.attempts as usize <= sent.len(), "more attempts than requests: {view:?} {sent:?}");
    assert!(view.attempts <= 5, "more attempts than the policy's: {view:?}");
    if view.mode == Mode::AtMostOnce {
        let effects = sent.iter().filter(|kind| may_have_taken_effect(**kind)).count();
        assert!(effects <= 1, "sent again although it may have taken effect: {view:?} {sent:?}");
        assert_ne!(view.reason, Some(DeadReason::Poison), "{view:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn g2_g4_every_history_ends_and_at_most_once_is_at_most_once(
        deliveries in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..7)), 1..12),
        accidents in proptest::collection::vec(any::<(u16, u8)>(), 0..10),
    ) {
        run(&deliveries, &accidents);
    }
}
