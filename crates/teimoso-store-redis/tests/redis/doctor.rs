//! An examination finds what was broken by hand, heals it beside the fleet, and what was healed is delivered.

use std::sync::Arc;
use std::time::Duration;

use redis_fixture::{Fsync, Server};
use teimoso_delivery::model::{DeliveryId, DeliveryState};
use teimoso_delivery::store::{Checkup, Claimed, DeliveryFilter, FactValue, FindingKind, LEASE, Next, Store};
use teimoso_delivery::testkit::{ManualClock, Offer, offer};
use teimoso_store_redis::Examination;

use super::world::{World, again, entry, story};

const URL: &str = "http://loja.example/a?x=1";

async fn examine(world: &World, heal: bool) -> Checkup {
    let examination = Examination { heal, write_for: Duration::ZERO };
    world.store.examine(examination, Arc::new(|_, _| {})).await.expect("the server answers")
}

fn findings(checkup: &Checkup) -> Vec<(&'static str, u64, u64)> {
    checkup.findings.iter().map(|finding| (finding.kind.name(), finding.count, finding.healed)).collect()
}

fn own(name: &str) -> String {
    format!("{{webhooks:prontos}}:{name}")
}

/// Found by a look, healed by an order, gone at the next look.
async fn found_and_healed(world: &World, expected: &[(FindingKind, u64)]) {
    let named = |healed: bool| -> Vec<(&str, u64, u64)> {
        expected.iter().map(|(kind, count)| (kind.name(), *count, if healed { *count } else { 0 })).collect()
    };
    let seen = examine(world, false).await;
    assert_eq!(findings(&seen), named(false), "{seen:?}");
    let healed = examine(world, true).await;
    assert_eq!(findings(&healed), named(true), "{healed:?}");
    let after = examine(world, false).await;
    assert_eq!((findings(&after), after.scanned), (Vec::new(), Some(after.counts)));
    world.counts().await;
}

async fn send(world: &World, offer: Offer) -> DeliveryId {
    let mut answers = world.store.accept(vec![offer.event()]).await.expect("an open store accepts");
    answers.remove(0).expect("nothing speaks against it").deliveries[0].0
}

fn ids(taken: &[Claimed]) -> Vec<DeliveryId> {
    let mut ids: Vec<_> = taken.iter().map(|claimed| claimed.lease.delivery()).collect();
    ids.sort_unstable();
    ids
}

/// Everything that is due now is delivered, and it is exactly this.
async fn delivers(world: &World, expected: &[DeliveryId]) {
    let taken = world.claim(100).await;
    assert_eq!(ids(&taken), expected);
    world.settle_all(taken, Next::Delivered).await;
    for id in expected {
        let view = world.store.delivery(*id).await.expect("an open store reads").expect("it is kept");
        assert_eq!(view.state, DeliveryState::Delivered);
    }
    assert_eq!(findings(&examine(world, false).await), []);
}

/// A story in time that the test moves.
fn by_hand(tell: impl AsyncFnOnce(&mut World, ManualClock)) {
    story(async {
        let (mut world, clock) = World::by_hand();
        tell(&mut world, clock).await;
    });
}

#[test]
fn g2_a_sound_store_has_no_finding_and_its_server_is_described() {
    by_hand(async |world, clock| {
        let waits = send(world, offer(URL).named("p-1").key("k")).await;
        send(world, offer("http://loja.example/b").of("other")).await;
        let held = world.claim(1).await;
        assert_eq!(ids(&held), [waits]);
        world.settle_all(held, again(clock_now(world).after(Duration::from_secs(60)))).await;
        world.push(entry(1, URL));
        world.claim(1).await;
        let checkup = examine(world, false).await;
        assert_eq!(findings(&checkup), []);
        assert_eq!(checkup.scanned, Some(checkup.counts));
        let text = |name: &str| {
            checkup.facts.iter().find_map(|fact| match &fact.value {
                FactValue::Text(text) if fact.name == name => Some(text.clone()),
                _ => None,
            })
        };
        assert_eq!(text("appendonly").as_deref(), Some("yes"));
        assert_eq!(text("appendfsync").as_deref(), Some("everysec"));
        assert_eq!(text("maxmemory_policy").as_deref(), Some("noeviction"));
        assert!(checkup.facts.iter().any(|fact| fact.name == "write_p99_us"), "{checkup:?}");
        assert_eq!(findings(&examine(world, true).await), []);
        clock.advance(Duration::from_secs(1));
    });
}

