//! What ended leaves after its retention, in steps, and the file gives the space back.

use std::time::Duration;

use teimoso_delivery::model::{DeadReason, DeliveryState, EventId};
use teimoso_delivery::store::{
    CancelOutcome, NewReplay, Next, ReplayFilter, ReplayState, RetryOutcome, Store,
};
use teimoso_delivery::testkit::offer;

use super::bench::{End, Home, Open, URL, again_at, run};

const HOUR: Duration = Duration::from_secs(3_600);
/// A step follows the last one after this.
const STEP: Duration = Duration::from_millis(20);
/// What is looked at in one step.
const STEP_EVENTS: u64 = 500;

fn keeping(retention: Duration) -> Open {
    let mut home = Home::new();
    home.options.retention = retention;
    home.open()
}

/// Steps until nothing more leaves; the most that left in one step.
async fn expire(open: &Open) -> u64 {
    let (mut most, mut before) = (0, open.counts().await.expunged);
    loop {
        open.pass(STEP);
        open.nudge().await;
        let after = open.counts().await.expunged;
        if after == before {
            return most;
        }
        most = most.max(after - before);
        before = after;
    }
}

#[test]
fn g2_ended_deliveries_leave_in_steps_with_their_attempts_and_the_rest_stays() {
    run(async {
        let open = keeping(HOUR);
        for _ in 0..4 {
            open.many(300, &offer(URL)).await;
        }
        open.accept(offer(URL).nowhere()).await;
        assert_eq!(open.finish_all(Next::Delivered).await, 1_200);
        let cancelled = open.one(offer(URL)).await;
        assert_eq!(open.store.cancel(cancelled).await, Ok(CancelOutcome::Cancelled));
        let dead = open.one(offer(URL)).await;
        let claimed = open.claim_one().await;
        open.finish(claimed, Next::Dead(DeadReason::Redirect)).await;
        let scheduled = open.one(offer(URL)).await;
        let claimed = open.claim_one().await;
        open.finish(claimed, again_at(open.now().after(10 * HOUR))).await;
        let pending = open.one(offer(URL).deliver_at(open.now().after(10 * HOUR))).await;

        open.pass(HOUR / 2);
        open.nudge().await;
        assert_eq!(open.counts().await.expunged, 0, "not before their time");
        open.pass(HOUR);
        assert!(expire(&open).await <= STEP_EVENTS);
        let counts = open.counts().await;
        assert_eq!((counts.expunged, counts.delivered, counts.cancelled), (1_201, 0, 0));
        assert_eq!((counts.dead, counts.scheduled, counts.pending), (1, 1, 1));
        for id in [dead, scheduled, pending] {
            assert_eq!(open.view(id).await.id, id);
        }
        for (table, rows) in [("event", 3), ("delivery", 3), ("attempt", 2), ("due", 2)] {
            assert_eq!(open.home.number(&format!("SELECT count(*) FROM {table}")), rows, "{table}");
        }
        let before = open.picture().await;
        assert_eq!(open.again(End::Killed).await.picture().await, before);
    });
}

#[test]
fn a_dead_letter_leaves_only_when_a_replay_has_ended_it_well() {
    run(async {
        let open = keeping(HOUR);
        let id = open.one(offer(URL)).await;
        let claimed = open.claim_one().await;
        open.finish(claimed, Next::Dead(DeadReason::AttemptsExhausted)).await;
        for _ in 0..100 {
            open.pass(HOUR);
            open.nudge().await;
        }
        assert_eq!(open.view(id).await.state, DeliveryState::Dead);
        assert_eq!(open.store.retry(id, false).await, Ok(RetryOutcome::Due));
        let claimed = open.claim_one().await;
        open.finish(claimed, Next::Delivered).await;
        open.pass(2 * HOUR);
        open.nudge().await;
        assert_eq!(open.store.delivery(id).await, Ok(None));
        assert_eq!(open.counts().await.expunged, 1);
    });
}

