//! Identifiers: a prefix plus UUIDv7, or an event id of the caller's own.
//!
//! A store orders its rows by a [`Key`]: the 48-bit millisecond and the 12-bit counter of the UUIDv7
//! (RFC 9562 §5.7, §6.2 method 1). The 62 remaining bits are a keyed mix of the key, so an id can be
//! turned back into its key, and a made-up id recognised, without storing or indexing anything.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use super::{InvalidValue, Millis};

/// A store-wide unique, time-ordered 60-bit number: millisecond × 4096 + counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl Key {
    const COUNTER_BITS: u32 = 12;
    const MAX: u64 = (1 << 60) - 1;

    /// The first key of a millisecond: a bound for "since" and "until" filters.
    #[must_use]
    pub const fn first_at(at: Millis) -> Self {
        Self(at.get() << Self::COUNTER_BITS)
    }

    /// The key a store kept as `raw`; `None` when it is out of range.
    #[must_use]
    pub const fn from_raw(raw: i64) -> Option<Self> {
        if raw < 0 || raw as u64 > Self::MAX { None } else { Some(Self(raw as u64)) }
    }

    /// The number a store keeps.
    #[must_use]
    pub const fn raw(self) -> i64 {
        self.0 as i64
    }

    /// When this key was given out, to the millisecond (ahead of the clock under > 4 096 keys/ms).
    #[must_use]
    pub const fn at(self) -> Millis {
        Millis::new(self.0 >> Self::COUNTER_BITS)
    }
}

/// Gives out strictly increasing keys, whatever the wall clock does.
#[derive(Debug)]
pub struct KeyClock(AtomicU64);

impl KeyClock {
    /// Starts after `last`, the largest key already used.
    #[must_use]
    pub fn after(last: Option<Key>) -> Self {
        Self(AtomicU64::new(last.map_or(0, |key| key.0)))
    }

    /// A fresh key: the first of `now`, or the successor of the last one given.
    pub fn next(&self, now: Millis) -> Key {
        let floor = Key::first_at(now).0;
        let step = |last: u64| Some(floor.max(last.saturating_add(1)).min(Key::MAX));
        let last = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).unwrap_or_default();
        Key(step(last).unwrap_or(Key::MAX))
    }

    /// The largest key that was given out or skipped; `None` when there is none.
    #[must_use]
    pub fn last(&self) -> Option<Key> {
        let last = self.0.load(Ordering::Relaxed);
        (last > 0).then_some(Key(last))
    }

    /// Gives out no key up to this one.
    pub fn skip(&self, last: Key) {
        self.0.fetch_max(last.0, Ordering::Relaxed);
    }
}

/// Turns keys into ids and back, with the store's own salt.
#[derive(Debug, Clone, Copy)]
pub struct IdSpace {
    salt: u64,
}

impl IdSpace {
    /// An id space; `salt` is drawn once per store and kept with it.
    #[must_use]
    pub const fn new(salt: u64) -> Self {
        Self { salt }
    }

    /// What the ids are made with.
    #[must_use]
    pub const fn salt(self) -> u64 {
        self.salt
    }

    /// The id of the delivery with this key.
    #[must_use]
    pub fn delivery(self, key: Key) -> DeliveryId {
        DeliveryId(self.uuid(key, 1))
    }

    /// The id of the event with this key, when its caller brought none.
    #[must_use]
    pub fn event(self, key: Key) -> EventId {
        EventId::Own(self.uuid(key, 2))
    }

    /// The id of the replay job with this key.
    #[must_use]
    pub fn replay(self, key: Key) -> ReplayId {
        ReplayId(self.uuid(key, 3))
    }

    /// The key behind a delivery id; `None` when this store never gave that id out.
    #[must_use]
    pub fn delivery_key(self, id: DeliveryId) -> Option<Key> {
        self.key(id.0, 1)
    }

    /// The key behind one of our own event ids; `None` for a caller's id and for a stranger's.
    #[must_use]
    pub fn event_key(self, id: &EventId) -> Option<Key> {
        match id {
            EventId::Own(uuid) => self.key(*uuid, 2),
            EventId::Named(_) => None,
        }
    }

    /// The key behind a replay id; `None` when this store never gave that id out.
    #[must_use]
    pub fn replay_key(self, id: ReplayId) -> Option<Key> {
        self.key(id.0, 3)
    }

    fn uuid(self, key: Key, kind: u64) -> Uuid {
        let high = (key.0 >> 12) << 16 | 0x7000 | (key.0 & 0xfff);
        let low = mix(self.salt ^ mix(key.0 ^ kind << 60)) >> 2 | 1 << 63;
        Uuid::from_u64_pair(high, low)
    }

