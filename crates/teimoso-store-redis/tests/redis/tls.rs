//! Servers behind TLS: who vouches for them, and what is said when nobody does.

use redis_fixture::Tls;
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Next, Store};
use teimoso_delivery::testkit::offer;
use teimoso_store_redis::{OpenErrorKind, Options};

use super::clock::RealClock;
use super::opening::{open, refusal};
use super::world::{World, story};

fn trusting(file: &str) -> Options {
    Options { authority: Some(std::fs::read(file).expect("a file")), ..Options::default() }
}

#[test]
fn a_server_whose_authority_is_named_is_trusted_with_everything() {
    let tls = Tls::start();
    let store = open(&tls.url(), &trusting(tls.authority())).expect("it is trusted");
    assert!(store.info().description.starts_with("redis at rediss://127.0.0.1:"), "{:?}", store.info());
    story(async {
        let accepted = store.accept(vec![offer("http://loja.example/").event()]).await;
        assert!(accepted.is_ok_and(|answers| answers[0].is_ok()));
        store.wait().await;
        let claim =
            store.claim(World::request_at(RealClock::start().now())).await.expect("an open store answers");
        assert_eq!(claim.taken.len(), 1);
        let batch = claim
            .taken
            .into_iter()
            .map(|one| super::world::settlement(one, Next::Delivered, super::world::START));
        store.settle(batch.collect()).await.expect("an open store settles");
        assert_eq!(store.stats().await.map(|stats| stats.counts.delivered), Ok(1));
    });
}

#[test]
fn a_server_that_nobody_we_trust_vouches_for_is_refused_with_what_to_do() {
    let tls = Tls::start();
    for options in [Options::default(), trusting(tls.stranger())] {
        let refused = refusal(&tls.url(), &options);
        assert_eq!(refused.kind(), OpenErrorKind::Untrusted, "{refused}");
        assert!(refused.to_string().ends_with("name the authority that vouches for it"), "{refused}");
    }
    let plain = refusal(&tls.url().replace("rediss://", "redis://"), &Options::default());
    assert_eq!(plain.kind(), OpenErrorKind::Unreachable, "{plain}");
    let nonsense = Options { authority: Some(b"nonsense".to_vec()), ..Options::default() };
    let nonsense = refusal(&tls.url(), &nonsense);
    assert_eq!(nonsense.kind(), OpenErrorKind::Unusable, "{nonsense}");
}
