//! What is kept of what is over: the history's bounds, replays out of it, and listings that meet the holes it leaves.

use std::sync::Arc;
use std::time::Duration;

use teimoso_delivery::model::{DeliveryId, DeliveryState};
use teimoso_delivery::store::{
    CancelOutcome, DeliveryFilter, EventFilter, NewReplay, Next, ReplayFilter, ReplayState, RetryOutcome,
    Store,
};
use teimoso_delivery::testkit::{ManualClock, SeededEntropy, offer};
use teimoso_store_redis::{Options, RedisStore};

use super::fixture::by_hand;
use super::world::{START, World, story};
use redis_fixture::{Fsync, Server};

const URL: &str = "http://loja.example/";

/// A world that keeps so many rows of history, of an hour.
fn keeping(rows: u32) -> (World, ManualClock) {
    let (mut world, clock) = World::by_hand();
    let options = Options { history_rows: rows, history: Duration::from_secs(3_600), ..by_hand() };
    let server = Server::start(Fsync::EverySecond);
    let entropy = Arc::new(SeededEntropy::new(7));
    let store = RedisStore::open(&server.url(), &options, Arc::new(clock.clone()), entropy);
    (world.store, world.raw) = (Arc::new(store.expect("a sound server opens")), server.raw());
    world.server = server;
    (world, clock)
}

async fn accept(world: &World, count: usize) -> Vec<DeliveryId> {
    let batch = (0..count).map(|_| offer(URL).event()).collect();
    let accepted = world.store.accept(batch).await.expect("an open store accepts");
    accepted.into_iter().map(|one| one.expect("nothing speaks against it").deliveries[0].0).collect()
}

async fn deliver_all(world: &World) {
    loop {
        let taken = world.claim(16).await;
        if taken.is_empty() {
            return;
        }
        world.settle_all(taken, Next::Delivered).await;
    }
}

async fn state(world: &World, id: DeliveryId) -> Option<DeliveryState> {
    world.store.delivery(id).await.expect("an open store reads").map(|view| view.state)
}

#[test]
fn history_is_bounded_by_rows_and_by_age_and_lists_pass_over_what_is_gone() {
    let (mut world, clock) = keeping(10);
    story(async {
        let ids = accept(&world, 30).await;
        deliver_all(&world).await;
        let counts = world.counts().await;
        assert_eq!((counts.accepted, counts.delivered, counts.expunged), (30, 10, 20));
        assert_eq!(
            (state(&world, ids[19]).await, state(&world, ids[20]).await),
            (None, Some(DeliveryState::Delivered))
        );
        let filter = DeliveryFilter { limit: 100, ..DeliveryFilter::default() };
        let listed = world.store.deliveries(filter).await.expect("an open store reads").data;
        let newest_first: Vec<DeliveryId> = ids[20..].iter().rev().copied().collect();
        assert_eq!(listed.iter().map(|view| view.id).collect::<Vec<_>>(), newest_first);
        clock.advance(Duration::from_secs(3_600));
        world.claim(1).await;
        let counts = world.counts().await;
        assert_eq!((counts.delivered, counts.expunged), (0, 30));
        let events = world.store.events(EventFilter { limit: 9, ..EventFilter::default() }).await;
        assert_eq!(events.expect("an open store reads").data.len(), 0);
        for key in ["events", "deliveries", "attempts", "history", "order:events", "claims", "leases"] {
            let left = world.command(&["EXISTS", &format!("{{webhooks:prontos}}:{key}")]);
            assert_eq!(left, redis::Value::Int(0), "{key}");
        }
        assert!(world.clock.now() > START);
    });
}

#[test]
fn what_is_replayed_out_of_the_history_does_not_go_with_its_old_row() {
    let (world, _clock) = keeping(10);
    story(async {
        let old = accept(&world, 1).await[0];
        deliver_all(&world).await;
        assert_eq!(world.store.retry(old, true).await, Ok(RetryOutcome::Due));
        let held = world.one().await;
        assert_eq!((held.lease.delivery(), held.progress.attempts), (old, 1));
        accept(&world, 12).await;
        deliver_all(&world).await;
        assert_eq!(state(&world, old).await, Some(DeliveryState::InFlight));
        world.settle(held, Next::Delivered).await;
        let attempts = world.store.attempts(old).await.expect("an open store reads");
        assert_eq!(attempts.iter().map(|one| one.record.number.get()).collect::<Vec<_>>(), [1, 2]);
        accept(&world, 1).await;
        deliver_all(&world).await;
        let counts = world.counts().await;
        assert_eq!((counts.delivered, counts.expunged), (10, 4));
        assert_eq!(state(&world, old).await, Some(DeliveryState::Delivered));
    });
}

#[test]
fn a_delivery_cancelled_in_its_lane_and_wanted_again_is_claimed_once() {
    let (mut world, _clock) = keeping(10);
    story(async {
        let ids = accept(&world, 8).await;
        for id in [ids[0], ids[6]] {
            assert_eq!(world.store.cancel(id).await, Ok(CancelOutcome::Cancelled));
            assert_eq!(state(&world, id).await, Some(DeliveryState::Cancelled));
        }
        assert_eq!(world.store.retry(ids[6], false).await, Ok(RetryOutcome::Due));
        let mut taken: Vec<DeliveryId> =
            world.claim(9).await.iter().map(|one| one.lease.delivery()).collect();
        taken.sort_unstable();
        assert_eq!(taken, ids[1..]);
        assert_eq!(world.claim(9).await.len(), 0);
        let ghosts = world.command(&["EXISTS", "{webhooks:prontos}:ghosts"]);
        assert_eq!(ghosts, redis::Value::Int(0));
    });
}

#[test]
fn replay_jobs_that_ended_leave_with_the_historys_age() {
    let (mut world, clock) = keeping(10);
    story(async {
        let order = NewReplay { filter: ReplayFilter::default(), rate: 1, dry_run: false };
        let empty =
            world.store.start_replay(order).await.expect("an open store obeys").id.expect("it is kept");
        accept(&world, 2).await;
        for claimed in world.claim(9).await {
            world.settle(claimed, super::world::DEAD).await;
        }
        let stopped =
            world.store.start_replay(order).await.expect("an open store obeys").id.expect("it is kept");
        world.store.cancel_replay(stopped).await.expect("an open store obeys");
        let running =
            world.store.start_replay(order).await.expect("an open store obeys").id.expect("it is kept");
        let seen = async |id| world.store.replay(id).await.expect("an open store reads").map(|job| job.state);
        clock.advance(Duration::from_secs(60));
        world.claim(9).await;
        assert_eq!(seen(empty).await, Some(ReplayState::Finished));
        assert_eq!(seen(stopped).await, Some(ReplayState::Cancelled));
        assert_eq!(seen(running).await, Some(ReplayState::Finished));
        clock.advance(Duration::from_secs(3_600));
        world.claim(0).await;
        assert_eq!((seen(empty).await, seen(stopped).await, seen(running).await), (None, None, None));
        assert_eq!(world.command(&["EXISTS", "{webhooks:prontos}:jobs_ended"]), redis::Value::Int(0));
    });
}
