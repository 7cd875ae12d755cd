//! What is kept in Redis, value by value: one file per kind, each with its version and its round trip.
//!
//! Scripts read and write the same layouts with `struct.pack`: numbers are big-endian. Deliberately absent: names of
//! keys, and anything that talks to Redis.

mod acceptance;
mod attempt;
mod bytes;
mod delivery;
mod derived;
mod event;
mod job;
mod settlement;
mod tried;

use teimoso_delivery::model::{Key, Nonce};

pub(crate) use acceptance::{acceptance, is_named, named};
pub(crate) use attempt::{decode_attempt, encode_attempt};
pub(crate) use bytes::Reader;
pub(crate) use delivery::{DeliveryRecord, lane_number, lane_text};
pub(crate) use derived::{derived_key, is_derived};
pub(crate) use event::{Adoption, EventHead, decode_event, encode_adopted, encode_event, encode_moved};
pub(crate) use job::{JobRecord, encode_job, encode_order, replay_item};
pub(crate) use settlement::{delivered, renewal, settlement};
pub(crate) use tried::{Tried, lenient as lenient_tried, tried_with};

/// A stored value that this version cannot read: damage, or a newer writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// The version of the whole: what kinds of values there are, and where. Kept with them.
pub(crate) const LAYOUT: &str = "2";

/// A key of a delivery, given its event's: the one after it. Only ids tell the two apart.
pub(crate) fn delivery_key(event: Key) -> Key {
    Key::from_raw(event.raw().saturating_add(1)).unwrap_or(event)
}

/// The key under which a delivery and its event are kept, given the delivery's; `None` when it is no delivery's.
pub(crate) fn event_key(delivery: Key) -> Option<Key> {
    Key::from_raw(delivery.raw() - 1)
}

/// A key as scripts have it: 15 hexadecimal digits, whose order as text is their order.
pub(crate) fn key_text(key: Key) -> String {
    format!("{:015x}", key.raw())
}

/// The key that scripts call `text`.
pub(crate) fn parse_key(text: &[u8]) -> Result<Key, Unreadable> {
    // A sign would be a number, too.
    let digits = text.len() == 15 && text.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(text).ok().filter(|_| digits).ok_or(Unreadable)?;
    let raw = i64::from_str_radix(text, 16).map_err(|_| Unreadable)?;
    Key::from_raw(raw).ok_or(Unreadable)
}

/// A nonce as scripts compare it.
pub(crate) fn nonce_bytes(nonce: Nonce) -> [u8; 16] {
    nonce.0.to_be_bytes()
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*bytes))
}

/// The bytes that [`hex`] wrote so.
pub(crate) fn unhex(text: &str) -> Option<[u8; 16]> {
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|_| digits).map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_leads_back_and_keeps_its_order(a in 0i64..1 << 60, b in 0i64..1 << 60) {
            let [a, b] = [a, b].map(|raw| Key::from_raw(raw).unwrap());
            prop_assert_eq!(parse_key(key_text(a).as_bytes()), Ok(a));
            prop_assert_eq!(a.cmp(&b), key_text(a).cmp(&key_text(b)));
        }
    }

    #[test]
    fn a_digest_leads_back() {
        let digest = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
        assert_eq!(unhex(&hex(&digest)), Some(digest));
        for text in ["", "0", "+0000000000000000000000000000001", "0x000000000000000000000000000000"] {
            assert_eq!(unhex(text), None, "{text}");
        }
    }

    #[test]
    fn an_event_and_its_delivery_are_kept_under_one_key() {
        let event = Key::from_raw(0x1000).unwrap();
        assert_eq!(event_key(delivery_key(event)), Some(event));
        assert_eq!(event_key(Key::from_raw(0).unwrap()), None);
    }

    #[test]
    fn what_is_no_key_is_unreadable() {
        for text in ["", "0", "+00000000000001", "00000000000000g", "0000000000000001", "é"] {
            assert_eq!(parse_key(text.as_bytes()), Err(Unreadable), "{text}");
        }
    }
}
