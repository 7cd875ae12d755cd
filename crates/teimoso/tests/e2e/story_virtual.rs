//! S2's story with its real waits, in a clock that only the test moves: the engine, the embedded store and the
//! wire as in the product, real sockets, and half a minute that takes no time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use teimoso::sink::SinkHandle;
use teimoso::wiring::dispatch::HttpDispatch;
use teimoso_delivery::engine::{Engine, EngineLimits, Policies, Ports};
use teimoso_delivery::model::{AttemptRecord, DeadReason, DeliveryId, DeliveryState, EventId, Millis};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{DeliveryFilter, DeliveryView, Store};
use teimoso_delivery::testkit::{ManualClock, SeededEntropy, Watch, offer};
use teimoso_http::{Egress, Transport};
use teimoso_retry::{Preset, RetryPolicy};
use teimoso_store_embedded::{EmbeddedStore, Options};
use tokio::sync::Notify;

use crate::support::{closed_port, directory, sink};

const START: Millis = Millis::new(1_789_136_700_349);
const GRAIN: Duration = Duration::from_millis(1);

struct World {
    clock: ManualClock,
    store: Arc<EmbeddedStore>,
    watch: Arc<Watch>,
    stop: Arc<Notify>,
}

impl World {
    fn new(directory: &std::path::Path) -> World {
        let clock = ManualClock::at(START);
        let (port, entropy) = (Arc::new(clock.clone()), SeededEntropy::new(1));
        let store = EmbeddedStore::open(directory, Options::default(), port, &entropy).expect("it opens");
        World { clock, store: Arc::new(store), watch: Arc::default(), stop: Arc::default() }
    }

    fn engine(&self) -> Engine {
        let loopback = "127.0.0.0/8".parse().expect("a network");
        let transport =
            Transport::builder().egress(Egress::new(vec![loopback])).build().expect("a transport");
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let ports = Ports {
            store: self.store.clone(),
            dispatch: Arc::new(HttpDispatch::new(transport, Arc::clone(&clock))),
            clock,
            entropy: Arc::new(SeededEntropy::new(42)),
            observer: self.watch.clone(),
        };
        let policies = Policies::new(RetryPolicy::preset(Preset::Webhook));
        Engine::new(ports, policies, EngineLimits::default()).expect("an engine")
    }

    async fn accept(&self, url: &str) -> (EventId, DeliveryId) {
        let answer = self.store.accept(vec![offer(url).event()]).await.expect("stored").remove(0);
        let accepted = answer.expect("accepted");
        (accepted.event, accepted.deliveries[0].0)
    }

    async fn deliveries(&self) -> Vec<DeliveryView> {
        let filter = DeliveryFilter { limit: 100, ..DeliveryFilter::default() };
        self.store.deliveries(filter).await.expect("listed").data
    }

    /// How many attempts have ended, if none is on the wire or on its way to the disk.
    async fn at_rest(&self) -> Option<usize> {
        let counts = self.store.stats().await.expect("stats").counts;
        assert!(counts.conserved(), "{counts:?}");
        (counts.in_flight == 0).then(|| self.watch.ends().len())
    }

    /// Moves the clock to the next due time whenever nothing is on the wire, until every delivery has ended.
    async fn live(&self) {
        loop {
            let before = self.at_rest().await;
            let views = self.deliveries().await;
            if views.iter().all(|view| view.state.is_final()) {
                return;
            }
            // What the list says is the whole truth only if nothing moved while it was read, and nothing that has
            // not ended is on its way.
            let open = views.iter().filter(|view| !view.state.is_final());
            let due: Option<Vec<Millis>> = open.map(|view| view.next_attempt.map(|(at, _)| at)).collect();
            if let Some(due) = due.filter(|_| before.is_some())
                && before == self.at_rest().await
            {
                let next = due.into_iter().min().expect("something has not ended");
                self.clock.advance(next.since(self.clock.now()).max(GRAIN));
            }
            teimoso::clock::pause(GRAIN).await;
        }
    }
}

