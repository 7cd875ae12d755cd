//! Settling: where a delivery comes to rest, with the record of the attempt, in one atomic step.

use rusqlite::Result;
use teimoso_delivery::machine::resting;
use teimoso_delivery::model::{Key, LaneRecord};
use teimoso_delivery::store::Settlement;

use super::Settling;
use super::batch::{Batch, DeliveryRow, Effect};
use crate::fault;
use crate::rows;

/// What the lease knew, read once under the lock.
struct Was {
    row: DeliveryRow,
    journaled: bool,
    cancel_wished: bool,
    /// The lane's record as it is now, when this settlement changed it: with several engines their order
    /// here need not be the order of the changes.
    lane_record: Option<LaneRecord>,
}

impl Batch<'_> {
    pub(super) fn settle(&mut self, batch: &[Settling]) -> Result<()> {
        let known: Vec<Option<Was>> = {
            let core = self.shared.core();
            batch.iter().map(|settling| was(&core, settling)).collect()
        };
        for (settling, was) in batch.iter().zip(known) {
            if let Some(was) = was {
                self.settle_one(settling, &was)?;
            }
        }
        Ok(())
    }

    fn settle_one(&mut self, settling: &Settling, was: &Was) -> Result<()> {
        let (key, settlement) = (settling.key, &settling.settlement);
        self.record(key, settlement)?;
        fault::point("settle-half");
        let rest = resting(settlement.next, was.row.due, was.row.progress.why, was.cancel_wished);
        self.rest(key, &was.row, rest, settlement.progress, settlement.at)?;
        if was.journaled {
            self.execute("DELETE FROM leased WHERE delivery = ?1", [key.raw()])?;
        }
        if let Some(record) = was.lane_record {
            self.save_lane(was.row.lane, record)?;
        }
        self.effects.push(Effect::Settled(key));
        Ok(())
    }

    fn record(&self, key: Key, settlement: &Settlement) -> Result<()> {
        let Some(attempt) = &settlement.record else { return Ok(()) };
        rows::with_attempt(key, attempt, |params| self.execute(rows::INSERT_ATTEMPT, params))
    }
}

fn was(core: &crate::core::Core, settling: &Settling) -> Option<Was> {
    let leased = core.leases.get(&settling.key)?;
    let progress = leased.progress?;
    Some(Was {
        row: DeliveryRow { state: progress.resting_state(), lane: leased.lane, due: leased.due, progress },
        journaled: leased.journaled,
        cancel_wished: leased.cancel_wished,
        lane_record: settling.lane_changed.then(|| core.lanes.record(leased.lane)),
    })
}
