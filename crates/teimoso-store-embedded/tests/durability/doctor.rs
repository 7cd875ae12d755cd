//! An examination finds what was broken by hand, heals it, and what was healed is delivered.

use std::time::Duration;

use rusqlite::Connection;
use teimoso_delivery::model::{DeadReason, DeliveryState};
use teimoso_delivery::store::{Checkup, FactValue, FindingKind, Next, Store};
use teimoso_delivery::testkit::offer;
use teimoso_store_embedded::Examination;

use super::bench::{End, Home, Open, URL, again_at, ids, run};

fn examine(home: &Home, heal: bool) -> Checkup {
    let examination = Examination { heal, sync_for: Duration::ZERO };
    examination.run(&home.path, &home.clock, &mut |_, _| {}).expect("a store that can be looked at")
}

/// Kinds, how many, and how many were healed.
fn findings(checkup: &Checkup) -> Vec<(&'static str, u64, u64)> {
    checkup.findings.iter().map(|finding| (finding.kind.name(), finding.count, finding.healed)).collect()
}

fn edit(home: &Home, sql: &str) {
    Connection::open(home.database()).unwrap().execute_batch(sql).unwrap();
}

/// Broken by `sql`, it is found; healed once, it is whole.
fn found_and_healed(home: &Home, sql: &str, kind: FindingKind, count: u64) {
    edit(home, sql);
    let before = examine(home, false);
    assert_eq!(before.count_of(kind), count, "{sql}: {before:?}");
    assert_eq!(before.totals().1, 0, "a look heals nothing");
    let healed = examine(home, true);
    assert_eq!(healed.count_of(kind), count, "{sql}: {healed:?}");
    let (found, put_right) = healed.totals();
    assert_eq!(found, put_right, "{healed:?}");
    assert_eq!(findings(&examine(home, false)), []);
}

async fn with_two() -> (Home, Vec<teimoso_delivery::model::DeliveryId>) {
    let open = Home::new().open();
    let sent = vec![open.one(offer(URL)).await, open.one(offer(URL)).await];
    (open.end(End::Closed).await, sent)
}

async fn delivers(home: Home, expected: &[teimoso_delivery::model::DeliveryId]) -> Open {
    let open = home.open();
    let mut taken = open.claim(9).await;
    taken.sort_by_key(|claimed| claimed.lease.delivery());
    assert_eq!(ids(&taken), expected);
    for claimed in taken {
        open.finish(claimed, Next::Delivered).await;
    }
    assert_eq!(open.claim(9).await.len(), 0);
    open
}

#[test]
fn g2_a_sound_store_has_no_finding_and_its_disk_is_described() {
    run(async {
        let open = Home::new().open();
        let deliveries = [open.one(offer(URL).named("p-1")).await, open.one(offer(URL).key("k")).await];
        open.accept(offer(URL).nowhere()).await;
        let taken = open.claim(1).await.remove(0);
        open.finish(taken, again_at(open.now().after(Duration::from_secs(60)))).await;
        let home = open.end(End::Killed).await;
        let checkup = examine(&home, false);
        assert_eq!(findings(&checkup), []);
        assert_eq!(checkup.scanned, Some(checkup.counts));
        assert_eq!((checkup.counts.pending, checkup.counts.scheduled), (1, 1));
        let number = |name: &str| {
            checkup.facts.iter().find(|fact| fact.name == name).map(|fact| match &fact.value {
                FactValue::Number(number) => *number,
                FactValue::Text(text) => panic!("{text}"),
            })
        };
        assert_eq!(number("fsyncs"), Some(1));
        assert!(number("disk_free_bytes").is_some_and(|bytes| bytes > 0), "{checkup:?}");
        assert!(number("log_bytes").is_some_and(|bytes| bytes > 0), "{checkup:?}");
        let healed = examine(&home, true);
        assert_eq!(findings(&healed), []);
        let open = home.open();
        open.pass(Duration::from_secs(60));
        let mut taken = ids(&open.claim(9).await);
        taken.sort();
        assert_eq!(taken, deliveries);
    });
}

