//! What the writer, the claims and the settlements share in memory: the due index, leases, fresh
//! events, counters. One mutex, held for moments, never across a statement.
//!
//! Leases live here only: after a crash everything unsettled is due again. The `leased` table is their
//! shadow on disk, written with the commits that happen anyway, so that recoveries can be counted (G6).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use teimoso_delivery::lanes::{LaneId, Lanes, Limits, Thirst};
use teimoso_delivery::model::{Event, Key, Millis, Nonce, Progress};
use teimoso_delivery::store::Counts;

/// Payload bytes of fresh events kept for their first claim.
const FRESH_BYTES: usize = 16 << 20;
/// A fresh event that is due later than this is read back from the file instead.
const FRESH_HORIZON: Duration = Duration::from_secs(2);
/// An event that was not claimed within this makes room for newer ones: its lane is paused or busy.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// What an event costs besides its payload, roughly.
const FRESH_OVERHEAD: usize = 512;

/// A delivery somebody works on, from its claim until its settlement is durable.
#[derive(Debug)]
pub(crate) struct Leased {
    pub nonce: Nonce,
    pub until: Millis,
    pub lane: LaneId,
    pub due: Millis,
    /// `None` until it was read back.
    pub progress: Option<Progress>,
    /// It has a row in `leased`.
    pub journaled: bool,
    /// Its settlement was handed over; nobody else may settle it.
    pub settling: bool,
    /// A person asked to cancel it.
    pub cancel_wished: bool,
}

/// A delivery whose event need not be read back.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    pub event: Arc<Event>,
    pub url: Arc<str>,
    pub progress: Progress,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Core {
    pub lanes: Lanes<Key>,
    pub leases: HashMap<Key, Leased, RandomState>,
    pub counts: Counts,
    /// Claimed since the last commit and perhaps not yet in `leased`.
    pub journal: Vec<Key>,
    /// Let go without an attempt: whatever row they have in `leased` goes with the next commit.
    pub unjournal: Vec<Key>,
    /// Lanes that ran dry are being read on: what is missing here comes with the commit under way.
    pub refilling: bool,
    /// The nonce of the last claim: repeating it answers the same leases.
    pub last_claim: Option<Nonce>,
    /// No lease ends before this; it lags behind renewals, and is found anew when it has passed.
    pub earliest_lease_end: Millis,
    fresh: HashMap<Key, Fresh, RandomState>,
    fresh_bytes: usize,
    /// When each fresh event was kept, oldest first; those claimed meanwhile are skipped.
    fresh_since: VecDeque<(Millis, Key)>,
}

impl Core {
    pub(crate) fn new(counts: Counts, limits: Limits) -> Self {
        Self {
            lanes: Lanes::new(limits),
            leases: HashMap::default(),
            counts,
            journal: Vec::new(),
            unjournal: Vec::new(),
            refilling: false,
            last_claim: None,
            earliest_lease_end: Millis::MAX,
            fresh: HashMap::default(),
            fresh_bytes: 0,
            fresh_since: VecDeque::new(),
        }
    }

    /// Keeps a just committed event for its first claim, while there is room: the oldest are due first,
    /// unless they have waited too long already.
    pub(crate) fn keep_fresh(&mut self, key: Key, fresh: Fresh, due: Millis, now: Millis) {
        self.forget_stale(now);
        let bytes = fresh.event.payload.len() + FRESH_OVERHEAD;
        if self.fresh_bytes + bytes <= FRESH_BYTES && due <= now.after(FRESH_HORIZON) {
            self.fresh_bytes += bytes;
            self.fresh.insert(key, fresh);
            self.fresh_since.push_back((now, key));
        }
    }

    fn forget_stale(&mut self, now: Millis) {
        while let Some((since, key)) = self.fresh_since.front().copied() {
            if self.fresh.contains_key(&key) && now.since(since) < FRESH_FOR {
                return;
            }
            self.fresh_since.pop_front();
            drop(self.take_fresh(key));
        }
    }

    /// Takes what was read beyond a lane's horizon, without what somebody works on already.
    pub(crate) fn refill(&mut self, thirst: &Thirst<Key>, mut entries: Vec<(Millis, Key)>, now: Millis) {
        let end = entries.last().copied().filter(|_| entries.len() == thirst.want);
        entries.retain(|(_, key)| !self.leases.contains_key(key));
        self.lanes.refill(thirst, &entries, end, now);
    }

    pub(crate) fn take_fresh(&mut self, key: Key) -> Option<Fresh> {
        let fresh = self.fresh.remove(&key)?;
        self.fresh_bytes -= fresh.event.payload.len() + FRESH_OVERHEAD;
        Some(fresh)
    }

    /// Forgets lanes that nothing is known of. They stay in the file, and are opened again when needed.
    pub(crate) fn close_idle_lanes(&mut self) {
        let leased: HashSet<LaneId> = self.leases.values().map(|leased| leased.lane).collect();
        self.lanes.close_idle(|lane| leased.contains(&lane));
    }

    /// The counters with what is leased counted as in flight.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = self.counts;
        for progress in self.leases.values().filter_map(|leased| leased.progress) {
            counts.in_flight += 1;
            let resting = resting_count(&mut counts, &progress);
            *resting = resting.saturating_sub(1);
        }
        counts
    }
}

/// The counter of the state a delivery rests in.
pub(crate) fn resting_count<'a>(counts: &'a mut Counts, progress: &Progress) -> &'a mut u64 {
    if progress.attempts == 0 { &mut counts.pending } else { &mut counts.scheduled }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teimoso_delivery::model::{EventId, KeyClock, Mode, NextWhy};
    use teimoso_delivery::testkit::offer;

    fn fresh(bytes: usize, now: Millis) -> Fresh {
        let offered = offer("http://a/").payload(vec![0; bytes]).event();
        let id = EventId::named("x").unwrap();
        Fresh {
            event: Arc::new(Event::accepted(&offered, id, now)),
            url: "http://a/".into(),
            progress: Progress::fresh(Mode::AtLeastOnce, NextWhy::First),
        }
    }

    #[test]
    fn g9_a_lane_that_claims_nothing_does_not_fill_the_memory_for_all() {
        let (mut core, keys) = (Core::new(Counts::default(), Limits::default()), KeyClock::after(None));
        let start = Millis::new(1_000_000);
        let stuck: Vec<Key> = (0..20).map(|_| keys.next(start)).collect();
        for key in &stuck {
            core.keep_fresh(*key, fresh(1 << 20, start), start, start);
        }
        assert_eq!(core.fresh.len(), 15, "16 MiB with what each costs besides");
        let (later, key) = (start.after(FRESH_FOR), keys.next(start));
        core.keep_fresh(key, fresh(1 << 20, later), later, later);
        assert!(core.take_fresh(key).is_some() && core.take_fresh(stuck[0]).is_none());
        assert_eq!((core.fresh_bytes, core.fresh_since.len()), (0, 1));
    }
}
