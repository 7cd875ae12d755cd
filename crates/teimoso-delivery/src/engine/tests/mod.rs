//! The engine against the memory store, a scripted wire and a clock that moves when nothing else can.

mod faults;
mod histories;
mod leases;
mod modes;
mod story;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use teimoso_retry::{Preset, RetryPolicy};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::memory::MemoryStore;
use crate::model::{DeliveryId, DeliveryState, Millis};
use crate::ports::Dispatched;
use crate::store::{Accepted, Counts, DeliveryView};
use crate::testkit::{
    FaultyStore, ManualClock, Offer, Play, ScriptedWire, SeededEntropy, Watch, in_virtual_time,
};

const START: Millis = Millis::new(1_700_000_000_000);

/// Everything around one engine.
#[derive(Clone)]
struct World {
    clock: ManualClock,
    store: Arc<FaultyStore>,
    wire: ScriptedWire,
    watch: Arc<Watch>,
    entropy: Arc<SeededEntropy>,
    stop: Arc<Notify>,
}

impl World {
    fn new(script: impl Fn(&Dispatched) -> Play + Send + Sync + 'static) -> Self {
        let clock = ManualClock::at(START);
        let memory = MemoryStore::reference(Arc::new(clock.clone()), 7);
        Self {
            store: Arc::new(FaultyStore::new(Arc::new(memory), &clock)),
            wire: ScriptedWire::new(&clock, script),
            watch: Arc::default(),
            entropy: Arc::new(SeededEntropy::new(42)),
            stop: Arc::default(),
            clock,
        }
    }

    fn engine(&self, policy: &RetryPolicy, limits: EngineLimits) -> Engine {
        let ports = Ports {
            store: self.store.clone(),
            dispatch: Arc::new(self.wire.clone()),
            clock: Arc::new(self.clock.clone()),
            entropy: self.entropy.clone(),
            observer: self.watch.clone(),
        };
        Engine::new(ports, Policies::new(policy.clone()), limits).unwrap()
    }

    fn start_with(&self, policy: &RetryPolicy, limits: EngineLimits) -> JoinHandle<Result<(), StoreError>> {
        let (engine, stop) = (self.engine(policy, limits), self.stop.clone());
        tokio::spawn(async move { engine.run(stop.notified()).await })
    }

    fn start(&self, preset: Preset) -> JoinHandle<Result<(), StoreError>> {
        self.start_with(&RetryPolicy::preset(preset), EngineLimits::default())
    }

    async fn accept(&self, offer: Offer) -> DeliveryId {
        let Accepted { deliveries, .. } =
            self.store.accept(vec![offer.event()]).await.unwrap().remove(0).unwrap();
        deliveries[0].0
    }

    async fn accept_many(&self, count: usize, offer: Offer) {
        self.store.accept(vec![offer.event(); count]).await.unwrap();
    }

    async fn view(&self, id: DeliveryId) -> DeliveryView {
        self.store.delivery(id).await.unwrap().unwrap()
    }

    /// Waits, in steps, until this delivery has ended.
    async fn end_of(&self, id: DeliveryId) -> DeliveryView {
        loop {
            let view = self.view(id).await;
            if view.state.is_final() {
                return view;
            }
            self.pass(Duration::from_millis(100)).await;
        }
    }

    async fn counts(&self) -> Counts {
        let counts = self.store.stats().await.unwrap().counts;
        assert!(counts.conserved(), "{counts:?}");
        counts
    }

    async fn until(&self, reached: impl Fn(&Counts) -> bool) -> Counts {
        loop {
            let counts = self.counts().await;
            if reached(&counts) {
                return counts;
            }
            self.pass(Duration::from_millis(100)).await;
        }
    }

    async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn patient() -> RetryPolicy {
    RetryPolicy::preset(Preset::Patient)
}