fn clock_now(world: &World) -> teimoso_delivery::model::Millis {
    world.clock.now()
}

#[test]
fn g2_the_leases_are_deleted_by_hand_the_orphans_are_found_and_delivered() {
    by_hand(async |world, clock| {
        let mut sent = Vec::new();
        for n in 0..3 {
            sent.push(send(world, offer(&format!("http://loja.example/{n}"))).await);
        }
        assert_eq!(world.claim(9).await.len(), 3);
        world.command(&["DEL", &own("leases")]);
        clock.advance(LEASE + LEASE);
        assert_eq!(world.claim(9).await.len(), 0, "nobody would ever recover them");
        found_and_healed(world, &[(FindingKind::InFlightWithoutLease, 3)]).await;
        assert_eq!(world.claim(9).await.len(), 0, "whoever holds them has a lease's time to say so");
        clock.advance(LEASE);
        delivers(world, &sent).await;
    });
}

#[test]
fn g5_a_holder_that_lives_keeps_what_was_an_orphan_for_a_moment() {
    by_hand(async |world, clock| {
        send(world, offer(URL)).await;
        let held = world.claim(1).await;
        world.command(&["DEL", &own("leases")]);
        examine(world, true).await;
        clock.advance(LEASE / 2);
        let lease = (&held[0].lease).into();
        let until = world.clock.now().after(LEASE);
        assert_eq!(world.store.extend(vec![lease], until).await, Ok(Vec::new()));
        clock.advance(LEASE / 2 + LEASE / 4);
        assert_eq!(world.claim(1).await.len(), 0);
        world.settle_all(held, Next::Delivered).await;
        assert_eq!(world.counts().await.delivered, 1);
    });
}

#[test]
fn g2_a_lane_whose_queue_is_gone_gets_its_deliveries_back() {
    by_hand(async |world, _| {
        let sent = [send(world, offer(URL)).await, send(world, offer(URL)).await];
        let held = world.claim(2).await;
        world.settle_all(held, Next::Released).await;
        world.command(&["DEL", &own("lane:00000001")]);
        found_and_healed(world, &[(FindingKind::AliveNotQueued, 2)]).await;
        delivers(world, &sent).await;
    });
}

#[test]
fn g2_what_was_never_claimed_and_fell_out_of_its_lanes_list_gets_back_in() {
    by_hand(async |world, _| {
        let mut sent = Vec::new();
        for _ in 0..9 {
            sent.push(send(world, offer(URL)).await);
        }
        world.command(&["DEL", &own("fresh:00000001")]);
        let kinds = [(FindingKind::AliveNotQueued, 4), (FindingKind::LaneNotWaiting, 1)];
        found_and_healed(world, &kinds).await;
        delivers(world, &sent).await;
    });
}

#[test]
fn g2_an_entry_of_a_queue_that_stands_for_nothing_is_removed_and_repeats_nothing() {
    by_hand(async |world, _| {
        let done = send(world, offer(URL)).await;
        delivers(world, &[done]).await;
        let next = send(world, offer(URL)).await;
        let redis::Value::Array(keys) = world.command(&["HKEYS", &own("deliveries")]) else {
            panic!("no list")
        };
        for key in keys {
            let redis::Value::BulkString(key) = key else { panic!("no key") };
            world.command(&["ZADD", &own("lane:00000001"), "NX", "1", &String::from_utf8(key).expect("hex")]);
        }
        world.command(&["ZADD", &own("lane:00000001"), "1", "000000000000fff"]);
        found_and_healed(world, &[(FindingKind::QueuedWithoutDelivery, 2)]).await;
        delivers(world, &[next]).await;
    });
}

