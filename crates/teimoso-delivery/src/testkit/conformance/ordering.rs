//! A person's orders: cancel and retry, in every state.

use super::bench::{Bench, Make, again_at, ids, rule};
use crate::model::{DeadReason, DeliveryId, DeliveryState, IdSpace, Key, Millis, NextWhy};
use crate::store::{CancelOutcome, Next, RetryOutcome};
use crate::testkit::offer;

const URL: &str = "http://loja.example/";

/// An id of the right form that the store never gave out.
pub(super) fn unknown_delivery() -> DeliveryId {
    IdSpace::new(0xdead).delivery(Key::first_at(Millis::new(1_600_000_000_000)))
}

async fn cancel(bench: &Bench, id: DeliveryId) -> CancelOutcome {
    let outcome = bench.store.cancel(id).await.expect("an open store takes orders");
    bench.counts().await;
    outcome
}

async fn retry(bench: &Bench, id: DeliveryId, explicit: bool) -> RetryOutcome {
    let outcome = bench.store.retry(id, explicit).await.expect("an open store takes orders");
    bench.counts().await;
    outcome
}

/// Pending and scheduled: over at once.
pub fn cancel_ends_what_waits(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let scheduled = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        bench.end(claimed, again_at(bench.now())).await;
        let pending = bench.one(offer(URL)).await;
        for id in [pending, scheduled] {
            assert_eq!(cancel(bench, id).await, CancelOutcome::Cancelled);
            let view = bench.view(id).await;
            assert_eq!((view.state, view.finished_at), (DeliveryState::Cancelled, Some(bench.now())));
        }
        bench.pass(3_600);
        assert_eq!(bench.claim(9).await.len(), 0);
        assert_eq!(bench.counts().await.cancelled, 2);
    });
}

/// The wish is kept: no further attempt, but an end stands.
pub fn cancel_in_flight_lets_a_2xx_win(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let ends = [
            (Next::Delivered, DeliveryState::Delivered),
            (again_at(bench.now()), DeliveryState::Cancelled),
            (Next::Released, DeliveryState::Cancelled),
            (Next::Dead(DeadReason::Redirect), DeliveryState::Dead),
        ];
        for (next, state) in ends {
            let id = bench.one(offer(URL)).await;
            let claimed = bench.claim_one().await;
            assert_eq!(cancel(bench, id).await, CancelOutcome::Requested);
            assert_eq!(bench.state(id).await, DeliveryState::InFlight);
            bench.end(claimed, next).await;
            assert_eq!(bench.state(id).await, state, "{next:?}");
            assert_eq!(bench.claim(9).await.len(), 0);
        }
    });
}

/// Repeating an order is harmless.
pub fn cancel_of_an_ended_or_unknown_delivery_changes_nothing(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let dead = bench.dead(offer(URL), DeadReason::TooLarge).await;
        assert_eq!(cancel(bench, dead).await, CancelOutcome::AlreadyFinal(DeliveryState::Dead));
        let cancelled = bench.one(offer(URL)).await;
        cancel(bench, cancelled).await;
        assert_eq!(cancel(bench, cancelled).await, CancelOutcome::AlreadyFinal(DeliveryState::Cancelled));
        let delivered = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        bench.end(claimed, Next::Delivered).await;
        assert_eq!(cancel(bench, delivered).await, CancelOutcome::AlreadyFinal(DeliveryState::Delivered));
        assert_eq!(cancel(bench, unknown_delivery()).await, CancelOutcome::NotFound);
    });
}

/// Dead, scheduled, cancelled: due now, numbers continue, budget fresh. The rest: refused.
pub fn retry_renews_what_ended_badly_or_waits(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let dead = bench.dead(offer(URL), DeadReason::Ambiguous).await;
        let scheduled = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        let far = Millis::new(bench.now().get() + 9_000_000);
        bench.end(claimed, again_at(far)).await;
        let cancelled = bench.one(offer(URL)).await;
        cancel(bench, cancelled).await;
        bench.pass(10);
        for (id, attempts) in [(dead, 1), (scheduled, 1), (cancelled, 0)] {
            assert_eq!(retry(bench, id, false).await, RetryOutcome::Due);
            let view = bench.view(id).await;
            assert_eq!((view.attempts, view.budget_from, view.reason), (attempts, attempts, None));
            assert_eq!(view.next_attempt, Some((bench.now(), NextWhy::Replay)));
            assert_eq!(view.finished_at, None);
            let claimed = bench.claim_one().await;
            assert_eq!(ids(std::slice::from_ref(&claimed)), [id]);
            assert_eq!((claimed.progress.recoveries, claimed.progress.first_attempt_at), (0, None));
            assert_eq!(retry(bench, id, true).await, RetryOutcome::NotAllowed(DeliveryState::InFlight));
            bench.end(claimed, Next::Delivered).await;
        }
        bench.pass(9_000);
        assert_eq!(bench.claim(9).await.len(), 0, "the old schedule is gone");
        let pending = bench.one(offer(URL)).await;
        assert_eq!(retry(bench, pending, true).await, RetryOutcome::NotAllowed(DeliveryState::Pending));
        assert_eq!(retry(bench, unknown_delivery(), true).await, RetryOutcome::NotFound);
    });
}

/// A success is not repeated by accident.
pub fn retry_of_a_delivered_one_must_be_explicit(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        bench.end(claimed, Next::Delivered).await;
        assert_eq!(retry(bench, id, false).await, RetryOutcome::NotAllowed(DeliveryState::Delivered));
        assert_eq!(retry(bench, id, true).await, RetryOutcome::Due);
        let claimed = bench.claim_one().await;
        assert_eq!((claimed.lease.delivery(), claimed.progress.attempts), (id, 1));
    });
}
