//! Idle connections, by origin; absent: connections in use, which belong to their attempt, and any limit on those,
//! which is the caller's concern.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use foldhash::quality::RandomState;
use tokio::time::Instant;

use super::Http1;
use crate::io::Wire;
use crate::target::Origin;

/// Idle connections kept for one origin, by default; a lane's own cap.
pub const POOL_IDLE_PER_HOST: usize = 16;

/// Idle connections kept for all origins together. When one more comes, the oldest of some origin goes.
pub const POOL_IDLE_TOTAL: usize = 1024;

/// How long a connection may lie idle, by default. Shorter than the idle time-outs of common servers and balancers
/// (60 s and more), so that it is mostly we who close.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest idle time-out that is honoured; beyond it, a longer one is cut to it.
const IDLE_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The idle connections of one transport.
pub(crate) struct Pool<S: Wire> {
    shelves: Mutex<Shelves<S>>,
    idle_per_host: usize,
    idle_timeout: Duration,
}

struct Shelves<S: Wire> {
    /// Newest last. An emptied shelf stays until the reaper passes, so that a busy origin allocates nothing.
    by_origin: HashMap<Arc<Origin>, VecDeque<Idle<S>>, RandomState>,
    count: usize,
    reaped: bool,
}

struct Idle<S: Wire> {
    connection: Box<Http1<S>>,
    until: Instant,
}

impl<S: Wire> Pool<S> {
    pub(crate) fn new(idle_per_host: usize, idle_timeout: Duration) -> Self {
        let shelves = Shelves { by_origin: HashMap::default(), count: 0, reaped: false };
        Self { shelves: Mutex::new(shelves), idle_per_host, idle_timeout: idle_timeout.min(IDLE_TIMEOUT_MAX) }
    }

    /// How long an idle connection is kept; zero if none is.
    pub(crate) fn idle_timeout(&self) -> Duration {
        if self.idle_per_host == 0 { Duration::ZERO } else { self.idle_timeout }
    }

    /// The most recently used idle connection that is still alive. Those found dead are dropped: nothing was sent on
    /// them, so finding them dead is no attempt.
    pub(crate) fn take_alive(&self, origin: &Origin) -> Option<Box<Http1<S>>> {
        while let Some(mut connection) = self.take(origin) {
            if connection.is_alive() {
                return Some(connection);
            }
        }
        None
    }

    fn take(&self, origin: &Origin) -> Option<Box<Http1<S>>> {
        let mut shelves = self.shelves();
        let idle = shelves.by_origin.get_mut(origin)?.pop_back()?;
        shelves.count -= 1;
        drop(shelves);
        // The newest has the latest end: if it is over time, so are all below it, and the reaper is on its way.
        (Instant::now() < idle.until).then_some(idle.connection)
    }

    /// Keeps a connection for later, which must be idle and reusable.
    pub(crate) fn put(self: &Arc<Self>, origin: &Arc<Origin>, connection: Box<Http1<S>>) {
        if self.idle_timeout().is_zero() {
            return;
        }
        let now = Instant::now();
        let idle = Idle { connection, until: now + self.idle_timeout };
        let mut shelves = self.shelves();
        if shelves.count >= POOL_IDLE_TOTAL {
            shelves.evict_one();
        }
        shelves.count += 1;
        match shelves.by_origin.get_mut(origin) {
            Some(shelf) => {
                shelf.push_back(idle);
                if shelf.len() > self.idle_per_host {
                    shelf.pop_front();
                    shelves.count -= 1;
                }
            }
            None => {
                shelves.by_origin.insert(origin.clone(), VecDeque::from([idle]));
            }
        }
        let reaped = std::mem::replace(&mut shelves.reaped, true);
        // A runtime that is shutting down drops the reaper here and now, and leaving its post takes the shelves.
        drop(shelves);
        if !reaped {
            tokio::spawn(reap(ReaperPost(Arc::downgrade(self)), now, self.idle_timeout));
        }
    }

