//! Claiming: from memory when the event is fresh, else read back by a thread of its own, so that a slow
//! disk never stops the network.

use teimoso_delivery::lanes::Taken;
use teimoso_delivery::model::{Key, Lease, Millis, Mode, Progress};
use teimoso_delivery::store::{Claim, ClaimRequest, Claimed, LaneNews, StoreError};
use tokio::sync::oneshot;

use crate::core::{Core, Fresh, Leased};
use crate::error::closed;
use crate::read_back::{Found, ReadBack};
use crate::writer::Op;
use crate::{EmbeddedStore, fault};

/// What memory gave.
#[derive(Default)]
struct Took {
    claimed: Vec<Claimed>,
    missing: Vec<Taken<Key>>,
    wake_at: Option<Millis>,
    /// A lane's due index ran dry: the file has more.
    thirsty: bool,
    /// The writer should be told that something was leased.
    tell: bool,
}

impl EmbeddedStore {
    pub(crate) async fn claim_now(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        self.shared.check()?;
        let lost = expired(&mut self.shared.core(), request.now);
        if !lost.is_empty() {
            self.ask(|reply| Op::Recover(lost, reply)).await?;
        }
        self.claim_due(request).await
    }

    /// All of it, or nothing.
    async fn claim_due(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        let took = self.take(&request);
        let claim = self.complete(took, &request).await;
        if claim.is_err() {
            self.give_all_back(&request);
        }
        claim
    }

    /// From what memory gave to a claim: reads on, reads back, and makes durable what must be.
    async fn complete(&self, mut took: Took, request: &ClaimRequest) -> Result<Claim, StoreError> {
        // Ends: every refill moves a horizon on, and a lane that got more than a few entries is content.
        while took.thirsty && took.claimed.len() + took.missing.len() < request.want {
            self.ask(Op::Refill).await?;
            self.take_more(request, &mut took);
        }
        if took.tell || took.thirsty {
            self.send(Op::Tick)?;
        }
        let mut claimed = took.claimed;
        if !took.missing.is_empty() {
            claimed.extend(self.read_back(took.missing, request).await?);
        }
        // At-most-once: the claim is the start, durable before it is returned (G4). After an unclean end
        // every claim is, for a while: a payload that kills us at once must still be counted (G6).
        let cautious = self.shared.clock.monotonic() < self.cautious_until;
        let must_start = |claimed: &&Claimed| cautious || claimed.progress.mode == Mode::AtMostOnce;
        let start: Vec<Key> =
            claimed.iter().filter(must_start).filter_map(|claimed| self.key(claimed)).collect();
        if !start.is_empty() {
            self.ask(|reply| Op::Start(start, reply)).await?;
        }
        if !claimed.is_empty() {
            fault::point("claimed");
        }
        Ok(Claim { taken: claimed, wake_at: took.wake_at })
    }

    /// A claim that failed was never handed out: nothing of it was in flight, nothing is to be recovered.
    /// What was cancelled meanwhile keeps its lease, whose end honours the wish.
    fn give_all_back(&self, request: &ClaimRequest) {
        let core = &mut *self.shared.core();
        for taken in held_under(core, request) {
            if core.leases.get(&taken.key).is_none_or(|leased| leased.cancel_wished) {
                continue;
            }
            core.leases.remove(&taken.key);
            core.lanes.release(taken.lane, LaneNews::Neutral, request.now);
            core.lanes.push(taken.lane, taken.due, taken.key, request.now);
        }
        core.last_claim = None;
    }

    fn key(&self, claimed: &Claimed) -> Option<Key> {
        self.shared.ids().delivery_key(claimed.lease.delivery())
    }

    fn take(&self, request: &ClaimRequest) -> Took {
        let core = &mut *self.shared.core();
        if core.last_claim == Some(request.nonce) {
            return Took { missing: held_under(core, request), wake_at: next_wake(core), ..Took::default() };
        }
        core.last_claim = Some(request.nonce);
        let mut took = Took::default();
        self.take_into(core, request, request.want, &mut took);
        took
    }

    /// After a refill.
    fn take_more(&self, request: &ClaimRequest, took: &mut Took) {
        let want = request.want.saturating_sub(took.claimed.len() + took.missing.len());
        self.take_into(&mut self.shared.core(), request, want, took);
    }

    fn take_into(&self, core: &mut Core, request: &ClaimRequest, want: usize, took: &mut Took) {
        took.tell |= core.journal.is_empty();
        // What an earlier round of this claim took is no longer free (G9).
        let free = request.free.saturating_sub(took.claimed.len() + took.missing.len());
        for taken in core.lanes.take(request.now, want, free) {
            let fresh = core.take_fresh(taken.key);
            lease(core, &taken, request, fresh.as_ref().map(|fresh| fresh.progress));
            match fresh {
                Some(fresh) => took.claimed.push(self.claimed(core, &taken, request, fresh)),
                None => took.missing.push(taken),
            }
        }
        took.tell &= !core.journal.is_empty();
        if core.lanes.has_ready(request.now) {
            // More than this engine wanted: another one may have slots.
            self.shared.wake_engines();
        }
        took.thirsty = core.lanes.is_thirsty() || core.refilling;
        took.wake_at = next_wake(core);
    }

