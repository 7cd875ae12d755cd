//! S2's three keys, pushed to and read by somebody who has none of our code.

use std::time::Duration;

use redis_fixture::{Fsync, Server};
use teimoso_delivery::model::{DeliveryState, Millis, NextWhy};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Next, Store};

use super::world::{BURIED, DEAD, READY, START, WAITING, World, again, entry, story};

const URL: &str = "http://loja.example/ok?chave=1";

#[test]
fn s2_2_a_pushed_event_is_claimed_with_its_bytes_as_they_were() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    story(async {
        for body in [r#"{"b":1, "a":1.0,"a":2}"#, "9007199254740993", "[]", r#""\ud800""#, "1e400", "null"] {
            world.push(format!(r#"{{"id":"evt_1","url":"{URL}","corpo": {body} ,"tentativas":0}}"#));
            let claimed = world.one().await;
            assert_eq!(claimed.event.payload, body.as_bytes());
            assert_eq!((claimed.event.id.to_string().as_str(), &*claimed.url), ("evt_1", URL));
            assert_eq!(claimed.event.policy.as_ref().map(|policy| policy.as_str()), Some("webhook"));
            assert_eq!((&*claimed.lane, claimed.progress.attempts), ("http://loja.example/ok", 0));
            world.settle(claimed, Next::Delivered).await;
        }
        let counts = world.counts().await;
        assert_eq!((counts.delivered, counts.accepted), (6, 6));
        assert_eq!((world.list(READY).len(), world.waiting().len(), world.list(BURIED).len()), (0, 0, 0));
    });
}

#[test]
fn s2_1_what_waits_is_complete_json_scored_by_its_due_time() {
    let (mut world, clock) = World::by_hand();
    story(async {
        world.push(entry(1, URL));
        let claimed = world.one().await;
        let id = claimed.lease.delivery();
        let due = START.after(Duration::from_millis(2_345));
        world.settle(claimed, again(due)).await;
        let waiting = world.waiting();
        assert_eq!(waiting.len(), 1);
        assert_eq!(waiting[0].1, due.get() as f64);
        let start = entry(1, URL).replace(r#""tentativas":0}"#, r#""tentativas":1,"_wh":{"#);
        assert!(waiting[0].0.starts_with(&start), "{}", waiting[0].0);
        assert_eq!(world.counts().await.scheduled, 1);
        let claim = world.store.claim(world.request(9)).await.expect("an open store answers");
        assert_eq!((claim.taken.len(), claim.wake_at), (0, Some(due)));
        clock.advance(Duration::from_millis(2_345));
        let again = world.one().await;
        assert_eq!(again.lease.delivery(), id, "the same delivery");
        assert_eq!((again.progress.attempts, again.progress.why), (1, NextWhy::Retry));
        assert_eq!(again.progress.first_attempt_at, Some(START));
        assert_eq!(again.event.id.to_string(), "evt_1");
        assert_eq!(world.waiting().len(), 0);
        world.settle(again, Next::Delivered).await;
        assert_eq!(world.counts().await.delivered, 1);
    });
}

#[test]
fn s2_9_the_dead_keep_their_text_and_a_move_back_is_a_replay() {
    let (mut world, _) = World::by_hand();
    story(async {
        world.push(entry(1, URL));
        let claimed = world.one().await;
        let id = claimed.lease.delivery();
        world.settle(claimed, DEAD).await;
        let buried = world.texts(BURIED);
        let start = entry(1, URL).replace(r#""tentativas":0}"#, r#""tentativas":1,"_wh":{"#);
        assert!(buried[0].starts_with(&start) && buried[0].contains("permanent_status"), "{}", buried[0]);
        assert_eq!(world.counts().await.dead, 1);
        world.command(&["LMOVE", BURIED, READY, "LEFT", "RIGHT"]);
        let replayed = world.one().await;
        assert_eq!(replayed.lease.delivery(), id);
        let progress = replayed.progress;
        assert_eq!((progress.attempts, progress.budget_from, progress.why), (1, 1, NextWhy::Replay));
        assert_eq!(progress.first_attempt_at, None);
        world.settle(replayed, Next::Delivered).await;
        assert_eq!((world.list(BURIED).len(), world.counts().await.delivered), (0, 1));
    });
}

#[test]
fn s2_9_a_legacy_dead_letter_with_all_its_attempts_gets_a_fresh_budget() {
    let (mut world, _) = World::by_hand();
    story(async {
        world.push(entry(1, URL).replace(r#""tentativas":0"#, r#""tentativas":5"#));
        world.push(entry(2, URL).replace(r#""tentativas":0"#, r#""tentativas":2"#));
        let taken = world.claim_until(2).await;
        let budgets: Vec<_> =
            taken.iter().map(|one| (one.progress.attempts, one.progress.budget_from)).collect();
        assert_eq!(budgets, [(5, 5), (2, 0)]);
    });
}

#[test]
fn s2_7_what_is_no_event_is_kept_and_stops_nobody() {
    let (mut world, _) = World::by_hand();
    story(async {
        let bad: [&[u8]; 5] = [b"{nonsense", b"\xff\xfe", b"[]", br#"{"url":7}"#, b""];
        for text in bad {
            world.push(text);
        }
        world.push(entry(1, URL));
        let claimed = world.one().await;
        world.settle(claimed, Next::Delivered).await;
        let buried = world.texts(BURIED);
        assert_eq!(buried.len(), bad.len());
        assert!(
            buried[0].starts_with(r#"{"bruto":"{nonsense","_wh":{"motivo":"malformed""#),
            "{}",
            buried[0]
        );
        assert!(buried[1].starts_with(r#"{"bruto_base64":"//4=""#), "{}", buried[1]);
        assert_eq!(world.counts().await.dead, 5);
        world.command(&["LMOVE", BURIED, READY, "LEFT", "RIGHT"]);
        while world.list(BURIED).len() < bad.len() {
            world.claim(9).await;
        }
        assert!(world.texts(BURIED).contains(&buried[0]), "it is wrapped once");
    });
}

#[test]
fn what_the_dead_letters_do_not_take_is_kept() {
    let (mut world, clock) = World::by_hand();
    story(async {
        world.command(&["SET", BURIED, "somebody's"]);
        world.push("no event");
        world.push(entry(1, "http://loja.example/"));
        world.within(world.store.wait()).await;
        let taken = world.one().await;
        world.settle(taken, DEAD).await;
        world.command(&["DEL", BURIED]);
        assert_eq!(world.counts().await.dead, 1, "with us instead");
        clock.advance(Duration::from_secs(11));
        // The first says that there is something to adopt.
        world.claim(9).await;
        world.claim(9).await;
        let buried = world.list(BURIED);
        assert_eq!(buried.len(), 1);
        assert!(String::from_utf8_lossy(&buried[0]).contains("no event"), "{buried:?}");
    });
}

#[test]
fn an_entry_beyond_the_bound_is_a_dead_letter_and_the_queue_moves_on() {
    let (mut world, _) = World::by_hand();
    story(async {
        let huge = "x".repeat(2 << 20);
        world.push(format!(r#"{{"url":"{URL}","corpo":"{huge}","tentativas":0}}"#));
        world.push(entry(1, URL));
        assert_eq!(world.one().await.event.id.to_string(), "evt_1");
        let buried = world.texts(BURIED);
        assert_eq!(buried.len(), 1);
        assert!(buried[0].contains("too_large") && buried[0].len() > huge.len());
    });
}

#[test]
fn g9_what_is_ready_does_not_wait_for_everything_that_is_due() {
    let (mut world, _) = World::by_hand();
    story(async {
        let mut wait = redis::cmd("ZADD");
        wait.arg(WAITING);
        for n in 0..1_000 {
            wait.arg(1).arg(entry(n, "http://voltou.example/"));
        }
        let _: usize = wait.query(&mut world.raw).expect("the server takes them");
        world.push(entry(99_999, "http://livre.example/"));
        world.within(world.store.wait()).await;
        let mut taken = world.claim(64).await;
        if taken.is_empty() {
            taken = world.claim(64).await;
        }
        let free = taken.iter().filter(|one| &*one.lane == "http://livre.example/").count();
        assert_eq!(free, 1, "of {}", taken.len());
    });
}

#[test]
fn g9_ten_thousand_of_a_hanging_url_at_the_head_starve_nobody() {
    let (mut world, _) = World::by_hand();
    story(async {
        for batch in 0..10 {
            let mut push = redis::cmd("RPUSH");
            push.arg(READY);
            for n in 0..1_000 {
                push.arg(entry(batch * 1_000 + n, "http://pendura.example/"));
            }
            let _: usize = push.query(&mut world.raw).expect("the server takes them");
        }
        world.push(entry(99_999, "http://livre.example/"));
        let mut hanging = 0;
        loop {
            world.within(world.store.wait()).await;
            let taken = world.claim(64).await;
            hanging += taken.iter().filter(|one| &*one.lane == "http://pendura.example/").count();
            assert!(hanging <= 16, "a lane holds sixteen");
            if taken.iter().any(|one| one.event.id.to_string() == "evt_99999") {
                break;
            }
        }
    });
}

#[test]
fn a_legacy_members_score_in_seconds_is_overdue_and_equal_texts_do_not_collapse() {
    let (mut world, _) = World::by_hand();
    story(async {
        let plain = entry(1, URL);
        world.command(&["ZADD", WAITING, "1700000000", &plain]);
        assert_eq!(world.one().await.event.id.to_string(), "evt_1");
        world.push(&plain);
        world.push(&plain);
        let two = world.claim_until(2).await;
        world.settle_all(two, again(START.after(Duration::from_secs(9)))).await;
        assert_eq!(world.waiting().len(), 2, "each is a member of its own");
    });
}

#[test]
fn s2_6_a_legacy_sender_beside_ours_corrupts_nothing() {
    let (mut world, _) = World::by_hand();
    story(async {
        world.push(entry(1, URL));
        let claimed = world.one().await;
        world.settle(claimed, again(START.after(Duration::from_secs(9)))).await;
        let text = world.waiting()[0].0.clone();
        // What the original does when it is due: it moves the text to the ready list, then takes it for itself.
        world.command(&["ZREM", WAITING, &text]);
        world.command(&["RPUSH", READY, &text]);
        world.command(&["LPOP", READY]);
        assert_eq!(world.claim(9).await.len(), 0);
        assert_eq!(world.counts().await.accepted, 0, "it is theirs now");
        // And when it only moves it, we go on with the count.
        world.command(&["RPUSH", READY, &text]);
        let claimed = world.one().await;
        assert_eq!((claimed.progress.attempts, claimed.progress.why), (1, NextWhy::Retry));
    });
}

#[test]
fn what_was_taken_by_a_process_that_died_is_taken_again() {
    let (mut world, clock) = World::by_hand();
    story(async {
        // A worker that died between taking and adopting.
        let meta = "{webhooks:prontos}";
        world.command(&["HSET", &format!("{meta}:taken"), "t:1", &entry(1, URL)]);
        let until = (START.get() + 10_000).to_string();
        world.command(&["ZADD", &format!("{meta}:taken_until"), &until, "t:1"]);
        assert_eq!(world.counts().await.pending, 1);
        let claim = world.store.claim(world.request(9)).await.expect("an open store answers");
        assert_eq!((claim.taken.len(), claim.wake_at), (0, Some(Millis::new(START.get() + 10_000))));
        clock.advance(Duration::from_secs(10));
        assert_eq!(world.one().await.event.id.to_string(), "evt_1");
    });
}

#[test]
fn an_adopted_event_whose_worker_dies_is_recovered_like_any_other() {
    let (mut world, clock) = World::by_hand();
    story(async {
        world.push(entry(1, URL));
        let first = world.one().await;
        clock.advance(Duration::from_secs(30));
        let second = world.one().await;
        assert_eq!(second.lease.delivery(), first.lease.delivery());
        assert_eq!(second.progress.recoveries, 1);
        world.settle(first, DEAD).await;
        assert_eq!(world.list(BURIED).len(), 0, "a stale worker buries nothing");
        let view = world.store.delivery(second.lease.delivery()).await.expect("an open store reads");
        assert_eq!(view.map(|view| view.state), Some(DeliveryState::InFlight));
        world.settle(second, again(START)).await;
        assert_eq!(world.waiting().len(), 1);
        assert!(clock.now() > START);
    });
}

#[test]
fn the_prefix_is_configurable() {
    let server = Server::start(Fsync::EverySecond);
    let clock = teimoso_delivery::testkit::ManualClock::at(START);
    let options =
        teimoso_store_redis::Options { prefix: "loja:avisos".to_owned(), ..super::fixture::by_hand() };
    let entropy = std::sync::Arc::new(teimoso_delivery::testkit::SeededEntropy::new(7));
    let opened =
        teimoso_store_redis::RedisStore::open(&server.url(), &options, std::sync::Arc::new(clock), entropy);
    let store = opened.expect("a sound server opens");
    let mut raw = server.raw();
    let _: usize =
        redis::Commands::rpush(&mut raw, "loja:avisos:prontos", entry(1, URL)).expect("the server takes it");
    story(async {
        let counts = store.stats().await.expect("an open store counts").counts;
        assert_eq!(counts.pending, 1);
    });
}
