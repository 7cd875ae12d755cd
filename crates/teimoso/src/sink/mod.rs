//! The test destination: an HTTP server that succeeds, fails, stalls and lies on demand, and remembers what it
//! was sent (S2.11). Deliberately absent: signature verification, TLS, and any promise of staying up; it is for
//! tests, demonstrations and measurements on the machine it runs on.
//!
//! It runs on a thread of its own, so that a test or a benchmark may start it from anywhere, inside a runtime or
//! out of one, and stop it by dropping the handle. One thread answers far more than 50 000 requests a second when
//! nothing is kept or printed (`keep: 0`, no listener): then a request costs two atomic additions.

mod connection;
pub mod counts;
pub mod record;
pub mod reply;
pub mod route;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{mpsc, oneshot};

use crate::clock;
use counts::{COUNTED_IDS_MAX, Counts};
use record::{KEPT_TOTAL_MAX_BYTES, Record, Shelf};
use route::{Answer, Route};

/// The default of `--keep`.
pub const KEEP_DEFAULT: usize = 10_000;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 4_096;

/// How long to wait after a failed accept (the process is out of descriptors, as a rule) before the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How a sink is to run.
#[derive(Debug)]
pub struct Options {
    /// How many requests to remember, at most; they also weigh at most [`KEPT_TOTAL_MAX_BYTES`] together.
    pub keep: usize,
    /// Where to tell of each request. A full channel holds the answer back: nothing is left untold. A closed one
    /// is ignored.
    pub listener: Option<mpsc::Sender<Arc<Record>>>,
}

impl Default for Options {
    fn default() -> Options {
        Options { keep: KEEP_DEFAULT, listener: None }
    }
}

/// A running sink; dropping it stops it and closes its connections.
#[derive(Debug)]
pub struct SinkHandle {
    /// Where it listens; the port is the real one when 0 was asked for.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts a sink on a thread of its own; it accepts connections when this returns.
///
/// # Errors
/// The address cannot be bound (taken, not ours, not permitted), or the thread cannot be started.
pub fn start(listen: SocketAddr, options: Options) -> io::Result<SinkHandle> {
    let shared = Arc::new(Shared::new(options));
    let (stop, stopped) = oneshot::channel();
    let (ready, bound) = std::sync::mpsc::sync_channel(1);
    let serving = Arc::clone(&shared);
    // The runtime lives and dies on its own thread: a runtime must not be dropped inside another one.
    let thread = std::thread::Builder::new()
        .name("sink".to_owned())
        .spawn(move || run(listen, serving, &ready, stopped))?;
    let addr = bound.recv().unwrap_or_else(|_| Err(io::Error::other("the sink's thread ended at once")))?;
    Ok(SinkHandle { addr, shared, stop: Some(stop), thread: Some(thread) })
}

fn run(
    listen: SocketAddr,
    shared: Arc<Shared>,
    ready: &SyncSender<io::Result<SocketAddr>>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tell(ready, Err(error)),
    };
    runtime.block_on(async {
        let bound = bind(listen).and_then(|listener| Ok((listener.local_addr()?, listener)));
        let listener = match bound {
            Ok((addr, listener)) => {
                tell(ready, Ok(addr));
                listener
            }
            Err(error) => return tell(ready, Err(error)),
        };
        tokio::select! {
            () = accept(shared, &listener) => {}
            _ = stopped => {}
        }
    });
}

/// Whoever started the thread waits for exactly one word.
fn tell(ready: &SyncSender<io::Result<SocketAddr>>, word: io::Result<SocketAddr>) {
    let _left = ready.send(word);
}

fn bind(listen: SocketAddr) -> io::Result<TcpListener> {
    let socket = if listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for the connections of the previous run to time out.
    socket.set_reuseaddr(true)?;
    socket.bind(listen)?;
    socket.listen(BACKLOG)
}

async fn accept(shared: Arc<Shared>, listener: &TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _without = stream.set_nodelay(true);
                tokio::spawn(connection::serve(Arc::clone(&shared), stream));
            }
            Err(_) => clock::pause(ACCEPT_PAUSE).await,
        }
    }
}

impl SinkHandle {
    /// How many requests have arrived whole, the control pages aside.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.shared.count()
    }

    /// The requests that are kept, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<Record>> {
        self.shared.kept()
    }

    /// Forgets requests and counts, as `DELETE /_requests` does.
    pub fn forget(&self) {
        self.shared.forget();
    }

    /// The URL of one of its paths, such as `/ok`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Stops it; when this returns the port is free and every connection is closed.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means it is already gone.
            let _gone = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl Drop for SinkHandle {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the connections share.
#[derive(Debug)]
struct Shared {
    arrived: AtomicU64,
    keeps: bool,
    shelf: Mutex<Shelf>,
    counts: Mutex<Counts>,
    listener: Option<mpsc::Sender<Arc<Record>>>,
}

impl Shared {
    fn new(options: Options) -> Shared {
        Shared {
            arrived: AtomicU64::new(0),
            keeps: options.keep > 0,
            shelf: Mutex::new(Shelf::new(options.keep, KEPT_TOTAL_MAX_BYTES)),
            counts: Mutex::new(Counts::new(COUNTED_IDS_MAX)),
            listener: options.listener,
        }
    }

    fn decide(&self, route: Route, head: &http::request::Parts) -> Answer {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        if !route.is_counted() {
            return route.answer(0);
        }
        let id = head.headers.get("webhook-id").map(|value| value.as_bytes());
        route.answer(lock(&self.counts).count(head.uri.path(), id))
    }

    fn wants_records(&self) -> bool {
        self.keeps || self.listener.is_some()
    }

    fn keep(&self, record: Arc<Record>) {
        if self.keeps {
            lock(&self.shelf).push(record);
        }
    }

    async fn tell(&self, record: Arc<Record>) {
        if let Some(listener) = &self.listener {
            let _nobody = listener.send(record).await;
        }
    }

    fn count(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    fn kept(&self) -> Vec<Arc<Record>> {
        lock(&self.shelf).snapshot()
    }

    fn forget(&self) {
        lock(&self.shelf).clear();
        lock(&self.counts).clear();
        self.arrived.store(0, Ordering::Relaxed);
    }
}

/// What is guarded is consistent after every step, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