#[test]
fn s2_the_whole_story_over_real_sockets_in_virtual_time() {
    let directory = directory();
    let world = World::new(directory.path());
    let sink = sink();
    let (_held, closed) = closed_port();
    let exhausted = Some(DeadReason::AttemptsExhausted);
    let story = [
        (sink.url("/ok"), DeliveryState::Delivered, None, 1),
        (sink.url("/teimoso"), DeliveryState::Delivered, None, 3),
        (sink.url("/quebra"), DeliveryState::Dead, exhausted, 5),
        (sink.url("/nada"), DeliveryState::Dead, Some(DeadReason::PermanentStatus), 1),
        (format!("http://{closed}/"), DeliveryState::Dead, exhausted, 5),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (engine, stop) = (world.engine(), Arc::clone(&world.stop));
        let engine = tokio::spawn(async move { engine.run(stop.notified()).await });
        let mut told = Vec::new();
        for (url, ..) in &story {
            told.push(world.accept(url).await);
        }
        world.live().await;
        for ((event, delivery), (url, state, reason, attempts)) in told.iter().zip(&story) {
            let view = world.store.delivery(*delivery).await.expect("read").expect("there");
            assert_eq!((view.state, view.reason, view.attempts), (*state, *reason, *attempts), "{url}");
            let records = world.store.attempts(*delivery).await.expect("read");
            let records: Vec<AttemptRecord> = records.into_iter().map(|view| view.record).collect();
            assert_eq!(records.len(), *attempts as usize, "{url}");
            waits_are_s2_3s(&records, url);
            if !url.contains(&closed.to_string()) {
                arrived_as_recorded(&sink, &event.to_string(), &records);
            }
        }
        s2_9_the_dead_keep_their_bodies(&world, &told).await;
        world.stop.notify_one();
        engine.await.expect("no panic").expect("drained");
        world.store.close().await;
    });
}

/// 2, 4, 8, 16 s plus 0–1 s (S2.3); the next attempt is never early (G8), and starts within a second (S2.8).
fn waits_are_s2_3s(records: &[AttemptRecord], url: &str) {
    for (pair, base) in records.windows(2).zip([2_000, 4_000, 8_000, 16_000]) {
        let (wait, _) = pair[0].wait.expect("another attempt follows");
        assert!((base..=base + 1_000).contains(&wait.as_millis()), "{url}: {wait:?} after {base} ms");
        let waited = pair[1].started_at.since(pair[0].started_at);
        assert!(waited >= wait, "{url}: {waited:?} is early for {wait:?}");
        assert!(waited < wait + Duration::from_secs(1), "{url}: {waited:?} is late for {wait:?}");
    }
    assert_eq!(records.last().and_then(|last| last.wait), None, "{url}");
}

/// What the destination saw is what was recorded: each attempt once, with its number and its time.
fn arrived_as_recorded(sink: &SinkHandle, event: &str, records: &[AttemptRecord]) {
    let arrived = sink.requests();
    let arrived = arrived.iter().filter(|record| record.webhook_id().as_deref() == Some(event));
    let arrived: Vec<_> = arrived
        .map(|record| (record.attempt(), record.header("webhook-timestamp").map(|at| at.into_owned())))
        .collect();
    let recorded = records.iter().map(|record| {
        (Some(u64::from(record.number.get())), Some((record.started_at.get() / 1_000).to_string()))
    });
    assert_eq!(arrived, recorded.collect::<Vec<_>>());
    for request in sink.requests() {
        assert_eq!(request.body(), b"{\"tipo\":\"pedido.pago\"}");
        assert_eq!(request.header("content-type").as_deref(), Some("application/json"), "S2.15");
    }
}

async fn s2_9_the_dead_keep_their_bodies(world: &World, told: &[(EventId, DeliveryId)]) {
    let views: HashMap<_, _> =
        world.deliveries().await.into_iter().map(|view| (view.event_id.to_string(), view.state)).collect();
    assert_eq!(views.len(), told.len());
    for (event, _) in told {
        let (_, payload) = world.store.payload(event.clone()).await.expect("read").expect("kept");
        assert_eq!(&payload[..], b"{\"tipo\":\"pedido.pago\"}", "{event}: {:?}", views[&event.to_string()]);
    }
}
