//! A server over a store in memory, with faults on demand and a clock that only the test moves.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use teimoso_delivery::memory::MemoryStore;
use teimoso_delivery::model::{ContentType, DeliveryId, Destination, EventId, Millis, NewEvent, ReplayId};
use teimoso_delivery::ports::{Clock, Destinations, RefusedDestination};
use teimoso_delivery::retry::{Preset, RetryPolicy};
use teimoso_delivery::store::{
    Accepted, AttemptView, BoxFuture, CancelOutcome, Claim, ClaimRequest, DeliveryFilter, DeliveryView,
    EventFilter, EventView, LeaseRef, NewReplay, Page, Parcel, Rejection, Replay, RetryOutcome, Settled,
    Settlement, Stats, Store, StoreError, StoreErrorKind, StoreInfo,
};
use teimoso_delivery::testkit::ManualClock;
use teimoso_server::{ApiConfig, App};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::client::{Answer, Client};

/// 2026-09-11T14:25:00.349Z.
pub const NOW: Millis = Millis::new(1_789_136_700_349);

pub fn config() -> ApiConfig {
    ApiConfig::new("1.2.3", RetryPolicy::preset(Preset::Patient))
}

/// A running server.
pub struct Server {
    pub addr: SocketAddr,
    pub app: App,
    pub store: Arc<FaultyStore>,
    pub clock: ManualClock,
    stop: Option<oneshot::Sender<()>>,
    pub task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    pub async fn start() -> Self {
        Self::with(config()).await
    }

    pub async fn with(config: ApiConfig) -> Self {
        let clock = ManualClock::at(NOW);
        let store = Arc::new(FaultyStore::new(Arc::new(clock.clone())));
        let app = App::new(store.clone(), Arc::new(Rules), Arc::new(clock.clone()), config);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(teimoso_server::serve(listener, app.clone(), stopped));
        Self { addr, app, store, clock, stop: Some(stop), task }
    }

    pub fn stop(&mut self) {
        let _gone = self.stop.take().map(|stop| stop.send(()));
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.addr).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.client().await.request("GET", path, "", b"").await
    }

    pub async fn post(&self, path: &str, body: &str) -> Answer {
        self.post_with(path, "", body).await
    }

    pub async fn post_with(&self, path: &str, headers: &str, body: &str) -> Answer {
        let headers = format!("content-type: application/json\r\n{headers}");
        self.client().await.request("POST", path, &headers, body.as_bytes()).await
    }

    /// Accepts one event for a good URL; its id and its delivery's.
    pub async fn accepted(&self, more: &str) -> (String, String) {
        let body = format!(r#"{{"url":"http://ok.test/a?q=1","payload":{{"n":1.0}}{more}}}"#);
        let answer = self.post("/v1/events", &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        let json = answer.json();
        (text(&json["id"]), text(&json["deliveries"][0]["id"]))
    }

    /// Lets the sleeper that comes next wake; waits for one to fall asleep.
    pub async fn let_time_pass(&self) {
        while !self.clock.advance_to_next_sleeper() {
            tokio::task::yield_now().await;
        }
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("text: {value}")).to_owned()
}

/// Refuses by host: `blocked.test`, and whatever is no http URL.
struct Rules;

impl Destinations for Rules {
    fn check(&self, url: &str) -> Result<Destination, RefusedDestination> {
        let refused = |code, sentence: &str| Err(RefusedDestination { code, sentence: sentence.to_owned() });
        let Some(rest) = url.strip_prefix("http://") else {
            return refused("invalid_destination", "the URL must begin with http:// or https://");
        };
        let host = rest.split('/').next().unwrap_or_default();
        if host == "blocked.test" {
            return refused(
                "blocked_address",
                "blocked.test is private; --allow-net 10.0.0.0/8 would allow it",
            );
        }
        let lane = url.split('?').next().unwrap_or_default();
        Ok(Destination { url: url.into(), lane: lane.into(), origin: format!("http://{host}").into() })
    }
}

/// What `accept` does instead of its work.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Fail(StoreErrorKind),
    Reject(Rejection),
    Panic,
}

/// The store in memory, with faults in `accept`.
pub struct FaultyStore {
    inner: MemoryStore,
    pub fault: Mutex<Option<Fault>>,
    /// While set, an accept takes one permit before it works.
    pub gated: AtomicBool,
    pub gate: Semaphore,
    /// Events offered so far.
    pub offered: AtomicUsize,
    /// The largest batch offered so far.
    pub largest: AtomicUsize,
    pub health: Mutex<Option<StoreErrorKind>>,
}

