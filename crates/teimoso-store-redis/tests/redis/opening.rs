//! What a server must be, and what is said when it is not.

use std::sync::Arc;

use redis_fixture::{Fsync, Server};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Store, StoreErrorKind};
use teimoso_delivery::testkit::{SeededEntropy, offer};
use teimoso_store_redis::{Durability, OpenError, Options, RedisStore};

use super::clock::RealClock;
use super::world::{DEAD, READY, World, entry, settlement, story};

pub fn open(url: &str, options: &Options) -> Result<RedisStore, OpenError> {
    RedisStore::open(url, options, Arc::new(RealClock::start()), Arc::new(SeededEntropy::new(7)))
}

pub fn refusal(url: &str, options: &Options) -> OpenError {
    open(url, options).map(|store| store.info()).expect_err("it must be refused")
}

#[test]
fn a_server_that_forgets_or_evicts_is_refused_unless_that_is_allowed() {
    let plain = Options::default();
    let volatile = Server::start_with(&["--appendonly", "no"]);
    assert!(refusal(&volatile.url(), &plain).to_string().contains("append-only"));
    let allowed = open(&volatile.url(), &Options { allow_volatile: true, ..plain.clone() });
    assert_eq!(allowed.map(|store| store.info().durability), Ok("fast"));
    let evicting = Server::start_with(&["--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"]);
    assert!(refusal(&evicting.url(), &plain).to_string().contains("allkeys-lru"));
    assert!(open(&evicting.url(), &Options { allow_eviction: true, ..plain }).is_ok());
}

#[test]
fn a_wrong_password_is_one_sentence_and_a_right_one_opens() {
    let server = Server::start_with(&["--appendonly", "yes", "--requirepass", "segredo"]);
    let plain = Options::default();
    let without = refusal(&server.url(), &plain);
    assert!(without.is_authentication(), "{without}");
    let wrong = Options { password: Some("outra".to_owned()), ..plain.clone() };
    let wrong = refusal(&server.url(), &wrong);
    assert!(wrong.is_authentication() && !wrong.to_string().contains("outra"), "{wrong}");
    assert!(open(&server.url(), &Options { password: Some("segredo".to_owned()), ..plain.clone() }).is_ok());
    assert!(open(&server.url().replace("redis://", "redis://:segredo@"), &plain).is_ok());
}

#[test]
fn a_server_that_is_not_there_and_a_replica_are_refused() {
    let mut server = Server::start(Fsync::EverySecond);
    let replica =
        Server::start_with(&["--appendonly", "yes", "--replicaof", "127.0.0.1", &server.port().to_string()]);
    let refused = refusal(&replica.url(), &Options::default());
    assert!(refused.to_string().contains("replica"), "{refused}");
    server.kill();
    let refused = refusal(&server.url(), &Options::default());
    assert!(refused.to_string().ends_with("is it running?") && !refused.is_authentication(), "{refused}");
    assert!(!refusal("http://a", &Options::default()).is_authentication());
}

#[test]
fn g1_the_level_is_what_the_server_gives_and_is_said() {
    let store = |fsync, options: &Options| {
        let server = Server::start(fsync);
        let store = open(&server.url(), options).expect("a sound server opens");
        (server, store)
    };
    let (_server, always) = store(Fsync::Always, &Options::default());
    let info = always.info();
    assert_eq!((info.kind, info.durability, info.at_most_once), ("redis", "disk", true));
    assert!(info.description.contains("appendfsync always"), "{}", info.description);
    let (server, second) = store(Fsync::EverySecond, &Options::default());
    assert_eq!((second.info().durability, second.info().at_most_once), ("fast", false));
    let disk = Options { durability: Some(Durability::Disk), ..Options::default() };
    assert!(refusal(&server.url(), &disk).to_string().contains("`disk`"));
}

