//! A Cluster: the slot's owner is found, followed when it changes, and the keys of other slots are carried.

use std::time::Duration;

use redis::Commands;
use redis_fixture::{Cluster, Fsync, Server};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Next, Store};
use teimoso_store_redis::{Durability, OpenErrorKind, Options};

use super::chaos::BACK;
use super::clock::RealClock;
use super::load::Load;
use super::opening::{open, refusal};
use super::world::{BURIED, DEAD, READY, WAITING, World, again, entry, settlement, story};

const URL: &str = "http://loja.example/";
/// A node counts as failed after a second, then its replica is elected; what is ours may take 5 s.
const FAILED_OVER: Duration = Duration::from_secs(10);

#[test]
fn a_slot_that_moves_under_load_holds_up_its_events_and_loses_none() {
    let cluster = Cluster::start();
    let load = Load::at(&cluster.url(), &Options::default());
    story(async {
        let _cluster = load
            .during(move |load| {
                for to in [1, 2, 0] {
                    load.more(100);
                    cluster.move_slot(READY, to);
                    assert_eq!(cluster.owner(READY), to);
                    eprintln!("back after {:?}", load.resumes(BACK));
                }
                load.more(100);
                cluster
            })
            .await;
        eprintln!("{} events", load.account_exactly().await);
    });
}

#[test]
fn while_its_slot_is_on_two_nodes_no_script_does_half_of_its_work() {
    let cluster = Cluster::start();
    let load = Load::at(&cluster.url(), &Options::default());
    story(async {
        let _cluster = load
            .during(move |load| {
                load.more(100);
                // Key by key, each time with load in between: any script that ran would find half of its keys.
                cluster.move_slot_slowly(READY, 1, || std::thread::sleep(Duration::from_millis(50)));
                eprintln!("back after {:?}", load.resumes(BACK));
                load.more(100);
                cluster
            })
            .await;
        eprintln!("{} events", load.account_exactly().await);
    });
}

#[test]
fn a_killed_master_is_replaced_by_its_replica() {
    let mut cluster = Cluster::start_replicated();
    let replicated = Options { durability: Some(Durability::Replica), ..Options::default() };
    let load = Load::at(&cluster.url(), &replicated);
    story(async {
        let _cluster = load
            .during(move |load| {
                load.more(100);
                let owner = cluster.owner(READY);
                cluster.nodes[owner].kill();
                eprintln!("back after {:?}", load.resumes(FAILED_OVER));
                cluster.nodes[owner].start_again();
                load.more(100);
                cluster
            })
            .await;
        eprintln!("{} events", load.account().await);
    });
}

