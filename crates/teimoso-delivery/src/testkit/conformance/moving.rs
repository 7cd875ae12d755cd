//! Moving: what one store exports, another imports; both then say the same. The other one is the memory model.

use std::sync::Arc;
use std::time::Duration;

use super::bench::{Bench, Make, again_at, rule};
use crate::memory::MemoryStore;
use crate::model::{ContentType, DeadReason, DeliveryId, DeliveryState, EventId, Millis, Mode, NextWhy};
use crate::store::{
    AttemptView, Counts, DeliveryFilter, DeliveryView, EventFilter, EventView, LaneNews, MAX_PAGE, NewReplay,
    Next, Parcel, Rejection, ReplayFilter, ReplayState, Store,
};
use crate::testkit::offer;

const URL: &str = "http://loja.example/a?x=1";
/// Another one than any store under test has.
const SALT: u64 = 0x05ea_50de;

/// Everything a caller can read of a store.
#[derive(Debug, PartialEq)]
struct Picture {
    events: Vec<EventView>,
    deliveries: Vec<DeliveryView>,
    attempts: Vec<Vec<AttemptView>>,
    payloads: Vec<Option<(ContentType, bytes::Bytes)>>,
    counts: Counts,
}

async fn picture(store: &dyn Store) -> Picture {
    let filter = EventFilter { limit: MAX_PAGE, ..EventFilter::default() };
    let events = store.events(filter).await.expect("an open store reads").data;
    let filter = DeliveryFilter { limit: MAX_PAGE, ..DeliveryFilter::default() };
    let deliveries = store.deliveries(filter).await.expect("an open store reads").data;
    let (mut attempts, mut payloads) = (Vec::new(), Vec::new());
    for delivery in &deliveries {
        attempts.push(store.attempts(delivery.id).await.expect("an open store reads"));
    }
    for event in &events {
        payloads.push(store.payload(event.id.clone()).await.expect("an open store reads"));
    }
    let counts = store.stats().await.expect("an open store counts").counts;
    Picture { events, deliveries, attempts, payloads, counts }
}

async fn export(store: &dyn Store) -> Vec<Parcel> {
    let (mut parcels, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.export(cursor).await.expect("a store at rest is exported");
        parcels.extend(page.data);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return parcels,
        }
    }
}

async fn import(store: &dyn Store, parcels: &[Parcel]) {
    for some in parcels.chunks(3) {
        store.import(some.to_vec()).await.expect("an empty store takes everything");
    }
}

/// In an order that every store gives alike.
fn sorted(parcels: &[Parcel]) -> Vec<String> {
    let mut lines: Vec<String> = parcels.iter().map(|parcel| format!("{parcel:?}")).collect();
    lines.sort_unstable();
    lines
}

fn model(bench: &Bench) -> Bench {
    bench.beside(Arc::new(MemoryStore::reference(Arc::new(bench.clock.clone()), SALT)))
}

/// Fills a store with one of everything that `target` can carry.
async fn fill(bench: &Bench, target: &Bench) -> Vec<DeliveryId> {
    let mut sent = Vec::new();
    let delivered =
        bench.one(offer(URL).named("p-1").kind("pedido.pago").payload(&b"{\"a\": 1.0}"[..])).await;
    let claimed = bench.claim_one().await;
    bench.end(claimed, Next::Delivered).await;
    sent.push(delivered);
    sent.push(bench.dead(offer(URL).policy("webhook"), DeadReason::AttemptsExhausted).await);
    let cancelled = bench.one(offer("http://loja.example/c").of("other")).await;
    bench.store.cancel(cancelled).await.expect("an open store takes orders");
    sent.push(cancelled);
    let again = bench.one(offer("http://loja.example/again")).await;
    let claimed = bench.claim_one().await;
    bench.end(claimed, again_at(bench.now().after(Duration::from_secs(60)))).await;
    sent.push(again);
    // One whose lane is paused.
    let paused = bench.one(offer("http://loja.example/paused")).await;
    let claimed = bench.claim_one().await;
    let pause = bench.now().after(Duration::from_secs(90));
    let mut settlement = bench.settlement(claimed, again_at(bench.now()));
    settlement.news = LaneNews::Pause(pause);
    bench.settle(vec![settlement]).await;
    sent.push(paused);
    let mut once = offer("http://loja.example/once").payload(vec![0xff, 0, b'{']).event();
    if bench.store.info().at_most_once && target.store.info().at_most_once {
        once.mode = Mode::AtMostOnce;
    }
    once.deliver_at = Some(bench.now().after(Duration::from_secs(30)));
    let once = bench.store.accept(vec![once]).await.expect("an open store accepts").remove(0);
    sent.push(once.expect("the store carries it").deliveries[0].0);
    bench.accept(offer(URL).nowhere()).await;
    sent.push(bench.one(offer(URL).key("k-1")).await);
    sent
}

/// What is due within ten minutes, in order.
async fn all_due(bench: &Bench) -> Vec<(DeliveryId, Millis, u32)> {
    let mut due = Vec::new();
    for _ in 0..20 {
        bench.pass(30);
        for claimed in bench.claim(50).await {
            due.push((claimed.lease.delivery(), bench.now(), claimed.progress.attempts));
            bench.end(claimed, Next::Delivered).await;
        }
    }
    due.sort_unstable();
    due
}

