//! What an acceptance is told of an event beside its record. Not kept, so without a version.

use teimoso_delivery::model::{EventId, Millis, NewEvent};
use teimoso_delivery::store::key_digest;

use super::hex;

/// The caller's own id, if it brought one.
pub(crate) fn named(event: &NewEvent) -> Option<&str> {
    match &event.id {
        Some(EventId::Named(text)) => Some(text),
        _ => None,
    }
}

/// Whether it has a name under which it may be known already.
pub(crate) fn is_named(event: &NewEvent) -> bool {
    named(event).is_some() || event.idempotency_key.is_some()
}

/// The number of its place, mode, which parts follow: not before; and of its names fingerprint, id and key.
///
/// A named event has both parts, so that the second begins at one place.
pub(crate) fn acceptance(event: &NewEvent, place: u16) -> Vec<u8> {
    let id = named(event).unwrap_or_default();
    // A digest: it is as short as can be, and another store's names can be compared with it.
    let key = event.idempotency_key.as_ref();
    let key = key.map(|key| hex(&key_digest(&event.application, key.as_str()))).unwrap_or_default();
    let (is_named, is_dated) = (is_named(event), is_named(event) || event.deliver_at.is_some());
    let mut out = place.to_be_bytes().to_vec();
    out.extend([event.mode.tag(), u8::from(is_named) + 2 * u8::from(is_dated)]);
    if is_dated {
        out.extend(event.deliver_at.map_or(0, Millis::get).to_be_bytes());
    }
    if is_named {
        out.extend(event.fingerprint);
        out.extend(u16::try_from(id.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend(id.bytes());
        out.extend(key.bytes());
    }
    out
}
