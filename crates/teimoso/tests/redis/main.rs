//! The real binary on a real `redis-server` that each test starts for itself: the way of an event, what kills a
//! worker or the server, what is refused. Deliberately absent: the rules of the store, which its own crate tests.

mod commands;
mod delivering;
mod doctor;
mod groups;
mod losing;
mod migrating;
mod pushing;
mod refusing;
#[expect(dead_code, reason = "shared with the other end-to-end program, which uses all of it")]
#[path = "../e2e/support/mod.rs"]
mod support;

use std::path::Path;
use std::time::Duration;

use support::process::{Launch, serve};
use teimoso::clock::monotonic_now;

/// A `serve` on this Redis.
fn on(url: &str) -> Launch {
    serve(Path::new(url))
}

/// Longer than a lease of 30 s and the one of grace after an outage.
const LEASES: Duration = Duration::from_secs(90);

/// Looks until there is something, for as long as leases may take.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = monotonic_now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LEASES, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
