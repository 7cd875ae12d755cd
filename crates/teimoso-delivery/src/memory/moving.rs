//! Moving in and out: the plainest form of what every store does.

use std::collections::VecDeque;

use super::names::Named;
use super::replays::ReplayRow;
use super::rows::{DeliveryRow, EventRow, counter};
use super::state::State;
use crate::lanes::{Horizon, LaneId};
use crate::model::{DeliveryState, EventId, IdSpace, Key, LaneKey, LaneRecord, Millis};
use crate::store::{
    Closing, DeliveryParcel, EventParcel, LaneParcel, NameParcel, Origin, Page, Parcel, Replay, ReplayParcel,
    ReplayState, StoreError, StoreErrorKind,
};

/// Events of one page.
const PAGE: usize = 100;

impl State {
    pub(super) fn export(&self, cursor: Option<&str>, now: Millis) -> Result<Page<Parcel>, StoreError> {
        let Some(cursor) = cursor else {
            let origin = Parcel::Origin(Origin { salt: self.ids.salt() });
            let data = std::iter::once(origin).chain(self.export_lanes()).collect();
            return Ok(Page { data, next_cursor: Some("e-1".to_owned()) });
        };
        let after = cursor.strip_prefix('e').and_then(|raw| raw.parse::<i64>().ok());
        let after = after.ok_or_else(|| StoreError::new(StoreErrorKind::InvalidCursor, "no such cursor"))?;
        let from = Key::from_raw(after.saturating_add(1)).unwrap_or(Key::first_at(Millis::MAX));
        let rows: Vec<_> = self.events.range(from..).take(PAGE).collect();
        if let Some((last, _)) = rows.last() {
            let next_cursor = Some(format!("e{}", last.raw()));
            let data = rows.iter().map(|(key, row)| self.export_event(**key, row, now)).collect();
            return Ok(Page { data, next_cursor });
        }
        let end = Closing { expunged: self.counts.expunged, last_key: self.keys.last() };
        let rest = self.export_names(now).chain(self.export_replays());
        Ok(Page { data: rest.chain([Parcel::End(end)]).collect(), next_cursor: None })
    }

    fn export_lanes(&self) -> impl Iterator<Item = Parcel> {
        let known = self.lanes.ids().filter_map(|id| {
            let record = self.lanes.record(id);
            Some(LaneParcel { key: self.lanes.key(id)?.clone(), record })
        });
        known.filter(|lane| lane.record != LaneRecord::default()).map(Parcel::Lane)
    }

    fn export_event(&self, key: Key, row: &EventRow, now: Millis) -> Parcel {
        let delivery = |key: &Key| {
            let row = self.deliveries.get(key)?;
            let parcel = DeliveryParcel {
                key: *key,
                lane: self.lanes.key(row.lane)?.clone(),
                state: row.state,
                progress: row.progress,
                due: row.due,
                reason: row.reason,
                finished_at: row.finished_at,
                attempts: row.attempts.clone(),
            };
            Some(parcel.at_rest(row.cancel_wished, now))
        };
        let deliveries = row.deliveries.iter().filter_map(delivery).collect();
        Parcel::Event(Box::new(EventParcel { key, event: (*row.event).clone(), deliveries }))
    }

    fn export_names(&self, now: Millis) -> impl Iterator<Item = Parcel> {
        self.names.all().filter(move |(.., named)| named.until > now).map(|(name, application, named)| {
            let event_id = self.events.get(&named.event).and_then(|row| match &row.event.id {
                EventId::Named(text) => Some(text.clone()),
                EventId::Own(_) => None,
            });
            Parcel::Name(NameParcel {
                application: application.clone(),
                name: name.clone(),
                fingerprint: named.fingerprint,
                event: named.event,
                event_id,
                until: named.until,
            })
        })
    }

    fn export_replays(&self) -> impl Iterator<Item = Parcel> {
        self.replays.iter().map(|(key, row)| {
            let Replay { state, filter, rate, estimated, done, failed, created_at, finished_at, .. } =
                row.job;
            let seen = row.left.front().and_then(|next| Key::from_raw(next.raw() - 1));
            Parcel::Replay(ReplayParcel {
                key: *key,
                state,
                filter,
                rate,
                estimated,
                done,
                failed,
                created_at,
                finished_at,
                seen,
            })
        })
    }

