//! The end of a run: nothing new, what is in flight ends, and what ended is saved.
//!
//! Deliberately absent: a bound on the attempts, which have time-outs of their own.

use super::Shell;
use crate::engine::LAST_SETTLEMENTS;
use crate::store::{StoreError, StoreErrorKind};

impl Shell<'_> {
    pub(super) fn stop(&mut self) {
        self.stopping = true;
        self.work = None;
    }

    pub(in crate::engine) fn is_drained(&self) -> bool {
        let handed_over = self.held() == 0 && self.claiming.is_none() && self.settling.is_none();
        self.stopping && (handed_over || self.gave_up)
    }

    /// Once nothing is on the wire, only the store is waited for: it may be unable to save for as long as
    /// nobody makes room on its disk.
    pub(super) fn bound_the_drain(&mut self) {
        if self.stopping && self.slots.len() == 0 && self.give_up_at.is_none() {
            self.give_up_at = Some(self.ports.clock.monotonic().saturating_add(LAST_SETTLEMENTS));
        }
    }

    /// Waits until the last settlements are durable. Tickets complete in the order of their batches.
    pub(in crate::engine) async fn finish(self) -> Result<(), StoreError> {
        if let Some(error) = self.closed {
            return Err(error);
        }
        let (store, clock) = (&self.ports.store, &self.ports.clock);
        let not_saved = || {
            let slow =
                || StoreError::new(StoreErrorKind::Busy, "the store took too long over the last settlements");
            store.health().err().unwrap_or_else(slow)
        };
        if self.gave_up {
            return Err(not_saved());
        }
        let Some(ticket) = self.ticket else { return Ok(()) };
        let now = clock.monotonic();
        let wait = self.give_up_at.map_or(LAST_SETTLEMENTS, |at| at.saturating_sub(now));
        tokio::select! {
            biased;
            saved = ticket => saved,
            () = clock.sleep(wait) => Err(not_saved()),
        }
    }
}
