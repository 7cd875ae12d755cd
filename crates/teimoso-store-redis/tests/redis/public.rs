//! What waits and what died in S2's public keys: seen and ordered about over the port, whoever put it there.

use std::collections::HashSet;
use std::time::Duration;

use teimoso_delivery::model::{DeadReason, DeliveryId, DeliveryState, EventId, Millis, NextWhy};
use teimoso_delivery::store::{
    CancelOutcome, DeliveryFilter, DeliveryView, LEASE, NewReplay, Next, ReplayFilter, ReplayState,
    RetryOutcome, Store, StoreErrorKind,
};
use teimoso_delivery::testkit::offer;

use super::world::{BURIED, DEAD, READY, START, WAITING, World, again, entry, story};

const URL: &str = "http://loja.example/ok?chave=1";

fn all() -> DeliveryFilter {
    DeliveryFilter { limit: 250, ..DeliveryFilter::default() }
}

fn in_state(state: DeliveryState) -> DeliveryFilter {
    DeliveryFilter { state: Some(state), ..all() }
}

async fn list(world: &World, filter: DeliveryFilter) -> Vec<DeliveryView> {
    world.store.deliveries(filter).await.expect("an open store reads").data
}

async fn view(world: &World, id: DeliveryId) -> DeliveryView {
    world.store.delivery(id).await.expect("an open store reads").expect("it is somewhere")
}

async fn retry(world: &World, id: DeliveryId) -> RetryOutcome {
    world.store.retry(id, false).await.expect("an open store obeys")
}