#[test]
fn g2_lanes_that_lost_their_turn_or_their_timer_get_it_back() {
    by_hand(async |world, clock| {
        let now = send(world, offer(URL)).await;
        let later = send(world, offer("http://loja.example/later")).await;
        let mut held = world.claim(2).await;
        held.sort_by_key(|claimed| claimed.lease.delivery());
        let due = world.clock.now().after(Duration::from_secs(60));
        world.settle(held.remove(1), again(due)).await;
        world.settle(held.remove(0), Next::Released).await;
        for key in ["timers", "turns", "ring:default"] {
            world.command(&["DEL", &own(key)]);
        }
        found_and_healed(world, &[(FindingKind::LaneNotWaiting, 2)]).await;
        delivers(world, &[now]).await;
        clock.advance(Duration::from_secs(60));
        delivers(world, &[later]).await;
    });
}

#[test]
fn g9_a_lane_that_counts_attempts_nobody_makes_is_freed() {
    by_hand(async |world, clock| {
        let sent = send(world, offer(URL)).await;
        assert_eq!(world.claim(1).await.len(), 1);
        // As if somebody had made it pending by hand, slot and all.
        let redis::Value::Array(pairs) = world.command(&["HGETALL", &own("lanes")]) else {
            panic!("no hash")
        };
        world.command(&["DEL", &own("deliveries"), &own("leases"), &own("order:alive"), &own("events")]);
        world.command(&["DEL", &own("order:events"), &own("counts"), &own("heads")]);
        drop(pairs);
        let checkup = examine(world, true).await;
        let (found, healed) = checkup.totals();
        assert_eq!((checkup.count_of(FindingKind::LaneSlotsOff), found), (1, healed), "{checkup:?}");
        clock.advance(Duration::from_secs(1));
        let again = send(world, offer(URL)).await;
        assert_ne!(again, sent);
        delivers(world, &[again]).await;
    });
}

#[test]
fn g2_a_lease_on_nothing_is_removed() {
    by_hand(async |world, _| {
        let sent = send(world, offer(URL)).await;
        world.command(&["ZADD", &own("leases"), "9999999999999", "000000000000fff"]);
        found_and_healed(world, &[(FindingKind::LeaseWithoutDelivery, 1)]).await;
        delivers(world, &[sent]).await;
    });
}

#[test]
fn g2_a_delivery_without_its_event_is_a_dead_letter_that_a_person_counts() {
    by_hand(async |world, _| {
        send(world, offer(URL)).await;
        let whole = send(world, offer("http://loja.example/b")).await;
        let held = world.claim(2).await;
        world.settle_all(held, Next::Released).await;
        let redis::Value::Array(mut keys) = world.command(&["LRANGE", &own("order:events"), "0", "0"]) else {
            panic!("no list")
        };
        let Some(redis::Value::BulkString(key)) = keys.pop() else { panic!("no key") };
        world.command(&["HDEL", &own("events"), &String::from_utf8(key).expect("hex")]);
        found_and_healed(world, &[(FindingKind::DeliveryWithoutEvent, 1)]).await;
        assert_eq!(world.counts().await.dead, 1);
        delivers(world, &[whole]).await;
    });
}

#[test]
fn g2_a_lost_lane_is_opened_again_from_the_events_url() {
    by_hand(async |world, _| {
        let sent = [send(world, offer(URL)).await, send(world, offer(URL)).await];
        for key in ["lanes", "lane_ids", "lane_names", "fresh:00000001", "ring:default", "turns", "heads"] {
            world.command(&["DEL", &own(key)]);
        }
        found_and_healed(world, &[(FindingKind::LaneMissing, 2)]).await;
        delivers(world, &sent).await;
    });
}

