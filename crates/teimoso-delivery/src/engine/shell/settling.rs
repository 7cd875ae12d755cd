//! What ended is decided on and handed to the store, in batches.

use std::time::Duration;

use teimoso_retry::{Fate, Why};

use super::{Ended, Settling, Shell};
use crate::engine::slots::Held;
use crate::machine::{Attempted, Conclusion, conclude};
use crate::model::{ErrorKind, Millis, PhaseTimings};
use crate::ports::{Finished, Note, Report};
use crate::store::{Settled, Settlement, StoreError};

impl Shell<'_> {
    /// Hands over what ended. One batch at a time; while the store makes it wait, the next one grows.
    pub(super) fn hand_over(&mut self) {
        if self.settling.is_some() || self.unsettled.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.unsettled);
        self.settling = Some(Settling { called: false, answer: self.ports.store.settle(batch) });
        self.claim_again = true;
    }

    pub(super) fn settled(&mut self, answer: Result<Settled, StoreError>) {
        match answer {
            Ok(Settled { ticket, paused }) => {
                self.ticket = Some(ticket);
                for pause in paused {
                    let note = Note::LanePaused { lane: pause.lane, until: pause.until, why: pause.why };
                    self.ports.observer.note(&note);
                }
            }
            // The batch is the store's or nobody's: its leases end and are recovered.
            Err(error) => self.complain(error),
        }
    }

    /// Decides on every attempt that ended since the last look, under one reading of the clock.
    pub(super) fn gather(&mut self) {
        let now = self.ports.clock.now();
        let mut batch = std::mem::take(&mut self.batch);
        for Ended { slot, report } in batch.drain(..) {
            // Abandoned meanwhile: its lease was lost, so there is nothing to settle.
            let Some(held) = self.slots.ended(slot) else { continue };
            let report = report.unwrap_or_else(|| panicked(now.since(held.request.at)));
            let settlement = self.conclude(held, &report, now);
            self.unsettled.push(settlement);
        }
        self.batch = batch;
    }

    fn conclude(&self, held: Held, report: &Report, now: Millis) -> Settlement {
        let Held { lease, request, progress, due, policy, .. } = held;
        let attempted = Attempted { progress, number: request.number, started_at: request.at, now, report };
        let Conclusion { next, progress, record, news, wait } =
            conclude(&attempted, &policy, self.ports.entropy.next_u64());
        self.ports.observer.finished(&Finished {
            attempt: &request,
            report,
            next: &next,
            wait,
            budget_used: progress.attempts.saturating_sub(progress.budget_from),
            max_attempts: policy.max_attempts().get(),
            lag: request.at.since(due),
        });
        Settlement { lease, next, progress, record: Some(Box::new(record)), news, at: now }
    }
}

/// The report of an attempt whose task panicked: bytes may have been written, and we stopped waiting.
fn panicked(total: Duration) -> Report {
    Report {
        fate: Fate::Ambiguous(Why::Cancelled),
        status: None,
        hint: None,
        error_kind: Some(ErrorKind::Cancelled),
        error: Some("the attempt ended without a report: a defect of the sender".into()),
        peer: None,
        timings: PhaseTimings { total, ..PhaseTimings::default() },
        response: None,
    }
}
