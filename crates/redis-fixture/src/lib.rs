//! Real Redis servers for tests, each on free loopback ports with a temporary directory, stopped by its own handle.
//!
//! | type | what |
//! |---|---|
//! | [`Server`] | one `redis-server`: killed, restarted, suspended as a test needs |
//! | [`Tls`] | the same, answering only over TLS with a throw-away certificate |
//! | [`Cluster`] | three masters with all slots, a replica each where a failover is tested |
//! | [`Sentinels`] | a master, its replica, and three sentinels that watch them |
//!
//! Everything panics when it does not work: without a server nothing of Redis can be tested, and a machine that has no
//! `redis-server` is told so here and nowhere else. Deliberately absent: servers that somebody else started.

mod cluster;
mod sentinels;
mod server;
mod tls;

use std::net::TcpListener;
use std::time::Duration;

pub use cluster::Cluster;
pub use sentinels::Sentinels;
pub use server::{Fsync, Server};
pub use tls::Tls;

/// Between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Looks until a condition counts as never coming true: half a minute.
const LOOKS: u32 = 1_500;

/// Looks until there is something.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    panic!("in vain: {what}")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
