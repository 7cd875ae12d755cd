//! A delivery: what scripts need to move it, what a claim gives out, and its last attempt.
//!
//! Deliberately absent: one that was never claimed. Its event's record says all there is.

use bytes::Bytes;
use teimoso_delivery::machine::MAX_RECOVERIES;
use teimoso_delivery::model::{DeadReason, DeliveryState, Millis, Mode, NextWhy, Nonce, Progress};

use super::event::START_BYTES;
use super::{Reader, Unreadable, nonce_bytes};

const VERSION: u8 = 2;

const WISHED_CANCEL: u8 = 1;
/// It came in through the ready list.
const ADOPTED: u8 = 2;

/// `DELIVERY` of the scripts, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryRecord {
    pub(crate) state: DeliveryState,
    pub(crate) reason: Option<DeadReason>,
    pub(crate) progress: Progress,
    pub(crate) cancel_wished: bool,
    adopted: bool,
    pub(crate) due: Millis,
    pub(crate) finished_at: Option<Millis>,
    /// How long its event's record is.
    bytes: u32,
    /// The lane's number.
    pub(crate) lane: u32,
    /// Zero when nobody holds it.
    pub(crate) nonce: Nonce,
    /// The last attempt's record; empty when there was none that left one.
    pub(crate) last: Bytes,
}

/// An instant that may be absent; zero stands for that.
fn instant(raw: u64) -> Option<Millis> {
    (raw > 0).then(|| Millis::new(raw))
}

impl DeliveryRecord {
    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, Unreadable> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let state = DeliveryState::from_tag(reader.u8()?).ok_or(Unreadable)?;
        let reason = DeadReason::from_tag(reader.u8()?);
        let start = Start::read(&mut reader)?;
        let first_attempt_at = instant(reader.u64()?);
        let attempts = reader.u32()?;
        let finished_at = instant(reader.u64()?);
        let (event_bytes, lane, nonce) = (reader.u32()?, lane(&mut reader)?, Nonce(reader.u128()?));
        let last = bytes.slice(bytes.len() - reader.rest().len()..);
        let record = start.delivery(lane, nonce);
        Ok(Self {
            state,
            reason,
            progress: Progress { first_attempt_at, attempts, ..record.progress },
            finished_at,
            bytes: event_bytes,
            last,
            ..record
        })
    }

    /// The record of a first claim, which scripts make of the event's.
    pub(crate) fn claimed_first(event: &[u8], nonce: Nonce) -> Result<Self, Unreadable> {
        let mut reader = Reader::new(event.get(1..START_BYTES).ok_or(Unreadable)?);
        let record = Start::read(&mut reader)?.delivery(lane(&mut reader)?, nonce);
        Ok(Self { bytes: u32::try_from(event.len()).unwrap_or(u32::MAX), ..record })
    }

    /// One that waits for its first claim, of which only its event's record tells; `None` when nobody is to receive it.
    pub(crate) fn never_claimed(event: &[u8]) -> Result<Option<Self>, Unreadable> {
        let record = Self::claimed_first(event, Nonce(0))?;
        Ok((record.lane > 0).then_some(Self { state: DeliveryState::Pending, ..record }))
    }

    /// Whether it was in flight at too many deaths, and is only leased to be buried in a public key.
    pub(crate) const fn is_poison(&self) -> bool {
        self.adopted && !self.cancel_wished && self.progress.recoveries >= MAX_RECOVERIES
    }

    /// The record once it is delivered: all that the script does not look up for itself.
    pub(super) fn delivered(&self, progress: &Progress, finished_at: Millis, attempt: &[u8]) -> Vec<u8> {
        let first = progress.first_attempt_at.map_or(0, Millis::get);
        let flags = if self.adopted { ADOPTED } else { 0 };
        let mut out = Vec::with_capacity(67 + attempt.len());
        out.extend([VERSION, DeliveryState::Delivered.tag(), 0]);
        out.extend([progress.mode.tag(), progress.why.tag(), progress.recoveries, flags]);
        out.extend(progress.budget_from.to_be_bytes());
        out.extend(self.due.get().to_be_bytes());
        out.extend(first.to_be_bytes());
        out.extend(progress.attempts.to_be_bytes());
        out.extend(finished_at.get().to_be_bytes());
        out.extend(self.bytes.to_be_bytes());
        out.extend(lane_text(self.lane).into_bytes());
        out.extend(nonce_bytes(Nonce(0)));
        out.extend(attempt);
        out
    }
}

/// A lane's number as scripts have it.
pub(crate) fn lane_text(lane: u32) -> String {
    format!("{lane:08x}")
}

