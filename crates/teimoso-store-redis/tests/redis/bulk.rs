//! Numbers at which a script that does everything at once would fail.

use std::time::Duration;

use teimoso_delivery::store::{ClaimRequest, Claimed, LEASE, Next, Store};
use teimoso_delivery::testkit::offer;

use super::cost::Spent;
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

/// However much there is to do, one script does a slice of it: commands since `before`, at most so many per script.
fn assert_slices(world: &mut World, before: Spent, most: u64) {
    let after = Spent::read(world);
    let (commands, scripts) = (after.commands - before.commands, after.scripts - before.scripts);
    assert!(commands <= most * scripts, "{commands} commands in {scripts} scripts");
}

#[test]
fn a_hundred_thousand_that_come_due_at_once_are_all_delivered_in_slices() {
    let (mut world, clock) = World::by_hand();
    story(async {
        accept(&world, 100_000, 500, Duration::from_secs(60)).await;
        assert_eq!(world.claim(256).await.len(), 0);
        clock.advance(Duration::from_secs(60));
        let (mut delivered, before) = (0, Spent::read(&mut world));
        while delivered < 100_000 {
            let claim = world.store.claim(world.request(500)).await.expect("an open store answers");
            delivered += claim.taken.len();
            world.settle_all(claim.taken, Next::Delivered).await;
        }
        assert_slices(&mut world, before, 400);
        let counts = world.counts().await;
        assert_eq!((counts.delivered, counts.pending, counts.in_flight), (100_000, 0, 0));
    });
}

/// As of a fleet: with the slots of one process, lanes that do not answer leave some free.
async fn claim(world: &World) -> Vec<Claimed> {
    let request = ClaimRequest { free: 1_000_000, ..world.request(500) };
    world.store.claim(request).await.expect("an open store answers").taken
}

#[test]
fn twenty_thousand_leases_that_end_at_once_are_each_recovered_once_in_slices() {
    let (mut world, clock) = World::by_hand();
    story(async {
        accept(&world, 20_000, 2_000, Duration::ZERO).await;
        let mut held = 0;
        while held < 20_000 {
            held += claim(&world).await.len();
        }
        assert_eq!(world.counts().await.in_flight, 20_000);
        clock.advance(LEASE);
        let (mut again, before) = (std::collections::HashSet::new(), Spent::read(&mut world));
        while again.len() < 20_000 {
            for claimed in claim(&world).await {
                assert_eq!(claimed.progress.recoveries, 1);
                assert!(again.insert(claimed.lease.delivery()), "recovered twice");
            }
        }
        assert_slices(&mut world, before, 600);
        assert_eq!(world.counts().await.in_flight, 20_000);
    });
}
