//! Lanes come and go: only those with work or a memory of trouble are kept open.

use std::time::Duration;

use teimoso_delivery::model::DeadReason;
use teimoso_delivery::store::{Next, RetryOutcome, Store};
use teimoso_delivery::testkit::offer;

use super::bench::{End, Home, ids, run};

fn url(n: usize) -> String {
    format!("http://loja.example/{n}")
}

fn with_few_lanes() -> Home {
    let mut home = Home::new();
    home.limits.max_url_lanes = 8;
    home
}

#[test]
fn destinations_of_the_past_take_no_lane_from_those_of_today() {
    run(async {
        let open = with_few_lanes().open();
        for n in 0..40 {
            open.one(offer(&url(n))).await;
            assert_eq!(open.finish_all(Next::Delivered).await, 1);
            open.pass(Duration::from_secs(3_600));
            open.nudge().await;
        }
        assert!(open.stats().await.lanes <= 8, "{} lanes are open", open.stats().await.lanes);
        let again = open.one(offer(&url(0))).await;
        let claimed = open.claim_one().await;
        assert_eq!((claimed.lease.delivery(), &*claimed.lane), (again, &*url(0)));
        assert_eq!(open.home.number("SELECT count(*) FROM lane WHERE address = 'http://loja.example/0'"), 1);
    });
}

#[test]
fn a_dead_letter_whose_lane_was_closed_is_replayed_through_it() {
    run(async {
        let open = with_few_lanes().open();
        let mut dead = Vec::new();
        for n in 0..12 {
            dead.push(open.one(offer(&url(n))).await);
        }
        assert_eq!(open.finish_all(Next::Dead(DeadReason::PermanentStatus)).await, 12);
        open.pass(Duration::from_secs(3_600));
        open.nudge().await;
        open.nudge().await;
        assert_eq!(open.stats().await.lanes, 0);
        for id in &dead {
            assert_eq!(open.store.retry(*id, false).await, Ok(RetryOutcome::Due));
        }
        assert_eq!(open.claim(5).await.len(), 5);
        let open = open.again(End::Dropped).await;
        let mut claimed = ids(&open.claim(99).await);
        claimed.sort_unstable();
        dead.sort_unstable();
        assert_eq!(claimed, dead, "those that were in flight, too");
    });
}

#[test]
fn an_event_is_found_by_its_callers_id_in_any_application() {
    run(async {
        let open = Home::new().open();
        let accepted = open.accept(offer(&url(1)).of("loja").named("pedido-7")).await;
        let found = open.store.event(accepted.event.clone()).await.unwrap().unwrap();
        assert_eq!((found.id, found.application.as_str()), (accepted.event, "loja"));
    });
}
