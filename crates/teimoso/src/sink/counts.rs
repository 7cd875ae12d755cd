//! How often each `webhook-id` came to each counted route, in bounded memory: the oldest ids are forgotten.
//! Deliberately absent: what the counts mean, which is [`super::route`]'s business.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// How many (path, `webhook-id`) pairs are told apart; beyond it the first seen is forgotten.
pub const COUNTED_IDS_MAX: usize = 100_000;

/// Counts per path and `webhook-id`. Requests without an id share one count per path (S2.11).
///
/// A pair is kept as a 64-bit hash under a random key, so an entry costs the same however long the id is; among
/// the ids kept, the chance that any two collide is below one in a billion.
#[derive(Debug)]
pub struct Counts {
    hasher: RandomState,
    seen: HashMap<u64, u32>,
    order: VecDeque<u64>,
    limit: usize,
}

impl Counts {
    /// An empty table of at most `limit` pairs, never fewer than one.
    #[must_use]
    pub fn new(limit: usize) -> Counts {
        let hasher = RandomState::new();
        Counts { hasher, seen: HashMap::new(), order: VecDeque::new(), limit: limit.max(1) }
    }

    /// Counts one request and says how many came before it. Saturates.
    pub fn count(&mut self, path: &str, webhook_id: Option<&[u8]>) -> u32 {
        let key = self.hasher.hash_one((path, webhook_id));
        if let Some(seen) = self.seen.get_mut(&key) {
            let earlier = *seen;
            *seen = earlier.saturating_add(1);
            return earlier;
        }
        if self.order.len() >= self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.seen.insert(key, 1);
        self.order.push_back(key);
        0
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.seen.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_its_own_count_per_path() {
        let mut counts = Counts::new(10);
        assert_eq!(counts.count("/teimoso", Some(b"a")), 0);
        assert_eq!(counts.count("/teimoso", Some(b"b")), 0);
        assert_eq!(counts.count("/teimoso", Some(b"a")), 1);
        assert_eq!(counts.count("/fail/2", Some(b"a")), 0);
    }

    #[test]
    fn s2_11_requests_without_an_id_share_one_count() {
        let mut counts = Counts::new(10);
        let earlier: Vec<_> = (0..3).map(|_| counts.count("/teimoso", None)).collect();
        assert_eq!(earlier, [0, 1, 2]);
        assert_eq!(counts.count("/teimoso", Some(b"")), 0, "an empty id is an id");
    }

    #[test]
    fn the_first_seen_id_is_forgotten_at_the_limit() {
        let mut counts = Counts::new(2);
        for id in [b"a", b"b", b"c"] {
            assert_eq!(counts.count("/teimoso", Some(id)), 0);
        }
        assert_eq!(counts.seen.len(), 2);
        assert_eq!(counts.count("/teimoso", Some(b"c")), 1);
        assert_eq!(counts.count("/teimoso", Some(b"a")), 0);
    }

    #[test]
    fn clearing_starts_again() {
        let mut counts = Counts::new(2);
        counts.count("/teimoso", None);
        counts.clear();
        assert_eq!(counts.count("/teimoso", None), 0);
    }
}
