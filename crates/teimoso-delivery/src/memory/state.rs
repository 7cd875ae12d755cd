//! The store's whole state, and the verbs of the hot path: accept, claim, settle, extend.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::names::Names;
use super::replays::ReplayRow;
use super::rows::{DeliveryRow, EventRow, LeaseRow};
use crate::lanes::{Horizon, LaneId, Lanes, Limits, Taken};
use crate::machine::{Recovery, Resting, recover, resting};
use crate::model::{
    DeliveryState, Destination, Event, EventId, IdSpace, Key, KeyClock, LaneKey, LaneRecord, Lease, Millis,
    Mode, NewEvent, NextWhy, Nonce, Progress,
};
use crate::store::{
    Accepted, Claim, ClaimRequest, Claimed, Counts, LaneNews, LanePause, LeaseRef, Next, Rejection,
    Settlement,
};

pub(super) struct State {
    pub(super) ids: IdSpace,
    pub(super) keys: KeyClock,
    pub(super) events: BTreeMap<Key, EventRow>,
    pub(super) deliveries: BTreeMap<Key, DeliveryRow>,
    pub(super) names: Names,
    pub(super) lanes: Lanes<Key>,
    pub(super) counts: Counts,
    pub(super) payload_bytes: u64,
    pub(super) replays: BTreeMap<Key, ReplayRow>,
    pub(super) closed: bool,
    /// The salt of the store that is moving in, until it is all here.
    pub(super) importing: Option<u64>,
    by_expiry: BTreeSet<(Millis, Key)>,
    by_nonce: HashMap<Nonce, Vec<Key>>,
    news: bool,
}

impl State {
    pub(super) fn new(salt: u64) -> Self {
        let limits = Limits { memory_per_lane: usize::MAX, memory_total: usize::MAX, ..Limits::default() };
        Self {
            ids: IdSpace::new(salt),
            keys: KeyClock::after(None),
            events: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            names: Names::default(),
            lanes: Lanes::new(limits),
            counts: Counts::default(),
            payload_bytes: 0,
            replays: BTreeMap::new(),
            closed: false,
            importing: None,
            by_expiry: BTreeSet::new(),
            by_nonce: HashMap::new(),
            news: false,
        }
    }

    /// Whether something may have become claimable since a claim last took all there was.
    pub(super) const fn has_news(&self) -> bool {
        self.news || self.closed
    }

    /// Something may have become claimable, or due earlier than the last claim was told.
    pub(super) const fn announce(&mut self) {
        self.news = true;
    }

    // ---- accept

    pub(super) fn accept(
        &mut self,
        offered: &NewEvent,
        at_most_once: bool,
        now: Millis,
    ) -> Result<Accepted, Rejection> {
        if let Some(key) = self.names.find(offered, now)? {
            return Ok(self.accepted(key, true));
        }
        if offered.mode == Mode::AtMostOnce && !at_most_once {
            return Err(Rejection::ModeUnavailable);
        }
        let destination = offered.destination.as_ref();
        let lane = destination.map(|to| self.lane_for(offered, to)).transpose()?;
        let key = self.keys.next(now);
        let id = match &offered.id {
            Some(EventId::Named(text)) => EventId::Named(text.clone()),
            _ => self.ids.event(key),
        };
        let event = Event::accepted(offered, id, now);
        self.payload_bytes += event.payload.len() as u64;
        self.names.remember(offered, key, now);
        self.events.insert(key, EventRow { event: event.into(), deliveries: Vec::new() });
        if let Some((lane, to)) = lane.zip(destination) {
            self.fan_out(key, lane, to, offered, now);
        }
        Ok(self.accepted(key, false))
    }

    fn lane_for(&mut self, offered: &NewEvent, to: &Destination) -> Result<LaneId, Rejection> {
        let key: LaneKey = self.lanes.choose(&offered.application, to);
        if let Some(lane) = self.lanes.find(&key) {
            return Ok(lane);
        }
        let lane = self.lanes.next_id().ok_or(Rejection::TooManyLanes)?;
        self.lanes.open(lane, key, LaneRecord::default(), Horizon::All);
        Ok(lane)
    }

