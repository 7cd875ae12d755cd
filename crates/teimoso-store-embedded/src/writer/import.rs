//! Keeping what another store exported: the same rows under the same keys, what is there already untouched.

use rusqlite::{OptionalExtension, Result};
use teimoso_delivery::lanes::LaneId;
use teimoso_delivery::model::{
    ContentType, DeadReason, DeliveryState, EventId, EventType, IdSpace, Key, LaneKey, LaneRecord, PolicyName,
};
use teimoso_delivery::store::{
    Closing, DeliveryParcel, EventName, EventParcel, NameParcel, Origin, Parcel, ReplayParcel, ReplayState,
    StoreError, StoreErrorKind, id_digest,
};

use super::batch::{Answer, Batch, Effect};
use super::names::{Names, WINDOW_HOURS};
use super::replay::Replays;
use crate::core::resting_count;
use crate::moving::IMPORTING;
use crate::rows;

type Kept = std::result::Result<(), StoreError>;

fn refused(sentence: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Failed, sentence)
}

impl Batch<'_> {
    pub(super) fn import(
        &mut self,
        names: &mut Names,
        replays: &mut Replays,
        parcels: &[Parcel],
    ) -> Result<()> {
        let mut kept = Ok(());
        for parcel in parcels {
            kept = self.import_one(names, replays, parcel)?;
            if kept.is_err() {
                break;
            }
        }
        self.answers.push_back(Answer::Imported(kept));
        Ok(())
    }

    fn import_one(&mut self, names: &mut Names, replays: &mut Replays, parcel: &Parcel) -> Result<Kept> {
        if let Parcel::Origin(origin) = parcel {
            return self.begin_import(*origin);
        }
        let Some(salt) = rows::meta(self.conn, IMPORTING)? else {
            return Ok(Err(refused("nothing is being moved in here; a move begins with its origin")));
        };
        match parcel {
            Parcel::Origin(_) => Ok(Ok(())),
            Parcel::Lane(lane) => Ok(self.lane_named(&lane.key, lane.record)?.map(drop)),
            Parcel::Event(event) => self.import_event(event, IdSpace::new(salt.cast_unsigned())),
            Parcel::Name(name) => self.import_name(names, name).map(Ok),
            Parcel::Replay(replay) => self.import_replay(replays, replay).map(Ok),
            Parcel::End(end) => self.end_import(*end).map(Ok),
        }
    }

    fn begin_import(&mut self, origin: Origin) -> Result<Kept> {
        let salt = origin.salt.cast_signed();
        match rows::meta(self.conn, IMPORTING)? {
            Some(known) if known == salt => return Ok(Ok(())),
            Some(_) => return Ok(Err(refused("another store is half moved in here; choose an empty one"))),
            None => {}
        }
        let used = "SELECT EXISTS (SELECT 1 FROM event) OR (SELECT accepted > 0 FROM counter)";
        if self.conn.query_row(used, [], |row| row.get(0))? {
            return Ok(Err(refused("the store that is to be moved into is not empty; choose an empty one")));
        }
        rows::set_meta(self.conn, IMPORTING, salt)?;
        rows::set_meta(self.conn, "salt", salt)?;
        self.effects.push(Effect::Ids(IdSpace::new(origin.salt)));
        Ok(Ok(()))
    }

    /// The lane with this name, opened when it is not known.
    fn lane_named(
        &mut self,
        key: &LaneKey,
        record: LaneRecord,
    ) -> Result<std::result::Result<LaneId, StoreError>> {
        let (known, next) = {
            let core = self.shared.core();
            (core.lanes.find(key), core.lanes.next_id())
        };
        if let Some(id) = known.or_else(|| self.new_lanes.get(key).copied()) {
            return Ok(Ok(id));
        }
        let Some(next) = next else { return Ok(Err(refused("too many lanes for one store"))) };
        let (id, _) = self.open_lane(next, key.clone(), Some(record))?;
        if record != LaneRecord::default() {
            self.save_lane(id, record)?;
        }
        Ok(Ok(id))
    }

    fn import_event(&mut self, parcel: &EventParcel, ids: IdSpace) -> Result<Kept> {
        let known = "SELECT 1 FROM event WHERE id = ?1";
        let known = self.conn.prepare_cached(known)?.query_row([parcel.key.raw()], |_| Ok(())).optional()?;
        if known.is_some() {
            return Ok(Ok(()));
        }
        let mut lanes = Vec::new();
        for delivery in &parcel.deliveries {
            match self.lane_named(&delivery.lane, LaneRecord::default())? {
                Ok(lane) => lanes.push(lane),
                Err(full) => return Ok(Err(full)),
            }
        }
        self.insert_parcel(parcel, ids)?;
        for (delivery, lane) in parcel.deliveries.iter().zip(lanes) {
            self.import_delivery(parcel.key, delivery, lane)?;
        }
        Ok(Ok(()))
    }

    fn insert_parcel(&mut self, parcel: &EventParcel, ids: IdSpace) -> Result<()> {
        let EventParcel { key, event, deliveries } = parcel;
        let application = self.application(&event.application)?;
        let name = match &event.id {
            own @ EventId::Own(_) if *own == ids.event(*key) => None,
            id => Some(id.to_string()),
        };
        let content_type =
            Some(event.content_type.as_str()).filter(|text| *text != ContentType::default().as_str());
        let last = deliveries.iter().map(|delivery| delivery.key.raw()).max().unwrap_or(key.raw());
        // A URL that is its lane's address is kept there.
        let address = deliveries.first().map(|delivery| &*delivery.lane.address);
        self.execute(
            "INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            (
                key.raw(),
                application,
                last - key.raw(),
                name,
                event.kind.as_ref().map(EventType::as_str),
                content_type,
                (!event.headers.is_empty()).then(|| event.headers.to_lines()),
                event.policy.as_ref().map(PolicyName::as_str),
                event.url.as_deref().filter(|url| Some(*url) != address),
                &*event.payload,
            ),
        )
    }

    fn import_delivery(&mut self, event: Key, parcel: &DeliveryParcel, lane: LaneId) -> Result<()> {
        let DeliveryParcel { key, state, progress, due, reason, finished_at, attempts, .. } = parcel;
        self.execute(
            "INSERT INTO delivery VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            rusqlite::params![
                key.raw(),
                event.raw(),
                lane.0,
                rows::raw_millis(*due),
                state.tag(),
                progress.mode.tag(),
                progress.why.tag(),
                progress.attempts,
                progress.budget_from,
                progress.first_attempt_at.map(rows::raw_millis),
                progress.recoveries,
                reason.map(DeadReason::tag),
                finished_at.map(rows::raw_millis),
            ],
        )?;
        for attempt in attempts {
            rows::with_attempt(*key, attempt, |values| self.execute(rows::INSERT_ATTEMPT, values))?;
        }
        self.counts.accepted += 1;
        match state {
            DeliveryState::Delivered => self.counts.delivered += 1,
            DeliveryState::Dead => self.counts.dead += 1,
            DeliveryState::Cancelled => self.counts.cancelled += 1,
            _ => {
                *resting_count(&mut self.counts, progress) += 1;
                self.insert_due(lane, *due, *key)?;
                self.effects.push(Effect::Due(lane, *due, *key));
            }
        }
        Ok(())
    }

    /// In the hour from which it is recognised as long as it would have been.
    fn import_name(&mut self, names: &mut Names, parcel: &NameParcel) -> Result<()> {
        let digest = match &parcel.name {
            EventName::Id(text) => id_digest(&parcel.application, text),
            EventName::Key(digest) => *digest,
        };
        let hour = parcel.until.get().div_ceil(3_600_000).saturating_sub(WINDOW_HOURS);
        names.remember_digest(self.conn, &digest, &parcel.fingerprint, parcel.event, hour)
    }

    fn import_replay(&mut self, replays: &mut Replays, parcel: &ReplayParcel) -> Result<()> {
        let raw = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.execute(
            "INSERT OR REPLACE INTO replay VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            rusqlite::params![
                parcel.key.raw(),
                parcel.state.tag(),
                parcel.filter.reason.map(DeadReason::tag),
                parcel.filter.since.map(rows::raw_millis),
                parcel.filter.until.map(rows::raw_millis),
                parcel.rate,
                parcel.seen.map_or(-1, Key::raw),
                raw(parcel.estimated),
                raw(parcel.done),
                raw(parcel.failed),
                rows::raw_millis(parcel.created_at),
                parcel.finished_at.map(rows::raw_millis),
            ],
        )?;
        if parcel.state == ReplayState::Running { replays.reload(self.conn) } else { Ok(()) }
    }

    fn end_import(&mut self, end: Closing) -> Result<()> {
        self.counts.expunged += end.expunged;
        self.counts.accepted += end.expunged;
        if let Some(last) = end.last_key {
            rows::set_meta(self.conn, rows::LAST_EXPUNGED, last.raw())?;
            self.shared.keys.skip(last);
        }
        self.conn.execute("DELETE FROM meta WHERE name = ?1", [IMPORTING]).map(drop)
    }
}
