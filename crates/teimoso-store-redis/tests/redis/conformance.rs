//! The rules that every store keeps, on a real server; and random histories against the model.

use proptest::prelude::*;
use redis_fixture::{Cluster, Sentinels};
use teimoso_delivery::testkit::model;

use super::fixture::{each_at, synced_always, synced_every_second};

mod suite {
    use super::synced_always;

    teimoso_delivery::conformance_suite!(synced_always);
}

mod on_a_cluster {
    use super::{Cluster, each_at};

    fn make()
    -> impl Fn(teimoso_delivery::testkit::ManualClock) -> teimoso_delivery::testkit::conformance::Fixture
    {
        let cluster = Cluster::start();
        each_at(cluster.url(), cluster)
    }

    teimoso_delivery::conformance_suite!(in_one_test: make());
}

mod by_sentinels {
    use super::{Sentinels, each_at};

    fn make()
    -> impl Fn(teimoso_delivery::testkit::ManualClock) -> teimoso_delivery::testkit::conformance::Fixture
    {
        let group = Sentinels::start();
        each_at(group.url(), group)
    }

    teimoso_delivery::conformance_suite!(in_one_test: make());
}

fn a_few(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(a_few(40))]
    #[test]
    fn g2_every_history_agrees_with_the_model(steps: Vec<(u8, u8, u16)>) {
        model::check(&synced_always, &steps);
    }
}

#[test]
fn g4_at_most_once_is_refused_where_an_answer_is_not_synced() {
    teimoso_delivery::testkit::conformance::g4_at_most_once_is_accepted_where_the_store_says_so(
        &synced_every_second,
    );
}
