//! One lane's due deliveries in due order, of which only the near part is in memory.

use std::collections::VecDeque;

use crate::model::Millis;

/// How far a lane's order is known in memory. Everything up to the horizon is here, everything beyond
/// it only in the store, so nothing is found twice and nothing is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Horizon<K> {
    /// Nothing was read yet.
    Nothing,
    /// Up to and including this entry.
    UpTo(Millis, K),
    /// Everything.
    All,
}

impl<K: Ord + Copy> Horizon<K> {
    fn covers(self, due: Millis, key: K) -> bool {
        match self {
            Self::Nothing => false,
            Self::UpTo(last_due, last_key) => (due, key) <= (last_due, last_key),
            Self::All => true,
        }
    }
}

/// Sorted by (due, key).
#[derive(Debug)]
pub(super) struct DueQueue<K> {
    near: VecDeque<(Millis, K)>,
    horizon: Horizon<K>,
}

impl<K: Ord + Copy> DueQueue<K> {
    pub(super) fn new(horizon: Horizon<K>) -> Self {
        Self { near: VecDeque::new(), horizon }
    }

    pub(super) fn head(&self) -> Option<(Millis, K)> {
        self.near.front().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.near.len()
    }

    pub(super) fn horizon(&self) -> Horizon<K> {
        self.horizon
    }

    pub(super) fn pop(&mut self) -> Option<(Millis, K)> {
        self.near.pop_front()
    }

    /// Adds an entry the store already keeps; beyond the horizon the store's row is enough. Fresh
    /// deliveries come in due order, so the search starts at the end.
    pub(super) fn push(&mut self, due: Millis, key: K, keep: usize) {
        if !self.horizon.covers(due, key) {
            return;
        }
        let entry = (due, key);
        if self.near.back().is_none_or(|last| *last < entry) {
            self.near.push_back(entry);
        } else if let Err(at) = self.near.binary_search(&entry) {
            self.near.insert(at, entry);
        }
        if self.near.len() > keep.saturating_mul(2) {
            self.near.truncate(keep.max(1));
            self.horizon = self.near.back().map_or(Horizon::Nothing, |(due, key)| Horizon::UpTo(*due, *key));
        }
    }

    pub(super) fn remove(&mut self, due: Millis, key: K) -> bool {
        let found = self.near.binary_search(&(due, key));
        found.is_ok_and(|at| self.near.remove(at).is_some())
    }

    /// Takes what the store read beyond the horizon, in order. `read_to` is the last row read, which
    /// may be one that is in flight and therefore not among `entries`; `None` means the end was reached.
    pub(super) fn refill(&mut self, entries: &[(Millis, K)], read_to: Option<(Millis, K)>) {
        self.near.extend(entries);
        self.horizon = read_to.map_or(Horizon::All, |(due, key)| Horizon::UpTo(due, key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn at(ms: u64) -> Millis {
        Millis::new(ms)
    }

    proptest! {
        /// Against a store that keeps every entry: whatever is popped is the store's smallest.
        #[test]
        fn what_comes_out_is_always_the_smallest_that_is_kept(
            ops in proptest::collection::vec((0u64..50, 0u32..1000, 0u8..4), 1..400),
            keep in 1usize..6,
        ) {
            let (mut queue, mut kept) = (DueQueue::new(Horizon::Nothing), BTreeSet::new());
            for (due, key, op) in ops {
                match op {
                    0 | 1 => {
                        if kept.insert((at(due), key)) {
                            queue.push(at(due), key, keep);
                        }
                    }
                    2 => {
                        prop_assert_eq!(queue.head().is_some() && queue.remove(at(due), key),
                            queue.horizon().covers(at(due), key) && kept.contains(&(at(due), key)));
                        kept.remove(&(at(due), key));
                    }
                    _ => {
                        if queue.head().is_none() {
                            let from = queue.horizon();
                            let beyond: Vec<_> =
                                kept.iter().copied().filter(|(d, k)| !from.covers(*d, *k)).take(keep).collect();
                            let end = (beyond.len() == keep).then(|| *beyond.last().unwrap());
                            queue.refill(&beyond, end);
                        }
                        prop_assert_eq!(queue.pop(), kept.pop_first());
                    }
                }
                prop_assert!(queue.len() <= keep * 2);
            }
        }
    }
}
