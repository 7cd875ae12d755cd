//! A store that fails: said once, asked again with growing pauses, recovered from without a restart.

use std::time::Duration;

use super::Shell;
use crate::engine::anchor::Now;
use crate::ports::Note;
use crate::store::{StoreError, StoreErrorKind};

/// The first pause after a failed claim; it doubles …
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
/// … up to this: a store that is back is used within two seconds.
const LONGEST_BACKOFF: Duration = Duration::from_millis(1_500);

impl Shell<'_> {
    pub(super) fn back_off(&mut self, error: StoreError, now: Now) {
        let longest = FIRST_BACKOFF.saturating_mul(1 << self.failures.min(16)).min(LONGEST_BACKOFF);
        let half = longest / 2;
        let part = (u128::from(self.ports.entropy.next_u64()) * half.as_nanos()) >> 64;
        let jitter = Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX));
        self.backoff = Some(now.mono.saturating_add(half).saturating_add(jitter));
        self.failures = self.failures.saturating_add(1);
        self.claim_again = true;
        self.complain(error);
    }

    /// Says once that the store fails. A closed store ends the run: nothing more can be settled.
    pub(super) fn complain(&mut self, error: StoreError) {
        if !std::mem::replace(&mut self.failing, true) {
            self.ports.observer.note(&Note::StoreFailing { sentence: error.to_string() });
        }
        if error.kind() == StoreErrorKind::Closed {
            self.stop();
            self.closed = Some(error);
        }
    }

    pub(super) fn recover_from_trouble(&mut self) {
        self.failures = 0;
        if std::mem::replace(&mut self.failing, false) {
            self.ports.observer.note(&Note::StoreRecovered);
        }
    }
}
