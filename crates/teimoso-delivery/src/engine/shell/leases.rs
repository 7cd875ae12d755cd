//! What is held is renewed; what is lost is abandoned.

use std::collections::HashSet;
use std::time::Duration;

use super::Shell;
use crate::engine::anchor::Now;
use crate::store::{LeaseRef, StoreError};

/// The pause after a failed renewal: short, because the leases go on ageing.
const RENEW_AGAIN: Duration = Duration::from_secs(1);

impl Shell<'_> {
    /// Renews everything held, in one call.
    pub(super) fn renew(&mut self, now: Now) {
        self.renew_at = now.mono.saturating_add(self.limits.renew_every);
        if self.extending.is_some() {
            return;
        }
        let unsettled = self.unsettled.iter().map(|settlement| LeaseRef::from(&settlement.lease));
        let leases: Vec<LeaseRef> = self.slots.leases().chain(unsettled).collect();
        if leases.is_empty() {
            return;
        }
        let until = now.wall.after(self.limits.lease);
        self.extending = Some(self.ports.store.extend(leases, until));
    }

    pub(super) fn extended(&mut self, answer: Result<Vec<LeaseRef>, StoreError>) {
        // After a failure the leases are as wrong as before: claims go on waiting.
        self.extend_before_claim &= answer.is_err();
        match answer {
            Ok(lost) if lost.is_empty() => {}
            Ok(lost) => {
                let lost: HashSet<LeaseRef> = lost.into_iter().collect();
                self.slots.abandon(&lost);
                self.unsettled.retain(|settlement| !lost.contains(&LeaseRef::from(&settlement.lease)));
                self.claim_again = true;
            }
            Err(error) => {
                self.renew_at = self.ports.clock.monotonic().saturating_add(RENEW_AGAIN);
                self.complain(error);
            }
        }
    }

    /// After a step of the wall clock, leases end at another time than they were meant to: they are
    /// renewed before any claim, which would take them for expired (G8).
    pub(super) fn re_anchor(&mut self, now: Now) {
        let stepped = now.stepped_from(self.anchor);
        self.anchor = now;
        if !stepped {
            return;
        }
        self.claim_again = true;
        self.extend_before_claim = true;
        // A renewal under way promises the wrong time.
        self.extending = None;
        self.renew(now);
    }
}