    fn key(self, id: Uuid, kind: u64) -> Option<Key> {
        let (high, _) = id.as_u64_pair();
        let key = Key((high >> 16) << 12 | (high & 0xfff));
        (self.uuid(key, kind) == id).then_some(key)
    }
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Text that is no id of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {expected}: expected {prefix} followed by a UUID")]
pub struct UnknownId {
    expected: &'static str,
    prefix: &'static str,
}

fn parse_prefixed(text: &str, prefix: &'static str, expected: &'static str) -> Result<Uuid, UnknownId> {
    let uuid = text.strip_prefix(prefix).and_then(|rest| Uuid::try_parse(rest).ok());
    uuid.ok_or(UnknownId { expected, prefix })
}

/// A delivery's id: `dlv_` plus UUIDv7, the same for every attempt and replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(Uuid);

impl std::str::FromStr for DeliveryId {
    type Err = UnknownId;

    fn from_str(text: &str) -> Result<Self, UnknownId> {
        parse_prefixed(text, "dlv_", "a delivery id").map(Self)
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dlv_{}", self.0.as_hyphenated())
    }
}

/// A replay job's id: `rpl_` plus UUIDv7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplayId(Uuid);

impl std::str::FromStr for ReplayId {
    type Err = UnknownId;

    fn from_str(text: &str) -> Result<Self, UnknownId> {
        parse_prefixed(text, "rpl_", "a replay id").map(Self)
    }
}

impl fmt::Display for ReplayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rpl_{}", self.0.as_hyphenated())
    }
}

/// An event's id: ours (`evt_` plus UUIDv7) or the caller's own text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventId {
    /// Given out by a store.
    Own(Uuid),
    /// Brought by the caller.
    Named(Arc<str>),
}

impl EventId {
    /// Longest id a caller may bring, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Reads an id from a path or a command line: ours when it has our form, else a caller's.
    ///
    /// # Errors
    /// When it could be neither; see [`EventId::named`].
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        match parse_prefixed(text, "evt_", "an event id") {
            Ok(uuid) => Ok(Self::Own(uuid)),
            Err(_) => Self::named(text),
        }
    }

    /// A caller's own id: 1 to 256 bytes of visible ASCII without `.`, `/`, `?`, `#` and `%`.
    ///
    /// Standard Webhooks signs `id.timestamp.body`, so a dot would make the signature ambiguous.
    ///
    /// # Errors
    /// When it is empty, too long or holds another character.
    pub fn named(text: &str) -> Result<Self, InvalidValue> {
        if text.is_empty() || text.len() > Self::MAX_BYTES {
            return Err(InvalidValue::new("id", "must be 1 to 256 bytes long"));
        }
        let allowed = |b: u8| b.is_ascii_graphic() && !matches!(b, b'.' | b'/' | b'?' | b'#' | b'%');
        if !text.bytes().all(allowed) {
            return Err(InvalidValue::new("id", "may hold visible ASCII only, without . / ? # and %"));
        }
        Ok(Self::Named(text.into()))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(uuid) => write!(f, "evt_{}", uuid.as_hyphenated()),
            Self::Named(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_leads_back_to_its_key_and_no_other_kind_or_salt(raw in 0u64..=Key::MAX, salt: u64) {
            let (ids, key) = (IdSpace::new(salt), Key(raw));
            let id = ids.delivery(key);
            prop_assert_eq!(ids.delivery_key(id), Some(key));
            prop_assert_eq!(ids.event_key(&EventId::Own(id.0)), None);
            prop_assert_eq!(IdSpace::new(salt ^ 1).delivery_key(id), None);
            prop_assert_eq!(id.0.get_version_num(), 7);
            prop_assert_eq!(id.to_string().parse::<DeliveryId>(), Ok(id));
        }
    }

    #[test]
    fn keys_increase_when_the_clock_stands_still_or_steps_back() {
        let clock = KeyClock::after(None);
        let first = clock.next(Millis::new(1_000));
        let second = clock.next(Millis::new(1_000));
        let third = clock.next(Millis::new(10));
        assert!(first < second && second < third);
        assert_eq!(first.at(), Millis::new(1_000));
        assert_eq!(KeyClock::after(Some(third)).next(Millis::new(1)).raw(), third.raw() + 1);
        let other = KeyClock::after(None);
        assert_eq!(other.last(), None);
        other.skip(third);
        other.skip(first);
        assert_eq!((other.last(), other.next(Millis::new(1)).raw()), (Some(third), third.raw() + 1));
    }

    #[test]
    fn a_callers_id_must_be_signable() {
        assert!(EventId::named("evt_1789136700349").is_ok());
        for bad in ["", "a.b", "a b", "a/b", "é", &"x".repeat(257)] {
            assert!(EventId::named(bad).is_err(), "{bad}");
        }
    }
}
