//! Numbers at which a script that does everything at once would fail.

use std::time::Duration;

use teimoso_delivery::store::{ClaimRequest, LEASE, Next, Store};
use teimoso_delivery::testkit::offer;

use super::world::{START, World, story};

fn url(n: usize) -> String {
    format!("http://loja.example/{n}")
}

async fn accept(world: &World, count: usize, lanes: usize, later: Duration) {
    for from in (0..count).step_by(1_000) {
        let batch = from..count.min(from + 1_000);
        let batch = batch.map(|n| offer(&url(n % lanes)).payload("x").deliver_at(START.after(later)).event());
        let accepted = world.store.accept(batch.collect()).await.expect("an open store accepts");
        assert!(accepted.iter().all(Result::is_ok));
    }
}

#[test]
fn fifty_thousand_that_come_due_at_once_are_all_delivered() {
    let (world, clock) = World::by_hand();
    story(async {
        accept(&world, 50_000, 500, Duration::from_secs(60)).await;
        assert_eq!(world.claim(256).await.len(), 0);
        clock.advance(Duration::from_secs(60));
        let mut delivered = 0;
        while delivered < 50_000 {
            let taken = world.claim(500).await;
            assert!(!taken.is_empty());
            delivered += taken.len();
            world.settle_all(taken, Next::Delivered).await;
        }
        let counts = world.counts().await;
        assert_eq!((counts.delivered, counts.pending, counts.in_flight), (50_000, 0, 0));
    });
}

#[test]
fn ten_thousand_leases_that_end_at_once_are_each_recovered_once() {
    let (world, clock) = World::by_hand();
    story(async {
        accept(&world, 10_000, 1_000, Duration::ZERO).await;
        // As of a fleet: with the slots of one process, lanes that do not answer leave some free.
        let claim = async || {
            let request = ClaimRequest { free: 1_000_000, ..world.request(500) };
            world.store.claim(request).await.expect("an open store answers").taken
        };
        let mut held = 0;
        while held < 10_000 {
            held += claim().await.len();
        }
        assert_eq!(world.counts().await.in_flight, 10_000);
        clock.advance(LEASE);
        let mut again = std::collections::HashSet::new();
        while again.len() < 10_000 {
            for claimed in claim().await {
                assert_eq!(claimed.progress.recoveries, 1);
                assert!(again.insert(claimed.lease.delivery()), "recovered twice");
            }
        }
        assert_eq!(world.counts().await.in_flight, 10_000);
    });
}
