//! The rules that every store keeps, on a real file; and a random history against the model.

use std::sync::Arc;

use proptest::prelude::*;
use teimoso_delivery::conformance_suite;
use teimoso_delivery::lanes::Limits;
use teimoso_delivery::testkit::conformance::Fixture;
use teimoso_delivery::testkit::{ManualClock, SeededEntropy, model};
use teimoso_store_embedded::{EmbeddedStore, Options};

fn on_disk(clock: ManualClock) -> Fixture {
    with_limits(clock, Limits::default())
}

fn with_limits(clock: ManualClock, limits: Limits) -> Fixture {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let entropy = SeededEntropy::new(7);
    let store =
        EmbeddedStore::open_with_limits(dir.path(), Options::default(), limits, Arc::new(clock), &entropy);
    Fixture::new(Arc::new(store.expect("an empty directory opens"))).keeping(dir)
}

fn small(clock: ManualClock) -> Fixture {
    with_limits(clock, Limits { memory_per_lane: 4, memory_total: 64, ..Limits::default() })
}

conformance_suite!(on_disk);

mod with_almost_nothing_in_memory {
    //! The same rules when every lane's due index is read from the file a few entries at a time.
    use super::*;

    conformance_suite!(small);
}

fn a_few(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(a_few(40))]
    #[test]
    fn g2_every_history_agrees_with_the_model(steps: Vec<(u8, u8, u16)>) {
        model::check(&on_disk, &steps);
    }

    #[test]
    fn g2_every_history_agrees_with_the_model_when_memory_is_short(steps: Vec<(u8, u8, u16)>) {
        model::check(&small, &steps);
    }
}
