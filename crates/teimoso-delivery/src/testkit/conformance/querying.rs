//! Queries: ids, pages, filters, counters.

use std::collections::HashSet;

use super::bench::{Bench, Make, again_at, rule};
use super::ordering::unknown_delivery;
use crate::model::{DeadReason, DeliveryState, EventId, EventType, IdSpace, Key, Millis};
use crate::store::{DeliveryFilter, EventFilter, Next, StoreErrorKind};
use crate::testkit::offer;

const URL: &str = "http://loja.example/";

/// By either name the same event, with its deliveries.
pub fn an_event_is_found_by_our_id_and_by_the_callers(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let own = bench.accept(offer(URL).kind("pedido.pago")).await;
        let named = bench.accept(offer(URL).named("pedido-7")).await;
        for accepted in [own, named] {
            let found = bench.store.event(accepted.event.clone()).await.expect("an open store reads");
            let found = found.expect("it is kept");
            assert_eq!((&found.id, found.payload_bytes), (&accepted.event, 22));
            let deliveries: Vec<_> = found.deliveries.iter().map(|view| (view.id, view.state)).collect();
            assert_eq!(deliveries, accepted.deliveries);
            assert_eq!(found.deliveries[0].event_id, accepted.event);
            assert_eq!((&*found.deliveries[0].url, found.created_at), (URL, bench.now()));
        }
    });
}

/// Well-formed and never given out.
pub fn unknown_ids_are_answered_with_nothing(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.one(offer(URL)).await;
        let strange = IdSpace::new(0xdead).event(Key::first_at(Millis::new(1_600_000_000_000)));
        for id in [strange, EventId::Named("ninguem".into())] {
            assert_eq!(bench.store.event(id.clone()).await, Ok(None));
            assert_eq!(bench.store.payload(id).await, Ok(None));
        }
        assert_eq!(bench.store.delivery(unknown_delivery()).await, Ok(None));
        assert_eq!(bench.store.attempts(unknown_delivery()).await, Ok(Vec::new()));
    });
}

/// Every row exactly once, however small the pages, while others are added.
pub fn g2_pages_show_every_row_once(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let mut expected = HashSet::new();
        for _ in 0..5 {
            expected.extend(bench.many(11, &offer(URL)).await);
            bench.pass_millis(3);
        }
        for limit in [1, 7, 250] {
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let filter =
                    DeliveryFilter { cursor, limit, until: Some(bench.now()), ..DeliveryFilter::default() };
                let page = bench.store.deliveries(filter).await.expect("an open store reads");
                assert!(page.data.len() <= limit as usize);
                seen.extend(page.data.into_iter().map(|view| view.id));
                bench.one(offer(URL)).await;
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen.len(), expected.len(), "pages of {limit}");
            assert_eq!(seen.into_iter().collect::<HashSet<_>>(), expected);
        }
        events_are_paged_newest_first(bench).await;
    });
}

async fn events_are_paged_newest_first(bench: &Bench) {
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let filter = EventFilter { cursor, limit: 9, ..EventFilter::default() };
        let page = bench.store.events(filter).await.expect("an open store reads");
        seen.extend(page.data.into_iter().map(|view| (view.created_at, view.id)));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.len() as u64, bench.counts().await.accepted);
    assert!(seen.is_sorted_by(|newer, older| newer.0 >= older.0));
    let ids: HashSet<_> = seen.iter().map(|(_, id)| id).collect();
    assert_eq!(ids.len(), seen.len());
}

/// State, reason, type, time; and together.
pub fn filters_narrow_a_listing(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let kind = |text| EventType::parse(text).expect("a test's type is valid");
        let redirect = bench.dead(offer(URL).kind("a"), DeadReason::Redirect).await;
        bench.pass(10);
        let large = bench.dead(offer(URL).kind("b"), DeadReason::TooLarge).await;
        let scheduled = bench.one(offer(URL).kind("a")).await;
        let claimed = bench.claim_one().await;
        bench.end(claimed, again_at(Millis::new(bench.now().get() + 99_000))).await;
        let delivered = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        bench.end(claimed, Next::Delivered).await;
        let base = DeliveryFilter { limit: 100, ..DeliveryFilter::default() };
        let dead = DeliveryFilter { state: Some(DeliveryState::Dead), ..base.clone() };
        let cases = [
            (base.clone(), vec![redirect, large, scheduled, delivered]),
            (dead.clone(), vec![redirect, large]),
            (DeliveryFilter { reason: Some(DeadReason::TooLarge), ..base.clone() }, vec![large]),
            (DeliveryFilter { kind: Some(kind("a")), ..base.clone() }, vec![redirect, scheduled]),
            (DeliveryFilter { kind: Some(kind("a")), ..dead.clone() }, vec![redirect]),
            (DeliveryFilter { since: Some(bench.now()), ..dead.clone() }, vec![large]),
            (DeliveryFilter { until: Some(bench.now()), ..base.clone() }, vec![redirect]),
            (DeliveryFilter { state: Some(DeliveryState::Delivered), ..base.clone() }, vec![delivered]),
            (DeliveryFilter { state: Some(DeliveryState::Pending), ..base }, vec![]),
        ];
        for (filter, expected) in cases {
            let page = bench.store.deliveries(filter.clone()).await.expect("an open store reads");
            let mut found: Vec<_> = page.data.iter().map(|view| view.id).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{filter:?}");
        }
        let typed = EventFilter { kind: Some(kind("b")), limit: 9, ..EventFilter::default() };
        assert_eq!(bench.store.events(typed).await.map(|page| page.data.len()), Ok(1));
    });
}

/// Never silently the first page.
pub fn a_made_up_cursor_is_refused(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.many(3, &offer(URL)).await;
        for cursor in ["", "x", "0", "-1", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "é"] {
            let cursor = Some(cursor.to_owned());
            let filter = DeliveryFilter { cursor: cursor.clone(), limit: 1, ..DeliveryFilter::default() };
            let refused = bench.store.deliveries(filter).await.map_err(|error| error.kind());
            assert_eq!(refused.err(), Some(StoreErrorKind::InvalidCursor), "{cursor:?}");
            let filter = EventFilter { cursor, limit: 1, ..EventFilter::default() };
            let refused = bench.store.events(filter).await.map_err(|error| error.kind());
            assert_eq!(refused.err(), Some(StoreErrorKind::InvalidCursor));
        }
    });
}

/// What an operator looks at first.
pub fn the_oldest_due_is_named(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        assert_eq!(bench.store.stats().await.map(|stats| (stats.oldest_due, stats.lanes)), Ok((None, 0)));
        let accepted_at = bench.now();
        bench.many(2, &offer(URL)).await;
        bench.one(offer("http://outra.example/").deliver_at(Millis::new(accepted_at.get() + 1))).await;
        bench.pass(5);
        let stats = bench.store.stats().await.expect("an open store counts");
        assert_eq!((stats.oldest_due, stats.lanes), (Some(accepted_at), 2));
        bench.claim(9).await;
        assert_eq!(bench.store.stats().await.map(|stats| stats.oldest_due), Ok(None));
    });
}
