//! Orders of a person: cancel, retry, and replay jobs, which run when the engine claims.

use std::collections::VecDeque;
use std::time::Duration;

use super::state::State;
use crate::machine::{may_retry, replayed};
use crate::model::{DeliveryId, DeliveryState, Key, Millis, NextWhy, ReplayId};
use crate::store::{
    CancelOutcome, MAX_REPLAY_RATE_PER_SECOND, NewReplay, Replay, ReplayFilter, ReplayState, RetryOutcome,
};

/// A replay job and what it still has to do, fixed when it was ordered.
#[derive(Debug)]
pub(super) struct ReplayRow {
    pub(super) job: Replay,
    pub(super) left: VecDeque<Key>,
}

impl ReplayRow {
    /// When the next delivery may be made due; `None` when the job is over.
    ///
    /// The first one at once, the nth at n / rate: computed from the start, so nothing drifts.
    pub(super) fn next_turn(&self) -> Option<Millis> {
        if self.job.state != ReplayState::Running {
            return None;
        }
        let nanos = u128::from(self.job.done + self.job.failed) * 1_000_000_000 / u128::from(self.job.rate);
        let after = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Some(self.job.created_at.after(after))
    }

    fn end(&mut self, state: ReplayState, now: Millis) {
        self.job.state = state;
        self.job.finished_at = Some(now);
        self.left.clear();
    }
}

impl State {
    pub(super) fn cancel(&mut self, id: DeliveryId, now: Millis) -> CancelOutcome {
        let Some(key) = self.ids.delivery_key(id) else { return CancelOutcome::NotFound };
        let Some(row) = self.deliveries.get_mut(&key) else { return CancelOutcome::NotFound };
        match row.state {
            DeliveryState::InFlight => {
                row.cancel_wished = true;
                CancelOutcome::Requested
            }
            DeliveryState::Pending | DeliveryState::Scheduled => {
                row.finished_at = Some(now);
                row.go(DeliveryState::Cancelled, &mut self.counts);
                self.lanes.remove(row.lane, row.due, key, now);
                CancelOutcome::Cancelled
            }
            state => CancelOutcome::AlreadyFinal(state),
        }
    }

    pub(super) fn retry(&mut self, id: DeliveryId, explicit: bool, now: Millis) -> RetryOutcome {
        let Some(key) = self.ids.delivery_key(id) else { return RetryOutcome::NotFound };
        let Some(row) = self.deliveries.get(&key) else { return RetryOutcome::NotFound };
        if !may_retry(row.state, explicit) {
            return RetryOutcome::NotAllowed(row.state);
        }
        self.renew(key, now);
        RetryOutcome::Due
    }

    /// Makes a delivery due now with a fresh budget.
    fn renew(&mut self, key: Key, now: Millis) {
        let Some(row) = self.deliveries.get_mut(&key) else { return };
        if row.state == DeliveryState::Scheduled {
            self.lanes.remove(row.lane, row.due, key, now);
        }
        row.progress = replayed(row.progress);
        self.make_due(key, now, NextWhy::Replay, now);
        self.announce();
    }

    pub(super) fn start_replay(&mut self, order: &NewReplay, now: Millis) -> Replay {
        let left = self.matching(&order.filter);
        let mut job = Replay {
            id: None,
            state: ReplayState::Finished,
            filter: order.filter,
            rate: order.rate.clamp(1, MAX_REPLAY_RATE_PER_SECOND),
            estimated: left.len() as u64,
            done: 0,
            failed: 0,
            created_at: now,
            finished_at: Some(now),
        };
        if order.dry_run {
            return job;
        }
        let key = self.keys.next(now);
        job.id = Some(self.ids.replay(key));
        if !left.is_empty() {
            job.state = ReplayState::Running;
            job.finished_at = None;
            self.announce();
        }
        self.replays.insert(key, ReplayRow { job, left });
        job
    }

    fn matching(&self, filter: &ReplayFilter) -> VecDeque<Key> {
        let dead = self
            .deliveries
            .iter()
            .filter(|(_, row)| row.reason.is_some_and(|reason| filter.takes(reason, row.created_at)));
        dead.map(|(key, _)| *key).collect()
    }

    pub(super) fn replay(&self, id: ReplayId) -> Option<Replay> {
        Some(self.replays.get(&self.ids.replay_key(id)?)?.job)
    }

    pub(super) fn cancel_replay(&mut self, id: ReplayId, now: Millis) -> Option<Replay> {
        let row = self.replays.get_mut(&self.ids.replay_key(id)?)?;
        if row.job.state == ReplayState::Running {
            row.end(ReplayState::Cancelled, now);
        }
        Some(row.job)
    }

    /// Makes due what the rate of every running job allows by now.
    pub(super) fn run_replays(&mut self, now: Millis) {
        let running = self.replays.iter().filter(|(_, row)| row.job.state == ReplayState::Running);
        for job in running.map(|(key, _)| *key).collect::<Vec<_>>() {
            while let Some(key) = self.next_of(job, now) {
                let dead = self.deliveries.get(&key).is_some_and(|row| row.state == DeliveryState::Dead);
                if dead {
                    self.renew(key, now);
                }
                self.count(job, dead, now);
            }
        }
    }

    fn next_of(&mut self, job: Key, now: Millis) -> Option<Key> {
        let row = self.replays.get_mut(&job)?;
        if row.next_turn()? > now { None } else { row.left.pop_front() }
    }

    fn count(&mut self, job: Key, done: bool, now: Millis) {
        let Some(row) = self.replays.get_mut(&job) else { return };
        row.job.done += u64::from(done);
        row.job.failed += u64::from(!done);
        if row.left.is_empty() {
            row.end(ReplayState::Finished, now);
        }
    }
}
