//! What the end-to-end tests share: the process, its API, a receiver that does as told, and patience.

pub mod api;
pub mod process;
pub mod receiver;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use teimoso::clock::monotonic_now;
use teimoso::sink::record::Record;
use teimoso::sink::{self, Options, SinkHandle};

/// Any free port of this machine.
pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// After this a condition counts as never coming true. Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Looks until there is something.
///
/// # Panics
/// When nothing came in 30 s.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = monotonic_now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A test destination that keeps every request.
pub fn sink() -> SinkHandle {
    sink::start(ANY, Options { keep: 1_000_000, listener: None }).expect("a sink starts")
}

/// A test destination that tells of every request, however many come.
pub fn telling_sink(listener: tokio::sync::mpsc::Sender<Arc<Record>>) -> SinkHandle {
    sink::start(ANY, Options { keep: 0, listener: Some(listener) }).expect("a sink starts")
}

/// A loopback port that refuses connections for as long as the socket is held.
pub fn closed_port() -> (tokio::net::TcpSocket, SocketAddr) {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(ANY).expect("a free port");
    let address = socket.local_addr().expect("an address");
    (socket, address)
}

/// A directory that goes away with the test.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}
