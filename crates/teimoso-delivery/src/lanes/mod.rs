//! Whose turn it is: fair turns between applications, then lanes, under each lane's allowance (G9, G10).
//!
//! A pure structure that stores share: it knows due times and slots, not rows, leases or locks.
//! Time comes in as an argument.

mod health;
mod limits;
mod queue;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

use crate::model::{Application, Destination, LaneKey, LaneRecord, Millis};
use crate::store::LaneNews;
use health::Health;
pub use health::{FAILURES_SPAN, FAILURES_TO_OPEN, FIRST_PAUSE, LONGEST_PAUSE};
pub use limits::{Limits, MAX_LANES, MAX_URL_LANES};
use queue::DueQueue;
pub use queue::Horizon;

/// Of so many slots one is kept from the second and later attempts of a lane that does not answer (yet) …
pub const RESERVED_FROM_MORE: usize = 8;
/// … and one of so many from its first: what is left is for lanes that answer.
pub const RESERVED_FROM_FIRST: usize = 16;

/// A lane's number within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u32);

/// An entry that was taken: its lane's slot is held until [`Lanes::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken<K> {
    /// Its lane.
    pub lane: LaneId,
    /// When it was due.
    pub due: Millis,
    /// The store's key of the delivery.
    pub key: K,
}

/// A lane that has too little in memory: the store reads on from its horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thirst<K> {
    /// The lane.
    pub lane: LaneId,
    /// What is known already.
    pub horizon: Horizon<K>,
    /// How many entries it should get.
    pub want: usize,
}

/// Where a lane waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing to take, or no slot: a push or a release brings it back.
    Nowhere,
    /// In its application's ring.
    Ring,
    /// Until its head is due or its pause ends.
    Timer(Millis),
    /// Held back by its share of the free slots; looked at again with the next take.
    Share,
}

#[derive(Debug)]
struct Lane<K> {
    key: LaneKey,
    application: usize,
    queue: DueQueue<K>,
    health: Health,
    in_flight: u32,
    /// Its last attempt was answered as it should be.
    answers: bool,
    place: Place,
}

impl<K: Copy + Ord> Lane<K> {
    fn is_idle(&self) -> bool {
        let waits = matches!(self.place, Place::Ring | Place::Share);
        let empty = self.queue.len() == 0 && self.queue.horizon() == Horizon::All;
        empty && !waits && self.in_flight == 0 && self.health.is_default()
    }
}

#[derive(Debug, Default)]
struct Ring {
    lanes: VecDeque<LaneId>,
    queued: bool,
}

/// All lanes of a store.
#[derive(Debug)]
pub struct Lanes<K> {
    limits: Limits,
    /// By number; closed ones leave a hole.
    lanes: Vec<Option<Box<Lane<K>>>>,
    by_key: HashMap<LaneKey, LaneId>,
    rings: Vec<Ring>,
    ring_of: HashMap<Application, usize>,
    turns: VecDeque<usize>,
    timers: BTreeSet<(Millis, LaneId)>,
    by_share: Vec<LaneId>,
    thirsty: BTreeSet<LaneId>,
    in_memory: usize,
    in_flight: usize,
}

