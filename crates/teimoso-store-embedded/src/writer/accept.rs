//! Accepting: the event, its names and its fan-out, in one transaction (G1).

use std::sync::Arc;

use rusqlite::{OptionalExtension, Result};
use teimoso_delivery::lanes::LaneId;
use teimoso_delivery::model::{
    Application, ContentType, Destination, Event, EventId, Key, LaneKey, LaneRecord, NewEvent, NextWhy,
    Progress,
};
use teimoso_delivery::store::{Accepted, Rejection};

use super::batch::{Answer, Batch, Effect};
use super::names::{Named, Names};
use crate::core::Fresh;
use crate::rows::{self, lane_columns};

impl Batch<'_> {
    pub(super) fn accept(&mut self, names: &mut Names, events: &[NewEvent]) -> Result<()> {
        let answers = events.iter().map(|event| self.accept_one(names, event)).collect::<Result<_>>()?;
        self.answers.push_back(Answer::Accepted(answers));
        Ok(())
    }

    fn accept_one(
        &mut self,
        names: &mut Names,
        event: &NewEvent,
    ) -> Result<std::result::Result<Accepted, Rejection>> {
        match names.find(self.conn, event, self.now)? {
            Named::No => {}
            Named::Same { key, new_name } => {
                if new_name {
                    names.remember(self.conn, event, key, self.now)?;
                }
                return self.accepted_before(event, key).map(Ok);
            }
            Named::Other(rejection) => return Ok(Err(rejection)),
        }
        let target = match &event.destination {
            None => None,
            Some(destination) => match self.lane_for(event, destination)? {
                Ok((lane, address)) => Some((lane, address, destination)),
                Err(rejection) => return Ok(Err(rejection)),
            },
        };
        let key = self.shared.keys.next(self.now);
        let id = event.id.clone().unwrap_or_else(|| self.shared.ids().event(key));
        let address = target.as_ref().map(|(_, address, _)| &**address);
        self.insert_event(key, event, usize::from(target.is_some()), address)?;
        names.remember(self.conn, event, key, self.now)?;
        let mut deliveries = Vec::new();
        if let Some((lane, address, destination)) = target {
            let url = if *address == *destination.url { address } else { destination.url.clone() };
            let stored = Arc::new(Event::accepted(event, id.clone(), key.at()));
            let delivery = self.insert_delivery(key, event, lane, stored, url)?;
            let progress = Progress::fresh(event.mode, NextWhy::First);
            deliveries.push((self.shared.ids().delivery(delivery), progress.resting_state()));
        }
        Ok(Ok(Accepted { event: id, deliveries, replayed: false }))
    }

    fn insert_event(
        &mut self,
        key: Key,
        event: &NewEvent,
        fanout: usize,
        address: Option<&str>,
    ) -> Result<()> {
        let application = self.application(&event.application)?;
        let name = match &event.id {
            Some(EventId::Named(name)) => Some(&**name),
            Some(EventId::Own(_)) | None => None,
        };
        let content_type =
            Some(event.content_type.as_str()).filter(|text| *text != ContentType::default().as_str());
        let headers = (!event.headers.is_empty()).then(|| event.headers.to_lines());
        let url = event.destination.as_ref().map(|destination| &*destination.url);
        self.execute(
            "INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            (
                key.raw(),
                application,
                i64::try_from(fanout).unwrap_or(i64::MAX),
                name,
                event.kind.as_ref().map(teimoso_delivery::model::EventType::as_str),
                content_type,
                headers,
                event.policy.as_ref().map(teimoso_delivery::model::PolicyName::as_str),
                url.filter(|url| Some(*url) != address),
                &*event.payload,
            ),
        )
    }

    /// Deliveries take the keys right after their event's, so that neither needs an index to the other.
    fn insert_delivery(
        &mut self,
        event_key: Key,
        offered: &NewEvent,
        lane: LaneId,
        event: Arc<Event>,
        url: Arc<str>,
    ) -> Result<Key> {
        let key = self.shared.keys.next(self.now);
        let due = offered.deliver_at.unwrap_or(self.now).max(self.now);
        let why = if due > self.now { NextWhy::DeliverAt } else { NextWhy::First };
        let progress = Progress::fresh(offered.mode, why);
        self.execute(
            "INSERT INTO delivery VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, NULL, 0, NULL, NULL)",
            (
                key.raw(),
                event_key.raw(),
                lane.0,
                rows::raw_millis(due),
                progress.resting_state().tag(),
                progress.mode.tag(),
                why.tag(),
            ),
        )?;
        self.insert_due(lane, due, key)?;
        self.counts.accepted += 1;
        self.counts.pending += 1;
        self.effects.push(Effect::Fresh(key, Fresh { event, url, progress }, due));
        self.effects.push(Effect::Due(lane, due, key));
        Ok(key)
    }

    /// The lane of a destination and its address, made when it is new.
    fn lane_for(
        &mut self,
        event: &NewEvent,
        destination: &Destination,
    ) -> Result<std::result::Result<(LaneId, Arc<str>), Rejection>> {
        let (key, next) = {
            let core = self.shared.core();
            let key = core.lanes.choose(&event.application, destination);
            match core.lanes.find(&key) {
                Some(id) => {
                    let address =
                        core.lanes.key(id).map_or_else(|| key.address.clone(), |key| key.address.clone());
                    return Ok(Ok((id, address)));
                }
                None => {
                    let room = core.lanes.len() + self.new_lanes.len() < self.shared.limits.max_lanes;
                    (key, core.lanes.next_id().filter(|_| room))
                }
            }
        };
        if let Some(id) = self.new_lanes.get(&key) {
            return Ok(Ok((*id, key.address)));
        }
        let Some(next) = next else { return Ok(Err(Rejection::TooManyLanes)) };
        self.open_lane(next, key, None).map(Ok)
    }

    /// A lane that is not in memory: one that was closed while idle, or a new one, of which this may be remembered.
    pub(super) fn open_lane(
        &mut self,
        next: LaneId,
        key: LaneKey,
        remembered: Option<LaneRecord>,
    ) -> Result<(LaneId, Arc<str>)> {
        let application = self.application(&key.application)?;
        let find = concat!("SELECT ", lane_columns!(), " WHERE l.application = ?1 AND l.address = ?2");
        let params = (application, &*key.address);
        let known = self.conn.prepare_cached(find)?.query_row(params, rows::lane).optional()?;
        let (id, record) = match known {
            Some((id, _, record)) => (id, record),
            None => {
                let made = self.new_lanes.values().map(|made| made.0.saturating_add(1)).max();
                let id = LaneId(next.0.max(made.unwrap_or(0)));
                let sql = "INSERT INTO lane(id, application, address) VALUES (?1, ?2, ?3)";
                self.execute(sql, (id.0, application, &*key.address))?;
                (id, remembered.unwrap_or_default())
            }
        };
        let address = key.address.clone();
        self.new_lanes.insert(key.clone(), id);
        self.effects.push(Effect::OpenLane(id, key, record));
        Ok((id, address))
    }

    pub(super) fn application(&mut self, application: &Application) -> Result<i64> {
        if let Some(id) = self.applications.get(application) {
            return Ok(*id);
        }
        let name = application.as_str();
        let find = "SELECT id FROM application WHERE name = ?1";
        let found = self.conn.prepare_cached(find)?.query_row([name], |row| row.get(0)).optional()?;
        let id = match found {
            Some(id) => id,
            None => {
                self.execute("INSERT INTO application(name) VALUES (?1)", [name])?;
                self.conn.last_insert_rowid()
            }
        };
        self.applications.insert(application.clone(), id);
        Ok(id)
    }

    /// The first request's answer, with the deliveries as they stand now.
    fn accepted_before(&self, event: &NewEvent, key: Key) -> Result<Accepted> {
        let find = "SELECT name, fanout FROM event WHERE id = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, i64>(1)?));
        let found = self.conn.prepare_cached(find)?.query_row([key.raw()], read).optional()?;
        let (name, fanout) = found.unwrap_or((None, 0));
        let own = || event.id.clone().unwrap_or_else(|| self.shared.ids().event(key));
        let id = name.map_or_else(own, |name| EventId::Named(name.into()));
        let mut deliveries = Vec::new();
        for raw in key.raw() + 1..=key.raw().saturating_add(fanout) {
            let Some(delivery) = Key::from_raw(raw) else { continue };
            if let Some(row) = self.delivery(delivery)? {
                let in_flight = self.shared.core().leases.contains_key(&delivery) && !row.state.is_final();
                let state =
                    if in_flight { teimoso_delivery::model::DeliveryState::InFlight } else { row.state };
                deliveries.push((self.shared.ids().delivery(delivery), state));
            }
        }
        Ok(Accepted { event: id, deliveries, replayed: true })
    }
}
