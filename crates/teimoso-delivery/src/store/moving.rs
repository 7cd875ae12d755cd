//! What moves from one store to another: everything a store keeps, as parcels that any store can write and read.
//!
//! A store that moves is at rest: nobody delivers from it. Its parcels come in this order: the origin, lanes, events
//! with all that belongs to them, names, replay jobs, the end. Each may be handed over twice; the second time changes
//! nothing, so that a move that was cut off is begun again from the front. Deliberately absent: how a store keeps them.

use sha2::{Digest, Sha256};

use super::{ReplayFilter, ReplayState};
use crate::machine::{Recovery, recover};
use crate::model::{
    Application, AttemptRecord, DeadReason, DeliveryState, Event, Key, LaneKey, LaneRecord, Millis, Progress,
};

/// Something that moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parcel {
    /// The first one: whose move it is.
    Origin(Origin),
    /// A lane of which something is remembered.
    Lane(LaneParcel),
    /// An event with its deliveries and their attempts.
    Event(Box<EventParcel>),
    /// A name that is still recognised.
    Name(NameParcel),
    /// A replay job.
    Replay(ReplayParcel),
    /// The last one.
    End(Closing),
}

/// Whose move it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// What the store's ids are made with: the new store gives out the same ones for the same keys.
    pub salt: u64,
}

/// What is known when everything else has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closing {
    /// Deliveries that were accepted and expunged: they count, and nothing else is left of them.
    pub expunged: u64,
    /// The largest key that was ever given out; no key is given out twice.
    pub last_key: Option<Key>,
}

/// A lane and what is remembered of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneParcel {
    /// Its name.
    pub key: LaneKey,
    /// Its pause and its allowance.
    pub record: LaneRecord,
}

/// An event and all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventParcel {
    /// Its place in time, of which its id is made.
    pub key: Key,
    /// The event; its `url` is where its deliveries go.
    pub event: Event,
    /// Its deliveries; their keys follow the event's.
    pub deliveries: Vec<DeliveryParcel>,
}

/// A delivery at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryParcel {
    /// Its place in time, of which its id is made.
    pub key: Key,
    /// Where it waits.
    pub lane: LaneKey,
    /// Any but in flight.
    pub state: DeliveryState,
    /// What is kept of it between attempts.
    pub progress: Progress,
    /// When it is or was due.
    pub due: Millis,
    /// Why it is dead.
    pub reason: Option<DeadReason>,
    /// When it ended.
    pub finished_at: Option<Millis>,
    /// Its settled attempts, oldest first.
    pub attempts: Vec<AttemptRecord>,
}

impl DeliveryParcel {
    /// The same as if whoever held it were gone: an attempt under way is recovered (G3, G4, G6), and a cancellation
    /// that was wished meanwhile is honoured.
    #[must_use]
    pub fn at_rest(mut self, cancel_wished: bool, now: Millis) -> Self {
        if self.state != DeliveryState::InFlight {
            return self;
        }
        match recover(self.progress) {
            Recovery::Dead(reason, progress) => {
                self.progress = progress;
                self.reason = Some(reason);
                self.end(DeliveryState::Dead, now)
            }
            Recovery::Due(progress) => {
                self.progress = progress;
                if cancel_wished {
                    return self.end(DeliveryState::Cancelled, now);
                }
                self.state = progress.resting_state();
                self
            }
        }
    }

    fn end(mut self, state: DeliveryState, now: Millis) -> Self {
        self.state = state;
        self.finished_at = Some(now);
        self
    }
}

/// A name of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameParcel {
    /// Its scope.
    pub application: Application,
    /// The name.
    pub name: EventName,
    /// The request it stands for.
    pub fingerprint: [u8; 16],
    /// The event's key.
    pub event: Key,
    /// The caller's id of that event, if it brought one.
    pub event_id: Option<std::sync::Arc<str>>,
    /// Recognised until then at least.
    pub until: Millis,
}

/// The two kinds of names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventName {
    /// A caller's own id.
    Id(std::sync::Arc<str>),
    /// An idempotency key, as its [`key_digest`]: no store needs to keep the key itself.
    Key([u8; 16]),
}

/// The digest of a name that stores keep: the first half of SHA-256 over application, kind and text.
#[must_use]
pub fn name_digest(application: &Application, kind: u8, text: &str) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update(application.as_str());
    hash.update([0, kind]);
    hash.update(text);
    let full = hash.finalize();
    let mut short = [0; 16];
    short.copy_from_slice(&full[..16]);
    short
}

/// The digest under which an idempotency key is kept.
#[must_use]
pub fn key_digest(application: &Application, key: &str) -> [u8; 16] {
    name_digest(application, 2, key)
}

/// The digest under which a caller's event id may be kept.
#[must_use]
pub fn id_digest(application: &Application, id: &str) -> [u8; 16] {
    name_digest(application, 1, id)
}

/// A replay job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayParcel {
    /// Its place in time, of which its id is made.
    pub key: Key,
    /// Where it stands.
    pub state: ReplayState,
    /// Which dead letters it takes.
    pub filter: ReplayFilter,
    /// Deliveries per second.
    pub rate: u32,
    /// How many matched when it started.
    pub estimated: u64,
    /// How many were made due.
    pub done: u64,
    /// How many could not be.
    pub failed: u64,
    /// When it was ordered.
    pub created_at: Millis,
    /// When it ended.
    pub finished_at: Option<Millis>,
    /// Of one that runs: the last delivery it has seen.
    pub seen: Option<Key>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Mode, NextWhy};

    fn held(mode: Mode, recoveries: u8) -> DeliveryParcel {
        DeliveryParcel {
            key: Key::first_at(Millis::new(5)),
            lane: LaneKey { application: Application::default(), address: "http://a/".into() },
            state: DeliveryState::InFlight,
            progress: Progress { recoveries, attempts: 1, ..Progress::fresh(mode, NextWhy::Retry) },
            due: Millis::new(7),
            reason: None,
            finished_at: None,
            attempts: Vec::new(),
        }
    }

    #[test]
    fn what_was_in_flight_moves_as_it_would_be_recovered() {
        let now = Millis::new(9);
        let ends = |parcel: DeliveryParcel, wished| {
            let moved = parcel.at_rest(wished, now);
            (moved.state, moved.reason, moved.finished_at, moved.progress.recoveries)
        };
        let once = ends(held(Mode::AtLeastOnce, 0), false);
        assert_eq!(once, (DeliveryState::Scheduled, None, None, 1));
        let wished = ends(held(Mode::AtLeastOnce, 0), true);
        assert_eq!(wished, (DeliveryState::Cancelled, None, Some(now), 1));
        let poison = ends(held(Mode::AtLeastOnce, 2), false);
        assert_eq!(poison, (DeliveryState::Dead, Some(DeadReason::Poison), Some(now), 3));
        let unknown = ends(held(Mode::AtMostOnce, 0), false);
        assert_eq!(unknown, (DeliveryState::Dead, Some(DeadReason::Ambiguous), Some(now), 1));
        let resting = DeliveryParcel { state: DeliveryState::Delivered, ..held(Mode::AtLeastOnce, 0) };
        assert_eq!(resting.clone().at_rest(true, now), resting);
    }
}