/// Looks until it is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = RealClock::start();
    while !is_so() {
        assert!(clock.monotonic() < Duration::from_secs(20), "in vain: {what}");
        clock.sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn s2_1_what_a_legacy_sender_lets_wait_is_drained_into_our_slot() {
    let cluster = Cluster::start();
    let store = open(&cluster.url(), &Options::default()).expect("a sound Cluster opens");
    let clock = RealClock::start();
    let mut raw = cluster.raw(WAITING);
    for n in 0..120 {
        // One is due; the others are not for an hour.
        let due = if n == 0 { 0.0 } else { clock.now().get() as f64 + 3_600_000.0 };
        let _: usize = raw.zadd(WAITING, entry(n, URL), due).expect("it is a sorted set");
    }
    story(async {
        until("it is drained", || raw.zcard::<_, usize>(WAITING).expect("it is a sorted set") == 0).await;
        let own: usize = cluster.raw(READY).zcard("{webhooks:prontos}:espera").expect("it is a sorted set");
        assert!(own >= 119, "{own} wait");
        let mut taken = Vec::new();
        while taken.is_empty() {
            taken = store.claim(World::request_at(clock.now())).await.expect("an open store answers").taken;
            clock.sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(taken[0].event.id.to_string(), "evt_0");
        // What is ours waits in our slot, whatever comes of it.
        let batch = taken.into_iter().map(|one| settlement(one, again(clock.now().after(BACK)), clock.now()));
        store.settle(batch.collect()).await.expect("an open store settles");
        assert_eq!(raw.zcard::<_, usize>(WAITING), Ok(0));
        let counts = store.stats().await.expect("an open store counts").counts;
        assert_eq!((counts.accepted, counts.scheduled), (120, 120), "{counts:?}");
    });
}

#[test]
fn s2_9_dead_letters_are_copied_to_the_public_list_once_they_are_confirmed() {
    let cluster = Cluster::start();
    let store = open(&cluster.url(), &Options::default()).expect("a sound Cluster opens");
    let clock = RealClock::start();
    let mut raw = cluster.raw(READY);
    for n in 0..130 {
        let _: usize = raw.rpush(READY, entry(n, &format!("{URL}{n}"))).expect("it is a list");
    }
    let _: usize = raw.rpush(READY, "{nonsense").expect("it is a list");
    story(async {
        let mut died = 0;
        while died < 130 {
            let taken =
                store.claim(World::request_at(clock.now())).await.expect("an open store answers").taken;
            died += taken.len();
            let batch = taken.into_iter().map(|one| settlement(one, DEAD, clock.now()));
            store.settle(batch.collect()).await.expect("an open store settles");
        }
        let mut public = cluster.raw(BURIED);
        until("all are copied", || public.llen::<_, usize>(BURIED).expect("it is a list") >= 131).await;
        until("all are removed", || {
            raw.llen::<_, usize>("{webhooks:prontos}:mortos").expect("it is a list") == 0
        })
        .await;
        let texts: Vec<String> = public.lrange(BURIED, 0, -1).expect("it is a list");
        assert_eq!(texts.len(), 131, "each once");
        for n in 0..130 {
            let id = format!("\"id\":\"evt_{n}\"");
            assert_eq!(texts.iter().filter(|text| text.contains(&id)).count(), 1, "{n}");
        }
        let counts = store.stats().await.expect("an open store counts").counts;
        assert_eq!((counts.accepted, counts.dead), (131, 131), "{counts:?}");
    });
}

#[test]
fn several_prefixes_spread_over_the_nodes_and_any_node_finds_them() {
    let mut cluster = Cluster::start();
    let prefixes: Vec<String> = (0..12).map(|n| format!("loja{n}")).collect();
    let owners: std::collections::HashSet<usize> =
        prefixes.iter().map(|prefix| cluster.owner(&format!("{prefix}:prontos"))).collect();
    assert_eq!(owners.len(), 3, "they are spread");
    // Whoever is named first is not there.
    let last = cluster.nodes.last().map(Server::address).expect("there are nodes");
    let url = format!("redis+cluster://127.0.0.1:1,{last}");
    for prefix in &prefixes {
        let options = Options { prefix: prefix.clone(), ..Options::default() };
        let store = open(&url, &options).expect("its owner is found");
        let mut raw = cluster.raw(&format!("{prefix}:prontos"));
        let _: usize = raw.rpush(format!("{prefix}:prontos"), entry(1, URL)).expect("it is a list");
        story(async {
            let clock = RealClock::start();
            let mut taken = Vec::new();
            while taken.is_empty() {
                taken =
                    store.claim(World::request_at(clock.now())).await.expect("an open store answers").taken;
                clock.sleep(Duration::from_millis(10)).await;
            }
            let batch = taken.into_iter().map(|one| settlement(one, Next::Delivered, clock.now()));
            store.settle(batch.collect()).await.expect("an open store settles");
        });
    }
    cluster.nodes.clear();
}

#[test]
fn a_node_named_as_a_server_and_a_server_named_as_a_cluster_are_refused_with_what_to_do() {
    let cluster = Cluster::start();
    let node = refusal(&cluster.nodes[0].url(), &Options::default());
    assert_eq!(node.kind(), OpenErrorKind::Unsuitable);
    assert!(node.to_string().ends_with("name it redis+cluster://"), "{node}");
    let server = Server::start(Fsync::EverySecond);
    let plain = refusal(&format!("redis+cluster://{}", server.address()), &Options::default());
    assert_eq!(plain.kind(), OpenErrorKind::Unsuitable);
    assert!(plain.to_string().contains("this redis is no node of a Cluster"), "{plain}");
}