    pub(super) fn import(&mut self, parcels: Vec<Parcel>, now: Millis) -> Result<(), StoreError> {
        for parcel in parcels {
            match parcel {
                Parcel::Origin(origin) => self.begin_import(origin)?,
                _ if self.importing.is_none() => return Err(not_moving()),
                Parcel::Lane(lane) => drop(self.lane_named(lane.key, lane.record)?),
                Parcel::Event(event) => self.import_event(*event, now)?,
                Parcel::Name(NameParcel { application, name, fingerprint, event, until, .. }) => {
                    self.names.restore(name, application, Named { event, fingerprint, until });
                }
                Parcel::Replay(replay) => self.import_replay(&replay),
                Parcel::End(end) => {
                    self.counts.expunged += end.expunged;
                    self.counts.accepted += end.expunged;
                    end.last_key.iter().for_each(|key| self.keys.skip(*key));
                    self.importing = None;
                }
            }
        }
        self.announce();
        Ok(())
    }

    fn begin_import(&mut self, origin: Origin) -> Result<(), StoreError> {
        if self.importing == Some(origin.salt) {
            return Ok(());
        }
        if self.importing.is_some() || !self.events.is_empty() || self.counts.accepted > 0 {
            return Err(StoreError::new(
                StoreErrorKind::Failed,
                "the store that is to be moved into is not empty; choose an empty one",
            ));
        }
        self.importing = Some(origin.salt);
        self.ids = IdSpace::new(origin.salt);
        Ok(())
    }

    /// The lane with this name, opened when it is not known.
    fn lane_named(&mut self, key: LaneKey, record: LaneRecord) -> Result<LaneId, StoreError> {
        if let Some(lane) = self.lanes.find(&key) {
            return Ok(lane);
        }
        let full = || StoreError::new(StoreErrorKind::Full, "too many lanes for one store");
        let lane = self.lanes.next_id().ok_or_else(full)?;
        self.lanes.open(lane, key, record, Horizon::All);
        Ok(lane)
    }

    fn import_event(&mut self, parcel: EventParcel, now: Millis) -> Result<(), StoreError> {
        let EventParcel { key, event, deliveries } = parcel;
        if self.events.contains_key(&key) {
            return Ok(());
        }
        self.payload_bytes += event.payload.len() as u64;
        let url = event.url.clone().unwrap_or_else(|| "".into());
        let keys = deliveries.iter().map(|delivery| delivery.key).collect();
        for delivery in deliveries {
            let lane = self.lane_named(delivery.lane, LaneRecord::default())?;
            let row = DeliveryRow {
                event: key,
                lane,
                url: url.clone(),
                created_at: key.at(),
                due: delivery.due,
                state: delivery.state,
                progress: delivery.progress,
                lease: None,
                cancel_wished: false,
                reason: delivery.reason,
                finished_at: delivery.finished_at,
                attempts: delivery.attempts,
            };
            self.counts.accepted += 1;
            *counter(&mut self.counts, row.state) += 1;
            if !row.state.is_final() {
                self.lanes.push(lane, row.due, delivery.key, now);
            }
            self.deliveries.insert(delivery.key, row);
        }
        self.events.insert(key, EventRow { event: event.into(), deliveries: keys });
        Ok(())
    }

    fn import_replay(&mut self, parcel: &ReplayParcel) {
        let ReplayParcel { key, state, filter, rate, estimated, done, failed, created_at, finished_at, seen } =
            *parcel;
        let id = Some(self.ids.replay(key));
        let job = Replay { id, state, filter, rate, estimated, done, failed, created_at, finished_at };
        let waits = |key: &Key, row: &DeliveryRow| {
            row.state == DeliveryState::Dead
                && seen.is_none_or(|seen| *key > seen)
                && row.reason.is_some_and(|reason| filter.takes(reason, row.created_at))
        };
        let mut left = VecDeque::new();
        if state == ReplayState::Running {
            left.extend(self.deliveries.iter().filter(|(key, row)| waits(key, row)).map(|(key, _)| *key));
        }
        self.replays.insert(key, ReplayRow { job, left });
    }
}

fn not_moving() -> StoreError {
    StoreError::new(StoreErrorKind::Failed, "nothing is being moved in here; a move begins with its origin")
}