    /// Drops what is over time; true when nothing is left.
    fn sweep(&self, now: Instant) -> bool {
        let mut shelves = self.shelves();
        let mut count = 0;
        shelves.by_origin.retain(|_, shelf| {
            while shelf.front().is_some_and(|idle| idle.until <= now) {
                shelf.pop_front();
            }
            count += shelf.len();
            !shelf.is_empty()
        });
        shelves.count = count;
        count == 0
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves<S>> {
        // Every critical section leaves the shelves whole, so a panic elsewhere does not spoil them.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Wire> Shelves<S> {
    fn evict_one(&mut self) {
        if let Some(shelf) = self.by_origin.values_mut().find(|shelf| !shelf.is_empty()) {
            shelf.pop_front();
            self.count -= 1;
        }
    }
}

/// The reaper's post: leaving it in any way, with its runtime for instance, lets the next connection start another.
struct ReaperPost<S: Wire>(Weak<Pool<S>>);

impl<S: Wire> Drop for ReaperPost<S> {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.shelves().reaped = false;
        }
    }
}

/// Closes what lay idle for too long, and ends when nothing is idle: at rest there is no timer.
async fn reap<S: Wire>(post: ReaperPost<S>, started: Instant, idle_timeout: Duration) {
    let mut at = started;
    loop {
        at += idle_timeout;
        tokio::time::sleep_until(at).await;
        let Some(pool) = post.0.upgrade() else { return };
        if pool.sweep(Instant::now()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;
    use crate::Target;

    async fn idle() -> (Box<Http1<DuplexStream>>, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(64);
        let connection = Http1::start(ours, ([127, 0, 0, 1], 1).into()).await.unwrap();
        (connection, theirs)
    }

    fn origin(number: usize) -> Arc<Origin> {
        Target::parse(&format!("http://h{number}.test/")).unwrap().shared_origin().clone()
    }

    #[tokio::test]
    async fn g11_idle_connections_are_bounded_over_all_origins() {
        let pool = Arc::new(Pool::new(16, Duration::MAX));
        let mut peers = Vec::new();
        for number in 0..POOL_IDLE_TOTAL + 10 {
            let (connection, peer) = idle().await;
            peers.push(peer);
            pool.put(&origin(number), connection);
        }
        assert_eq!(pool.shelves().count, POOL_IDLE_TOTAL);
        let last = origin(POOL_IDLE_TOTAL + 9);
        assert!(pool.take_alive(&last).is_some(), "the newest is never the one to go");
        assert!(pool.take_alive(&last).is_none());
        assert_eq!(pool.shelves().count, POOL_IDLE_TOTAL - 1);
    }

    #[tokio::test]
    async fn the_sweep_takes_what_is_over_time_and_leaves_the_rest() {
        let pool = Arc::new(Pool::new(16, Duration::from_secs(30)));
        let (connection, _peer) = idle().await;
        let before = Instant::now();
        pool.put(&origin(1), connection);
        assert!(!pool.sweep(before + Duration::from_secs(29)));
        assert!(pool.sweep(before + Duration::from_secs(31)));
        let shelves = pool.shelves();
        assert_eq!((shelves.count, shelves.by_origin.len()), (0, 0));
    }

    #[tokio::test]
    async fn an_idle_connection_whose_peer_is_gone_is_passed_over() {
        let pool = Arc::new(Pool::new(16, Duration::from_secs(30)));
        let (first, peer_of_first) = idle().await;
        let (second, peer_of_second) = idle().await;
        pool.put(&origin(1), first);
        pool.put(&origin(1), second);
        drop(peer_of_second);
        assert!(pool.take_alive(&origin(1)).is_some());
        assert_eq!(pool.shelves().count, 0);
        drop(peer_of_first);
    }

    #[test]
    fn a_connection_that_is_put_back_while_its_runtime_shuts_down_is_no_deadlock() {
        let pool = Arc::new(Pool::new(POOL_IDLE_PER_HOST, POOL_IDLE_TIMEOUT));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (connection, _theirs) = runtime.block_on(idle());
        let handle = runtime.handle().clone();
        drop(runtime);
        let _context = handle.enter();
        pool.put(&origin(1), connection);
        let shelves = pool.shelves();
        assert_eq!((shelves.count, shelves.reaped), (1, false), "the next one starts a reaper");
    }
}