/// To the model and back from one: views, attempts, payloads, counters, due times and pauses.
pub fn what_is_exported_and_imported_reads_the_same(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let (source, target) = (bench, model(bench));
        fill(source, &target).await;
        let moved = export(&*source.store).await;
        import(&*target.store, &moved).await;
        assert_eq!(picture(&*target.store).await, picture(&*source.store).await);
        assert_eq!(sorted(&export(&*target.store).await), sorted(&moved), "nothing is left behind");
    });
    rule(make, async |bench: &Bench| {
        let (source, target) = (model(bench), bench);
        fill(&source, target).await;
        import(&*target.store, &export(&*source.store).await).await;
        assert_eq!(picture(&*target.store).await, picture(&*source.store).await);
        // What is delivered from there is what would have been delivered, and when.
        let start = bench.now();
        let expected = all_due(&source).await;
        let passed = bench.now().since(start);
        assert_eq!(expected.len(), 4);
        let due = all_due(target).await;
        let ids = |due: &[(DeliveryId, Millis, u32)]| due.iter().map(|(id, ..)| *id).collect::<Vec<_>>();
        assert_eq!(ids(&due), ids(&expected), "{passed:?}");
        target.accept(offer(URL)).await;
    });
}

/// A producer that repeats its request after the move gets the answer it got before.
pub fn g1_a_moved_name_answers_the_same_id(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let source = model(bench);
        let named = source.accept(offer(URL).named("p-1").key("k-0")).await;
        let keyed = source.accept(offer(URL).key("k-1").payload(&b"[]"[..])).await;
        import(&*bench.store, &export(&*source.store).await).await;
        let again = bench.accept(offer(URL).named("p-1").key("k-0")).await;
        assert_eq!((again.event, again.replayed), (EventId::named("p-1").expect("an id"), true));
        assert_eq!(again.deliveries, named.deliveries);
        let again = bench.accept(offer(URL).key("k-1").payload(&b"[]"[..])).await;
        assert_eq!((again.event, again.replayed), (keyed.event, true));
        let found =
            bench.store.event(EventId::named("p-1").expect("an id")).await.expect("an open store reads");
        assert_eq!(found.map(|view| view.deliveries[0].id), Some(named.deliveries[0].0));
        // And out again.
        let third = model(bench);
        import(&*third.store, &export(&*bench.store).await).await;
        assert!(third.accept(offer(URL).key("k-1").payload(&b"[]"[..])).await.replayed);
        let mut other = offer(URL).key("k-1").event();
        other.fingerprint = [1; 16];
        let other = third.store.accept(vec![other]).await.expect("an open store accepts").remove(0);
        assert_eq!(other, Err(Rejection::KeyReused));
    });
}

/// Every parcel may come again, and what had come stays as it is.
pub fn a_move_that_was_cut_off_is_begun_again_and_ends_with_everything_once(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let source = model(bench);
        fill(&source, bench).await;
        let parcels = export(&*source.store).await;
        import(&*bench.store, &parcels[..parcels.len() / 2]).await;
        import(&*bench.store, &parcels).await;
        assert_eq!(picture(&*bench.store).await, picture(&*source.store).await);
    });
}

/// Two stores' deliveries are never mixed.
pub fn nothing_moves_into_a_store_that_is_in_use(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let source = model(bench);
        source.accept(offer(URL)).await;
        let parcels = export(&*source.store).await;
        assert!(bench.store.import(parcels[1..].to_vec()).await.is_err(), "a move begins with its origin");
        let before = bench.accept(offer(URL)).await;
        let refused = bench.store.import(parcels).await.map_err(|error| error.to_string());
        assert!(refused.is_err_and(|sentence| sentence.contains("not empty")));
        assert_eq!(bench.counts().await.accepted, 1);
        assert_eq!(bench.state(before.deliveries[0].0).await, DeliveryState::Pending);
    });
}

/// A job that runs goes on with what it has not seen.
pub fn a_replay_goes_on_where_it_moves_to(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let source = model(bench);
        for _ in 0..5 {
            source.dead(offer(URL), DeadReason::AttemptsExhausted).await;
        }
        let order = NewReplay { filter: ReplayFilter::default(), rate: 1, dry_run: false };
        let job = source.store.start_replay(order).await.expect("an open store takes orders");
        let first = source.claim(9).await;
        assert_eq!((first.len(), first[0].progress.why), (1, NextWhy::Replay));
        source.end(first.into_iter().next().expect("one"), Next::Delivered).await;
        import(&*bench.store, &export(&*source.store).await).await;
        let id = job.id.expect("a real job has an id");
        let moved = bench.store.replay(id).await.expect("an open store reads").expect("the job is kept");
        assert_eq!((moved.state, moved.estimated), (ReplayState::Running, 5));
        assert!((1..=2).contains(&moved.done), "it goes on by itself: {}", moved.done);
        let mut left = 4;
        for _ in 0..20 {
            bench.pass(1);
            // A store may do its bookkeeping beside the claims.
            bench
                .store
                .cancel_replay(crate::model::IdSpace::new(1).replay(crate::model::Key::first_at(bench.now())))
                .await
                .expect("an open store takes orders");
            left -= bench.claim(9).await.len();
        }
        assert_eq!(left, 0, "each of the others once");
        let ended = bench.store.replay(id).await.expect("an open store reads").expect("the job is kept");
        assert_eq!((ended.state, ended.done), (ReplayState::Finished, 5));
    });
}
