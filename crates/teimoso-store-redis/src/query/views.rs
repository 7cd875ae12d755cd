//! Views of deliveries and events, read in one script so that each is of one instant.

use bytes::Bytes;
use redis::Value;
use teimoso_delivery::model::{Key, Millis, NextWhy};
use teimoso_delivery::store::{DeliveryView, EventView, StoreError};

use crate::codec::{self, DeliveryRecord, EventHead};
use crate::reply::{array, natural, some_bytes, some_number, unexpected};
use crate::scripts::READ;
use crate::shared::Shared;

/// Views read by one script.
const STEP: usize = 50;

/// A delivery.
pub(super) struct Delivery {
    pub(super) key: Key,
    pub(super) view: DeliveryView,
    pub(super) head: EventHead,
    /// Its last attempt's record; may be empty.
    pub(super) last: Bytes,
}

/// What is there of these deliveries, in order.
pub(super) async fn deliveries(shared: &Shared, keys: &[String]) -> Result<Vec<Delivery>, StoreError> {
    let mut found = Vec::with_capacity(keys.len());
    for step in keys.chunks(STEP) {
        let mut call = shared.call(&READ);
        call.arg("deliveries");
        for key in step {
            call.arg(key.as_str());
        }
        for view in array(shared.reads.call(&call).await?)? {
            found.extend(read_delivery(view, shared)?);
        }
    }
    Ok(found)
}

/// What is there of these events: by their keys (`events`), or by a caller's id (`named`).
pub(super) async fn events(
    shared: &Shared,
    what: &str,
    names: &[String],
) -> Result<Vec<(Key, EventView)>, StoreError> {
    let mut found = Vec::with_capacity(names.len());
    for step in names.chunks(STEP) {
        let mut call = shared.call(&READ);
        call.arg(what);
        for name in step {
            call.arg(name.as_str());
        }
        for view in array(shared.reads.call(&call).await?)? {
            found.extend(read_event(view, shared)?);
        }
    }
    Ok(found)
}

/// `None` when a part of it cannot be read: one damaged row does not spoil a page.
fn read_delivery(value: Value, shared: &Shared) -> Result<Option<Delivery>, StoreError> {
    let mut values = array(value)?.into_iter();
    let mut next = || values.next().ok_or_else(unexpected);
    let (key, record, head) = (some_bytes(next()?)?, some_bytes(next()?)?, some_bytes(next()?)?);
    let _size = next()?;
    let (why, until) = (some_number(&next()?)?, natural::<u64>(&next()?)?);
    let (Ok(key), Ok(record)) = (codec::parse_key(&key), DeliveryRecord::decode(&record)) else {
        return Ok(None);
    };
    let Ok(head) = EventHead::decode(&head) else { return Ok(None) };
    let paused = match why {
        1 => Some((Millis::new(until), NextWhy::LanePaused)),
        2 => Some((Millis::new(until), NextWhy::Breaker)),
        _ => None,
    };
    let last = codec::decode_attempt(&record.last).ok();
    let next_attempt = (!record.state.is_final() && record.nonce.0 == 0).then(|| {
        paused.filter(|(until, _)| *until > record.due).unwrap_or((record.due, record.progress.why))
    });
    let view = DeliveryView {
        id: shared.delivery_id(key),
        event_id: head.id(key, shared.ids()),
        application: head.application.clone(),
        url: head.url.clone().unwrap_or_else(|| "".into()),
        state: record.state,
        attempts: record.progress.attempts,
        budget_from: record.progress.budget_from,
        policy: head.policy.clone(),
        mode: record.progress.mode,
        reason: record.reason,
        next_attempt,
        created_at: created_at(key, &record),
        finished_at: record.finished_at,
        last_status: last.as_ref().and_then(|attempt| attempt.status),
        last_error: last.and_then(|attempt| attempt.error),
    };
    Ok(Some(Delivery { key, view, head, last: record.last }))
}

/// A derived key does not say when its event came: the earliest that is known of it does.
fn created_at(key: Key, record: &DeliveryRecord) -> Millis {
    if !codec::is_derived(key) {
        return key.at();
    }
    record.progress.first_attempt_at.or(record.finished_at).unwrap_or(record.due)
}

fn read_event(value: Value, shared: &Shared) -> Result<Option<(Key, EventView)>, StoreError> {
    let mut values = array(value)?.into_iter();
    let mut next = || values.next().ok_or_else(unexpected);
    let (key, head, size) = (some_bytes(next()?)?, some_bytes(next()?)?, natural(&next()?)?);
    let deliveries = match next()? {
        Value::Nil => None,
        delivery => read_delivery(delivery, shared)?,
    };
    let (Ok(key), Ok(head)) = (codec::parse_key(&key), EventHead::decode(&head)) else { return Ok(None) };
    let created = deliveries.as_ref().map_or(key.at(), |one| one.view.created_at);
    let view = EventView {
        id: head.id(key, shared.ids()),
        payload_bytes: head.payload_bytes(size),
        application: head.application,
        kind: head.kind,
        content_type: head.content_type,
        created_at: created,
        deliveries: deliveries.into_iter().map(|one| one.view).collect(),
    };
    Ok(Some((key, view)))
}