impl<K: Copy + Ord + Hash> Lanes<K> {
    /// No lanes yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            lanes: Vec::new(),
            by_key: HashMap::new(),
            rings: Vec::new(),
            ring_of: HashMap::new(),
            turns: VecDeque::new(),
            timers: BTreeSet::new(),
            by_share: Vec::new(),
            thirsty: BTreeSet::new(),
            in_memory: 0,
            in_flight: 0,
        }
    }

    /// How many lanes are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether no lane is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The lane that a delivery to `destination` belongs to: by URL, or by origin past the limit.
    #[must_use]
    pub fn choose(&self, application: &Application, destination: &Destination) -> LaneKey {
        let by_url = LaneKey { application: application.clone(), address: destination.lane.clone() };
        if self.len() < self.limits.max_url_lanes || self.by_key.contains_key(&by_url) {
            return by_url;
        }
        LaneKey { application: application.clone(), address: destination.origin.clone() }
    }

    /// The lane with this key.
    #[must_use]
    pub fn find(&self, key: &LaneKey) -> Option<LaneId> {
        self.by_key.get(key).copied()
    }

    /// A number for a new lane; `None` when there are too many.
    #[must_use]
    pub fn next_id(&self) -> Option<LaneId> {
        if self.len() >= self.limits.max_lanes {
            return None;
        }
        u32::try_from(self.lanes.len()).ok().map(LaneId)
    }

    /// Numbers up to this one were given out in an earlier life.
    pub fn skip_ids(&mut self, last: LaneId) {
        let least = last.0 as usize + 1;
        if self.lanes.len() < least {
            self.lanes.resize_with(least, || None);
        }
    }

    /// Whether this lane is known now.
    #[must_use]
    pub fn is_open(&self, id: LaneId) -> bool {
        self.lane(id).is_some()
    }

    /// Forgets lanes that nothing is known of, once half of [`Limits::max_url_lanes`] are open: nothing
    /// due, nothing in flight, never failing, and not `busy` in the store's eyes.
    pub fn close_idle(&mut self, busy: impl Fn(LaneId) -> bool) -> usize {
        if self.len() < self.limits.max_url_lanes / 2 {
            return 0;
        }
        let idle = |id: &LaneId| self.lane(*id).is_some_and(Lane::is_idle) && !busy(*id);
        let idle: Vec<LaneId> = self.by_key.values().copied().filter(idle).collect();
        for id in &idle {
            self.put(*id, Place::Nowhere);
            if let Some(lane) = self.lanes.get_mut(id.0 as usize).and_then(Option::take) {
                self.by_key.remove(&lane.key);
            }
        }
        idle.len()
    }

    /// Makes a lane known. `horizon` says how much of it is about to be pushed.
    pub fn open(&mut self, id: LaneId, key: LaneKey, record: LaneRecord, horizon: Horizon<K>) {
        let rings = &mut self.rings;
        let application = *self.ring_of.entry(key.application.clone()).or_insert_with(|| {
            rings.push(Ring::default());
            rings.len() - 1
        });
        let index = id.0 as usize;
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, || None);
        }
        self.by_key.insert(key.clone(), id);
        let lane = Lane {
            key,
            application,
            queue: DueQueue::new(horizon),
            health: Health::from_record(record),
            in_flight: 0,
            answers: false,
            place: Place::Nowhere,
        };
        self.lanes[index] = Some(Box::new(lane));
        self.note_thirst(id);
    }

    /// A lane's name.
    #[must_use]
    pub fn key(&self, id: LaneId) -> Option<&LaneKey> {
        self.lane(id).map(|lane| &lane.key)
    }

    /// What is kept of a lane.
    #[must_use]
    pub fn record(&self, id: LaneId) -> LaneRecord {
        self.lane(id).map_or_else(LaneRecord::default, |lane| lane.health.record())
    }

    /// Adds a delivery the store keeps. Beyond the lane's horizon this does nothing.
    pub fn push(&mut self, id: LaneId, due: Millis, key: K, now: Millis) {
        let keep = self.keep();
        let Some(lane) = self.lane_mut(id) else { return };
        let before = lane.queue.len();
        lane.queue.push(due, key, keep);
        let after = lane.queue.len();
        self.in_memory = self.in_memory + after - before;
        self.place(id, now);
    }

    /// Takes an entry back out: cancelled, or made due at another time.
    pub fn remove(&mut self, id: LaneId, due: Millis, key: K, now: Millis) -> bool {
        let Some(lane) = self.lane_mut(id) else { return false };
        let found = lane.queue.remove(due, key);
        self.in_memory -= usize::from(found);
        self.note_thirst(id);
        self.place(id, now);
        found
    }

    /// Takes up to `want` due entries in fair turns, each holding a slot of its lane.
    ///
    /// `free` is the free slots of who asks: a lane holds at most min(its cap, half of what is free and
    /// its own), at least one, and the last slots of all are for lanes that answer: however many lanes
    /// hang, those that work find slots (G9).
    pub fn take(&mut self, now: Millis, want: usize, free: usize) -> Vec<Taken<K>> {
        self.ready_timers(now);
        for id in std::mem::take(&mut self.by_share) {
            self.put(id, Place::Nowhere);
            self.place(id, now);
        }
        let mut taken = Vec::new();
        while taken.len() < want {
            let Some(turn) = self.turns.pop_front() else { break };
            if let Some(id) = self.rings[turn].lanes.pop_front() {
                self.put(id, Place::Nowhere);
                taken.extend(self.take_from(id, now, free.saturating_sub(taken.len())));
            }
            let ring = &mut self.rings[turn];
            ring.queued = !ring.lanes.is_empty();
            if ring.queued {
                self.turns.push_back(turn);
            }
        }
        taken
    }

    /// One entry of a lane whose turn it is; the lane then goes where it waits for its next turn.
    fn take_from(&mut self, id: LaneId, now: Millis, free: usize) -> Option<Taken<K>> {
        let cap = self.limits.per_lane_in_flight;
        let slots = free + self.in_flight;
        let (for_first, for_more) = (slots / RESERVED_FROM_FIRST, slots / RESERVED_FROM_MORE);
        let (no_first, no_more) = (free < for_first, free < for_more);
        let free = u32::try_from(free).unwrap_or(u32::MAX);
        let lane = self.lane_mut(id)?;
        let (due, _) = lane.queue.head()?;
        if due > now || lane.health.not_before().is_some_and(|at| at > now) {
            self.place(id, now);
            return None;
        }
        if lane.in_flight >= lane.health.allowance(cap) {
            return None;
        }
        let share = free.saturating_add(lane.in_flight) / 2;
        let scarce = if lane.in_flight == 0 { no_first } else { no_more };
        if lane.in_flight >= share.max(1) || (scarce && !lane.answers) {
            self.put(id, Place::Share);
            return None;
        }
        let (due, key) = lane.queue.pop()?;
        lane.in_flight += 1;
        self.in_memory -= 1;
        self.in_flight += 1;
        self.note_thirst(id);
        self.place(id, now);
        Some(Taken { lane: id, due, key })
    }

    /// Hears before a release whether the attempt was answered as it should be.
    pub fn hear_answer(&mut self, id: LaneId, answered: bool) {
        if let Some(lane) = self.lane_mut(id) {
            lane.answers = answered;
        }
    }

    /// Frees a slot and hears how it went; returns the lane's record when it must be kept anew.
    pub fn release(&mut self, id: LaneId, news: LaneNews, now: Millis) -> Option<LaneRecord> {
        let cap = self.limits.per_lane_in_flight;
        let lane = self.lane_mut(id)?;
        let held = lane.in_flight > 0;
        lane.in_flight = lane.in_flight.saturating_sub(1);
        let changed = lane.health.hear(news, now, cap);
        self.in_flight -= usize::from(held);
        self.place(id, now);
        changed
    }

    /// When something in memory becomes takeable that is not now; `None` when nothing is.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Whether a take right now could give something.
    #[must_use]
    pub fn has_ready(&self, now: Millis) -> bool {
        !self.turns.is_empty() || self.timers.first().is_some_and(|(at, _)| *at <= now)
    }

    /// When the longest overdue entry was due, pauses counted in.
    #[must_use]
    pub fn oldest_due(&self) -> Option<Millis> {
        let due = |lane: &Lane<K>| {
            lane.queue.head().map(|(due, _)| lane.health.not_before().unwrap_or(due).max(due))
        };
        self.lanes.iter().filter_map(|lane| due(lane.as_deref()?)).min()
    }

    /// Up to `most` lanes that should be read on, and how far; each is named once until it is refilled.
    pub fn take_thirsty(&mut self, most: usize) -> Vec<Thirst<K>> {
        let lanes: Vec<LaneId> = self.thirsty.iter().copied().take(most).collect();
        lanes.into_iter().filter_map(|lane| self.take_thirst(lane)).collect()
    }

    /// How far this lane should be read on, if it should.
    pub fn take_thirst(&mut self, lane: LaneId) -> Option<Thirst<K>> {
        if !self.thirsty.remove(&lane) {
            return None;
        }
        let horizon = self.lane(lane)?.queue.horizon();
        Some(Thirst { lane, horizon, want: self.keep() })
    }

    /// Every lane's number.
    pub fn ids(&self) -> impl Iterator<Item = LaneId> + use<K> {
        (0..self.lanes.len()).filter_map(|index| u32::try_from(index).ok().map(LaneId))
    }

    /// Whether any lane should be read on.
    #[must_use]
    pub fn is_thirsty(&self) -> bool {
        !self.thirsty.is_empty()
    }

    /// Takes what the store read beyond a lane's horizon, in answer to `thirst`. `read_to` is the last
    /// row read, `None` when the end was reached. Ignored, and asked for again, when the horizon has
    /// moved since.
    pub fn refill(
        &mut self,
        thirst: &Thirst<K>,
        entries: &[(Millis, K)],
        read_to: Option<(Millis, K)>,
        now: Millis,
    ) {
        let id = thirst.lane;
        let Some(lane) = self.lane_mut(id) else { return };
        if lane.queue.horizon() == thirst.horizon {
            lane.queue.refill(entries, read_to);
            self.in_memory += entries.len();
        }
        self.note_thirst(id);
        self.place(id, now);
    }

    fn lane(&self, id: LaneId) -> Option<&Lane<K>> {
        self.lanes.get(id.0 as usize)?.as_deref()
    }

    fn lane_mut(&mut self, id: LaneId) -> Option<&mut Lane<K>> {
        self.lanes.get_mut(id.0 as usize)?.as_deref_mut()
    }

    fn keep(&self) -> usize {
        let crowded = self.in_memory > self.limits.memory_total;
        if crowded {
            Limits::CROWDED_LANE.min(self.limits.memory_per_lane)
        } else {
            self.limits.memory_per_lane
        }
    }

    fn note_thirst(&mut self, id: LaneId) {
        let low = self.keep() / 4;
        let Some(lane) = self.lane(id) else { return };
        if lane.queue.horizon() != Horizon::All && lane.queue.len() <= low {
            self.thirsty.insert(id);
        }
    }

    fn ready_timers(&mut self, now: Millis) {
        while let Some((at, id)) = self.timers.first().copied() {
            if at > now {
                break;
            }
            self.put(id, Place::Nowhere);
            self.place(id, now);
        }
    }

    /// Puts a lane where it has to wait. One that is in its ring stays there: its turn looks again.
    fn place(&mut self, id: LaneId, now: Millis) {
        let cap = self.limits.per_lane_in_flight;
        let Some(lane) = self.lane(id) else { return };
        if lane.place == Place::Ring || lane.place == Place::Share {
            return;
        }
        let full = lane.in_flight >= lane.health.allowance(cap);
        let place = match lane.queue.head() {
            None => Place::Nowhere,
            Some(_) if full => Place::Nowhere,
            Some((due, _)) => match lane.health.not_before().unwrap_or(due).max(due) {
                at if at > now => Place::Timer(at),
                _ => Place::Ring,
            },
        };
        self.put(id, place);
    }

    fn put(&mut self, id: LaneId, place: Place) {
        let Some(lane) = self.lane_mut(id) else { return };
        let (before, application) = (std::mem::replace(&mut lane.place, place), lane.application);
        if before == place {
            return;
        }
        if let Place::Timer(at) = before {
            self.timers.remove(&(at, id));
        }
        match place {
            Place::Nowhere => {}
            Place::Timer(at) => drop(self.timers.insert((at, id))),
            Place::Share => self.by_share.push(id),
            Place::Ring => {
                let ring = &mut self.rings[application];
                ring.lanes.push_back(id);
                if !std::mem::replace(&mut ring.queued, true) {
                    self.turns.push_back(application);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