#[test]
fn names_leave_hour_by_hour() {
    run(async {
        let open = keeping(HOUR);
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'name\\_%' ESCAPE '\\'";
        for hour in 0..40 {
            for n in 0..3 {
                open.accept(offer(URL).nowhere().named(&format!("p-{hour}-{n}"))).await;
            }
            open.pass(HOUR);
            open.nudge().await;
        }
        // A day, the hour it began in, and what is looked at only once an hour.
        assert!((25..=27).contains(&open.home.number(tables)), "{}", open.home.number(tables));
        let repeated = open.accept(offer(URL).nowhere().named("p-20-0")).await;
        assert!(repeated.replayed, "recognised for a day, whatever the retention");
    });
}

#[test]
fn retention_counts_from_the_end_and_not_from_the_beginning() {
    run(async {
        let open = keeping(HOUR);
        let late = open.one(offer(URL).deliver_at(open.now().after(3 * HOUR))).await;
        open.pass(3 * HOUR);
        assert_eq!(open.finish_all(Next::Delivered).await, 1);
        open.pass(HOUR / 2);
        expire(&open).await;
        assert_eq!(open.view(late).await.state, DeliveryState::Delivered);
        open.pass(2 * HOUR);
        expire(&open).await;
        assert_eq!(open.counts().await.expunged, 1);
    });
}

#[test]
fn names_stay_as_long_as_events_do() {
    run(async {
        let open = keeping(100 * HOUR);
        for hour in 0..40 {
            open.accept(offer(URL).nowhere().named(&format!("p-{hour}"))).await;
            open.pass(HOUR);
            open.nudge().await;
        }
        let first = EventId::named("p-0").unwrap();
        assert!(open.store.event(first).await.unwrap().is_some());
    });
}

#[test]
fn the_file_gives_the_space_back_in_steps() {
    run(async {
        let open = keeping(HOUR);
        for _ in 0..12 {
            open.many(64, &offer(URL).payload(vec![7; 32 << 10])).await;
            assert_eq!(open.finish_all(Next::Delivered).await, 64);
        }
        let kept = open.one(offer(URL).deliver_at(open.now().after(10 * HOUR))).await;
        let pages = "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count";
        assert!(open.home.number(pages) > 6_000);
        open.pass(2 * HOUR);
        expire(&open).await;
        assert_eq!(open.counts().await.expunged, 12 * 64);
        let pages = "SELECT page_count FROM pragma_page_count";
        let (mut before, mut most) = (open.home.number(pages), 0);
        for _ in 0..200 {
            open.pass(STEP);
            open.nudge().await;
            let after = open.home.number(pages);
            most = most.max(before - after);
            before = after;
        }
        // A page of the map of pages may go with them.
        assert!(most <= 65, "{most} pages in one step");
        assert!(before <= 1_100, "{before} pages are left");
        let home = open.end(End::Closed).await;
        let bytes = std::fs::metadata(home.database()).unwrap().len();
        assert!(bytes < 5 << 20, "{bytes} bytes of 25 MB are left");
        assert_eq!(home.open().view(kept).await.state, DeliveryState::Pending);
    });
}

#[test]
fn replay_jobs_that_ended_leave_after_the_retention() {
    run(async {
        let open = keeping(HOUR);
        let order = NewReplay { filter: ReplayFilter::default(), rate: 100, dry_run: false };
        let job = open.store.start_replay(order).await.expect("an open store obeys").id.expect("it is kept");
        open.pass(STEP);
        open.nudge().await;
        open.pass(HOUR / 2);
        open.nudge().await;
        let kept = open.store.replay(job).await.expect("an open store reads").expect("it is kept");
        assert_eq!(kept.state, ReplayState::Finished);
        open.pass(2 * HOUR);
        expire(&open).await;
        assert_eq!(open.store.replay(job).await, Ok(None));
        let later = open.again(End::Killed).await.store.start_replay(order).await;
        assert_ne!(later.expect("an open store obeys").id, Some(job));
    });
}
