//! What is in flight: one slot per attempt, with the lease it is made under.
//!
//! Deliberately absent: what starts an attempt and what follows it.

use std::collections::HashSet;
use std::sync::Arc;

use teimoso_retry::RetryPolicy;
use tokio::task::AbortHandle;

use crate::model::{Lease, Millis, Progress};
use crate::ports::Dispatched;
use crate::store::LeaseRef;

/// Names an attempt. The generation tells it from those that had the slot before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotId {
    index: usize,
    generation: u64,
}

/// An attempt in flight.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) lease: Lease,
    pub(super) request: Dispatched,
    pub(super) progress: Progress,
    pub(super) due: Millis,
    pub(super) policy: Arc<RetryPolicy>,
    pub(super) task: Task,
}

/// The attempt's task; abandoned when this is dropped, unless it ended.
#[derive(Debug, Default)]
pub(super) struct Task(Option<AbortHandle>);

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// All attempts in flight.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<(u64, Option<Held>)>,
    free: Vec<usize>,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, held: Held) -> SlotId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() - 1
        });
        let (generation, slot) = &mut self.slots[index];
        *slot = Some(held);
        SlotId { index, generation: *generation }
    }

    pub(super) fn runs_as(&mut self, id: SlotId, task: AbortHandle) {
        if let Some((generation, Some(held))) = self.slots.get_mut(id.index)
            && *generation == id.generation
        {
            held.task = Task(Some(task));
        }
    }

    /// Frees the slot of an attempt that ended; `None` when it no longer holds it.
    pub(super) fn ended(&mut self, id: SlotId) -> Option<Held> {
        let (generation, slot) = self.slots.get_mut(id.index)?;
        if *generation != id.generation {
            return None;
        }
        let mut held = slot.take()?;
        held.task.0 = None;
        *generation += 1;
        self.free.push(id.index);
        Some(held)
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = LeaseRef> {
        self.slots.iter().filter_map(|(_, slot)| slot.as_ref()).map(|held| LeaseRef::from(&held.lease))
    }

    /// Abandons the attempts under these leases.
    pub(super) fn abandon(&mut self, lost: &HashSet<LeaseRef>) {
        for (index, (generation, slot)) in self.slots.iter_mut().enumerate() {
            if slot.as_ref().is_some_and(|held| lost.contains(&LeaseRef::from(&held.lease))) {
                *slot = None;
                *generation += 1;
                self.free.push(index);
            }
        }
    }
}