fn tried(n: usize, attempts: u32) -> String {
    entry(n, URL).replace(r#""tentativas":0"#, &format!(r#""tentativas":{attempts}"#))
}

fn later() -> Millis {
    START.after(Duration::from_secs(60))
}

#[test]
fn s2_1_what_waits_and_what_died_is_listed_and_found() {
    let (mut world, _) = World::by_hand();
    story(async {
        world.push(entry(1, URL));
        let waits = world.one().await;
        let waiting = waits.lease.delivery();
        world.settle(waits, again(later())).await;
        world.push(entry(2, URL));
        let dies = world.one().await;
        let dead = dies.lease.delivery();
        world.settle(dies, DEAD).await;
        world.command(&["ZADD", WAITING, &later().get().to_string(), &tried(3, 2)]);
        world.command(&["RPUSH", BURIED, &tried(4, 5), "{nonsense"]);
        world.store.accept(vec![offer(URL).event()]).await.expect("an open store accepts");

        let scheduled = list(&world, in_state(DeliveryState::Scheduled)).await;
        assert_eq!(scheduled.len(), 2);
        let ours = scheduled.iter().find(|view| view.id == waiting).expect("ours is among them");
        assert_eq!((ours.attempts, ours.last_status, &*ours.url), (1, Some(503), URL));
        assert_eq!(ours.next_attempt, Some((later(), NextWhy::Retry)));
        let buried = list(&world, in_state(DeliveryState::Dead)).await;
        let reasons: Vec<_> = buried.iter().map(|view| view.reason).collect();
        let expected =
            [DeadReason::Malformed, DeadReason::AttemptsExhausted, DeadReason::PermanentStatus].map(Some);
        assert_eq!(reasons, expected, "the last first");
        assert_eq!((buried[2].id, buried[2].event_id.to_string().as_str()), (dead, "evt_2"));
        assert_eq!(list(&world, all()).await.len(), 6);
        let malformed = DeliveryFilter { reason: Some(DeadReason::Malformed), ..all() };
        assert_eq!(list(&world, malformed).await.len(), 1);
        assert_eq!(
            list(&world, DeliveryFilter { until: Some(START), ..all() }).await.len(),
            2,
            "of unknown age"
        );

        for seen in scheduled.iter().chain(&buried) {
            assert_eq!(&view(&world, seen.id).await, seen);
            let event = world.store.event(seen.event_id.clone()).await.expect("an open store reads");
            assert_eq!(event.expect("it is there").deliveries, std::slice::from_ref(seen));
        }
        let raw = world.store.payload(buried[0].event_id.clone()).await.expect("an open store reads");
        assert_eq!(raw.map(|(_, bytes)| bytes), Some(b"{nonsense"[..].into()));
        let body = world.store.payload(EventId::Named("evt_4".into())).await.expect("an open store reads");
        assert_eq!(body.map(|(_, bytes)| bytes), Some(br#"{"n": 4, "b":1.0}"#[..].into()));
        world.counts().await;
    });
}

#[test]
fn pages_go_on_through_the_public_keys_and_show_each_once() {
    let (mut world, _) = World::by_hand();
    story(async {
        world
            .store
            .accept((0..7).map(|_| offer(URL).event()).collect())
            .await
            .expect("an open store accepts");
        for n in 0..70 {
            // Many have the same score.
            world.command(&["ZADD", WAITING, &(later().get() + n / 20).to_string(), &tried(n as usize, 1)]);
            world.command(&["RPUSH", BURIED, &tried(100 + n as usize, 5)]);
        }
        for limit in [1, 7, 40, 250] {
            let (mut seen, mut cursor) = (HashSet::new(), None);
            loop {
                let filter = DeliveryFilter { cursor, limit, ..DeliveryFilter::default() };
                let page = world.store.deliveries(filter).await.expect("an open store reads");
                assert!(page.data.len() <= limit as usize);
                for view in page.data {
                    assert!(seen.insert(view.id), "{} is shown twice", view.event_id);
                }
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen.len(), 147, "pages of {limit}");
        }
        for cursor in ["w1", "mx", "m-1", "wNaN:0"] {
            let filter = DeliveryFilter { cursor: Some(cursor.to_owned()), ..all() };
            let refused = world.store.deliveries(filter).await.map_err(|error| error.kind());
            assert_eq!(refused.err(), Some(StoreErrorKind::InvalidCursor), "{cursor}");
        }
    });
}

#[test]
fn s2_9_a_dead_letter_is_replayed_by_its_id_and_keeps_it() {
    let (mut world, _) = World::by_hand();
    story(async {
        for n in 0..100 {
            world.command(&["RPUSH", BURIED, &tried(n, 5)]);
        }
        let letters = list(&world, in_state(DeliveryState::Dead)).await;
        let letter = letters.iter().find(|view| view.event_id.to_string() == "evt_30").expect("it is listed");
        assert_eq!(retry(&world, letter.id).await, RetryOutcome::Due);
        assert_eq!(world.list(BURIED).len(), 99);
        assert!(!world.texts(BURIED).contains(&tried(30, 5)));
        assert_eq!(world.counts().await.scheduled, 1);
        assert_eq!(view(&world, letter.id).await.state, DeliveryState::Scheduled);
        let claimed = world.one().await;
        assert_eq!((claimed.lease.delivery(), claimed.event.id.to_string().as_str()), (letter.id, "evt_30"));
        assert_eq!((claimed.progress.attempts, claimed.progress.budget_from), (5, 5), "a fresh budget");
        world.settle(claimed, DEAD).await;
        assert_eq!(view(&world, letter.id).await.state, DeliveryState::Dead);
        assert_eq!((world.list(BURIED).len(), world.counts().await.dead), (100, 100));
    });
}

#[test]
fn what_waits_is_tried_now_or_cancelled_and_counted() {
    let (mut world, _) = World::by_hand();
    story(async {
        for n in 1..=2 {
            world.command(&["ZADD", WAITING, &later().get().to_string(), &tried(n, n as u32)]);
        }
        let waiting = list(&world, in_state(DeliveryState::Scheduled)).await;
        let id =
            |name: &str| waiting.iter().find(|view| view.event_id.to_string() == name).map(|view| view.id);
        let (first, second) = (id("evt_1").expect("listed"), id("evt_2").expect("listed"));
        assert_eq!(world.store.cancel(first).await, Ok(CancelOutcome::Cancelled));
        assert_eq!(
            world.store.cancel(first).await,
            Ok(CancelOutcome::AlreadyFinal(DeliveryState::Cancelled))
        );
        assert_eq!(world.waiting().len(), 1);
        let counts = world.counts().await;
        assert_eq!((counts.cancelled, counts.scheduled, counts.accepted), (1, 1, 2));
        assert_eq!(list(&world, in_state(DeliveryState::Cancelled)).await.len(), 1);
        assert_eq!(retry(&world, second).await, RetryOutcome::Due);
        let claimed = world.one().await;
        assert_eq!((claimed.lease.delivery(), claimed.progress.why), (second, NextWhy::Replay));
        world.settle(claimed, Next::Delivered).await;
        assert_eq!(retry(&world, first).await, RetryOutcome::Due);
        assert_eq!(world.one().await.lease.delivery(), first);
    });
}

#[test]
fn s2_7_what_is_no_event_is_seen_and_not_tried() {
    let (mut world, _) = World::by_hand();
    story(async {
        world.command(&["RPUSH", BURIED, "{nonsense"]);
        world.command(&["ZADD", WAITING, &later().get().to_string(), "[7]"]);
        let dead = list(&world, in_state(DeliveryState::Dead)).await.remove(0).id;
        let waits = list(&world, in_state(DeliveryState::Scheduled)).await.remove(0).id;
        assert_eq!(retry(&world, dead).await, RetryOutcome::NotAllowed(DeliveryState::Dead));
        assert_eq!(world.store.cancel(dead).await, Ok(CancelOutcome::AlreadyFinal(DeliveryState::Dead)));
        assert_eq!(retry(&world, waits).await, RetryOutcome::Due, "as what it is");
        assert!(world.texts(BURIED)[1].starts_with(r#"{"bruto":"[7]","_wh":{"motivo":"malformed""#));
        assert_eq!((world.waiting().len(), world.counts().await.dead), (0, 2));
    });
}

#[test]
fn s2_9_a_replay_job_takes_the_public_dead_letters_too() {
    let (mut world, clock) = World::by_hand();
    story(async {
        world.push(entry(1, URL));
        let dies = world.one().await;
        let ours = dies.lease.delivery();
        world.settle(dies, DEAD).await;
        world.command(&["RPUSH", BURIED, &tried(2, 1), "{nonsense", &tried(3, 5), &tried(3, 5)]);
        let order = NewReplay { filter: ReplayFilter::default(), rate: 10_000, dry_run: false };
        let dry = world
            .store
            .start_replay(NewReplay { dry_run: true, ..order })
            .await
            .expect("an open store obeys");
        assert_eq!(dry.estimated, 4);
        let job = world.store.start_replay(order).await.expect("an open store obeys");
        clock.advance(Duration::from_secs(1));
        let taken = world.claim_until(4).await;
        assert!(taken.iter().all(|one| one.progress.why == NextWhy::Replay));
        assert!(taken.iter().all(|one| one.progress.attempts == one.progress.budget_from), "fresh budgets");
        assert!(taken.iter().any(|one| one.lease.delivery() == ours));
        let ended = world.store.replay(job.id.expect("it is kept")).await.expect("an open store reads");
        let ended = ended.expect("it is kept");
        assert_eq!((ended.state, ended.done, ended.failed), (ReplayState::Finished, 4, 0));
        assert_eq!(world.texts(BURIED), ["{nonsense"]);
        let counts = world.counts().await;
        assert_eq!((counts.dead, counts.in_flight), (1, 4));
    });
}

#[test]
fn attempts_of_an_adopted_event_survive_its_stays_in_the_public_keys() {
    let (mut world, clock) = World::by_hand();
    story(async {
        world.push(entry(1, URL));
        let mut id = None;
        for attempt in 1..=3 {
            let claimed = world.one().await;
            id = Some(claimed.lease.delivery());
            let next = if attempt == 3 { DEAD } else { again(world.clock.now()) };
            world.settle(claimed, next).await;
            clock.advance(Duration::from_secs(1));
        }
        let id = id.expect("it was claimed");
        let attempts = world.store.attempts(id).await.expect("an open store reads");
        let told: Vec<_> = attempts
            .iter()
            .map(|one| (one.record.number.get(), one.record.status, one.record.started_at))
            .collect();
        let at = |seconds| START.after(Duration::from_secs(seconds));
        assert_eq!(told, [(1, Some(503), at(0)), (2, Some(503), at(1)), (3, Some(503), at(2))]);
        let text = world.texts(BURIED).remove(0);
        let start = entry(1, URL).replace(r#""tentativas":0}"#, r#""tentativas":3,"_wh":{"#);
        assert!(text.starts_with(&start), "the four fields stay first: {text}");
        // While it is ours again, the earlier ones are still told.
        world.command(&["LMOVE", BURIED, READY, "LEFT", "RIGHT"]);
        let claimed = world.one().await;
        assert_eq!(world.store.attempts(id).await.map(|all| all.len()), Ok(3));
        world.settle(claimed, Next::Delivered).await;
        assert_eq!(world.store.attempts(id).await.map(|all| all.len()), Ok(4));
    });
}

#[test]
fn s2_6_a_legacy_sender_that_changes_or_drops_our_field_breaks_nothing() {
    let (mut world, _) = World::by_hand();
    story(async {
        let marks = [
            r#","_wh":{"tentou":"x","desde":1}}"#,
            r#","_wh":7}"#,
            r#","_wh":{"tentou":[[1,2],[0,0,0,0,0,0]]}}"#,
            "}",
        ];
        for mark in marks {
            world.push(tried(1, 2).replace(r#""tentativas":2}"#, &format!(r#""tentativas":2{mark}"#)));
        }
        let taken = world.claim_until(4).await;
        let mut budgets: Vec<_> =
            taken.iter().map(|one| (one.progress.attempts, one.progress.budget_from)).collect();
        budgets.sort_unstable();
        assert_eq!(budgets, [(2, 0), (2, 0), (2, 0), (2, 1)]);
        for one in &taken {
            assert_eq!(world.store.attempts(one.lease.delivery()).await, Ok(Vec::new()));
        }
        world.settle_all(taken, DEAD).await;
        assert_eq!(world.counts().await.dead, 4);
    });
}

#[test]
fn an_adopted_event_that_is_poison_dies_where_the_others_do() {
    let (mut world, clock) = World::by_hand();
    story(async {
        world.push(entry(1, URL));
        let mut id = None;
        for _ in 0..3 {
            id = Some(world.one().await.lease.delivery());
            clock.advance(LEASE);
        }
        assert_eq!(world.claim(9).await.len(), 0, "it is not attempted again");
        // The burial follows the claim that found it.
        assert_eq!(world.claim(9).await.len(), 0);
        let buried = world.texts(BURIED);
        assert_eq!(buried.len(), 1);
        assert!(buried[0].contains(r#""motivo":"poison""#), "{}", buried[0]);
        let view = view(&world, id.expect("it was claimed")).await;
        assert_eq!((view.state, view.reason), (DeliveryState::Dead, Some(DeadReason::Poison)));
        let counts = world.counts().await;
        assert_eq!((counts.dead, counts.in_flight, counts.accepted), (1, 0, 1));
    });
}