#[test]
fn g2_counters_that_lie_are_set_to_what_is_there() {
    by_hand(async |world, _| {
        let sent = send(world, offer(URL)).await;
        world.command(&["HINCRBY", &own("counts"), "dead", "2"]);
        world.command(&["HINCRBY", &own("counts"), "accepted", "5"]);
        found_and_healed(world, &[(FindingKind::CountersOff, 1), (FindingKind::AcceptedMissing, 5)]).await;
        let counts = world.counts().await;
        assert_eq!((counts.accepted, counts.pending, counts.dead, counts.expunged), (6, 1, 0, 5));
        delivers(world, &[sent]).await;
    });
}

#[test]
fn s2_10_an_entry_that_was_taken_and_has_no_deadline_comes_back() {
    by_hand(async |world, _| {
        world.command(&["HSET", &own("taken"), "t:1", &entry(7, URL)]);
        world.command(&["ZADD", &own("taken_until"), "1", "t:2"]);
        let kinds = [(FindingKind::TakenWithoutDeadline, 1), (FindingKind::DeadlineWithoutEntry, 1)];
        found_and_healed(world, &kinds).await;
        let claimed = world.one().await;
        assert_eq!(claimed.event.id.to_string(), "evt_7");
        world.settle(claimed, Next::Delivered).await;
    });
}

#[test]
fn g1_a_name_of_an_event_that_never_was_goes_so_that_its_repetition_is_accepted() {
    by_hand(async |world, clock| {
        send(world, offer(URL).named("p-1").key("k-1")).await;
        for key in ["events", "order:events", "counts"] {
            world.command(&["DEL", &own(key)]);
        }
        found_and_healed(world, &[(FindingKind::NameWithoutEvent, 2)]).await;
        clock.advance(Duration::from_secs(1));
        let again = send(world, offer(URL).named("p-1").key("k-1")).await;
        delivers(world, &[again]).await;
    });
}

#[test]
fn what_would_never_end_by_itself_is_given_an_end() {
    by_hand(async |world, _| {
        let sent = send(world, offer(URL)).await;
        let taken = world.claim(1).await;
        world.settle_all(taken, super::world::DEAD).await;
        let filter = teimoso_delivery::store::ReplayFilter::default();
        let order = teimoso_delivery::store::NewReplay { filter, rate: 10, dry_run: false };
        world.store.start_replay(order).await.expect("an open store takes orders");
        world.command(&["DEL", &own("jobs_due")]);
        world.command(&["HSET", &own("claims"), "0123456789abcdef", ""]);
        let kinds = [(FindingKind::ReplayNotDue, 1), (FindingKind::StaleProcessEntry, 1)];
        found_and_healed(world, &kinds).await;
        delivers(world, &[sent]).await;
    });
}

#[test]
fn g4_what_lost_the_record_of_its_claim_is_made_again_unless_it_must_not_be() {
    by_hand(async |world, _| {
        let again = send(world, offer(URL)).await;
        let held = world.claim(1).await;
        world.settle_all(held, Next::Delivered).await;
        for key in ["deliveries", "history", "counts"] {
            world.command(&["DEL", &own(key)]);
        }
        world.command(&["HSET", &own("counts"), "accepted", "1", "pending", "1"]);
        found_and_healed(world, &[(FindingKind::AliveNotQueued, 1)]).await;
        delivers(world, &[again]).await;
    });
}

#[test]
fn a_record_of_another_kind_is_told_and_left_alone() {
    by_hand(async |world, _| {
        let sent = send(world, offer(URL)).await;
        world.command(&["HSET", &own("deliveries"), "000000000000fff", "\u{7f}what"]);
        let checkup = examine(world, true).await;
        assert_eq!(findings(&checkup), [("unreadable_record", 1, 0)]);
        assert_eq!(world.claim(1).await[0].lease.delivery(), sent);
    });
}

