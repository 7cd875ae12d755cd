//! The names of events: callers' own ids and idempotency keys, remembered for a while.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::NAMES_LAST;
use crate::model::{Application, EventId, Key, Millis, NewEvent};
use crate::store::{EventName, Rejection, key_digest};

#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    pub(super) event: Key,
    pub(super) fingerprint: [u8; 16],
    pub(super) until: Millis,
}

/// All names alive. Scope of a name: its application.
#[derive(Debug, Default)]
pub(super) struct Names {
    alive: BTreeMap<EventName, BTreeMap<Application, Named>>,
    by_age: VecDeque<(Millis, EventName, Application)>,
}

impl Names {
    /// The event that already has one of these names; `None` when all of them are free.
    ///
    /// The caller's id is asked first: it is the stronger claim. A request that is repeated with one more
    /// name has both from then on.
    pub(super) fn find(&mut self, offered: &NewEvent, now: Millis) -> Result<Option<Key>, Rejection> {
        self.forget(now);
        let (mut same, mut new_name) = (None, false);
        for (name, taken) in names(offered) {
            match self.alive.get(&name).and_then(|named| named.get(&offered.application)) {
                Some(known) if known.fingerprint == offered.fingerprint => same = same.or(Some(known.event)),
                Some(_) => return Err(taken),
                None => new_name = true,
            }
        }
        if let (Some(event), true) = (same, new_name) {
            self.remember(offered, event, now);
        }
        Ok(same)
    }

    /// Remembers the names of a new event.
    pub(super) fn remember(&mut self, offered: &NewEvent, event: Key, now: Millis) {
        let until = now.after(NAMES_LAST);
        for (name, _) in names(offered) {
            let named = Named { event, fingerprint: offered.fingerprint, until };
            self.by_age.push_back((until, name.clone(), offered.application.clone()));
            self.alive.entry(name).or_default().insert(offered.application.clone(), named);
        }
    }

    /// Everything that is remembered.
    pub(super) fn all(&self) -> impl Iterator<Item = (&EventName, &Application, &Named)> {
        self.alive.iter().flat_map(|(name, by)| by.iter().map(move |(app, named)| (name, app, named)))
    }

    /// Remembers what another store remembered.
    pub(super) fn restore(&mut self, name: EventName, application: Application, named: Named) {
        let at = self.by_age.partition_point(|(until, ..)| *until <= named.until);
        self.by_age.insert(at, (named.until, name.clone(), application.clone()));
        self.alive.entry(name).or_default().insert(application, named);
    }

    /// The event with this id of a caller's; of several applications, the one accepted last.
    pub(super) fn by_id(&self, text: &Arc<str>, now: Millis) -> Option<Key> {
        let named = self.alive.get(&EventName::Id(text.clone()))?;
        named.values().filter(|named| named.until > now).map(|named| named.event).max()
    }

    fn forget(&mut self, now: Millis) {
        while self.by_age.front().is_some_and(|(until, ..)| *until <= now) {
            let Some((until, name, application)) = self.by_age.pop_front() else { return };
            let Some(named) = self.alive.get_mut(&name) else { continue };
            if named.get(&application).is_some_and(|named| named.until == until) {
                named.remove(&application);
            }
            if named.is_empty() {
                self.alive.remove(&name);
            }
        }
    }
}

fn names(offered: &NewEvent) -> impl Iterator<Item = (EventName, Rejection)> {
    let id = match &offered.id {
        Some(EventId::Named(text)) => Some((EventName::Id(text.clone()), Rejection::IdTaken)),
        _ => None,
    };
    let key = offered.idempotency_key.as_ref();
    let digest = key.map(|key| key_digest(&offered.application, key.as_str()));
    id.into_iter().chain(digest.map(|digest| (EventName::Key(digest), Rejection::KeyReused)))
}
