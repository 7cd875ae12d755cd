//! Replay jobs: rate, filters, dry runs, the end.

use super::bench::{Bench, Make, rule};
use crate::model::{DeadReason, DeliveryId, DeliveryState};
use crate::store::{Claimed, NewReplay, Next, Replay, ReplayFilter, ReplayState};
use crate::testkit::offer;

const URL: &str = "http://loja.example/";

const ALL: ReplayFilter = ReplayFilter { reason: None, since: None, until: None };

async fn order(bench: &Bench, filter: ReplayFilter, rate: u32, dry_run: bool) -> Replay {
    let replay = bench.store.start_replay(NewReplay { filter, rate, dry_run }).await;
    bench.counts().await;
    replay.expect("an open store takes orders")
}

async fn job(bench: &Bench, replay: &Replay) -> Replay {
    let id = replay.id.expect("a real job has an id");
    bench.store.replay(id).await.expect("an open store reads").expect("the job is kept")
}

/// Waits for the job to be over: a store may do its bookkeeping beside the claims.
async fn end_of(bench: &Bench, replay: &Replay) -> Replay {
    bench
        .within(async {
            loop {
                let job = job(bench, replay).await;
                if job.state != ReplayState::Running {
                    return job;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
}

async fn dead(bench: &Bench, count: usize, reason: DeadReason) -> Vec<DeliveryId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(bench.dead(offer(URL), reason).await);
    }
    ids
}

fn sorted(taken: &[Claimed]) -> Vec<DeliveryId> {
    let mut ids = super::bench::ids(taken);
    ids.sort_unstable();
    ids
}

/// Two a second: not six at once.
pub fn a_replay_keeps_its_rate_and_ends(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        dead(bench, 6, DeadReason::AttemptsExhausted).await;
        bench.claim(9).await;
        let replay = order(bench, ALL, 2, false).await;
        assert_eq!((replay.state, replay.estimated, replay.done), (ReplayState::Running, 6, 0));
        let mut taken = bench.claim_until(1).await.len();
        assert!(taken <= 2, "{taken} at once");
        for second in 1..=3 {
            bench.pass(1);
            taken += bench.claim_until((2 * second) - taken).await.len();
            assert!(taken <= 2 * second + 2, "{taken} after {second} s");
        }
        assert_eq!(taken, 6);
        let job = end_of(bench, &replay).await;
        assert_eq!((job.state, job.done, job.failed), (ReplayState::Finished, 6, 0));
        assert!(job.finished_at.is_some());
    });
}

/// No job, no id, no change.
pub fn a_dry_run_counts_and_changes_nothing(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        dead(bench, 3, DeadReason::AttemptsExhausted).await;
        dead(bench, 1, DeadReason::Ambiguous).await;
        let replay = order(bench, ALL, 100, true).await;
        assert_eq!((replay.id, replay.estimated, replay.done), (None, 3, 0));
        bench.pass(60);
        assert_eq!(bench.claim(9).await.len(), 0);
        assert_eq!(bench.counts().await.dead, 4);
    });
}

/// What may have taken effect is repeated only by name.
pub fn a_replay_skips_ambiguous_unless_named(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let ambiguous = dead(bench, 2, DeadReason::Ambiguous).await;
        let other = dead(bench, 1, DeadReason::Redirect).await;
        let all = order(bench, ALL, 10_000, false).await;
        bench.pass(1);
        assert_eq!(sorted(&bench.claim_until(1).await), other);
        assert_eq!(end_of(bench, &all).await.done, 1);
        let named = ReplayFilter { reason: Some(DeadReason::Ambiguous), ..ALL };
        order(bench, named, 10_000, false).await;
        bench.pass(1);
        assert_eq!(sorted(&bench.claim_until(2).await), ambiguous);
    });
}

/// Reason, since (inclusive), until (exclusive), by the time of acceptance.
pub fn a_replay_takes_what_its_filter_names(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        dead(bench, 1, DeadReason::Redirect).await;
        bench.pass(10);
        let since = bench.now();
        dead(bench, 1, DeadReason::TooLarge).await;
        let wanted = dead(bench, 1, DeadReason::Redirect).await;
        bench.pass(10);
        let until = bench.now();
        dead(bench, 1, DeadReason::Redirect).await;
        let filter =
            ReplayFilter { reason: Some(DeadReason::Redirect), since: Some(since), until: Some(until) };
        assert_eq!(order(bench, filter, 100, false).await.estimated, 1);
        bench.pass(1);
        assert_eq!(sorted(&bench.claim_until(1).await), wanted);
        assert_eq!(bench.counts().await.dead, 3);
        let nothing = ReplayFilter { since: Some(until), reason: Some(DeadReason::Poison), until: None };
        let empty = order(bench, nothing, 100, false).await;
        let empty = end_of(bench, &empty).await;
        assert_eq!((empty.state, empty.estimated, empty.done), (ReplayState::Finished, 0, 0));
    });
}

/// What it replayed stays replayed; what a person replayed first is not counted as done.
pub fn a_cancelled_replay_goes_no_further(make: Make<'_>) {
    rule(make, async |bench: &Bench| {
        let ids = dead(bench, 5, DeadReason::AttemptsExhausted).await;
        bench.claim(9).await;
        let replay = order(bench, ALL, 1, false).await;
        let taken = bench.claim_until(1).await;
        let replayed = taken.len() as u64;
        bench
            .settle(taken.into_iter().map(|claimed| bench.settlement(claimed, Next::Delivered)).collect())
            .await;
        let stopped = bench.store.cancel_replay(replay.id.expect("a real job has an id")).await;
        let stopped = stopped.expect("an open store takes orders").expect("the job is kept");
        assert_eq!((stopped.state, stopped.done), (ReplayState::Cancelled, replayed));
        bench.pass(60);
        assert_eq!(bench.claim(9).await.len(), 0);
        assert_eq!(bench.state(ids[4]).await, DeliveryState::Dead);
        let again = bench.store.cancel_replay(replay.id.expect("a real job has an id")).await;
        assert_eq!(again, Ok(Some(stopped)), "stopping twice is harmless");
        let strange = crate::model::IdSpace::new(0xdead).replay(crate::model::Key::first_at(bench.now()));
        assert_eq!(bench.store.replay(strange).await, Ok(None));
        assert_eq!(bench.store.cancel_replay(strange).await, Ok(None));
    });
}