    fn claimed(&self, core: &Core, taken: &Taken<Key>, request: &ClaimRequest, fresh: Fresh) -> Claimed {
        let lane = core.lanes.key(taken.lane).map_or_else(|| fresh.url.clone(), |key| key.address.clone());
        Claimed {
            lease: Lease::grant(self.shared.ids().delivery(taken.key), request.nonce),
            event: fresh.event,
            url: fresh.url,
            lane,
            progress: fresh.progress,
            due: taken.due,
        }
    }

    async fn read_back(
        &self,
        taken: Vec<Taken<Key>>,
        request: &ClaimRequest,
    ) -> Result<Vec<Claimed>, StoreError> {
        let (reply, rows) = oneshot::channel();
        self.read_backs.send(ReadBack { taken, ids: self.shared.ids(), reply }).map_err(|_| closed())?;
        let found = rows.await.map_err(|_| closed())?.inspect_err(|error| self.shared.failed(error))?;
        let (mut claimed, mut unreadable) = (Vec::with_capacity(found.len()), Vec::new());
        {
            let core = &mut *self.shared.core();
            for (taken, found) in found {
                match found {
                    Found::Whole(loaded) => {
                        if let Some(leased) = core.leases.get_mut(&taken.key) {
                            leased.progress = Some(loaded.progress);
                        }
                        let address = || core.lanes.key(taken.lane).map(|key| key.address.clone());
                        let url = loaded.url.or_else(address).unwrap_or_else(|| "".into());
                        let fresh = Fresh { event: loaded.event, url, progress: loaded.progress };
                        claimed.push(self.claimed(core, &taken, request, fresh));
                    }
                    // The entry was stale.
                    Found::Ended => let_go(core, &taken, request.now),
                    Found::Unreadable => {
                        core.lanes.release(taken.lane, LaneNews::Neutral, request.now);
                        unreadable.push(taken);
                    }
                }
            }
        }
        if !unreadable.is_empty() {
            self.ask(|reply| Op::Bury(unreadable, reply)).await?;
        }
        Ok(claimed)
    }
}

fn lease(core: &mut Core, taken: &Taken<Key>, request: &ClaimRequest, progress: Option<Progress>) {
    core.journal.push(taken.key);
    core.earliest_lease_end = core.earliest_lease_end.min(request.lease_until);
    core.leases.insert(
        taken.key,
        Leased {
            nonce: request.nonce,
            until: request.lease_until,
            lane: taken.lane,
            due: taken.due,
            progress,
            journaled: false,
            settling: false,
            cancel_wished: false,
        },
    );
}

/// Ends a lease under which nothing was attempted, on disk too if it got that far.
fn let_go(core: &mut Core, taken: &Taken<Key>, now: Millis) {
    core.leases.remove(&taken.key);
    core.unjournal.push(taken.key);
    core.lanes.release(taken.lane, LaneNews::Neutral, now);
}

/// What a claim that is repeated was given the first time.
fn held_under(core: &Core, request: &ClaimRequest) -> Vec<Taken<Key>> {
    let held = core.leases.iter().filter(|(_, leased)| leased.nonce == request.nonce && !leased.settling);
    held.map(|(key, leased)| Taken { lane: leased.lane, due: leased.due, key: *key }).collect()
}

/// When a claim could give something it cannot give now: the next due time, or the end of a lease.
fn next_wake(core: &Core) -> Option<Millis> {
    let lease = Some(core.earliest_lease_end).filter(|_| !core.leases.is_empty());
    core.lanes.next_wake().into_iter().chain(lease).min()
}

/// Leases that ran out. Their slots are freed; the writer counts the recovery.
fn expired(core: &mut Core, now: Millis) -> Vec<Key> {
    if core.leases.is_empty() || core.earliest_lease_end > now {
        return Vec::new();
    }
    let gone = |leased: &Leased| !leased.settling && leased.until <= now;
    let lost: Vec<Key> = core.leases.iter().filter(|(_, leased)| gone(leased)).map(|(key, _)| *key).collect();
    for key in &lost {
        if let Some(leased) = core.leases.get_mut(key) {
            leased.settling = true;
            let lane = leased.lane;
            core.lanes.release(lane, LaneNews::Neutral, now);
        }
    }
    let held = core.leases.values().filter(|leased| !leased.settling);
    core.earliest_lease_end = held.map(|leased| leased.until).min().unwrap_or(Millis::MAX);
    lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use teimoso_delivery::store::StoreErrorKind;
    use teimoso_delivery::testkit::offer;

    #[tokio::test]
    async fn g4_a_claim_that_could_not_be_made_durable_started_nothing() {
        let (_dir, store) = testing::store();
        let (at_most_once, at_least_once) = (offer("http://a/").at_most_once(), offer("http://b/"));
        testing::accept(&store, vec![at_most_once, at_least_once]).await;
        store.shared.failed(&StoreError::new(StoreErrorKind::Failed, "no disk"));
        let refused = store.claim_due(testing::request(1)).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Failed);
        let core = &mut *store.shared.core();
        assert_eq!(core.leases.len(), 0, "nobody has them");
        assert_eq!(core.lanes.take(testing::NOW, 9, 64).len(), 2, "both are due, both slots are free");
    }
}
