//! What waits or is dead in the public keys moves like everything else; a store that is half moved in is no store.

use std::sync::Arc;
use std::time::Duration;

use redis_fixture::{Fsync, Server};
use teimoso_delivery::memory::MemoryStore;
use teimoso_delivery::model::{DeadReason, DeliveryState};
use teimoso_delivery::store::{DeliveryFilter, DeliveryView, Parcel, Store};
use teimoso_delivery::testkit::{SeededEntropy, offer};
use teimoso_store_redis::{Options, RedisStore};

use super::fixture::by_hand;
use super::world::{DEAD, World, again, entry, story};

const URL: &str = "http://loja.example/a?x=1";

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

async fn deliveries(store: &dyn Store) -> Vec<DeliveryView> {
    let filter = DeliveryFilter { limit: 250, ..DeliveryFilter::default() };
    let mut found = store.deliveries(filter).await.expect("an open store reads").data;
    found.sort_by_key(|view| view.event_id.to_string());
    found
}

#[test]
fn s2_1_what_waits_or_is_dead_in_the_public_keys_moves_like_everything_else() {
    story(async {
        let (mut world, clock) = World::by_hand();
        world.push(entry(1, URL));
        let waits = world.one().await;
        let due = world.clock.now().after(Duration::from_secs(60));
        let kept = world.store.delivery(waits.lease.delivery()).await.expect("an open store reads");
        world.settle(waits, again(due)).await;
        world.push(entry(2, URL));
        let dies = world.one().await;
        world.settle(dies, DEAD).await;
        world.push("no event at all");
        world.push(entry(3, URL));
        world.command(&["ZADD", "webhooks:espera", "1800000000000", &entry(4, URL)]);
        world.claim(1).await;
        // The same entry twice, as a copy by hand leaves it.
        let dead = world.texts("webhooks:mortos").remove(0);
        world.command(&["RPUSH", "webhooks:mortos", &dead]);

        let parcels = export(&*world.store).await;
        let second = export(&*world.store).await;
        assert_eq!(parcels, second, "the same keys, however often it is begun");
        let target = MemoryStore::reference(Arc::new(clock.clone()), 99);
        target.import(parcels).await.expect("an empty store takes everything");
        let (source, moved) = (world.counts().await, target.stats().await.expect("it counts").counts);
        let alive =
            |counts: teimoso_delivery::store::Counts| counts.pending + counts.in_flight + counts.scheduled;
        assert_eq!((moved.accepted, alive(moved), moved.dead), (6, 3, 3));
        assert_eq!((source.accepted, alive(source), source.dead), (6, 3, 3));
        let views = deliveries(&target).await;
        let of = |id: &str| views.iter().filter(|view| view.event_id.to_string() == id).collect::<Vec<_>>();
        assert_eq!(of("evt_1")[0].id, kept.expect("it was there").id, "its own key");
        assert_eq!((of("evt_1")[0].attempts, of("evt_1")[0].state), (1, DeliveryState::Scheduled));
        assert_eq!(of("evt_1")[0].next_attempt.map(|(at, _)| at), Some(due));
        assert_eq!((of("evt_2").len(), of("evt_2")[0].reason), (2, Some(DeadReason::PermanentStatus)));
        assert_ne!(of("evt_2")[0].id, of("evt_2")[1].id);
        assert_eq!((of("evt_4")[0].attempts, of("evt_4")[0].state), (0, DeliveryState::Pending));
        let raw = views.iter().find(|view| view.reason == Some(DeadReason::Malformed)).expect("kept");
        let payload = target.payload(raw.event_id.clone()).await.expect("an open store reads");
        let payload = payload.expect("it is kept").1;
        assert!(payload.starts_with(br#"{"bruto":"no event at all","_wh":"#), "{payload:?}");
        let body = second.iter().find_map(|parcel| match parcel {
            Parcel::Event(event) if event.event.id.to_string() == "evt_1" => {
                Some(event.event.payload.clone())
            }
            _ => None,
        });
        assert_eq!(body.as_deref(), Some(&br#"{"n": 1, "b":1.0}"#[..]), "byte for byte");
    });
}

#[test]
fn a_redis_that_is_half_moved_into_is_opened_by_a_move_only() {
    story(async {
        let (world, clock) = World::by_hand();
        let sent = world.store.accept(vec![offer(URL).event()]).await.expect("an open store accepts");
        let parcels = export(&*world.store).await;
        let server = Server::start(Fsync::EverySecond);
        let open = |moving| {
            let options = Options { moving, ..by_hand() };
            let entropy = Arc::new(SeededEntropy::new(1));
            RedisStore::open(&server.url(), &options, Arc::new(clock.clone()), entropy)
        };
        let target = open(true).expect("an empty server opens");
        target.import(parcels[..1].to_vec()).await.expect("an empty store takes everything");
        let refused = open(false).map(drop).expect_err("it is half moved in").to_string();
        assert!(refused.contains("half moved into"), "{refused}");
        let target = open(true).expect("the move goes on");
        target.import(parcels).await.expect("the same move");
        let target = open(false).expect("it is whole");
        let views = deliveries(&target).await;
        let accepted = sent[0].as_ref().expect("accepted");
        assert_eq!((views.len(), views[0].id), (1, accepted.deliveries[0].0));
    });
}

#[test]
fn a_store_that_rests_gives_no_sign_of_life_and_one_in_use_does() {
    story(async {
        let (world, clock) = World::by_hand();
        let options = Options { moving: true, ..Options::default() };
        let entropy = Arc::new(SeededEntropy::new(1));
        let looker =
            RedisStore::open(&world.server.url(), &options, Arc::new(clock), entropy).expect("it opens");
        let real = super::world::real(&world.server, 3);
        real.accept(vec![offer(URL).event()]).await.expect("an open store accepts")[0]
            .as_ref()
            .expect("accepted");
        let first = looker.sign_of_life().await.expect("the server answers");
        assert!(first.is_some());
        assert_eq!(looker.sign_of_life().await, Ok(first), "looking is no life");
        looker.stats().await.expect("an open store counts");
        assert_eq!(looker.sign_of_life().await, Ok(first));
        let other = world.within(async {
            loop {
                real.accept(vec![offer(URL).event()]).await.expect("an open store accepts")[0]
                    .as_ref()
                    .expect("ok");
                let sign = looker.sign_of_life().await.expect("the server answers");
                if sign != first {
                    return sign;
                }
            }
        });
        assert!(other.await > first);
    });
}
