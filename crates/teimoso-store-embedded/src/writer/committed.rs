//! A transaction after its commit: memory is made to agree with the file, then everybody gets an answer.
//! Deliberately absent: the file, which has it all.

use std::collections::VecDeque;

use teimoso_delivery::lanes::Horizon;
use teimoso_delivery::model::Millis;
use teimoso_delivery::store::Counts;

use super::Op;
use super::batch::{Answer, Effect};
use crate::fault;
use crate::shared::Shared;

/// A durable transaction whose effects and answers are still to be given out.
pub(super) struct Committed {
    pub counts: Counts,
    pub effects: Vec<Effect>,
    pub answers: VecDeque<Answer>,
    pub ops: Vec<Op>,
}

impl Committed {
    /// The crash windows between the commit and its answers.
    pub(super) fn fault_points(&self) {
        for op in &self.ops {
            match op {
                Op::Accept(..) => fault::point("accept-after-commit"),
                Op::Settle(..) => fault::point("settle-after-commit"),
                _ => {}
            }
        }
    }

    /// Makes memory agree with the file, then answers. Wakes the engine when there may be more to claim.
    pub(super) fn publish(mut self, shared: &Shared, now: Millis) {
        let claimable = |effect: &Effect| matches!(effect, Effect::Due(..) | Effect::Refill(..));
        let wake = self.effects.iter().any(claimable);
        {
            let core = &mut *shared.core();
            core.counts = self.counts;
            core.refilling = false;
            for effect in self.effects.drain(..) {
                match effect {
                    // Nothing of a lane that was closed, or is new, waits in the file.
                    Effect::OpenLane(id, key, record) => core.lanes.open(id, key, record, Horizon::All),
                    Effect::Ids(ids) => shared.adopt_ids(ids),
                    Effect::Due(lane, due, key) => core.lanes.push(lane, due, key, now),
                    Effect::Fresh(key, fresh, due) => core.keep_fresh(key, fresh, due, now),
                    Effect::Settled(key) => drop(core.leases.remove(&key)),
                    Effect::Forget(key) => drop(core.take_fresh(key)),
                    Effect::Journaled(key) => {
                        if let Some(leased) = core.leases.get_mut(&key) {
                            leased.journaled = true;
                        }
                    }
                    Effect::Refill(thirst, entries) => core.refill(&thirst, entries, now),
                }
            }
        }
        if wake {
            shared.wake_engines();
        }
        self.answer(shared);
    }

    fn answer(mut self, shared: &Shared) {
        for op in std::mem::take(&mut self.ops) {
            match op {
                Op::Settle(batch, reply) => {
                    shared.note_saved(batch.len());
                    drop(reply.send(Ok(())));
                }
                Op::Start(_, reply) | Op::Recover(_, reply) | Op::Bury(_, reply) | Op::Refill(reply) => {
                    drop(reply.send(Ok(())));
                }
                Op::Tick | Op::Close(_) => {}
                other => self.answer_with_result(other),
            }
        }
    }

    fn answer_with_result(&mut self, op: Op) {
        match (op, self.answers.pop_front()) {
            (Op::Accept(_, reply), Some(Answer::Accepted(answer))) => drop(reply.send(Ok(answer))),
            (Op::Cancel(_, reply), Some(Answer::Cancelled(answer))) => drop(reply.send(Ok(answer))),
            (Op::Retry(_, _, reply), Some(Answer::Retried(answer))) => drop(reply.send(Ok(answer))),
            (Op::StartReplay(_, _, reply), Some(Answer::Replay(answer))) => drop(reply.send(Ok(answer))),
            (Op::CancelReplay(_, reply), Some(Answer::FoundReplay(answer))) => drop(reply.send(Ok(answer))),
            (Op::Import(_, reply), Some(Answer::Imported(answer))) => drop(reply.send(answer)),
            // A dropped reply tells its asker that the store is closed: never a wrong answer.
            _ => {}
        }
    }
}
