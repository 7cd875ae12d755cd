//! The application behind the routes: the only part of this crate that talks to the store.
//!
//! Deliberately absent: HTTP. Verbs take and give the domain's types; refusals are [`Problem`]s.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use teimoso_delivery::model::{ContentType, DeliveryId, EventId, Millis, NewEvent, ReplayId};
use teimoso_delivery::ports::{Clock, Destinations};
use teimoso_delivery::store::{
    Accepted, AttemptView, CancelOutcome, DeliveryFilter, DeliveryView, EventFilter, EventView, NewReplay,
    Page, Rejection, Replay, RetryOutcome, Stats, Store, StoreError, StoreInfo,
};
use tokio::sync::watch;

use crate::admission::{Gauge, Hold};
use crate::api::convert::{CheckUrl, Ground};
use crate::api::problem::{Code, Problem};
use crate::config::ApiConfig;

/// The application. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    destinations: Arc<dyn Destinations>,
    clock: Arc<dyn Clock>,
    config: ApiConfig,
    durability: HeaderValue,
    requests: Arc<Gauge>,
    body_bytes: Arc<Gauge>,
    batches: Arc<Gauge>,
    draining: watch::Sender<bool>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("config", &self.0.config).finish_non_exhaustive()
    }
}

impl App {
    /// An application over `store`, which judges URLs by `destinations` and reads time from `clock`.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        destinations: Arc<dyn Destinations>,
        clock: Arc<dyn Clock>,
        config: ApiConfig,
    ) -> Self {
        let durability = HeaderValue::from_static(store.info().durability);
        let requests = Gauge::new(config.shed_above_in_flight_requests);
        let body_bytes = Gauge::new(config.body_bytes());
        let batches = Gauge::new(config.max_batches);
        let (draining, _) = watch::channel(false);
        Self(Arc::new(Inner {
            store,
            destinations,
            clock,
            config,
            durability,
            requests,
            body_bytes,
            batches,
            draining,
        }))
    }

    /// Takes no more events and orders (503), ends running batches after what they were sent so far, and
    /// reports not ready. Reading goes on. There is no way back.
    pub fn set_draining(&self) {
        self.0.draining.send_replace(true);
    }

    /// Whether [`App::set_draining`] was called.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        *self.0.draining.borrow()
    }

    /// Completes when [`App::set_draining`] is called.
    pub(crate) async fn drained(self) {
        // The sender lives as long as `self`, so there is no other end than the wished one.
        let mut draining = self.0.draining.subscribe();
        let _closed = draining.wait_for(|draining| *draining).await;
    }

    pub(crate) fn config(&self) -> &ApiConfig {
        &self.0.config
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    pub(crate) fn destinations(&self) -> &dyn Destinations {
        &*self.0.destinations
    }

    /// What events are judged by, with `check_url` as the way to look at URLs.
    pub(crate) fn ground<'a>(&'a self, check_url: &'a mut CheckUrl<'a>) -> Ground<'a> {
        Ground { check_url, clock: self.clock(), max_payload: self.0.config.max_payload }
    }

    pub(crate) fn now(&self) -> Millis {
        self.0.clock.now()
    }

    /// The value of `Teimoso-Durability`.
    pub(crate) fn durability(&self) -> HeaderValue {
        self.0.durability.clone()
    }

    pub(crate) fn info(&self) -> StoreInfo {
        self.0.store.info()
    }

    /// One request more, or a refusal.
    pub(crate) fn admit(&self) -> Result<Hold, Problem> {
        self.0.requests.take(1).ok_or_else(|| {
            let limit = self.0.config.shed_above_in_flight_requests;
            Problem::overloaded(&format!("{limit} requests are being worked on already"))
        })
    }

    /// One request more that changes something, or a refusal.
    pub(crate) fn admit_change(&self) -> Result<Hold, Problem> {
        if self.is_draining() { Err(Problem::draining()) } else { self.admit() }
    }

    /// One batch more, or a refusal.
    pub(crate) fn admit_batch(&self) -> Result<Hold, Problem> {
        self.0.batches.take(1).ok_or_else(|| {
            let limit = self.0.config.max_batches;
            Problem::overloaded(&format!("{limit} batches are streaming already"))
        })
    }

    /// Room for a body that grows; nothing is held yet.
    pub(crate) fn body_room(&self) -> Result<Hold, Problem> {
        self.0.body_bytes.take(0).ok_or_else(Self::no_body_room)
    }

    pub(crate) fn no_body_room() -> Problem {
        Problem::overloaded("too many bytes of other requests are waiting to be stored")
    }

    /// Stores one event.
    pub(crate) async fn accept(&self, event: NewEvent) -> Result<Result<Accepted, Rejection>, Problem> {
        self.accept_all(vec![event]).await?.pop().ok_or_else(Self::unanswered)
    }

    /// Stores events; one answer each, in order.
    pub(crate) async fn accept_all(
        &self,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Result<Accepted, Rejection>>, Problem> {
        let asked = events.len();
        let answers = self.0.store.accept(events).await?;
        if answers.len() == asked { Ok(answers) } else { Err(Self::unanswered()) }
    }

    fn unanswered() -> Problem {
        Problem::new(Code::StoreFailed, "the store did not answer for every event")
    }

    pub(crate) async fn event(&self, id: EventId) -> Result<EventView, Problem> {
        self.0.store.event(id).await?.ok_or_else(|| Problem::not_found("event"))
    }

    pub(crate) async fn events(&self, filter: EventFilter) -> Result<Page<EventView>, Problem> {
        Ok(self.0.store.events(filter).await?)
    }

    pub(crate) async fn payload(&self, id: EventId) -> Result<(ContentType, Bytes), Problem> {
        self.0.store.payload(id).await?.ok_or_else(|| Problem::not_found("event"))
    }

    pub(crate) async fn delivery(&self, id: DeliveryId) -> Result<DeliveryView, Problem> {
        self.0.store.delivery(id).await?.ok_or_else(|| Problem::not_found("delivery"))
    }

    pub(crate) async fn deliveries(&self, filter: DeliveryFilter) -> Result<Page<DeliveryView>, Problem> {
        Ok(self.0.store.deliveries(filter).await?)
    }

    pub(crate) async fn attempts(&self, id: DeliveryId) -> Result<Vec<AttemptView>, Problem> {
        Ok(self.0.store.attempts(id).await?)
    }

    pub(crate) async fn retry(&self, id: DeliveryId, explicit: bool) -> Result<RetryOutcome, Problem> {
        Ok(self.0.store.retry(id, explicit).await?)
    }

    pub(crate) async fn cancel(&self, id: DeliveryId) -> Result<CancelOutcome, Problem> {
        Ok(self.0.store.cancel(id).await?)
    }

    pub(crate) async fn start_replay(&self, replay: NewReplay) -> Result<Replay, Problem> {
        Ok(self.0.store.start_replay(replay).await?)
    }

    pub(crate) async fn replay(&self, id: ReplayId) -> Result<Replay, Problem> {
        self.0.store.replay(id).await?.ok_or_else(|| Problem::not_found("replay"))
    }

    pub(crate) async fn cancel_replay(&self, id: ReplayId) -> Result<Replay, Problem> {
        self.0.store.cancel_replay(id).await?.ok_or_else(|| Problem::not_found("replay"))
    }

    pub(crate) async fn stats(&self) -> Result<Stats, Problem> {
        Ok(self.0.store.stats().await?)
    }

    pub(crate) fn health(&self) -> Result<(), StoreError> {
        self.0.store.health()
    }
}
