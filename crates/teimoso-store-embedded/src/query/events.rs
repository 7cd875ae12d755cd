//! Events: one, a page of them, the exact payload.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Result, Row};
use teimoso_delivery::model::{ContentType, EventId, IdSpace, Key, Millis};
use teimoso_delivery::store::{EventFilter, EventView, MAX_PAGE, Page, StoreError};

use super::deliveries::{Stored, find};
use super::{MAX_LOOKED_AT, event_key};
use crate::EmbeddedStore;
use crate::error::invalid_cursor;
use crate::rows::{EVENT_HEAD_COLUMNS, EventHead, event_columns};

struct StoredEvent {
    view: EventView,
    deliveries: Vec<Stored>,
}

fn load(conn: &Connection, key: Key, ids: IdSpace) -> Result<Option<StoredEvent>> {
    let sql = concat!(
        "SELECT ",
        event_columns!(),
        ", length(e.payload), e.fanout FROM event e JOIN application a ON a.id = e.application WHERE e.id = ?1"
    );
    let read = |row: &Row<'_>| {
        let head = EventHead::read(row, 0, ids)?;
        let bytes: i64 = row.get(EVENT_HEAD_COLUMNS)?;
        let fanout: i64 = row.get(EVENT_HEAD_COLUMNS + 1)?;
        let view = EventView {
            created_at: head.key.at(),
            id: head.id,
            application: head.application,
            kind: head.kind,
            content_type: head.content_type,
            payload_bytes: u64::try_from(bytes).unwrap_or(0),
            deliveries: Vec::new(),
        };
        Ok((view, fanout))
    };
    let found = conn.prepare_cached(sql)?.query_row([key.raw()], read).optional()?;
    let Some((view, fanout)) = found else { return Ok(None) };
    let mut deliveries = Vec::new();
    for raw in key.raw() + 1..=key.raw().saturating_add(fanout) {
        let Some(delivery) = Key::from_raw(raw) else { continue };
        deliveries.extend(find(conn, delivery, ids)?);
    }
    Ok(Some(StoredEvent { view, deliveries }))
}

fn list(
    conn: &Connection,
    ids: IdSpace,
    filter: &EventFilter,
    below: i64,
) -> Result<(Vec<StoredEvent>, Option<i64>)> {
    let from = filter.since.map_or(0, |at| Key::first_at(at).raw());
    let mut select =
        conn.prepare_cached("SELECT id, type FROM event WHERE id >= ?1 AND id < ?2 ORDER BY id DESC")?;
    let mut rows = select.query((from, below))?;
    let (mut found, mut looked) = (Vec::new(), 0);
    let limit = filter.limit.clamp(1, MAX_PAGE) as usize;
    while let Some(row) = rows.next()? {
        looked += 1;
        let raw: i64 = row.get(0)?;
        let fits = match &filter.kind {
            None => true,
            Some(kind) => row.get_ref(1)?.as_str_or_null()? == Some(kind.as_str()),
        };
        if let (true, Some(key)) = (fits, Key::from_raw(raw)) {
            found.extend(load(conn, key, ids)?);
        }
        if found.len() == limit || looked == MAX_LOOKED_AT {
            return Ok((found, Some(raw)));
        }
    }
    Ok((found, None))
}

fn position(filter: &EventFilter) -> std::result::Result<i64, StoreError> {
    let until = filter.until.map_or(i64::MAX, |at: Millis| Key::first_at(at).raw());
    let Some(cursor) = filter.cursor.as_deref() else { return Ok(until) };
    let raw = cursor.strip_prefix('e').and_then(|text| text.parse::<i64>().ok());
    raw.map(|raw| raw.min(until)).ok_or_else(invalid_cursor)
}

impl EmbeddedStore {
    fn finish_event(&self, stored: StoredEvent) -> EventView {
        let deliveries = stored.deliveries.into_iter().map(|delivery| self.finish(delivery)).collect();
        EventView { deliveries, ..stored.view }
    }

    pub(crate) async fn find_event(&self, id: EventId) -> std::result::Result<Option<EventView>, StoreError> {
        let ids = self.shared.ids();
        let load_it = move |conn: &Connection| match event_key(conn, &id, ids)? {
            Some(key) => load(conn, key, ids),
            None => Ok(None),
        };
        let stored = self.readers.ask(load_it).await?;
        Ok(stored.map(|stored| self.finish_event(stored)))
    }

    pub(crate) async fn list_events(
        &self,
        filter: EventFilter,
    ) -> std::result::Result<Page<EventView>, StoreError> {
        let (ids, below) = (self.shared.ids(), position(&filter)?);
        let (found, next) = self.readers.ask(move |conn| list(conn, ids, &filter, below)).await?;
        let data = found.into_iter().map(|stored| self.finish_event(stored)).collect();
        Ok(Page { data, next_cursor: next.map(|raw| format!("e{raw}")) })
    }

    pub(crate) async fn find_payload(
        &self,
        id: EventId,
    ) -> std::result::Result<Option<(ContentType, Bytes)>, StoreError> {
        let ids = self.shared.ids();
        let read = move |conn: &Connection| {
            let Some(key) = event_key(conn, &id, ids)? else { return Ok(None) };
            let sql = "SELECT content_type, payload FROM event WHERE id = ?1";
            let row = |row: &Row<'_>| {
                let content_type =
                    row.get_ref(0)?.as_str_or_null()?.and_then(|text| ContentType::parse(text).ok());
                let payload = Bytes::copy_from_slice(row.get_ref(1)?.as_blob()?);
                Ok((content_type.unwrap_or_default(), payload))
            };
            conn.prepare_cached(sql)?.query_row([key.raw()], row).optional()
        };
        self.readers.ask(read).await
    }
}
