//! What waits or is dead in the public keys, as events like any other: its own key when it was adopted before, else one
//! of those that are set aside for the move.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use redis::cmd;
use teimoso_delivery::model::{
    Application, ContentType, DeadReason, DeliveryState, Event, Headers, Key, LaneKey, Millis, Mode, NextWhy,
    Progress,
};
use teimoso_delivery::store::{DeliveryParcel, EventParcel, Page, Parcel, StoreError};

use super::export::damaged;
use crate::codec::{delivery_key, key_text, parse_key};
use crate::entry::{Entry, Read};
use crate::ingress::lane_of;
use crate::reply::{array, bytes, number, some_bytes, some_number};
use crate::shared::Shared;

/// Entries of one page.
const STEP: usize = 64;
/// In `meta`: the first of the keys that are set aside. The same whenever the move is begun again.
const BASE: &str = "moving_base";

/// Keys of a move under way.
#[derive(Debug, Default)]
pub(crate) struct Moving(Mutex<Keys>);

#[derive(Debug, Default)]
struct Keys {
    next: Option<Key>,
    given: HashSet<Key>,
}

impl Moving {
    fn keys(&self) -> std::sync::MutexGuard<'_, Keys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys {
    /// Its own from before unless that is taken, else the next of those set aside.
    fn give(&mut self, own: Option<Key>, taken: bool) -> Option<Key> {
        let own = own.filter(|own| !taken && !self.given.contains(own));
        let key = own.or(self.next)?;
        if own.is_none() {
            self.next = Key::from_raw(key.raw() + 2);
        }
        self.given.insert(key);
        Some(key)
    }
}

/// Sets keys aside: later than any that was given out.
pub(super) async fn begin(shared: &Shared) -> Result<(), StoreError> {
    let mut ask = cmd("HGET");
    ask.arg(shared.keys.meta()).arg("last_key");
    let last = bytes(shared.reads.command(&ask).await?)?.and_then(|last| parse_key(&last).ok());
    let later = last.map_or(Millis::default(), |last| Millis::new(last.at().get() + 1));
    let base = Key::first_at(later.max(shared.clock.now()));
    let mut propose = cmd("HSETNX");
    propose.arg(shared.keys.meta()).arg(BASE).arg(key_text(base));
    shared.reads.command(&propose).await?;
    let mut ask = cmd("HGET");
    ask.arg(shared.keys.meta()).arg(BASE);
    let base = parse_key(&some_bytes(shared.reads.command(&ask).await?)?).map_err(damaged)?;
    *shared.moving.keys() = Keys { next: Some(base), given: HashSet::new() };
    Ok(())
}

/// The last key that was set aside and used.
pub(super) fn last_key(shared: &Shared) -> Option<Key> {
    shared.moving.keys().given.iter().copied().map(delivery_key).max()
}

pub(super) async fn waiting(shared: &Shared, from: usize) -> Result<Page<Parcel>, StoreError> {
    let mut ask = cmd("ZRANGE");
    ask.arg(shared.keys.waiting()).arg(from).arg(from + STEP - 1).arg("WITHSCORES");
    let mut found = array(shared.reads.command(&ask).await?)?.into_iter();
    let mut data = Vec::new();
    while let (Some(text), Some(due)) = (found.next(), found.next()) {
        let due = Millis::new(number(&due)?.and_then(|due| u64::try_from(due).ok()).unwrap_or(0));
        data.extend(parcel(shared, some_bytes(text)?, Some(due)).await?);
    }
    let next = if data.len() < STEP { "b0".to_owned() } else { format!("w{}", from + STEP) };
    Ok(Page { data, next_cursor: Some(next) })
}

pub(super) async fn buried(shared: &Shared, from: usize) -> Result<Page<Parcel>, StoreError> {
    let mut ask = cmd("LRANGE");
    ask.arg(shared.keys.buried()).arg(from).arg(from + STEP - 1);
    let mut data = Vec::new();
    for text in array(shared.reads.command(&ask).await?)? {
        data.extend(parcel(shared, some_bytes(text)?, None).await?);
    }
    let next = if data.len() < STEP { "n0".to_owned() } else { format!("b{}", from + STEP) };
    Ok(Page { data, next_cursor: Some(next) })
}

