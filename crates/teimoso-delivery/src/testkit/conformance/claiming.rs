//! Claims: due order, turns, shares, pauses, wakes.

use std::collections::HashSet;
use std::time::Duration;

use super::bench::{Bench, Make, again_at, ids, is_complete, rule};
use crate::model::{DeadReason, DeliveryId, Millis, NextWhy, PauseWhy};
use crate::store::{ClaimRequest, Claimed, LaneNews, Next, RetryOutcome};
use crate::testkit::offer;

const URL: &str = "http://loja.example/";

fn at(bench: &Bench, seconds: u64) -> Millis {
    bench.now().after(Duration::from_secs(seconds))
}

fn of_lane(taken: &[Claimed], lane: &str) -> usize {
    taken.iter().filter(|claimed| &*claimed.lane == lane).count()
}

/// The oldest first, whatever the order of acceptance; nothing before its time.
pub fn g8_deliveries_are_claimed_in_due_order_and_never_early(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let late = bench.one(offer(URL).deliver_at(at(bench, 20))).await;
        let early = bench.one(offer(URL).deliver_at(at(bench, 10))).await;
        let now = bench.many(3, &offer(URL)).await;
        assert_eq!(bench.view(late).await.next_attempt, Some((at(bench, 20), NextWhy::DeliverAt)));
        assert_eq!(take_all(bench).await, now);
        bench.pass_millis(9_999);
        assert_eq!(take_all(bench).await, []);
        bench.pass_millis(1);
        assert_eq!(take_all(bench).await, [early]);
        let urgent = bench.one(offer(URL)).await;
        bench.pass(60);
        assert_eq!(take_all(bench).await, [urgent, late]);
    });
}

/// Claims and delivers; the ids in the order of the claim.
async fn take_all(bench: &Bench) -> Vec<DeliveryId> {
    let taken = bench.claim(256).await;
    let ids = ids(&taken);
    bench.settle(taken.into_iter().map(|claimed| bench.settlement(claimed, Next::Delivered)).collect()).await;
    ids
}

/// The earliest future due time, also after a later one was known.
pub fn g8_the_claim_says_when_to_wake(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        assert_eq!(bench.ask(bench.request(9)).await.wake_at, None);
        for seconds in [50, 20, 90] {
            bench.one(offer(URL).deliver_at(at(bench, seconds))).await;
        }
        assert_eq!(bench.ask(bench.request(9)).await.wake_at, Some(at(bench, 20)));
    });
}

/// Pending while there is nothing, complete once there is.
pub fn g8_wait_completes_after_an_accept(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.claim(9).await;
        let mut wait = bench.store.wait();
        assert!(!is_complete(&mut wait).await);
        bench.one(offer(URL)).await;
        bench.within(wait).await;
        assert_eq!(bench.claim(9).await.len(), 1);
        bench.one(offer(URL).deliver_at(at(bench, 5))).await;
        bench.within(bench.store.wait()).await;
    });
}

/// A person's retry wakes the engine too.
pub fn g8_wait_completes_after_a_retry(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let id = bench.dead(offer(URL), DeadReason::PermanentStatus).await;
        bench.claim(9).await;
        let wait = bench.store.wait();
        let (outcome, ()) = tokio::join!(bench.store.retry(id, false), bench.within(wait));
        assert_eq!(outcome, Ok(RetryOutcome::Due));
        assert_eq!(ids(&bench.claim(9).await), [id]);
    });
}

/// Ten thousand waiting in one lane; one in another is taken by the next claim.
pub fn g9_a_backlog_starves_no_other_lane(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        for _ in 0..10 {
            bench.many(1_000, &offer("http://cheia.example/")).await;
        }
        let first = bench.claim(64).await;
        assert_eq!(first.len(), 16, "a lane holds sixteen");
        bench.many(3, &offer("http://livre.example/")).await;
        let second = bench.claim(64).await;
        assert_eq!((second.len(), of_lane(&second, "http://livre.example/")), (3, 3));
        let settled = first.into_iter().map(|claimed| bench.settlement(claimed, Next::Delivered)).collect();
        bench.settle(settled).await;
        bench.one(offer("http://outra.example/")).await;
        let third = bench.claim(2).await;
        assert_eq!(of_lane(&third, "http://outra.example/"), 1, "turns, not order of acceptance");
    });
}

/// One application with four lanes gets no more turns than one with one.
pub fn g9_applications_take_turns_before_lanes_do(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        for lane in 0..4 {
            bench.many(8, &offer(&format!("http://a.example/{lane}")).of("a")).await;
        }
        bench.many(8, &offer("http://b.example/").of("b")).await;
        let taken = bench.claim(8).await;
        assert_eq!((taken.len(), of_lane(&taken, "http://b.example/")), (8, 4));
        for lane in 0..4 {
            assert_eq!(of_lane(&taken, &format!("http://a.example/{lane}")), 1);
        }
    });
}