#[test]
fn g1_an_acceptance_that_no_replica_confirmed_is_no_acceptance() {
    let server = Server::start(Fsync::EverySecond);
    let replicated = Options { durability: Some(Durability::Replica), ..Options::default() };
    let store = open(&server.url(), &replicated).expect("a sound server opens");
    story(async {
        let accept = async || store.accept(vec![offer("http://a/").named("p-1").event()]).await;
        assert_eq!(accept().await.map_err(|error| error.kind()), Err(StoreErrorKind::Busy));
        let replica = Server::start_with(&[
            "--appendonly",
            "yes",
            "--replicaof",
            "127.0.0.1",
            &server.port().to_string(),
        ]);
        let mut repeated = accept().await;
        // It takes a while until the replica is in step.
        for _ in 0..10 {
            if repeated.is_ok() {
                break;
            }
            repeated = accept().await;
        }
        let answers = repeated.expect("a replica confirms");
        assert!(answers[0].as_ref().is_ok_and(|accepted| accepted.replayed), "the same event");
        drop(replica);
    });
}

#[test]
fn a_server_whose_memory_is_full_opens_so_that_it_can_be_drained() {
    let server = Server::start(Fsync::EverySecond);
    open(&server.url(), &Options::default()).expect("an empty server opens");
    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("1").exec(&mut server.raw()).expect("it is set");
    let store = open(&server.url(), &Options::default()).expect("a full one opens");
    let clock = RealClock::start();
    story(async {
        assert!(store.accept(vec![offer("http://a/").event()]).await.is_err(), "and takes nothing more");
        let claim = store.claim(World::request_at(clock.now())).await;
        assert_eq!(claim.map(|claim| claim.taken.len()), Ok(0));
    });
}

#[test]
fn deliveries_of_another_layout_are_refused_and_named() {
    let server = Server::start(Fsync::EverySecond);
    let meta = "{webhooks:prontos}:meta";
    let mut raw = server.raw();
    for (field, value, layout) in [("salt", "00000000000000ff", "layout 1"), ("layout", "9", "layout 9")] {
        let _: usize = redis::Commands::hset(&mut raw, meta, field, value).expect("it is a hash");
        let refused = refusal(&server.url(), &Options::default()).to_string();
        assert!(refused.contains(layout) && refused.contains("prefix"), "{refused}");
    }
    let other = Options { prefix: "outro".to_owned(), ..Options::default() };
    assert!(open(&server.url(), &other).is_ok());
    assert!(open(&server.url(), &other).is_ok(), "and its own is no stranger");
}

#[test]
fn the_documented_permissions_are_enough() {
    let server = Server::start(Fsync::EverySecond);
    let rules = "SETUSER ana on >segredo ~webhooks:* ~{webhooks:prontos}:* +@read +@write +info +eval +evalsha +time \
                 +client +hello";
    let mut create = redis::cmd("ACL");
    create.arg(rules.split_whitespace().collect::<Vec<_>>());
    create.exec(&mut server.raw()).expect("a user");
    let store = open(&server.url_with("ana:segredo"), &Options::default()).expect("it may");
    let clock = RealClock::start();
    story(async {
        store.accept(vec![offer("http://a/").event()]).await.expect("an open store accepts");
        store.wait().await;
        let claim = store.claim(World::request_at(clock.now())).await.expect("an open store answers");
        let batch = claim.taken.into_iter().map(|one| settlement(one, DEAD, clock.now()));
        store.settle(batch.collect()).await.expect("an open store settles");
        assert_eq!(store.stats().await.map(|stats| stats.counts.dead), Ok(1));
        // Nothing is claimed by this one, so the wait is for what is pushed.
        store.claim(World::request_at(clock.now())).await.expect("an open store answers");
        let pushed: Result<usize, _> =
            redis::Commands::rpush(&mut server.raw(), READY, entry(1, "http://a/"));
        assert_eq!(pushed, Ok(1));
        store.wait().await;
    });
    let errors = server.info("errorstat_NOPERM");
    // CONFIG is asked for, and not needed.
    assert!(errors.is_some_and(|errors| errors.starts_with("count=")), "it was asked for");
    let log: Vec<Vec<redis::Value>> =
        redis::cmd("ACL").arg("LOG").query(&mut server.raw()).expect("the server keeps one");
    let objects: Vec<String> =
        log.iter().map(|line| redis::from_redis_value(line[7].clone()).expect("a text")).collect();
    assert!(objects.iter().all(|object| object == "config|get"), "{objects:?}");
}