#[test]
fn a_server_that_forgets_or_evicts_is_a_finding() {
    story(async {
        let server = Server::start_with(&["--appendonly", "no", "--maxmemory-policy", "allkeys-lru"]);
        let options = teimoso_store_redis::Options {
            allow_volatile: true,
            allow_eviction: true,
            ..super::fixture::by_hand()
        };
        let clock = Arc::new(ManualClock::at(super::world::START));
        let entropy = Arc::new(teimoso_delivery::testkit::SeededEntropy::new(1));
        let store = teimoso_store_redis::RedisStore::open(&server.url(), &options, clock, entropy);
        let store = store.expect("it is allowed");
        let examination = Examination { heal: true, write_for: Duration::ZERO };
        let checkup = store.examine(examination, Arc::new(|_, _| {})).await.expect("the server answers");
        assert_eq!(findings(&checkup), [("volatile_server", 1, 0), ("evicting_server", 1, 0)]);
    });
}

#[test]
fn g2_beside_a_fleet_at_work_nothing_is_found_and_nothing_is_lost() {
    story(async {
        let world = World::real(Server::start(Fsync::EverySecond));
        let store = world.store.clone();
        let total = 3_000;
        let produce = async {
            for _ in 0..total / 50 {
                let batch =
                    (0..50).map(|n| offer(&format!("http://loja.example/{}", n % 7)).event()).collect();
                store.accept(batch).await.expect("an open store accepts");
            }
        };
        let work = async {
            let mut done = 0;
            while done < total {
                let taken = world.claim(64).await;
                if taken.is_empty() {
                    world.within(world.store.wait()).await;
                    continue;
                }
                done += taken.len();
                world.settle_all(taken, Next::Delivered).await;
            }
        };
        let look = async {
            for _ in 0..5 {
                let checkup = examine(&world, true).await;
                assert_eq!(findings(&checkup), [], "{checkup:?}");
            }
        };
        tokio::join!(produce, work, look);
        let checkup = examine(&world, false).await;
        assert_eq!((findings(&checkup), checkup.counts.delivered), (Vec::new(), total as u64));
        assert_eq!(checkup.scanned, Some(checkup.counts));
    });
}

#[test]
fn listings_name_everything_of_their_kind_and_nothing_else() {
    by_hand(async |world, _| {
        let mut sent = Vec::new();
        for n in 0..4 {
            sent.push(send(world, offer(&format!("http://loja.example/{n}"))).await);
        }
        let taken = world.claim(2).await;
        let dead = taken[0].lease.delivery();
        let (first, second) = (taken.len(), again(world.clock.now().after(Duration::from_secs(60))));
        assert_eq!(first, 2);
        for (claimed, next) in taken.into_iter().zip([super::world::DEAD, second]) {
            world.settle(claimed, next).await;
        }
        assert_eq!(findings(&examine(world, false).await), []);
        // Every event is out of the order of events; the dead and the tried are out of theirs; others are in them.
        for key in ["order:events", "order:dead", "order:tried"] {
            world.command(&["DEL", &own(key)]);
        }
        world.command(&["ZADD", &own("order:cancelled"), "0", "000000000000ffe"]);
        found_and_healed(world, &[(FindingKind::ListingOff, 4 + 2 + 1)]).await;
        let dead_ones =
            DeliveryFilter { state: Some(DeliveryState::Dead), limit: 9, ..DeliveryFilter::default() };
        let page = world.store.deliveries(dead_ones).await.expect("an open store reads");
        assert_eq!(page.data.iter().map(|view| view.id).collect::<Vec<_>>(), [dead]);
        let all = DeliveryFilter { limit: 9, ..DeliveryFilter::default() };
        let page = world.store.deliveries(all).await.expect("an open store reads");
        let mut listed: Vec<_> = page.data.iter().map(|view| view.id).collect();
        listed.reverse();
        assert_eq!(listed, sent);
    });
}
