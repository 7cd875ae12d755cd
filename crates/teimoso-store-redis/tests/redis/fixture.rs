//! Stores on servers of their own, for rules that move the clock by hand.

use std::cell::Cell;
use std::sync::Arc;

use redis_fixture::{Fsync, Server};
use teimoso_delivery::testkit::conformance::Fixture;
use teimoso_delivery::testkit::{ManualClock, SeededEntropy};
use teimoso_store_redis::{Options, RedisStore, TimeSource};

/// Options under which a test's clock decides.
pub fn by_hand() -> Options {
    Options { time: TimeSource::Caller, ..Options::default() }
}

/// A store on this server.
pub fn open(server: &Server, clock: ManualClock, seed: u64) -> RedisStore {
    let entropy = Arc::new(SeededEntropy::new(seed));
    RedisStore::open(&server.url(), &by_hand(), Arc::new(clock), entropy).expect("an empty server opens")
}

fn on(fsync: Fsync, clock: ManualClock) -> Fixture {
    let server = Server::start(fsync);
    let store = open(&server, clock, 7);
    Fixture::new(Arc::new(store)).keeping(server)
}

/// A maker of stores at this address, each with a prefix of its own; `keep` is what runs there.
pub fn each_at(url: String, keep: impl std::any::Any) -> impl Fn(ManualClock) -> Fixture {
    let stores = Cell::new(0);
    move |clock| {
        let _running = &keep;
        stores.set(stores.get() + 1);
        let options = Options { prefix: format!("rule{}", stores.get()), ..by_hand() };
        let entropy = Arc::new(SeededEntropy::new(7));
        let store =
            RedisStore::open(&url, &options, Arc::new(clock), entropy).expect("an empty prefix opens");
        Fixture::new(Arc::new(store))
    }
}

/// Synced before every answer: carries at-most-once.
pub fn synced_always(clock: ManualClock) -> Fixture {
    on(Fsync::Always, clock)
}

/// Synced once a second: does not.
pub fn synced_every_second(clock: ManualClock) -> Fixture {
    on(Fsync::EverySecond, clock)
}
