//! What there is room for is claimed, and an attempt started for each delivery.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{Claiming, Ended, Shell};
use crate::engine::anchor::Now;
use crate::engine::slots::{Held, SlotId, Task};
use crate::model::{AttemptNumber, Lease, Millis, Mode, Nonce, Progress};
use crate::ports::{Dispatched, Report};
use crate::store::{Claim, ClaimRequest, Claimed, LaneNews, Next, Settlement, StoreError};

/// Sends the end whatever happens to the task.
struct EndsOnce {
    slot: SlotId,
    ends: mpsc::UnboundedSender<Ended>,
    report: Option<Report>,
}

impl EndsOnce {
    fn with(mut self, report: Report) {
        self.report = Some(report);
    }
}

impl Drop for EndsOnce {
    fn drop(&mut self) {
        // Nobody listens any more when the engine itself was dropped.
        let _ = self.ends.send(Ended { slot: self.slot, report: self.report.take() });
    }
}

impl Shell<'_> {
    /// Asks for as much as there is room for, unless it is known that nothing is to be had.
    pub(super) fn claim(&mut self) {
        let settle_called = self.settling.as_ref().is_none_or(|settling| settling.called);
        let free = self.limits.in_flight.saturating_sub(self.held());
        if self.stopping || !self.claim_again || self.claiming.is_some() || !settle_called || free == 0 {
            return;
        }
        if self.backoff.is_some() {
            return;
        }
        let asked = Now::read(&*self.ports.clock);
        self.re_anchor(asked);
        if self.held() == 0 {
            // Nothing of ours that the claim could take for expired.
            self.extend_before_claim = false;
            self.renew_at = asked.mono.saturating_add(self.limits.renew_every);
        }
        if self.extend_before_claim {
            return;
        }
        let want = free.min(self.limits.claim_batch);
        let entropy = &self.ports.entropy;
        let request = ClaimRequest {
            now: asked.wall,
            want,
            free,
            nonce: Nonce((u128::from(entropy.next_u64()) << 64) | u128::from(entropy.next_u64())),
            lease_until: asked.wall.after(self.limits.lease),
        };
        self.claim_again = false;
        self.wake_at = None;
        self.work = None;
        self.claiming = Some(Claiming { asked, want, answer: self.ports.store.claim(request) });
    }

    pub(super) fn claimed(&mut self, answer: Result<Claim, StoreError>) {
        let Some(Claiming { asked, want, .. }) = self.claiming.take() else { return };
        let now = Now::read(&*self.ports.clock);
        let claim = match answer {
            Ok(claim) => claim,
            Err(error) => return self.back_off(error, now),
        };
        self.recover_from_trouble();
        if claim.taken.len() >= want {
            self.claim_again = true;
        }
        self.wake_at = claim.wake_at;
        let left = self.limits.lease.saturating_sub(now.most_since(asked));
        for claimed in claim.taken {
            self.launch(claimed, now.wall, left);
        }
    }

    /// Starts an attempt, unless we are stopping or the lease might not outlive it (G4).
    fn launch(&mut self, claimed: Claimed, now: Millis, lease_left: Duration) {
        let Claimed { lease, event, url, progress, due, .. } = claimed;
        let policy = self.policies.resolve(event.policy.as_ref());
        let outlives = progress.mode == Mode::AtLeastOnce || lease_left > policy.attempt_timeout();
        if self.stopping || !outlives {
            return self.unsettled.push(released(lease, progress, now));
        }
        let request = Dispatched {
            event,
            url,
            number: AttemptNumber::after(progress.attempts),
            at: now,
            connect_timeout: policy.connect_timeout(),
            total_timeout: policy.attempt_timeout(),
        };
        let attempt = request.clone();
        let policy = policy.clone();
        let slot = self.slots.insert(Held { lease, request, progress, due, policy, task: Task::default() });
        let dispatch = self.ports.dispatch.clone();
        let end = EndsOnce { slot, ends: self.ends.clone(), report: None };
        let task = tokio::spawn(async move {
            let report = dispatch.attempt(attempt).await;
            end.with(report);
        });
        self.slots.runs_as(slot, task.abort_handle());
    }
}

fn released(lease: Lease, progress: Progress, at: Millis) -> Settlement {
    Settlement { lease, next: Next::Released, progress, record: None, news: LaneNews::Neutral, at }
}
