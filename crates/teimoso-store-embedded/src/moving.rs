//! Moving out: everything the file keeps, page by page, in key order. Moving in is the writer's.

use rusqlite::{Connection, Result, Row};
use teimoso_delivery::model::{DeadReason, DeliveryState, EventId, IdSpace, Key, LaneRecord};
use teimoso_delivery::store::{
    Closing, DeliveryParcel, EventName, EventParcel, LaneParcel, NameParcel, Origin, Page, Parcel,
    ReplayParcel, ReplayState, StoreError, id_digest,
};

use crate::EmbeddedStore;
use crate::error::invalid_cursor;
use crate::rows::{self, EVENT_HEAD_COLUMNS, EventHead, event_columns, lane_columns, progress_columns};
use crate::writer::{WINDOW_HOURS, name_tables};

/// In `meta` while another store is being moved in: the salt of its ids.
pub(crate) const IMPORTING: &str = "importing";

/// Events of one page …
const EVENTS: usize = 200;
/// … and payload bytes beyond which it ends.
const BYTES: usize = 4 << 20;
/// Names of one page.
const NAMES: usize = 1_000;

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind this event.
    Events(i64),
    /// In this hour's names, behind this digest.
    Names(u64, [u8; 16]),
}

impl Place {
    fn parse(text: &str) -> Option<Self> {
        if let Some(raw) = text.strip_prefix('e') {
            return raw.parse().ok().map(Self::Events);
        }
        let (hour, digest) = text.strip_prefix('n')?.split_once(':')?;
        let digest = u128::from_str_radix(digest, 16).ok()?;
        Some(Self::Names(hour.parse().ok()?, digest.to_be_bytes()))
    }

    fn text(self) -> String {
        match self {
            Self::Events(after) => format!("e{after}"),
            Self::Names(hour, digest) => format!("n{hour}:{:032x}", u128::from_be_bytes(digest)),
        }
    }
}

impl EmbeddedStore {
    pub(crate) async fn export_page(
        &self,
        cursor: Option<String>,
    ) -> std::result::Result<Page<Parcel>, StoreError> {
        let place = cursor.map(|text| Place::parse(&text).ok_or_else(invalid_cursor)).transpose()?;
        let (ids, last_key) = (self.shared.ids(), self.shared.keys.last());
        let expunged = self.shared.core().counts.expunged;
        let end = Closing { expunged, last_key };
        let mut page = self
            .readers
            .ask(move |conn| match place {
                None => beginning(conn, ids),
                Some(Place::Events(after)) => events(conn, ids, after),
                Some(Place::Names(hour, digest)) => names(conn, hour, digest, end),
            })
            .await?;
        self.let_rest(&mut page);
        Ok(page)
    }

    /// What somebody works on is known in memory only.
    fn let_rest(&self, page: &mut Page<Parcel>) {
        let (core, now) = (self.shared.core(), self.shared.clock.now());
        for parcel in &mut page.data {
            let Parcel::Event(event) = parcel else { continue };
            for delivery in &mut event.deliveries {
                let Some(leased) = core.leases.get(&delivery.key) else { continue };
                if !delivery.state.is_final() {
                    let held = DeliveryParcel { state: DeliveryState::InFlight, ..delivery.clone() };
                    *delivery = held.at_rest(leased.cancel_wished, now);
                }
            }
        }
    }
}

fn beginning(conn: &Connection, ids: IdSpace) -> Result<Page<Parcel>> {
    let mut data = vec![Parcel::Origin(Origin { salt: ids.salt() })];
    let mut select = conn.prepare_cached(concat!(
        "SELECT ",
        lane_columns!(),
        " WHERE l.not_before IS NOT NULL OR l.allowance IS NOT NULL OR l.openings > 0 ORDER BY l.id"
    ))?;
    for lane in select.query_map([], rows::lane)? {
        let (_, key, record) = lane?;
        if record != LaneRecord::default() {
            data.push(Parcel::Lane(LaneParcel { key, record }));
        }
    }
    Ok(Page { data, next_cursor: Some(Place::Events(-1).text()) })
}

const EVENT: &str = concat!(
    "SELECT ",
    event_columns!(),
    ", e.payload, e.fanout FROM event e JOIN application a ON a.id = e.application",
    " WHERE e.id > ?1 ORDER BY e.id LIMIT ?2"
);

const DELIVERIES: &str = concat!(
    "SELECT d.id, d.state, d.due, d.reason, d.finished_at, ",
    progress_columns!(),
    ", ",
    lane_columns!(),
    " JOIN delivery d ON d.lane = l.id WHERE d.id > ?1 AND d.id <= ?2 ORDER BY d.id"
);

fn events(conn: &Connection, ids: IdSpace, after: i64) -> Result<Page<Parcel>> {
    let mut select = conn.prepare_cached(EVENT)?;
    let mut found = select.query((after, i64::try_from(EVENTS).unwrap_or(i64::MAX)))?;
    let (mut data, mut bytes, mut last) = (Vec::new(), 0, after);
    while let Some(row) = found.next()? {
        let payload = row.get_ref(EVENT_HEAD_COLUMNS)?.as_blob()?;
        bytes += payload.len();
        let fanout: i64 = row.get(EVENT_HEAD_COLUMNS + 1)?;
        let head = EventHead::read(row, 0, ids)?;
        let key = head.key;
        last = key.raw();
        let mut event = head.with_payload(bytes::Bytes::copy_from_slice(payload));
        let deliveries = deliveries(conn, key, fanout)?;
        if let (None, Some(first)) = (&event.url, deliveries.first()) {
            event.url = Some(first.lane.address.clone()).filter(|url| !url.is_empty());
        }
        data.push(Parcel::Event(Box::new(EventParcel { key, event, deliveries })));
        if bytes >= BYTES {
            break;
        }
    }
    let next = if data.is_empty() { Place::Names(0, [0; 16]) } else { Place::Events(last) };
    Ok(Page { data, next_cursor: Some(next.text()) })
}