impl FaultyStore {
    fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            inner: MemoryStore::new(clock, 7),
            fault: Mutex::new(None),
            gated: AtomicBool::new(false),
            gate: Semaphore::new(0),
            offered: AtomicUsize::new(0),
            largest: AtomicUsize::new(0),
            health: Mutex::new(None),
        }
    }

    pub fn set_fault(&self, fault: Option<Fault>) {
        *self.fault.lock().expect("no panic holds it") = fault;
    }

    pub fn close_gate(&self) {
        self.gated.store(true, Ordering::SeqCst);
    }

    pub fn offered(&self) -> usize {
        self.offered.load(Ordering::SeqCst)
    }

    /// Waits until `count` events were offered.
    pub async fn wait_offered(&self, count: usize) {
        while self.offered() < count {
            tokio::task::yield_now().await;
        }
    }
}

type Accepting<'a> = BoxFuture<'a, Result<Vec<Result<Accepted, Rejection>>, StoreError>>;

impl Store for FaultyStore {
    fn accept(&self, batch: Vec<NewEvent>) -> Accepting<'_> {
        self.offered.fetch_add(batch.len(), Ordering::SeqCst);
        self.largest.fetch_max(batch.len(), Ordering::SeqCst);
        let fault = *self.fault.lock().expect("no panic holds it");
        Box::pin(async move {
            if self.gated.load(Ordering::SeqCst) {
                self.gate.acquire().await.expect("open").forget();
            }
            match fault {
                None => self.inner.accept(batch).await,
                Some(Fault::Fail(kind)) => Err(StoreError::new(kind, "the store said so")),
                Some(Fault::Reject(rejection)) => Ok(batch.iter().map(|_| Err(rejection)).collect()),
                Some(Fault::Panic) => panic!("a fault on demand"),
            }
        })
    }

    fn claim(&self, request: ClaimRequest) -> BoxFuture<'_, Result<Claim, StoreError>> {
        self.inner.claim(request)
    }

    fn settle(&self, batch: Vec<Settlement>) -> BoxFuture<'_, Result<Settled, StoreError>> {
        self.inner.settle(batch)
    }

    fn extend(
        &self,
        leases: Vec<LeaseRef>,
        until: Millis,
    ) -> BoxFuture<'_, Result<Vec<LeaseRef>, StoreError>> {
        self.inner.extend(leases, until)
    }

    fn wait(&self) -> BoxFuture<'_, ()> {
        self.inner.wait()
    }

    fn cancel(&self, id: DeliveryId) -> BoxFuture<'_, Result<CancelOutcome, StoreError>> {
        self.inner.cancel(id)
    }

    fn retry(&self, id: DeliveryId, explicit: bool) -> BoxFuture<'_, Result<RetryOutcome, StoreError>> {
        self.inner.retry(id, explicit)
    }

    fn start_replay(&self, replay: NewReplay) -> BoxFuture<'_, Result<Replay, StoreError>> {
        self.inner.start_replay(replay)
    }

    fn replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        self.inner.replay(id)
    }

    fn cancel_replay(&self, id: ReplayId) -> BoxFuture<'_, Result<Option<Replay>, StoreError>> {
        self.inner.cancel_replay(id)
    }

    fn event(&self, id: EventId) -> BoxFuture<'_, Result<Option<EventView>, StoreError>> {
        self.inner.event(id)
    }

    fn payload(&self, id: EventId) -> BoxFuture<'_, Result<Option<(ContentType, Bytes)>, StoreError>> {
        self.inner.payload(id)
    }

    fn events(&self, filter: EventFilter) -> BoxFuture<'_, Result<Page<EventView>, StoreError>> {
        self.inner.events(filter)
    }

    fn delivery(&self, id: DeliveryId) -> BoxFuture<'_, Result<Option<DeliveryView>, StoreError>> {
        self.inner.delivery(id)
    }

    fn deliveries(&self, filter: DeliveryFilter) -> BoxFuture<'_, Result<Page<DeliveryView>, StoreError>> {
        self.inner.deliveries(filter)
    }

    fn attempts(&self, id: DeliveryId) -> BoxFuture<'_, Result<Vec<AttemptView>, StoreError>> {
        self.inner.attempts(id)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        self.inner.stats()
    }

    fn export(&self, cursor: Option<String>) -> BoxFuture<'_, Result<Page<Parcel>, StoreError>> {
        self.inner.export(cursor)
    }

    fn import(&self, parcels: Vec<Parcel>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.import(parcels)
    }

    fn info(&self) -> StoreInfo {
        self.inner.info()
    }

    fn health(&self) -> Result<(), StoreError> {
        match *self.health.lock().expect("no panic holds it") {
            Some(kind) => Err(StoreError::new(kind, "the store said so")),
            None => self.inner.health(),
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

/// Patience for something that another task does soon.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("soon")
}

/// Real time, for tests that show that something does *not* happen.
pub async fn pause(time: Duration) {
    let _elapsed = tokio::time::timeout(time, std::future::pending::<()>()).await;
}
