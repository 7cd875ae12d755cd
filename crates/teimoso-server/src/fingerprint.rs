//! A digest of all that makes two requests the same: compared when an id or a key is repeated.
//!
//! Deliberately absent: the idempotency key, which names the request and is no part of it.

use sha2::{Digest, Sha256};
use teimoso_delivery::model::{Millis, NewEvent};

/// Distinguishes this list of fields from any later one: fingerprints are kept by stores.
const VERSION: &[u8] = b"teimoso event 1";

/// The first 128 bits of SHA-256 over the event's fields, each with its length, so that no two different
/// requests run together. `asked` is `deliver_at` as the request has it: once it has passed the event is
/// simply due, and the repeated request is still the same.
pub(crate) fn fingerprint(event: &NewEvent, asked: Option<Millis>) -> [u8; 16] {
    let mut digest = Sha256::new();
    let mut field = |bytes: Option<&[u8]>| {
        // Absent and empty differ: u64::MAX is no length.
        digest.update(bytes.map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        digest.update(bytes.unwrap_or_default());
    };
    field(Some(VERSION));
    field(Some(event.application.as_str().as_bytes()));
    field(event.id.as_ref().map(ToString::to_string).as_deref().map(str::as_bytes));
    field(event.kind.as_ref().map(|kind| kind.as_str().as_bytes()));
    field(Some(event.content_type.as_str().as_bytes()));
    field(Some(event.headers.to_lines().as_bytes()));
    field(event.destination.as_ref().map(|destination| destination.url.as_bytes()));
    field(Some(event.mode.name().as_bytes()));
    field(event.policy.as_ref().map(|policy| policy.as_str().as_bytes()));
    field(asked.map(|at| at.get().to_le_bytes()).as_ref().map(<[u8; 8]>::as_slice));
    field(Some(&event.payload));
    let full: [u8; 32] = digest.finalize().into();
    let mut short = [0; 16];
    short.copy_from_slice(&full[..16]);
    short
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use teimoso_delivery::model::{Application, ContentType, EventType, Headers, Mode, PolicyName};

    use super::*;

    fn event(payload: &'static str) -> NewEvent {
        NewEvent {
            application: Application::default(),
            id: None,
            idempotency_key: None,
            fingerprint: [0; 16],
            kind: None,
            content_type: ContentType::default(),
            headers: Headers::default(),
            payload: Bytes::from_static(payload.as_bytes()),
            destination: None,
            mode: Mode::AtLeastOnce,
            policy: None,
            deliver_at: None,
        }
    }

    #[test]
    fn every_field_counts_and_the_clock_does_not() {
        let base = fingerprint(&event("1"), None);
        assert_eq!(base, fingerprint(&event("1"), None));
        let others = [
            fingerprint(&event("1.0"), None),
            fingerprint(&event("1"), Some(Millis::new(1))),
            fingerprint(&NewEvent { mode: Mode::AtMostOnce, ..event("1") }, None),
            fingerprint(&NewEvent { kind: EventType::parse("a").ok(), ..event("1") }, None),
            fingerprint(&NewEvent { policy: PolicyName::parse("webhook").ok(), ..event("1") }, None),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(&base, other, "{index}");
        }
        let due = NewEvent { deliver_at: Some(Millis::new(1)), ..event("1") };
        assert_eq!(base, fingerprint(&due, None));
    }
}
