//! No room left, and room again, without a restart.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use teimoso_delivery::model::{
    AttemptNumber, AttemptRecord, DecisionName, Millis, Nonce, PhaseTimings, Progress,
};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{
    ClaimRequest, Claimed, Counts, LEASE, LaneNews, Next, Settlement, Store, StoreErrorKind,
};
use teimoso_delivery::testkit::{ManualClock, SeededEntropy, offer};
use teimoso_retry::Fate;
use teimoso_store_embedded::{EmbeddedStore, Options};

const RETENTION: Duration = Duration::from_secs(3_600);
/// How long what must come is waited for: the store looks for room once a second.
const PATIENCE: Duration = Duration::from_secs(20);
/// Events of one accept, and what one lane may have in flight (G9).
const BATCH: usize = 16;
/// Batches that are delivered before the room runs out.
const EARLY: u128 = 60;

fn open(directory: &Path, clock: &ManualClock) -> EmbeddedStore {
    let options = Options { retention: RETENTION, max_bytes: Some(1 << 20) };
    EmbeddedStore::open(directory, options, Arc::new(clock.clone()), &SeededEntropy::new(7))
        .expect("it opens")
}

async fn accept(store: &EmbeddedStore) -> Result<(), StoreErrorKind> {
    let batch = vec![offer("http://loja.example/").payload("x".repeat(300)).event(); BATCH];
    store.accept(batch).await.map(drop).map_err(|error| error.kind())
}

async fn claim(
    store: &EmbeddedStore,
    clock: &ManualClock,
    nonce: u128,
) -> Result<Vec<Claimed>, StoreErrorKind> {
    let now = clock.now();
    let lease_until = now.after(LEASE);
    let request = ClaimRequest { now, want: BATCH, free: 1_024, nonce: Nonce(nonce), lease_until };
    store.claim(request).await.map(|claim| claim.taken).map_err(|error| error.kind())
}

fn delivered(claimed: Claimed, at: Millis) -> Settlement {
    let progress = Progress { attempts: 1, first_attempt_at: Some(at), ..claimed.progress };
    let record = AttemptRecord {
        number: AttemptNumber::after(0),
        started_at: at,
        fate: Fate::Answered,
        status: Some(200),
        error_kind: None,
        error: None,
        decision: DecisionName::Done,
        wait: None,
        peer: None,
        timings: PhaseTimings::default(),
        response: None,
    };
    let record = Some(Box::new(record));
    Settlement { lease: claimed.lease, next: Next::Delivered, progress, record, news: LaneNews::Neutral, at }
}

async fn counts(store: &EmbeddedStore) -> Counts {
    let counts = store.stats().await.expect("it counts").counts;
    assert!(counts.conserved(), "{counts:?}");
    counts
}

/// Accepts until there is no room; returns how many events that took.
async fn fill(store: &EmbeddedStore) -> usize {
    for batches in 0..1_000 {
        if let Err(kind) = accept(store).await {
            assert_eq!(kind, StoreErrorKind::Full);
            return batches * BATCH;
        }
    }
    panic!("a mebibyte holds no 50 000 events")
}

#[tokio::test]
async fn a_full_store_claims_nothing_keeps_settlements_and_recovers_when_expiry_makes_room() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Millis::new(1_700_000_000_000));
    let store = open(directory.path(), &clock);
    // Half of the room is taken by what was delivered long ago.
    for nonce in 1..=EARLY {
        accept(&store).await.unwrap();
        let claimed = claim(&store, &clock, nonce).await.unwrap();
        assert_eq!(claimed.len(), BATCH);
        let batch = claimed.into_iter().map(|claimed| delivered(claimed, clock.now())).collect();
        store.settle(batch).await.unwrap().ticket.await.unwrap();
    }
    clock.advance(RETENTION / 2);
    let later = fill(&store).await;
    assert!(later > 2 * BATCH, "{later}");

    assert_eq!(store.health().unwrap_err().kind(), StoreErrorKind::Full);
    assert_eq!(claim(&store, &clock, 100).await.unwrap_err(), StoreErrorKind::Full);
    let full = counts(&store).await;
    assert_eq!((full.delivered, full.pending, full.in_flight), (960, later as u64, 0));

    // The delivered ones expire, and that is enough.
    clock.advance(RETENTION / 2 + Duration::from_secs(60));
    tokio::time::timeout(PATIENCE, store.wait()).await.expect("the store calls when it works again");
    let recovered = tokio::time::timeout(PATIENCE, async {
        while store.health().is_err() {
            store.wait().await;
        }
    });
    recovered.await.expect("the store works again");
    let mut left = later;
    for nonce in 200.. {
        let claimed = claim(&store, &clock, nonce).await.unwrap();
        if claimed.is_empty() {
            break;
        }
        left -= claimed.len();
        let batch = claimed.into_iter().map(|claimed| delivered(claimed, clock.now())).collect();
        store.settle(batch).await.unwrap().ticket.await.unwrap();
    }
    assert_eq!(left, 0, "every acknowledged one is delivered");
    accept(&store).await.unwrap();
}

#[tokio::test]
async fn a_settlement_that_finds_no_room_is_kept_and_is_the_first_to_be_saved() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Millis::new(1_700_000_000_000));
    let store = open(directory.path(), &clock);
    for nonce in 1..=EARLY {
        accept(&store).await.unwrap();
        let claimed = claim(&store, &clock, nonce).await.unwrap();
        let batch = claimed.into_iter().map(|claimed| delivered(claimed, clock.now())).collect();
        store.settle(batch).await.unwrap().ticket.await.unwrap();
    }
    accept(&store).await.unwrap();
    let in_flight = claim(&store, &clock, 80).await.unwrap();
    assert_eq!(in_flight.len(), BATCH);
    clock.advance(RETENTION / 2);
    fill(&store).await;
    let batch = in_flight.into_iter().map(|claimed| delivered(claimed, clock.now())).collect();
    let ticket = store.settle(batch).await.unwrap().ticket;
    assert_eq!(counts(&store).await.delivered, 960, "not durable, and so not counted");
    clock.advance(RETENTION / 2 + Duration::from_secs(60));
    tokio::time::timeout(PATIENCE, ticket).await.expect("there is room in time").expect("it is saved");
    let now = counts(&store).await;
    // What was in flight is as old as the others: it was saved first, and expired after.
    assert_eq!((now.in_flight, now.delivered + now.expunged), (0, 976));
}
