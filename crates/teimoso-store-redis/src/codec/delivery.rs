//! A delivery: what scripts need to move it and what a claim gives out.

use teimoso_delivery::model::{DeadReason, DeliveryState, Key, Millis, Mode, NextWhy, Nonce, Progress};

use super::{Reader, Unreadable, parse_key};

const VERSION: u8 = 1;

/// `DELIVERY` of the scripts, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryRecord {
    pub(crate) state: DeliveryState,
    pub(crate) reason: Option<DeadReason>,
    pub(crate) progress: Progress,
    pub(crate) cancel_wished: bool,
    pub(crate) due: Millis,
    pub(crate) finished_at: Option<Millis>,
    /// The lane's number.
    pub(crate) lane: u32,
    /// Zero when nobody holds it.
    pub(crate) nonce: Nonce,
    pub(crate) event: Key,
}

/// An instant that may be absent; zero stands for that.
fn instant(raw: u64) -> Option<Millis> {
    (raw > 0).then(|| Millis::new(raw))
}

impl DeliveryRecord {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let state = DeliveryState::from_tag(reader.u8()?).ok_or(Unreadable)?;
        let reason = DeadReason::from_tag(reader.u8()?);
        let mode = Mode::from_tag(reader.u8()?).ok_or(Unreadable)?;
        let why = NextWhy::from_tag(reader.u8()?).ok_or(Unreadable)?;
        let recoveries = reader.u8()?;
        let cancel_wished = reader.u8()? & 1 == 1;
        let (attempts, budget_from) = (reader.u32()?, reader.u32()?);
        let due = Millis::new(reader.u64()?);
        let (first_attempt_at, finished_at) = (instant(reader.u64()?), instant(reader.u64()?));
        let progress = Progress { attempts, budget_from, first_attempt_at, recoveries, mode, why };
        let (lane, nonce) = (reader.u32()?, Nonce(reader.u128()?));
        let event = parse_key(reader.take(15)?)?;
        Ok(Self { state, reason, progress, cancel_wished, due, finished_at, lane, nonce, event })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::codec::{key_text, nonce_bytes};
    use proptest::prelude::*;

    /// As the scripts write it.
    pub(crate) fn encode(record: &DeliveryRecord) -> Vec<u8> {
        let progress = &record.progress;
        let at = |instant: Option<Millis>| instant.map_or(0, Millis::get).to_be_bytes();
        let mut out = vec![VERSION, record.state.tag(), record.reason.map_or(0, DeadReason::tag)];
        out.extend([
            progress.mode.tag(),
            progress.why.tag(),
            progress.recoveries,
            record.cancel_wished.into(),
        ]);
        out.extend(progress.attempts.to_be_bytes());
        out.extend(progress.budget_from.to_be_bytes());
        out.extend(record.due.get().to_be_bytes());
        out.extend(at(progress.first_attempt_at));
        out.extend(at(record.finished_at));
        out.extend(record.lane.to_be_bytes());
        out.extend(nonce_bytes(record.nonce));
        out.extend(key_text(record.event).bytes());
        out
    }

    fn any_of<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
        (0..all.len()).prop_map(|index| all[index])
    }

    prop_compose! {
        fn any_record()(
            state in any_of(DeliveryState::ALL), reason in proptest::option::of(any_of(DeadReason::ALL)),
            mode in any_of(Mode::ALL), why in any_of(NextWhy::ALL), recoveries: u8, cancel_wished: bool,
            attempts: u32, budget_from: u32, due in 0u64..1 << 47, first in 0u64..1 << 47,
            finished in 0u64..1 << 47, lane: u32, nonce: u128, event in 0i64..1 << 60,
        ) -> DeliveryRecord {
            let first_attempt_at = instant(first);
            DeliveryRecord {
                state, reason, cancel_wished, lane,
                progress: Progress { attempts, budget_from, first_attempt_at, recoveries, mode, why },
                due: Millis::new(due), finished_at: instant(finished), nonce: Nonce(nonce),
                event: Key::from_raw(event).unwrap(),
            }
        }
    }

    proptest! {
        #[test]
        fn a_delivery_leads_back(record in any_record()) {
            prop_assert_eq!(DeliveryRecord::decode(&encode(&record)), Ok(record));
        }

        #[test]
        fn bytes_of_no_kind_are_unreadable_and_never_panic(bytes: Vec<u8>) {
            let read = DeliveryRecord::decode(&bytes);
            prop_assert!(read.is_err() || bytes[0] == VERSION);
        }
    }
}