#[test]
fn g2_a_delivery_in_no_queue_is_found_queued_and_delivered() {
    run(async {
        let (home, sent) = with_two().await;
        found_and_healed(&home, "DELETE FROM due", FindingKind::AliveNotQueued, 2);
        delivers(home, &sent).await;
    });
}

#[test]
fn g2_a_delivery_in_flight_in_the_file_is_nobodys_and_delivered_again() {
    run(async {
        let (home, sent) = with_two().await;
        let sql = "UPDATE delivery SET state = 1; DELETE FROM due;";
        found_and_healed(&home, sql, FindingKind::InFlightWithoutLease, 2);
        delivers(home, &sent).await;
    });
}

#[test]
fn g2_an_entry_of_the_queue_that_stands_for_nothing_is_removed() {
    run(async {
        let open = Home::new().open();
        let done = open.one(offer(URL)).await;
        let claimed = open.claim_one().await;
        open.finish(claimed, Next::Delivered).await;
        let next = open.one(offer(URL)).await;
        let home = open.end(End::Closed).await;
        let sql = "INSERT OR IGNORE INTO due SELECT lane, due + 1, id FROM delivery; INSERT INTO due VALUES (1, 5, 77);";
        found_and_healed(&home, sql, FindingKind::QueuedWithoutDelivery, 3);
        let open = delivers(home, &[next]).await;
        assert_eq!(open.view(done).await.attempts, 1);
    });
}

#[test]
fn g2_a_lease_on_nothing_is_forgotten() {
    run(async {
        let (home, sent) = with_two().await;
        let sql = "INSERT INTO leased VALUES (77, 0)";
        found_and_healed(&home, sql, FindingKind::LeaseWithoutDelivery, 1);
        delivers(home, &sent).await;
    });
}

#[test]
fn g2_counters_that_lie_are_told_and_set_to_what_is_there() {
    run(async {
        let (home, sent) = with_two().await;
        found_and_healed(&home, "UPDATE counter SET pending = 9, dead = 1", FindingKind::CountersOff, 2);
        let open = delivers(home, &sent).await;
        let counts = open.counts().await;
        assert_eq!((counts.accepted, counts.delivered, counts.dead), (2, 2, 0));
    });
}

#[test]
fn g2_what_was_accepted_and_is_nowhere_is_never_silently_forgotten() {
    run(async {
        let (home, sent) = with_two().await;
        let last = "(SELECT max(id) FROM delivery)";
        edit(
            &home,
            &format!("DELETE FROM due WHERE delivery = {last}; DELETE FROM delivery WHERE id = {last};"),
        );
        let checkup = examine(&home, true);
        assert_eq!(
            findings(&checkup),
            [("counters_off", 1, 1), ("accepted_missing", 1, 1), ("event_without_deliveries", 1, 0)]
        );
        // Whether it was delivered nobody can tell: it goes on being said.
        assert_eq!(findings(&examine(&home, true)), [("event_without_deliveries", 1, 0)]);
        let open = delivers(home, &sent[..1]).await;
        let counts = open.counts().await;
        assert_eq!((counts.accepted, counts.delivered, counts.expunged), (2, 1, 1));
    });
}

#[test]
fn g2_a_delivery_without_its_event_is_a_dead_letter_that_a_person_finds() {
    run(async {
        let (home, sent) = with_two().await;
        let sql = "DELETE FROM event WHERE id = (SELECT min(id) FROM event)";
        found_and_healed(&home, sql, FindingKind::DeliveryWithoutEvent, 1);
        assert_eq!(home.number("SELECT count(*) FROM delivery WHERE state = 4 AND reason = 9"), 1);
        let open = delivers(home, &sent[1..]).await;
        assert_eq!(open.counts().await.dead, 1);
    });
}

#[test]
fn g2_a_lost_lane_is_opened_again_for_an_event_that_knows_its_url() {
    run(async {
        let (home, sent) = with_two().await;
        found_and_healed(&home, "DELETE FROM lane", FindingKind::LaneMissing, 2);
        delivers(home, &sent).await;
    });
}

