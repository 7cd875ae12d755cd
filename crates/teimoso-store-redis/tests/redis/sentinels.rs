//! Whoever the sentinels name: found at start, and found again when it is another one.

use std::time::Duration;

use redis_fixture::Sentinels;
use teimoso_delivery::store::Store;
use teimoso_store_redis::{Durability, OpenErrorKind, Options};

use super::load::Load;
use super::opening::{open, refusal};
use super::world::story;

/// The sentinels' own detection takes half a second and a vote; what is ours may take 5 s.
const FAILED_OVER: Duration = Duration::from_secs(6);

/// What was accepted was on the replica, too.
fn replicated() -> Options {
    Options { durability: Some(Durability::Replica), ..Options::default() }
}

#[test]
fn an_ordered_failover_under_load_loses_nothing_that_was_accepted() {
    let group = Sentinels::start();
    let load = Load::at(&group.url(), &replicated());
    story(async {
        let _group = load
            .during(move |load| {
                load.more(100);
                let before = group.master();
                assert_ne!(Some(group.fail_over()), before);
                eprintln!("back after {:?}", load.resumes(FAILED_OVER));
                load.more(100);
                group
            })
            .await;
        eprintln!("{} events", load.account().await);
    });
}

#[test]
fn a_killed_master_is_replaced_within_the_sentinels_time_and_five_seconds() {
    let mut group = Sentinels::start();
    let load = Load::at(&group.url(), &replicated());
    story(async {
        let _group = load
            .during(move |load| {
                load.more(100);
                let master = group.master().expect("there is a master");
                group.servers[master].kill();
                eprintln!("back after {:?}", load.resumes(FAILED_OVER));
                // It comes back as a replica, and confirms what is accepted.
                group.servers[master].start_again();
                load.more(100);
                group
            })
            .await;
        eprintln!("{} events", load.account().await);
    });
}

#[test]
fn a_master_that_only_falls_silent_is_left_when_the_sentinels_say_so() {
    let group = Sentinels::start();
    let load = Load::at(&group.url(), &replicated());
    story(async {
        let _group = load
            .during(move |load| {
                load.more(100);
                let master = group.master().expect("there is a master");
                // It closes no connection: without a watcher every call would wait for its time-out.
                group.servers[master].suspend();
                eprintln!("back after {:?}", load.resumes(FAILED_OVER));
                group.servers[master].resume();
                load.more(100);
                group
            })
            .await;
        eprintln!("{} events", load.account().await);
    });
}

#[test]
fn any_sentinel_will_do_and_what_was_found_is_said_again_after_a_failover() {
    let mut group = Sentinels::start();
    group.sentinels[0].kill();
    let store = open(&group.url(), &Options::default()).expect("two sentinels are left");
    let info = store.info();
    assert_eq!(info.durability, "replica");
    assert!(info.description.starts_with("redis at redis+sentinel://127.0.0.1:"), "{}", info.description);
    assert!(info.description.contains(", 1 replicas, "), "{}", info.description);
    let master = group.master().expect("there is a master");
    group.servers[master].kill();
    let clock = super::clock::RealClock::start();
    story(async {
        use teimoso_delivery::ports::Clock;
        while !store.info().description.contains(", 0 replicas, ") {
            assert!(clock.monotonic() < Duration::from_secs(20), "{}", store.info().description);
            clock.sleep(Duration::from_millis(50)).await;
            let _answer = store.stats().await;
        }
    });
}

#[test]
fn a_name_nobody_knows_and_a_server_that_is_no_sentinel_are_told_apart() {
    let group = Sentinels::start();
    let unknown = refusal(&group.url().replace("/mestre", "/outro"), &Options::default());
    assert_eq!(unknown.kind(), OpenErrorKind::Unsuitable);
    assert!(unknown.to_string().contains("knows no master named `outro`"), "{unknown}");
    let server = &group.servers[0];
    let wrong = refusal(&format!("redis+sentinel://{}/mestre", server.address()), &Options::default());
    assert!(wrong.to_string().contains("this is no sentinel"), "{wrong}");
    let sentinel = refusal(&group.sentinels[0].url(), &Options::default());
    assert_eq!(sentinel.kind(), OpenErrorKind::Unsuitable, "{sentinel}");
    assert!(sentinel.to_string().contains("redis+sentinel://"), "{sentinel}");
}

#[test]
fn the_sentinels_password_is_not_the_masters() {
    let group = Sentinels::start_with_password(Some("segredo"));
    let without = refusal(&group.url(), &Options::default());
    assert!(without.is_authentication(), "{without}");
    let wrong = format!("{}?sentinel_password=segredo-errado", group.url());
    let wrong = refusal(&wrong, &Options::default());
    assert!(wrong.is_authentication() && !wrong.to_string().contains("segredo"), "{wrong}");
    let right = format!("{}?sentinel_password=segredo", group.url());
    assert!(open(&right, &Options::default()).is_ok());
    let beside = Options { sentinel_password: Some("segredo".to_owned()), ..Options::default() };
    assert!(open(&group.url(), &beside).is_ok());
}
