//! A replay job.

use teimoso_delivery::model::{DeadReason, Key, Millis, ReplayId};
use teimoso_delivery::store::{NewReplay, Replay, ReplayFilter, ReplayParcel, ReplayState};

use super::{Reader, Unreadable};

const VERSION: u8 = 1;

/// `JOB` of the scripts, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobRecord {
    state: ReplayState,
    filter: ReplayFilter,
    rate: u32,
    estimated: u64,
    done: u64,
    failed: u64,
    created_at: Millis,
    finished_at: Option<Millis>,
}

/// An instant that may be absent is kept plus one.
const fn plus_one(at: Option<Millis>) -> u64 {
    match at {
        None => 0,
        Some(at) => at.get() + 1,
    }
}

fn minus_one(raw: u64) -> Option<Millis> {
    raw.checked_sub(1).map(Millis::new)
}

/// The order as the script that starts a job reads it; what the script fills in is zero.
pub(crate) fn encode_order(order: &NewReplay, rate: u32) -> Vec<u8> {
    let filter = &order.filter;
    let mut out = vec![VERSION, ReplayState::Running.tag(), filter.reason.map_or(0, DeadReason::tag)];
    out.extend(plus_one(filter.since).to_be_bytes());
    out.extend(plus_one(filter.until).to_be_bytes());
    out.extend(rate.to_be_bytes());
    out.extend([0; 5 * 8]);
    out
}

/// A job that moves in, as it stands.
pub(crate) fn encode_job(order: &NewReplay, parcel: &ReplayParcel) -> Vec<u8> {
    let mut out = encode_order(order, parcel.rate);
    out[1] = parcel.state.tag();
    out.truncate(out.len() - 5 * 8);
    let ReplayParcel { estimated, done, failed, created_at, finished_at, .. } = parcel;
    for number in [*estimated, *done, *failed, created_at.get(), plus_one(*finished_at)] {
        out.extend(number.to_be_bytes());
    }
    out
}

/// Begins an item that is an entry of the public list; others are keys.
const ENTRY: u8 = b'p';

/// An item of a job's list: an entry of the public list, and the text it gets when it goes back (`None`: the same).
pub(crate) fn replay_item(entry: &[u8], again: Option<&[u8]>) -> Vec<u8> {
    let again = again.unwrap_or_default();
    let mut out = Vec::with_capacity(5 + again.len() + entry.len());
    out.push(ENTRY);
    out.extend(u32::try_from(again.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(again);
    out.extend_from_slice(entry);
    out
}

impl JobRecord {
    /// The job as it moves out.
    pub(crate) fn parcel(self, key: Key, seen: Option<Key>) -> ReplayParcel {
        let Self { state, filter, rate, estimated, done, failed, created_at, finished_at } = self;
        let seen = seen.filter(|_| state == ReplayState::Running);
        ReplayParcel { key, state, filter, rate, estimated, done, failed, created_at, finished_at, seen }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let state = ReplayState::from_tag(reader.u8()?).ok_or(Unreadable)?;
        let reason = DeadReason::from_tag(reader.u8()?);
        let (since, until) = (minus_one(reader.u64()?), minus_one(reader.u64()?));
        Ok(Self {
            state,
            filter: ReplayFilter { reason, since, until },
            rate: reader.u32()?,
            estimated: reader.u64()?,
            done: reader.u64()?,
            failed: reader.u64()?,
            created_at: Millis::new(reader.u64()?),
            finished_at: minus_one(reader.u64()?),
        })
    }

    pub(crate) const fn view(self, id: ReplayId) -> Replay {
        let Self { state, filter, rate, estimated, done, failed, created_at, finished_at } = self;
        Replay { id: Some(id), state, filter, rate, estimated, done, failed, created_at, finished_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_order_leads_back(
            reason in 0u8..12, since in proptest::option::of(0u64..1 << 47),
            until in proptest::option::of(0u64..1 << 47), rate in 1u32..=10_000,
        ) {
            let filter = ReplayFilter {
                reason: DeadReason::from_tag(reason),
                since: since.map(Millis::new),
                until: until.map(Millis::new),
            };
            let order = NewReplay { filter, rate, dry_run: false };
            let read = JobRecord::decode(&encode_order(&order, rate)).unwrap();
            prop_assert_eq!((read.filter, read.rate, read.state), (filter, rate, ReplayState::Running));
            prop_assert_eq!((read.done, read.finished_at), (0, None));
        }

        #[test]
        fn a_job_that_moves_leads_back(
            state in 0u8..3, rate in 1u32..=10_000, numbers: [u32; 4], finished in proptest::option::of(0u64..1 << 47),
        ) {
            let [estimated, done, failed, created] = numbers.map(u64::from);
            let parcel = ReplayParcel {
                key: Key::first_at(Millis::new(7)), state: ReplayState::from_tag(state).unwrap(),
                filter: ReplayFilter::default(), rate, estimated, done, failed,
                created_at: Millis::new(created), finished_at: finished.map(Millis::new), seen: None,
            };
            let order = NewReplay { filter: parcel.filter, rate, dry_run: false };
            let read = JobRecord::decode(&encode_job(&order, &parcel)).unwrap();
            prop_assert_eq!(read.parcel(parcel.key, None), parcel);
        }

        #[test]
        fn bytes_of_no_kind_are_unreadable_and_never_panic(bytes: Vec<u8>) {
            let read = JobRecord::decode(&bytes);
            prop_assert!(read.is_err() || bytes[0] == VERSION);
        }
    }
}
