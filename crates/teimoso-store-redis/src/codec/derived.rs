//! Keys for what lies in a public key and was never given one: made of its text, so that everybody who looks finds the
//! same. Deliberately absent: what is kept; such a key is stored only once its entry is adopted.

use sha2::{Digest, Sha256};
use teimoso_delivery::model::Key;

/// Bits of a derived key. Read as an instant it is before 1973, when no key was ever given out, so that the two kinds
/// are told apart; and it is earlier than any that was given out, so that adoption may keep it.
const BITS: u32 = 48;

/// The key of an entry with these bytes. Equal entries have the same.
pub(crate) fn derived_key(text: &[u8]) -> Key {
    let digest = Sha256::digest(text);
    let bits = digest.iter().take(BITS as usize / 8).fold(0, |bits, byte| bits << 8 | i64::from(*byte));
    // An event's key is even; its delivery's is the one after it.
    Key::from_raw(bits & !1).unwrap_or(Key::first_at(Default::default()))
}

/// Whether a key is one of these: it says nothing of when its event came.
pub(crate) fn is_derived(key: Key) -> bool {
    key.raw() < 1 << BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use teimoso_delivery::model::Millis;

    proptest! {
        #[test]
        fn a_derived_key_is_an_events_and_of_no_time(text: Vec<u8>) {
            let key = derived_key(&text);
            prop_assert_eq!((key, key.raw() % 2, is_derived(key)), (derived_key(&text), 0, true));
        }
    }

    #[test]
    fn keys_that_were_given_out_are_not_derived() {
        assert!(!is_derived(Key::first_at(Millis::new(1_700_000_000_000))));
        assert_ne!(derived_key(b"a"), derived_key(b"b"));
    }
}
