//! The memory store keeps the rules that every store keeps, in both of its kinds.

use std::sync::Arc;

use super::MemoryStore;
use crate::testkit::ManualClock;
use crate::testkit::conformance::Fixture;

fn reference(clock: ManualClock) -> Fixture {
    Fixture::new(Arc::new(MemoryStore::reference(Arc::new(clock), 7)))
}

crate::conformance_suite!(reference);

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn g2_every_history_agrees_with_the_model(steps: Vec<(u8, u8, u16)>) {
        crate::testkit::model::check(&reference, &steps);
    }
}

mod without_at_most_once {
    use super::*;

    fn plain(clock: ManualClock) -> Fixture {
        Fixture::new(Arc::new(MemoryStore::new(Arc::new(clock), 7)))
    }

    #[test]
    fn g4_at_most_once_is_refused() {
        crate::testkit::conformance::g4_at_most_once_is_accepted_where_the_store_says_so(&plain);
    }
}
