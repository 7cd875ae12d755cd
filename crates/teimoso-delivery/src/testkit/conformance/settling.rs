//! Settlements: where a delivery goes, and what is kept of the attempt.

use std::time::Duration;

use super::bench::{Bench, Make, again_at, ids, rule};
use crate::model::{DeadReason, DeliveryState, EventId, NextWhy};
use crate::store::{Next, StoreErrorKind};
use crate::testkit::offer;

const URL: &str = "http://loja.example/";

/// Nothing more happens to it.
pub fn a_delivered_one_is_final(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        bench.pass(1);
        bench.end(claimed, Next::Delivered).await;
        let view = bench.view(id).await;
        assert_eq!((view.state, view.attempts, view.last_status), (DeliveryState::Delivered, 1, Some(204)));
        assert_eq!((view.finished_at, view.next_attempt), (Some(bench.now()), None));
        bench.pass(3_600);
        assert_eq!(bench.claim(9).await.len(), 0);
        assert_eq!(bench.counts().await.delivered, 1);
    });
}

/// The schedule's time, to the millisecond.
pub fn a_scheduled_one_is_due_when_it_says_and_not_before(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        let due = bench.now().after(Duration::from_millis(2_345));
        bench.end(claimed, Next::Scheduled { due, why: NextWhy::RetryAfter }).await;
        let view = bench.view(id).await;
        assert_eq!(
            (view.state, view.next_attempt),
            (DeliveryState::Scheduled, Some((due, NextWhy::RetryAfter)))
        );
        assert_eq!((view.last_status, view.last_error.as_deref()), (Some(503), Some("answered 503")));
        bench.pass_millis(2_344);
        let claim = bench.ask(bench.request(9)).await;
        assert_eq!((claim.taken.len(), claim.wake_at), (0, Some(due)));
        bench.pass_millis(1);
        let again = bench.claim_one().await;
        assert_eq!((again.due, again.progress.attempts, again.progress.why), (due, 1, NextWhy::RetryAfter));
        assert!(again.progress.first_attempt_at.is_some());
    });
}

/// Every reason of the closed list comes back as it went in.
pub fn a_dead_one_keeps_its_reason_and_its_payload(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        for reason in DeadReason::ALL {
            let id = bench.dead(offer(URL).payload(reason.name()), *reason).await;
            let view = bench.view(id).await;
            assert_eq!((view.state, view.reason), (DeliveryState::Dead, Some(*reason)));
            assert_eq!((view.finished_at, view.next_attempt), (Some(bench.now()), None));
            let payload = bench.store.payload(view.event_id).await.expect("an open store reads");
            assert_eq!(payload.map(|(_, bytes)| bytes), Some(reason.name().into()));
        }
        assert_eq!(bench.counts().await.dead, DeadReason::ALL.len() as u64);
    });
}

/// Failures in full; of a success what there is.
pub fn the_attempts_record_is_kept_as_it_was(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.one(offer(URL).named("p-1")).await;
        let mut expected = Vec::new();
        for next in [again_at(bench.now()), Next::Delivered] {
            let claimed = bench.claim_one().await;
            let settlement = bench.settlement(claimed, next);
            expected.extend(settlement.record.as_deref().cloned());
            bench.settle(vec![settlement]).await;
        }
        let kept = bench.store.attempts(id).await.expect("an open store reads");
        assert!(kept.iter().all(|attempt| Ok(&attempt.event_id) == EventId::named("p-1").as_ref()));
        assert_eq!(kept.into_iter().map(|attempt| attempt.record).collect::<Vec<_>>(), expected);
    });
}

/// Sixteen in flight, one answered: the next may start, durable or not.
pub fn a_settle_frees_the_lanes_slot_before_it_is_durable(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.many(20, &offer(URL)).await;
        let mut taken = bench.claim(20).await;
        assert_eq!(taken.len(), 16);
        let settlement = bench.settlement(taken.remove(0), Next::Delivered);
        let settled = bench.store.settle(vec![settlement]).await.expect("an open store settles");
        assert_eq!(bench.claim(20).await.len(), 1);
        assert_eq!(settled.ticket.await, Ok(()));
    });
}

/// Four ends in one batch.
pub fn a_batch_settles_each_delivery_for_itself(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let accepted = bench.many(4, &offer(URL)).await;
        let ends = [Next::Delivered, again_at(bench.now()), Next::Dead(DeadReason::TooLarge), Next::Released];
        let taken = bench.claim(9).await;
        assert_eq!(ids(&taken), accepted);
        bench
            .settle(
                taken.into_iter().zip(ends).map(|(claimed, next)| bench.settlement(claimed, next)).collect(),
            )
            .await;
        let counts = bench.counts().await;
        assert_eq!((counts.delivered, counts.scheduled, counts.dead, counts.pending), (1, 1, 1, 1));
    });
}

/// Not half a batch either.
pub fn a_closed_store_takes_nothing_more(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.one(offer(URL)).await;
        bench.within(bench.store.close()).await;
        let refused = bench.store.accept(vec![offer(URL).event()]).await;
        assert_eq!(refused.map_err(|error| error.kind()).err(), Some(StoreErrorKind::Closed));
        let refused = bench.store.claim(bench.request(1)).await;
        assert_eq!(refused.map_err(|error| error.kind()).err(), Some(StoreErrorKind::Closed));
        assert!(bench.store.health().is_err());
    });
}
