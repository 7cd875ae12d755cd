//! What an acceptance is told of an event beside its record. Not kept, so without a version.

use teimoso_delivery::model::{EventId, IdempotencyKey, NewEvent};

/// The caller's own id, if it brought one.
pub(crate) fn named(event: &NewEvent) -> Option<&str> {
    match &event.id {
        Some(EventId::Named(text)) => Some(text),
        _ => None,
    }
}

/// The number of its place, mode, whether it has names, not before plus 1; and of its names fingerprint, id and key.
pub(crate) fn acceptance(event: &NewEvent, place: u16) -> Vec<u8> {
    let id = named(event).unwrap_or_default();
    let key = event.idempotency_key.as_ref().map_or("", IdempotencyKey::as_str);
    let is_named = !(id.is_empty() && key.is_empty());
    let mut out = place.to_be_bytes().to_vec();
    out.extend([event.mode.tag(), is_named.into()]);
    out.extend(event.deliver_at.map_or(0, |at| at.get() + 1).to_be_bytes());
    if is_named {
        out.extend(event.fingerprint);
        out.extend(u16::try_from(id.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend(id.bytes());
        out.extend(key.bytes());
    }
    out
}
