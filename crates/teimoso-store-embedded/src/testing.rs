//! An open store for the unit tests of this crate.

use std::sync::Arc;

use teimoso_delivery::model::{DeliveryId, Millis, Nonce};
use teimoso_delivery::store::{ClaimRequest, LEASE, Store};
use teimoso_delivery::testkit::{ManualClock, Offer, SeededEntropy};
use tempfile::TempDir;

use crate::{EmbeddedStore, Options};

/// Where the clock of [`store`] stands.
pub(crate) const NOW: Millis = Millis::new(1_700_000_000_000);

pub(crate) fn store() -> (TempDir, EmbeddedStore) {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(NOW));
    let store = EmbeddedStore::open(dir.path(), Options::default(), clock, &SeededEntropy::new(7)).unwrap();
    (dir, store)
}

/// The deliveries of `offers`, in order.
pub(crate) async fn accept(store: &EmbeddedStore, offers: Vec<Offer>) -> Vec<DeliveryId> {
    let accepted = store.accept(offers.into_iter().map(Offer::event).collect()).await.unwrap();
    accepted.into_iter().map(|accepted| accepted.unwrap().deliveries[0].0).collect()
}

pub(crate) fn request(nonce: u128) -> ClaimRequest {
    ClaimRequest { now: NOW, want: 64, free: 1_024, nonce: Nonce(nonce), lease_until: NOW.after(LEASE) }
}