    fn fan_out(&mut self, event: Key, lane: LaneId, to: &Destination, offered: &NewEvent, now: Millis) {
        let key = self.keys.next(now);
        let (due, why) = match offered.deliver_at {
            Some(at) if at > now => (at, NextWhy::DeliverAt),
            _ => (now, NextWhy::First),
        };
        let row = DeliveryRow {
            event,
            lane,
            url: to.url.clone(),
            created_at: now,
            due,
            state: DeliveryState::Pending,
            progress: Progress::fresh(offered.mode, why),
            lease: None,
            cancel_wished: false,
            reason: None,
            finished_at: None,
            attempts: Vec::new(),
        };
        self.deliveries.insert(key, row);
        if let Some(row) = self.events.get_mut(&event) {
            row.deliveries.push(key);
        }
        self.counts.accepted += 1;
        self.counts.pending += 1;
        self.lanes.push(lane, due, key, now);
        self.announce();
    }

    fn accepted(&self, key: Key, replayed: bool) -> Accepted {
        let row = self.events.get(&key);
        let event = row.map_or_else(|| self.ids.event(key), |row| row.event.id.clone());
        let keys = row.into_iter().flat_map(|row| &row.deliveries);
        let standing = |key: &Key| Some((self.ids.delivery(*key), self.deliveries.get(key)?.state));
        Accepted { event, deliveries: keys.filter_map(standing).collect(), replayed }
    }

    // ---- claim

    pub(super) fn claim(&mut self, request: &ClaimRequest) -> Claim {
        self.run_replays(request.now);
        self.recover_expired(request.now);
        if let Some(keys) = self.by_nonce.get(&request.nonce).cloned() {
            let taken = keys.iter().filter_map(|key| self.claimed(*key, request.nonce)).collect();
            return Claim { taken, wake_at: self.wake_at() };
        }
        let taken = self.lanes.take(request.now, request.want, request.free);
        if taken.len() < request.want {
            self.news = false;
        }
        let taken = taken.iter().filter_map(|taken| self.lease(taken, request)).collect();
        Claim { taken, wake_at: self.wake_at() }
    }

    fn lease(&mut self, taken: &Taken<Key>, request: &ClaimRequest) -> Option<Claimed> {
        let row = self.deliveries.get_mut(&taken.key)?;
        row.lease = Some(LeaseRow { nonce: request.nonce, until: request.lease_until });
        row.go(DeliveryState::InFlight, &mut self.counts);
        self.by_expiry.insert((request.lease_until, taken.key));
        self.by_nonce.entry(request.nonce).or_default().push(taken.key);
        self.claimed(taken.key, request.nonce)
    }

    fn claimed(&self, key: Key, nonce: Nonce) -> Option<Claimed> {
        let row = self.deliveries.get(&key)?;
        Some(Claimed {
            lease: Lease::grant(self.ids.delivery(key), nonce),
            event: self.events.get(&row.event)?.event.clone(),
            url: row.url.clone(),
            lane: self.lanes.key(row.lane)?.address.clone(),
            progress: row.progress,
            due: row.due,
        })
    }

    /// When something changes by itself: a due time, a lane's pause, a lease's end, a replay's turn.
    fn wake_at(&self) -> Option<Millis> {
        let expiry = self.by_expiry.first().map(|(until, _)| *until);
        let replay = self.replays.values().filter_map(ReplayRow::next_turn).min();
        self.lanes.next_wake().into_iter().chain(expiry).chain(replay).min()
    }

    fn recover_expired(&mut self, now: Millis) {
        while self.by_expiry.first().is_some_and(|(until, _)| *until <= now) {
            let Some((_, key)) = self.by_expiry.pop_first() else { return };
            let Some((lane, progress)) = self.end_lease(key) else { continue };
            self.lanes.release(lane, LaneNews::Neutral, now);
            let (next, progress) = match recover(progress) {
                Recovery::Due(progress) => (Next::Released, progress),
                Recovery::Dead(reason, progress) => (Next::Dead(reason), progress),
            };
            self.rest(key, next, progress, now);
        }
    }

