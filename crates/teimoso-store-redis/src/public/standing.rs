//! One entry of a public key, and what of it is shown.

use bytes::Bytes;
use redis::pipe;
use teimoso_delivery::model::{
    Application, AttemptRecord, ContentType, DeadReason, DeliveryState, EventId, Headers, Key, Millis, Mode,
    NextWhy,
};
use teimoso_delivery::store::{AttemptView, DeliveryView, EventView, StoreError};

use super::walk::Cursor;
use crate::codec::{Tried, derived_key, is_derived, key_text, parse_key};
use crate::entry::{Entry, Mark, Read};
use crate::reply::some_number;
use crate::shared::Shared;

/// Which of the keys an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Waiting {
        due: Millis,
    },
    /// At this place of the list, counted from its head, when it was read.
    Buried {
        index: usize,
    },
}

/// An entry as it was read.
pub(crate) struct Found {
    pub(crate) text: Bytes,
    pub(crate) place: Place,
    pub(crate) read: Read,
}

impl Found {
    /// `None` when it is no event.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        match &self.read {
            Read::Event(entry) => Some(entry),
            Read::Malformed | Read::KeptRaw => None,
        }
    }

    fn own_key(&self) -> Option<Key> {
        let text = self.entry()?.mark.chave.as_deref()?;
        parse_key(text.as_bytes()).ok().filter(|key| key.raw() % 2 == 0)
    }

    /// Whether this is a key of it: the one it says, or the one its text gives.
    pub(super) fn goes_by(&self, key: Key) -> bool {
        if is_derived(key) && derived_key(&self.text) == key { true } else { self.own_key() == Some(key) }
    }
}

/// An entry and its key.
pub(crate) struct Standing {
    pub(crate) key: Key,
    pub(crate) found: Found,
}

/// Gives each its key: its own, unless a delivery that is kept here has that.
pub(super) async fn named(
    shared: &Shared,
    found: Vec<(Cursor, Found)>,
) -> Result<Vec<(Cursor, Standing)>, StoreError> {
    let (mut ask, events) = (pipe(), shared.keys.own("events"));
    let own: Vec<Option<Key>> = found.iter().map(|(_, found)| found.own_key()).collect();
    for key in own.iter().flatten() {
        ask.cmd("HEXISTS").arg(&events).arg(key_text(*key));
    }
    let mut taken = match own.iter().any(Option::is_some) {
        true => shared.reads.pipeline(&ask).await?,
        false => Vec::new(),
    }
    .into_iter();
    let mut standing = Vec::with_capacity(found.len());
    for ((here, found), own) in found.into_iter().zip(own) {
        let is_taken = match own.and_then(|_| taken.next()) {
            Some(taken) => some_number(&taken)? == 1,
            None => false,
        };
        let key = own.filter(|_| !is_taken).unwrap_or_else(|| derived_key(&found.text));
        standing.push((here, Standing { key, found }));
    }
    Ok(standing)
}

impl Standing {
    pub(crate) fn event_id(&self, shared: &Shared) -> EventId {
        let own = self.found.entry().and_then(|entry| entry.id.clone());
        own.unwrap_or_else(|| shared.ids().event(self.key))
    }

    fn mark(&self) -> Mark {
        self.found.entry().map(|entry| entry.mark.clone()).unwrap_or_default()
    }

    /// When it came, as far as its key or its text says; else the earliest that is known of it.
    fn created_at(&self) -> Millis {
        if !is_derived(self.key) {
            return self.key.at();
        }
        let mark = self.mark();
        let due = match self.found.place {
            Place::Waiting { due } => Some(due),
            Place::Buried { .. } => None,
        };
        let started = mark.tentou.first().map(|tried| tried.record().started_at);
        let known = mark.primeira.or(mark.morto_em).map(Millis::new);
        started.or(known).or(due).unwrap_or_default()
    }

    /// Why it is dead, as far as its text says.
    pub(crate) fn reason(&self) -> DeadReason {
        let said = match &self.found.read {
            Read::Event(entry) => entry.mark.motivo.as_deref(),
            Read::Malformed | Read::KeptRaw => return DeadReason::Malformed,
        };
        said.and_then(DeadReason::from_name).unwrap_or(DeadReason::AttemptsExhausted)
    }

    pub(crate) fn delivery(&self, shared: &Shared) -> DeliveryView {
        let (entry, mark) = (self.found.entry(), self.mark());
        let attempts = entry.map_or(0, |entry| entry.attempts);
        let last = mark.tentou.last().map(Tried::record);
        let why = if attempts == 0 { NextWhy::First } else { NextWhy::Retry };
        let (state, reason, next_attempt) = match self.found.place {
            Place::Waiting { due } => (DeliveryState::Scheduled, None, Some((due, why))),
            Place::Buried { .. } => (DeliveryState::Dead, Some(self.reason()), None),
        };
        DeliveryView {
            id: shared.delivery_id(self.key),
            event_id: self.event_id(shared),
            application: Application::default(),
            url: entry.map_or("", |entry| entry.url.as_str()).into(),
            state,
            attempts,
            budget_from: mark.desde.unwrap_or(0).min(attempts),
            policy: shared.ingress.policy.clone(),
            mode: Mode::AtLeastOnce,
            reason,
            next_attempt,
            created_at: self.created_at(),
            finished_at: mark.morto_em.map(Millis::new).filter(|_| state == DeliveryState::Dead),
            last_status: last.as_ref().and_then(|last| last.status),
            last_error: last.and_then(|last| last.error),
        }
    }

    pub(crate) fn event(&self, shared: &Shared) -> EventView {
        EventView {
            id: self.event_id(shared),
            application: Application::default(),
            kind: None,
            content_type: ContentType::default(),
            payload_bytes: self.payload().len() as u64,
            created_at: self.created_at(),
            deliveries: vec![self.delivery(shared)],
        }
    }

    /// The body; of what is no event, everything.
    pub(crate) fn payload(&self) -> Bytes {
        match self.found.entry() {
            Some(entry) => self.found.text.slice(entry.body.clone()),
            None => self.found.text.clone(),
        }
    }

    pub(crate) fn attempts(&self, shared: &Shared) -> Vec<AttemptView> {
        let event_id = self.event_id(shared);
        let view = |record: AttemptRecord| AttemptView {
            record,
            event_id: event_id.clone(),
            content_type: ContentType::default(),
            headers: Headers::default(),
        };
        self.mark().tentou.iter().map(Tried::record).map(view).collect()
    }
}
