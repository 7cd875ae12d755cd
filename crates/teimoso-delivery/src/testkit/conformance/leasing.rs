//! Leases: fencing, renewal, expiry, recovery.

use std::time::Duration;

use super::bench::{Bench, Make, again_at, ids, rule, twin};
use crate::model::{DeadReason, DeliveryState, Lease, Nonce};
use crate::store::{LEASE, LeaseRef, Next};
use crate::testkit::offer;

const URL: &str = "http://loja.example/";

/// Nothing changes, and the lease still holds.
pub fn g5_a_strangers_nonce_settles_nothing(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        let mut stranger = twin(&claimed);
        stranger.lease = Lease::grant(id, Nonce(claimed.lease.nonce().0 ^ 1));
        bench.end(stranger, Next::Delivered).await;
        assert_eq!(bench.state(id).await, DeliveryState::InFlight);
        assert_eq!(bench.store.attempts(id).await, Ok(Vec::new()));
        bench.end(claimed, Next::Dead(DeadReason::Redirect)).await;
        assert_eq!(bench.view(id).await.reason, Some(DeadReason::Redirect));
    });
}

/// In one batch and in two.
pub fn g5_nothing_is_settled_twice(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        let (second, third) = (twin(&claimed), twin(&claimed));
        let first = bench.settlement(claimed, again_at(bench.now()));
        let second = bench.settlement(second, Next::Delivered);
        bench.settle(vec![first, second]).await;
        bench.end(third, Next::Delivered).await;
        let view = bench.view(id).await;
        assert_eq!((view.state, view.attempts), (DeliveryState::Scheduled, 1));
        assert_eq!(bench.claim(9).await.len(), 1, "it is in its lane once");
        assert_eq!(bench.claim(9).await.len(), 0);
    });
}

/// Renewed in time it never expires; what is settled, strange or recovered is lost.
pub fn g5_extend_keeps_what_is_held_and_names_what_is_lost(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.many(2, &offer(URL)).await;
        let mut taken = bench.claim(2).await;
        let (settled, held) = (taken.remove(1), taken.remove(0));
        let (settled_ref, held_ref) = (LeaseRef::from(&settled.lease), LeaseRef::from(&held.lease));
        bench.end(settled, Next::Delivered).await;
        let strange = LeaseRef { nonce: Nonce(3), ..held_ref };
        for _ in 0..5 {
            bench.pass(20);
            let until = bench.now().after(LEASE);
            let lost = bench.store.extend(vec![strange, held_ref, settled_ref], until).await;
            assert_eq!(lost, Ok(vec![strange, settled_ref]));
            assert_eq!(bench.claim(9).await.len(), 0);
        }
        bench.end(held, Next::Delivered).await;
        assert_eq!(bench.counts().await.delivered, 2);
        assert_eq!(bench.store.extend(vec![held_ref], bench.now().after(LEASE)).await, Ok(vec![held_ref]));
    });
}

/// Due at once, the recovery counted, the slot free; three deaths are enough.
pub fn g6_an_expired_lease_is_recovered_and_the_third_is_poison(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.one(offer(URL)).await;
        for recoveries in 0..3 {
            let claimed = bench.claim_one().await;
            assert_eq!((claimed.progress.recoveries, claimed.progress.attempts), (recoveries, 0));
            bench.clock.advance(LEASE - Duration::from_millis(1));
            assert_eq!(bench.claim(9).await.len(), 0);
            bench.pass_millis(1);
        }
        assert_eq!(bench.claim(9).await.len(), 0);
        let view = bench.view(id).await;
        assert_eq!(
            (view.state, view.reason, view.attempts),
            (DeliveryState::Dead, Some(DeadReason::Poison), 0)
        );
        bench.many(16, &offer(URL)).await;
        assert_eq!(bench.claim(20).await.len(), 16, "every slot came free");
    });
}

/// The late answer of a sender that was slow but not dead.
pub fn g6_a_settlement_after_the_recovery_writes_nothing(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.one(offer(URL)).await;
        let late = bench.claim_one().await;
        bench.clock.advance(LEASE);
        let second = bench.claim_one().await;
        assert_eq!(ids(std::slice::from_ref(&second)), [id]);
        bench.end(late, Next::Delivered).await;
        assert_eq!(bench.state(id).await, DeliveryState::InFlight);
        bench.end(second, again_at(bench.now())).await;
        assert_eq!(bench.store.attempts(id).await.map(|attempts| attempts.len()), Ok(1));
    });
}

/// Its claim was the start.
pub fn g4_a_recovered_at_most_once_delivery_is_dead_ambiguous(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        if !bench.store.info().at_most_once {
            return;
        }
        let id = bench.one(offer(URL).at_most_once()).await;
        bench.claim_one().await;
        bench.clock.advance(LEASE);
        assert_eq!(bench.claim(9).await.len(), 0);
        let view = bench.view(id).await;
        assert_eq!((view.state, view.reason), (DeliveryState::Dead, Some(DeadReason::Ambiguous)));
    });
}

/// Before the first byte: as if it had not been claimed.
pub fn a_released_delivery_is_claimable_at_once_and_counts_no_attempt(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.one(offer(URL)).await;
        let claimed = bench.claim_one().await;
        bench.end(claimed, Next::Released).await;
        let view = bench.view(id).await;
        assert_eq!((view.state, view.attempts), (DeliveryState::Pending, 0));
        assert_eq!(bench.store.attempts(id).await, Ok(Vec::new()));
        let again = bench.claim_one().await;
        assert_eq!((again.progress.attempts, again.progress.recoveries), (0, 0));
        bench.end(again, again_at(bench.now())).await;
        let third = bench.claim_one().await;
        bench.end(third, Next::Released).await;
        assert_eq!(bench.state(id).await, DeliveryState::Scheduled);
    });
}