#[test]
fn a_record_that_cannot_be_read_is_a_dead_letter_and_its_siblings_are_delivered() {
    run(async {
        let (home, sent) = with_two().await;
        let sql = "UPDATE delivery SET why = 77 WHERE id = (SELECT min(id) FROM delivery)";
        found_and_healed(&home, sql, FindingKind::UnreadableRecord, 1);
        let open = delivers(home, &sent[1..]).await;
        let view = open.view(sent[0]).await;
        assert_eq!((view.state, view.reason), (DeliveryState::Dead, Some(DeadReason::Malformed)));
    });
}

#[test]
fn attempts_of_nothing_are_removed() {
    run(async {
        let open = Home::new().open();
        let sent = open.one(offer(URL)).await;
        let claimed = open.claim_one().await;
        open.finish(claimed, again_at(open.now())).await;
        let home = open.end(End::Closed).await;
        let sql = "UPDATE attempt SET delivery = delivery + 5";
        found_and_healed(&home, sql, FindingKind::AttemptWithoutDelivery, 1);
        delivers(home, &[sent]).await;
    });
}

#[test]
fn g1_a_name_of_an_event_that_never_was_goes_so_that_its_repetition_is_accepted() {
    run(async {
        let open = Home::new().open();
        let first = open.accept(offer(URL).key("k-1")).await;
        let home = open.end(End::Closed).await;
        let sql = "DELETE FROM due; DELETE FROM delivery; DELETE FROM event; UPDATE counter SET accepted = 0, pending = 0;";
        found_and_healed(&home, sql, FindingKind::NameWithoutEvent, 1);
        home.clock.advance(Duration::from_secs(1));
        let open = home.open();
        let again = open.accept(offer(URL).key("k-1")).await;
        assert!(!again.replayed && again.deliveries.len() == 1, "{again:?}");
        assert_ne!(again.event, first.event);
    });
}

#[test]
fn a_damaged_file_is_told_and_nothing_is_changed() {
    run(async {
        let (home, _) = with_two().await;
        let root = home.number("SELECT rootpage FROM sqlite_schema WHERE name = 'event'");
        let mut bytes = std::fs::read(home.database()).unwrap();
        let at = usize::try_from(root - 1).unwrap() * 4096;
        bytes[at + 100..at + 4096].fill(0xee);
        bytes[at] = 0xff;
        std::fs::write(home.database(), &bytes).unwrap();
        let checkup = examine(&home, false);
        assert!(checkup.count_of(FindingKind::DamagedFile) > 0, "{checkup:?}");
        assert_eq!(checkup.scanned, None);
        assert_eq!(std::fs::read(home.database()).unwrap(), bytes);
    });
}

#[test]
fn beside_an_open_store_one_may_look_but_not_heal() {
    run(async {
        let open = Home::new().open();
        open.many(20, &offer(URL)).await;
        let held = open.claim(5).await;
        let checkup = examine(&open.home, false);
        assert_eq!(findings(&checkup), []);
        assert_eq!(checkup.counts.pending, 20, "what is in flight rests in the file");
        let holder = format!("another process (pid {})", std::process::id());
        let named = checkup.facts.iter().find(|fact| fact.name == "in_use_by");
        assert_eq!(named.map(|fact| &fact.value), Some(&FactValue::Text(holder.clone())));
        let heal = Examination { heal: true, sync_for: Duration::ZERO };
        let refused = heal.run(&open.home.path, &open.home.clock, &mut |_, _| {}).unwrap_err().to_string();
        assert!(refused.contains(&holder), "{refused}");
        for claimed in held {
            open.finish(claimed, Next::Delivered).await;
        }
        assert_eq!(open.store.health(), Ok(()));
    });
}

#[test]
fn where_there_is_no_store_none_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new();
    for heal in [false, true] {
        let examination = Examination { heal, sync_for: Duration::ZERO };
        let refused = examination.run(dir.path(), &home.clock, &mut |_, _| {}).unwrap_err().to_string();
        assert!(refused.starts_with("there is no store at "), "{refused}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
