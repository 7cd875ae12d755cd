//! The counters beside what is there, when nothing moved meanwhile: two counts in a row with the same result.

use std::collections::{BTreeMap, HashMap};

use redis::cmd;
use teimoso_delivery::model::DeliveryState;
use teimoso_delivery::store::{Counts, FindingKind, StoreError};

use super::Visit;
use crate::codec::{self, DeliveryRecord};
use crate::reply::{array, some_bytes, some_number};

/// How often it is counted anew before it is given up: the fleet is at work.
const TRIES: usize = 4;

/// The counters as Redis keeps them.
type Kept = BTreeMap<String, i64>;

/// What one count found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Tally {
    states: BTreeMap<&'static str, i64>,
    /// In flight, lane by lane.
    lanes: HashMap<u32, u64>,
    /// What the lanes say of that.
    said: Vec<(u32, u64)>,
}

impl Visit {
    async fn kept(&self) -> Result<Kept, StoreError> {
        let mut values =
            array(self.ask(cmd("HGETALL").arg(self.shared.keys.own("counts"))).await?)?.into_iter();
        let mut kept = Kept::new();
        while let (Some(name), Some(value)) = (values.next(), values.next()) {
            kept.insert(String::from_utf8_lossy(&some_bytes(name)?).into_owned(), some_number(&value)?);
        }
        Ok(kept)
    }

    async fn tally(&self) -> Result<Tally, StoreError> {
        let (mut tally, mut scan) = (Tally::default(), self.deliveries_scan());
        let mut seen = std::collections::HashSet::new();
        while let Some(members) = self.next(&mut scan).await? {
            for (key, record) in members {
                let Ok(record) = DeliveryRecord::decode(&record.into()) else { continue };
                // A hash that grows meanwhile may show a field twice.
                if !seen.insert(key) {
                    continue;
                }
                *tally.states.entry(record.state.name()).or_default() += 1;
                if record.state == DeliveryState::InFlight {
                    *tally.lanes.entry(record.lane).or_default() += 1;
                }
            }
        }
        // Those that were never claimed have no record: they are what else has an event that somebody is to receive.
        let events =
            self.length("HLEN", "events").await?.saturating_sub(self.length("ZCARD", "order:bare").await?);
        let fresh = i64::try_from(events).unwrap_or(i64::MAX) - i64::try_from(seen.len()).unwrap_or(i64::MAX);
        *tally.states.entry(DeliveryState::Pending.name()).or_default() += fresh.max(0);
        tally.said = self.all_lanes().await?.iter().map(|lane| (lane.id, lane.in_flight)).collect();
        tally.said.sort_unstable();
        Ok(tally)
    }

    pub(super) async fn counters(&mut self) -> Result<(), StoreError> {
        let mut last: Option<(Kept, Tally)> = None;
        for _ in 0..TRIES {
            let before = self.kept().await?;
            let tally = self.tally().await?;
            let after = self.kept().await?;
            self.checkup.counts = counts(&after);
            if before != after {
                last = None;
                continue;
            }
            let agreed = last.as_ref() == Some(&(after.clone(), tally.clone()));
            if agreed || agrees(&after, &tally) {
                self.checkup.scanned = Some(scanned(&after, &tally));
                self.compare(&after, &tally).await?;
                return self.compare_slots(&tally).await;
            }
            last = Some((after, tally));
        }
        Ok(())
    }

    async fn compare(&mut self, kept: &Kept, tally: &Tally) -> Result<(), StoreError> {
        let mut corrections: BTreeMap<&str, i64> = BTreeMap::new();
        for state in DeliveryState::ALL.iter().map(|state| state.name()) {
            let (said, there) = (of(kept, state), tally.states.get(state).copied().unwrap_or(0));
            if said != there {
                corrections.insert(state, there - said);
                self.checkup
                    .found(FindingKind::CountersOff, format!("{state}: {said} counted, {there} there"));
            }
        }
        let there: i64 = tally.states.values().sum();
        let (accepted, accounted) = (of(kept, "accepted"), there + of(kept, "expunged"));
        let sums = format!("accepted: {accepted} counted, {accounted} accounted for");
        match u64::try_from(accepted - accounted) {
            Ok(0) => {}
            Ok(missing) => {
                // What is nowhere cannot come back: from then on it counts as expunged.
                corrections.insert("expunged", accepted - accounted);
                self.checkup.found_many(FindingKind::AcceptedMissing, missing, sums);
            }
            Err(_) => {
                corrections.insert("accepted", accounted - accepted);
                self.checkup.found(FindingKind::CountersOff, sums);
            }
        }
        if self.heal && !corrections.is_empty() { self.correct(kept, &corrections).await } else { Ok(()) }
    }

    /// Changes them if they still stand as they were read.
    async fn correct(&mut self, kept: &Kept, corrections: &BTreeMap<&str, i64>) -> Result<(), StoreError> {
        let mut call = self.call("counters");
        let states = DeliveryState::ALL.iter().map(|state| state.name());
        for name in states.chain(["accepted", "expunged"]) {
            let add = corrections.get(name).copied().unwrap_or(0);
            call.arg(name).number(of(kept, name)).number(add);
        }
        let changed = array(self.shared.accepts.call(&call).await?)?;
        if !changed.is_empty() {
            for kind in [FindingKind::CountersOff, FindingKind::AcceptedMissing] {
                let found = self.checkup.count_of(kind);
                if found > 0 {
                    self.checkup.healed(kind, found);
                }
            }
        }
        Ok(())
    }

    async fn compare_slots(&mut self, tally: &Tally) -> Result<(), StoreError> {
        for (lane, said) in &tally.said {
            let there = tally.lanes.get(lane).copied().unwrap_or(0);
            if *said != there {
                let mut call = self.call("slots");
                call.arg(codec::lane_text(*lane)).number(*said).number(there);
                self.run(&call).await?;
            }
        }
        Ok(())
    }
}

fn of(kept: &Kept, name: &str) -> i64 {
    kept.get(name).copied().unwrap_or(0)
}

/// Nothing is wrong, so that one count is enough.
fn agrees(kept: &Kept, tally: &Tally) -> bool {
    let there: i64 = tally.states.values().sum();
    DeliveryState::ALL
        .iter()
        .all(|state| of(kept, state.name()) == tally.states.get(state.name()).copied().unwrap_or(0))
        && of(kept, "accepted") == there + of(kept, "expunged")
        && tally.said.iter().all(|(lane, said)| tally.lanes.get(lane).copied().unwrap_or(0) == *said)
}

fn counts(kept: &Kept) -> Counts {
    let of = |name: &str| u64::try_from(of(kept, name)).unwrap_or(0);
    Counts {
        accepted: of("accepted"),
        pending: of("pending"),
        in_flight: of("in_flight"),
        scheduled: of("scheduled"),
        delivered: of("delivered"),
        dead: of("dead"),
        cancelled: of("cancelled"),
        expunged: of("expunged"),
    }
}

fn scanned(kept: &Kept, tally: &Tally) -> Counts {
    let there = |state: DeliveryState| {
        tally.states.get(state.name()).and_then(|count| u64::try_from(*count).ok()).unwrap_or(0)
    };
    Counts {
        pending: there(DeliveryState::Pending),
        in_flight: there(DeliveryState::InFlight),
        scheduled: there(DeliveryState::Scheduled),
        delivered: there(DeliveryState::Delivered),
        dead: there(DeliveryState::Dead),
        cancelled: there(DeliveryState::Cancelled),
        ..counts(kept)
    }
}