/// min(16, half of the free slots), never below 1.
pub fn g9_a_lane_holds_at_most_half_of_the_free_slots_and_at_least_one(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        for (free, expected) in [(1, 1), (3, 1), (8, 4), (1_000, 16)] {
            let url = format!("http://loja.example/{free}");
            bench.many(40, &offer(&url)).await;
            let taken = bench.ask(ClaimRequest { free, ..bench.request(40) }).await.taken;
            assert_eq!(of_lane(&taken, &url), expected, "{free} free");
            let settled =
                taken.into_iter().map(|claimed| bench.settlement(claimed, Next::Delivered)).collect();
            bench.settle(settled).await;
            while !take_all(bench).await.is_empty() {}
        }
    });
}

/// Forty deliveries in three lanes, seven at a time.
pub fn a_claim_takes_no_more_than_it_wants_and_nothing_twice(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        for lane in 0..3 {
            bench.many(14, &offer(&format!("http://loja.example/{lane}"))).await;
        }
        let mut seen = HashSet::new();
        for _ in 0..6 {
            let taken = bench.claim(7).await;
            assert_eq!(taken.len(), 7);
            for claimed in taken {
                assert!(seen.insert(claimed.lease.delivery()), "claimed twice");
            }
        }
        assert_eq!(bench.claim(7).await.len(), 0);
        assert_eq!(bench.counts().await.in_flight, 42);
    });
}

/// The answer was lost on the way: asked again with the same nonce.
pub fn a_repeated_claim_answers_the_same_leases(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.many(5, &offer(URL)).await;
        let request = bench.request(3);
        let mut first = ids(&bench.ask(request).await.taken);
        let mut again = ids(&bench.ask(request).await.taken);
        first.sort_unstable();
        again.sort_unstable();
        assert_eq!((first.len(), &first), (3, &again));
        assert_eq!(bench.counts().await.in_flight, 3);
    });
}

/// A 503 with Retry-After, as an attempt reports it.
pub fn g10_a_paused_lane_waits_and_comes_back_with_one_probe(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let waiting = bench.many(9, &offer(URL)).await;
        let told = bench.claim_one().await;
        let until = at(bench, 60);
        let mut settlement = bench.settlement(told, again_at(until));
        settlement.news = LaneNews::Pause(until);
        let paused = bench.settle(vec![settlement]).await;
        assert_eq!(paused.len(), 1);
        assert_eq!((&*paused[0].lane, paused[0].until, paused[0].why), (URL, until, PauseWhy::RetryAfter));
        let claim = bench.ask(bench.request(9)).await;
        assert_eq!((claim.taken.len(), claim.wake_at), (0, Some(until)));
        assert_eq!(bench.view(waiting[5]).await.next_attempt, Some((until, NextWhy::LanePaused)));
        bench.pass_millis(59_999);
        assert_eq!(bench.claim(9).await.len(), 0);
        bench.pass_millis(1);
        let probe = bench.claim(9).await;
        assert_eq!(probe.len(), 1);
        let ends = probe.into_iter().map(|claimed| bench.settlement(claimed, Next::Delivered));
        bench
            .settle(ends.map(|end| crate::store::Settlement { news: LaneNews::Success, ..end }).collect())
            .await;
        assert_eq!(bench.claim(9).await.len(), 2, "the ramp");
    });
}

/// Ten failures in a row over thirty seconds: the breaker opens, and says so.
pub fn g10_a_failure_count_opens_the_lane(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        bench.many(20, &offer(URL)).await;
        let mut paused = Vec::new();
        for _ in 0..10 {
            let claimed = bench.claim_one().await;
            let mut settlement = bench.settlement(claimed, again_at(at(bench, 1_000)));
            settlement.news = LaneNews::Failure;
            paused.extend(bench.settle(vec![settlement]).await);
            bench.pass(4);
        }
        assert_eq!(paused.iter().map(|pause| pause.why).collect::<Vec<_>>(), [PauseWhy::Breaker]);
        assert_eq!(bench.claim(9).await.len(), 0);
        let reason = bench.view(bench.many(1, &offer(URL)).await[0]).await.next_attempt.map(|(_, why)| why);
        assert_eq!(reason, Some(NextWhy::Breaker));
        bench.pass(30);
        assert_eq!(bench.claim(9).await.len(), 1, "one probe");
    });
}