fn deliveries(conn: &Connection, event: Key, fanout: i64) -> Result<Vec<DeliveryParcel>> {
    let read = |row: &Row<'_>| {
        let state = DeliveryState::from_tag(row.get(1)?);
        let finished_at: Option<i64> = row.get(4)?;
        let key = rows::key(row, 0)?;
        Ok(DeliveryParcel {
            key,
            lane: rows::lane_at(row, 11)?.1,
            state: state.ok_or_else(|| rows::unreadable(1, "an unknown state"))?,
            progress: rows::progress(row, 5)?,
            due: rows::millis(row.get(2)?),
            reason: row.get::<_, Option<u8>>(3)?.and_then(DeadReason::from_tag),
            finished_at: finished_at.map(rows::millis),
            attempts: conn
                .prepare_cached(rows::SELECT_ALL_ATTEMPTS)?
                .query_map([key.raw()], rows::attempt)?
                .collect::<Result<_>>()?,
        })
    };
    let range = (event.raw(), event.raw().saturating_add(fanout));
    conn.prepare_cached(DELIVERIES)?.query_map(range, read)?.collect()
}

fn names(conn: &Connection, hour: u64, after: [u8; 16], end: Closing) -> Result<Page<Parcel>> {
    let tables = name_tables(conn)?;
    for (index, (of, table)) in tables.iter().enumerate() {
        if *of < hour {
            continue;
        }
        let after = if *of == hour { after } else { [0; 16] };
        let (data, last) = names_of(conn, *of, table, after)?;
        if let Some(last) = last {
            return Ok(Page { data, next_cursor: Some(Place::Names(*of, last).text()) });
        }
        if let Some((next, _)) = tables.get(index + 1) {
            return Ok(Page { data, next_cursor: Some(Place::Names(*next, [0; 16]).text()) });
        }
    }
    let mut data = replays(conn)?;
    data.push(Parcel::End(end));
    Ok(Page { data, next_cursor: None })
}

/// Some names of an hour, and the last of them if there may be more.
fn names_of(
    conn: &Connection,
    hour: u64,
    table: &str,
    after: [u8; 16],
) -> Result<(Vec<Parcel>, Option<[u8; 16]>)> {
    let sql = format!(
        "SELECT n.digest, n.fingerprint, n.event, a.name, e.name FROM {table} n
            LEFT JOIN event e ON e.id = n.event LEFT JOIN application a ON a.id = e.application
            WHERE n.digest > ?1 ORDER BY n.digest LIMIT {NAMES}"
    );
    let mut select = conn.prepare(&sql)?;
    let mut found = select.query([after])?;
    let (mut data, mut last) = (Vec::new(), None);
    while let Some(row) = found.next()? {
        let digest: [u8; 16] = row.get(0)?;
        last = Some(digest);
        let application = rows::application(row, 3)?;
        let id = row.get::<_, Option<String>>(4)?;
        let event_id = id.filter(|id| EventId::named(id).is_ok()).map(Into::into);
        let named = |id: &std::sync::Arc<str>| id_digest(&application, id) == digest;
        let name = match event_id.as_ref().filter(|id| named(id)) {
            Some(id) => EventName::Id(id.clone()),
            None => EventName::Key(digest),
        };
        data.push(Parcel::Name(NameParcel {
            name,
            fingerprint: row.get(1)?,
            event: rows::key(row, 2)?,
            event_id,
            until: teimoso_delivery::model::Millis::new((hour + WINDOW_HOURS) * 3_600_000),
            application,
        }));
    }
    Ok((data, last))
}

fn replays(conn: &Connection) -> Result<Vec<Parcel>> {
    let read = |row: &Row<'_>| {
        let replay = crate::writer::read_replay(row, IdSpace::new(0))?;
        let running = replay.state == ReplayState::Running;
        Ok(Parcel::Replay(ReplayParcel {
            key: rows::key(row, 0)?,
            state: replay.state,
            filter: replay.filter,
            rate: replay.rate,
            estimated: replay.estimated,
            done: replay.done,
            failed: replay.failed,
            created_at: replay.created_at,
            finished_at: replay.finished_at,
            seen: Key::from_raw(row.get(6)?).filter(|_| running),
        }))
    };
    let sql = format!("SELECT {} FROM replay ORDER BY id", crate::writer::REPLAY_COLUMNS);
    conn.prepare(&sql)?.query_map([], read)?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_leads_back() {
        for place in [Place::Events(-1), Place::Events(7), Place::Names(499_655, [0xab; 16])] {
            assert_eq!(Place::parse(&place.text()), Some(place));
        }
        for text in ["", "e", "x1", "n1", "nx:0", "n1:zz"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_page_is_read_by_keys_alone() {
        for sql in [EVENT, DELIVERIES] {
            let plan = crate::schema::plan(sql);
            assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{plan:?}");
        }
    }
}