/// An entry that waits until `due`, or is dead.
async fn parcel(shared: &Shared, text: Bytes, due: Option<Millis>) -> Result<Option<Parcel>, StoreError> {
    let read = Entry::read(&text);
    let own = match &read {
        Read::Event(entry) => entry.mark.chave.as_deref().and_then(|key| parse_key(key.as_bytes()).ok()),
        Read::Malformed | Read::KeptRaw => None,
    };
    let taken = match own {
        None => false,
        Some(own) => {
            let mut ask = cmd("HEXISTS");
            ask.arg(shared.keys.own("events")).arg(key_text(own));
            some_number(&shared.reads.command(&ask).await?)? == 1
        }
    };
    let Some(key) = shared.moving.keys().give(own, taken) else { return Ok(None) };
    let parcel = match &read {
        Read::Event(entry) => event(shared, key, entry, &text, due),
        Read::Malformed | Read::KeptRaw => kept_raw(shared, key, &text),
    };
    Ok(Some(Parcel::Event(Box::new(parcel))))
}

fn event(shared: &Shared, key: Key, entry: &Entry, text: &Bytes, due: Option<Millis>) -> EventParcel {
    let mark = &entry.mark;
    let (address, _) = lane_of(&entry.url);
    let (state, reason) = match due {
        Some(_) if entry.attempts == 0 => (DeliveryState::Pending, None),
        Some(_) => (DeliveryState::Scheduled, None),
        None => {
            let reason = mark.motivo.as_deref().and_then(DeadReason::from_name);
            (DeliveryState::Dead, Some(reason.unwrap_or(DeadReason::AttemptsExhausted)))
        }
    };
    let finished_at = mark.morto_em.map(Millis::new);
    let event = Event {
        id: entry.id.clone().unwrap_or_else(|| shared.ids().event(key)),
        application: Application::default(),
        kind: None,
        content_type: ContentType::default(),
        headers: Headers::default(),
        payload: text.slice(entry.body.clone()),
        created_at: key.at(),
        url: Some(entry.url.as_str().into()),
        policy: shared.ingress.policy.clone(),
    };
    let progress = Progress {
        attempts: entry.attempts,
        budget_from: mark.desde.unwrap_or(0).min(entry.attempts),
        first_attempt_at: mark.primeira.map(Millis::new),
        ..Progress::fresh(
            Mode::AtLeastOnce,
            if entry.attempts == 0 { NextWhy::First } else { NextWhy::Retry },
        )
    };
    let delivery = DeliveryParcel {
        key: delivery_key(key),
        lane: LaneKey { application: Application::default(), address: address.into() },
        state,
        progress,
        due: due.unwrap_or_else(|| finished_at.unwrap_or(key.at())),
        reason,
        finished_at: finished_at.or((state == DeliveryState::Dead).then(|| key.at())),
        attempts: Vec::new(),
    };
    EventParcel { key, event, deliveries: vec![delivery] }
}

/// What is no event stays a dead letter, its bytes the payload.
fn kept_raw(shared: &Shared, key: Key, text: &Bytes) -> EventParcel {
    let event = Event {
        id: shared.ids().event(key),
        application: Application::default(),
        kind: None,
        content_type: ContentType::default(),
        headers: Headers::default(),
        payload: text.clone(),
        created_at: key.at(),
        url: None,
        policy: None,
    };
    let delivery = DeliveryParcel {
        key: delivery_key(key),
        lane: LaneKey { application: Application::default(), address: "".into() },
        state: DeliveryState::Dead,
        progress: Progress::fresh(Mode::AtLeastOnce, NextWhy::First),
        due: key.at(),
        reason: Some(DeadReason::Malformed),
        finished_at: Some(key.at()),
        attempts: Vec::new(),
    };
    EventParcel { key, event, deliveries: vec![delivery] }
}