    // ---- settle, extend

    pub(super) fn settle(&mut self, batch: Vec<Settlement>) -> Vec<LanePause> {
        batch.into_iter().filter_map(|settlement| self.settle_one(settlement)).collect()
    }

    fn settle_one(&mut self, settlement: Settlement) -> Option<LanePause> {
        let Settlement { lease, next, progress, record, news, at } = settlement;
        let key = self.fenced(&LeaseRef::from(&lease))?;
        let (lane, _) = self.end_lease(key)?;
        if let (Some(row), Some(record)) = (self.deliveries.get_mut(&key), record) {
            row.attempts.push(*record);
        }
        self.lanes.hear_answer(lane, matches!(next, Next::Delivered));
        let pause = self.release(lane, news, at);
        self.rest(key, next, progress, at);
        pause
    }

    /// Frees the lane's slot; says so when the lane is paused by it.
    fn release(&mut self, lane: LaneId, news: LaneNews, at: Millis) -> Option<LanePause> {
        let before = self.lanes.record(lane).not_before;
        let record = self.lanes.release(lane, news, at)?;
        let (until, why) = record.not_before.filter(|_| record.not_before != before)?;
        Some(LanePause { lane: self.lanes.key(lane)?.address.clone(), until, why })
    }

    pub(super) fn extend(&mut self, leases: Vec<LeaseRef>, until: Millis) -> Vec<LeaseRef> {
        leases.into_iter().filter(|lease| !self.extend_one(lease, until)).collect()
    }

    fn extend_one(&mut self, lease: &LeaseRef, until: Millis) -> bool {
        let Some(key) = self.fenced(lease) else { return false };
        let Some(held) = self.deliveries.get_mut(&key).and_then(|row| row.lease.as_mut()) else {
            return false;
        };
        self.by_expiry.remove(&(held.until, key));
        held.until = until;
        self.by_expiry.insert((until, key))
    }

    /// The delivery of a lease that still holds (G5).
    fn fenced(&self, lease: &LeaseRef) -> Option<Key> {
        let key = self.ids.delivery_key(lease.delivery)?;
        let held = self.deliveries.get(&key)?.lease?;
        (held.nonce == lease.nonce).then_some(key)
    }

    /// Takes the lease away; the delivery has to come to rest next.
    fn end_lease(&mut self, key: Key) -> Option<(LaneId, Progress)> {
        let row = self.deliveries.get_mut(&key)?;
        let held = row.lease.take()?;
        self.by_expiry.remove(&(held.until, key));
        if let Some(keys) = self.by_nonce.get_mut(&held.nonce) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.by_nonce.remove(&held.nonce);
            }
        }
        Some((row.lane, row.progress))
    }

    /// Where a delivery goes when nobody works on it any more.
    fn rest(&mut self, key: Key, next: Next, progress: Progress, at: Millis) {
        let Some(row) = self.deliveries.get_mut(&key) else { return };
        let cancel_wished = std::mem::take(&mut row.cancel_wished);
        row.progress = progress;
        match resting(next, row.due, progress.why, cancel_wished) {
            Resting::Due(due, why) => return self.make_due(key, due, why, at),
            Resting::Delivered => row.go(DeliveryState::Delivered, &mut self.counts),
            Resting::Cancelled => row.go(DeliveryState::Cancelled, &mut self.counts),
            Resting::Dead(reason) => {
                row.reason = Some(reason);
                row.go(DeliveryState::Dead, &mut self.counts);
            }
        }
        row.finished_at = Some(at);
    }

    /// Puts a delivery back into its lane.
    pub(super) fn make_due(&mut self, key: Key, due: Millis, why: NextWhy, now: Millis) {
        let Some(row) = self.deliveries.get_mut(&key) else { return };
        row.due = due;
        row.progress.why = why;
        row.reason = None;
        row.finished_at = None;
        let state = row.progress.resting_state();
        row.go(state, &mut self.counts);
        self.lanes.push(row.lane, due, key, now);
    }
}
