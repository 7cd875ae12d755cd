//! What a person orders of one delivery: cancel, retry.

use rusqlite::Result;
use teimoso_delivery::machine::{Resting, may_retry, replayed};
use teimoso_delivery::model::{DeliveryId, DeliveryState, Key};
use teimoso_delivery::store::{CancelOutcome, RetryOutcome};

use super::batch::{Answer, Batch, Effect};

impl Batch<'_> {
    pub(super) fn cancel(&mut self, id: DeliveryId) -> Result<()> {
        let outcome = self.cancel_now(id)?;
        self.answers.push_back(Answer::Cancelled(outcome));
        Ok(())
    }

    fn cancel_now(&mut self, id: DeliveryId) -> Result<CancelOutcome> {
        let Some(key) = self.shared.ids().delivery_key(id) else { return Ok(CancelOutcome::NotFound) };
        let Some(row) = self.delivery(key)? else { return Ok(CancelOutcome::NotFound) };
        if row.state.is_final() {
            return Ok(CancelOutcome::AlreadyFinal(row.state));
        }
        if !self.take_out(&row, key) {
            return self.wish_cancelled(key);
        }
        self.rest(key, &row, Resting::Cancelled, row.progress, self.now)?;
        self.effects.push(Effect::Forget(key));
        Ok(CancelOutcome::Cancelled)
    }

    /// In flight: the wish is kept on disk too, so that a crash does not forget it.
    fn wish_cancelled(&mut self, key: Key) -> Result<CancelOutcome> {
        self.execute("INSERT OR REPLACE INTO leased VALUES (?1, 1)", [key.raw()])?;
        self.wish(key);
        Ok(CancelOutcome::Requested)
    }

    pub(super) fn retry(&mut self, id: DeliveryId, explicit: bool) -> Result<()> {
        let outcome = match self.shared.ids().delivery_key(id) {
            Some(key) => self.retry_now(key, explicit)?,
            None => RetryOutcome::NotFound,
        };
        self.answers.push_back(Answer::Retried(outcome));
        Ok(())
    }

    /// Makes a delivery due now with a fresh budget; its number of attempts goes on.
    pub(super) fn retry_now(&mut self, key: Key, explicit: bool) -> Result<RetryOutcome> {
        let Some(row) = self.delivery(key)? else { return Ok(RetryOutcome::NotFound) };
        if !row.state.is_final() && self.in_flight(key) {
            return Ok(RetryOutcome::NotAllowed(DeliveryState::InFlight));
        }
        if !may_retry(row.state, explicit) {
            return Ok(RetryOutcome::NotAllowed(row.state));
        }
        if !row.state.is_final() && !self.take_out(&row, key) {
            return Ok(RetryOutcome::NotAllowed(DeliveryState::InFlight));
        }
        let progress = replayed(row.progress);
        self.rest(key, &row, Resting::Due(self.now, progress.why), progress, self.now)?;
        Ok(RetryOutcome::Due)
    }
}