/// Reads it back.
pub(crate) fn lane_number(text: &[u8]) -> Result<u32, Unreadable> {
    let text = std::str::from_utf8(text).map_err(|_| Unreadable)?;
    u32::from_str_radix(text, 16).map_err(|_| Unreadable)
}

fn lane(reader: &mut Reader<'_>) -> Result<u32, Unreadable> {
    lane_number(reader.take(8)?)
}

/// What an event's record and its delivery's have in common: `EVENT` of the scripts, without version and lane.
struct Start {
    mode: Mode,
    why: NextWhy,
    recoveries: u8,
    flags: u8,
    budget_from: u32,
    due: Millis,
}

impl Start {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Unreadable> {
        Ok(Self {
            mode: Mode::from_tag(reader.u8()?).ok_or(Unreadable)?,
            why: NextWhy::from_tag(reader.u8()?).ok_or(Unreadable)?,
            recoveries: reader.u8()?,
            flags: reader.u8()?,
            budget_from: reader.u32()?,
            due: Millis::new(reader.u64()?),
        })
    }

    /// In flight for the first time.
    fn delivery(self, lane: u32, nonce: Nonce) -> DeliveryRecord {
        let Self { mode, why, recoveries, flags, budget_from, due } = self;
        DeliveryRecord {
            state: DeliveryState::InFlight,
            reason: None,
            progress: Progress { attempts: 0, budget_from, first_attempt_at: None, recoveries, mode, why },
            cancel_wished: flags & WISHED_CANCEL != 0,
            adopted: flags & ADOPTED != 0,
            due,
            finished_at: None,
            bytes: 0,
            lane,
            nonce,
            last: Bytes::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the scripts write it.
    fn encode(record: &DeliveryRecord) -> Bytes {
        let mut out =
            record.delivered(&record.progress, record.finished_at.unwrap_or_default(), &record.last);
        (out[1], out[2]) = (record.state.tag(), record.reason.map_or(0, DeadReason::tag));
        out[6] += u8::from(record.cancel_wished);
        out[51..67].copy_from_slice(&nonce_bytes(record.nonce));
        out.into()
    }

    fn any_of<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
        (0..all.len()).prop_map(|index| all[index])
    }

    prop_compose! {
        fn any_record()(
            state in any_of(DeliveryState::ALL), reason in proptest::option::of(any_of(DeadReason::ALL)),
            mode in any_of(Mode::ALL), why in any_of(NextWhy::ALL), recoveries: u8, cancel_wished: bool,
            adopted: bool, attempts: u32, budget_from: u32, due in 0u64..1 << 47, first in 0u64..1 << 47,
            (finished, bytes, lane, nonce) in (0u64..1 << 47, any::<u32>(), any::<u32>(), any::<u128>()),
            last: Vec<u8>,
        ) -> DeliveryRecord {
            let first_attempt_at = instant(first);
            DeliveryRecord {
                state, reason, cancel_wished, adopted, bytes, lane,
                progress: Progress { attempts, budget_from, first_attempt_at, recoveries, mode, why },
                due: Millis::new(due), finished_at: instant(finished), nonce: Nonce(nonce), last: last.into(),
            }
        }
    }

    proptest! {
        #[test]
        fn a_delivery_leads_back(record in any_record()) {
            prop_assert_eq!(DeliveryRecord::decode(&encode(&record)), Ok(record));
        }

        #[test]
        fn a_first_claim_is_what_the_event_says(record in any_record(), payload: Vec<u8>) {
            let kept = encode(&record);
            let event = [&[VERSION], &kept[3..19], lane_text(record.lane).as_bytes(), &payload].concat();
            let first = DeliveryRecord::claimed_first(&event, record.nonce).unwrap();
            let progress = Progress { attempts: 0, first_attempt_at: None, ..record.progress };
            prop_assert_eq!(first.progress, progress);
            prop_assert_eq!((first.due, first.lane, first.nonce), (record.due, record.lane, record.nonce));
            prop_assert_eq!((first.bytes as usize, first.last), (event.len(), Bytes::new()));
        }

        #[test]
        fn bytes_of_no_kind_are_unreadable_and_never_panic(bytes: Vec<u8>) {
            let read = DeliveryRecord::decode(&bytes.clone().into());
            prop_assert!(read.is_err() || bytes[0] == VERSION);
            prop_assert!(DeliveryRecord::claimed_first(&bytes, Nonce(1)).is_err() || bytes.len() >= START_BYTES);
        }
    }
}
