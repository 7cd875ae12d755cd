//! Settling: the slot is free at the answer, the fsync follows.

use teimoso_delivery::model::Millis;
use teimoso_delivery::store::{
    LanePause, LeaseRef, MAX_UNSAVED_SETTLEMENTS, Next, Settled, Settlement, StoreError, Ticket,
};
use tokio::sync::oneshot;

use crate::EmbeddedStore;
use crate::core::Core;
use crate::error::closed;
use crate::writer::{Op, Settling};

impl EmbeddedStore {
    pub(crate) async fn settle_now(&self, batch: Vec<Settlement>) -> Result<Settled, StoreError> {
        let mut paused = Vec::new();
        let settling: Vec<Settling> = {
            let core = &mut *self.shared.core();
            batch.into_iter().filter_map(|settlement| self.free(core, settlement, &mut paused)).collect()
        };
        // An empty batch, too, takes its turn: tickets complete in the order of their batches.
        self.shared.note_unsaved(settling.len());
        let (reply, saved) = oneshot::channel();
        self.send(Op::Settle(settling, reply))?;
        self.wait_for_room().await;
        let ticket: Ticket = Box::pin(async { saved.await.map_err(|_| closed())? });
        Ok(Settled { ticket, paused })
    }

    /// Frees the lane's slot, if the lease still stands.
    fn free(&self, core: &mut Core, settlement: Settlement, paused: &mut Vec<LanePause>) -> Option<Settling> {
        let key = self.shared.ids().delivery_key(settlement.lease.delivery())?;
        let leased = core.leases.get_mut(&key)?;
        if leased.nonce != settlement.lease.nonce() || leased.settling {
            return None;
        }
        leased.settling = true;
        let lane = leased.lane;
        core.lanes.hear_answer(lane, matches!(settlement.next, Next::Delivered));
        let lane_record = core.lanes.release(lane, settlement.news, settlement.at);
        if let Some((until, why)) = lane_record.and_then(|record| record.not_before) {
            let address = core.lanes.key(lane).map(|key| key.address.clone());
            paused.extend(address.map(|lane| LanePause { lane, until, why }));
        }
        Some(Settling { key, settlement, lane_changed: lane_record.is_some() })
    }

    /// Back-pressure: bounded settlements may be unsaved.
    async fn wait_for_room(&self) {
        loop {
            let saved = self.shared.saved.notified();
            let mut saved = std::pin::pin!(saved);
            saved.as_mut().enable();
            if self.shared.unsaved() <= MAX_UNSAVED_SETTLEMENTS {
                return;
            }
            saved.await;
        }
    }

    pub(crate) fn extend_now(&self, leases: &[LeaseRef], until: Millis) -> Vec<LeaseRef> {
        let core = &mut *self.shared.core();
        let mut extended = |lease: &LeaseRef| {
            let key = self.shared.ids().delivery_key(lease.delivery)?;
            let leased = core.leases.get_mut(&key)?;
            if leased.nonce != lease.nonce || leased.settling {
                return None;
            }
            leased.until = until;
            core.earliest_lease_end = core.earliest_lease_end.min(until);
            Some(())
        };
        leases.iter().filter(|lease| extended(lease).is_none()).copied().collect()
    }
}
