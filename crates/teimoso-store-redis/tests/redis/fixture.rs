//! Stores on servers of their own, for rules that move the clock by hand.

use std::sync::Arc;

use teimoso_delivery::memory::MemoryStore;
use teimoso_delivery::testkit::conformance::Fixture;
use teimoso_delivery::testkit::{ManualClock, SeededEntropy};
use teimoso_store_redis::{Options, RedisStore, TimeSource};

use super::server::{Fsync, Server, is_installed};

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
    if !is_installed() {
        let stand_in = MemoryStore::reference(Arc::new(clock), 7);
        return Fixture::new(Arc::new(stand_in));
    }
    let server = Server::start(fsync);
    let store = open(&server, clock, 7);
    Fixture::new(Arc::new(store)).keeping(server)
}

/// Synced before every answer: carries at-most-once.
pub fn synced_always(clock: ManualClock) -> Fixture {
    on(Fsync::Always, clock)
}

/// Synced once a second: does not.
pub fn synced_every_second(clock: ManualClock) -> Fixture {
    on(Fsync::EverySecond, clock)
}
