//! Listings: filters, newest first, in pages whose cursor is the last key.

use std::ops::Bound;

use super::rows::{DeliveryRow, EventRow};
use super::state::State;
use crate::model::{Key, Millis};
use crate::store::{
    DeliveryFilter, DeliveryView, EventFilter, EventView, MAX_PAGE, Page, StoreError, StoreErrorKind,
};

impl State {
    pub(super) fn list_events(&self, filter: &EventFilter) -> Result<Page<EventView>, StoreError> {
        let Some(range) = range(filter.since, filter.until, 'e', filter.cursor.as_deref())? else {
            return Ok(end());
        };
        let fits = |row: &EventRow| filter.kind.is_none() || row.event.kind == filter.kind;
        let rows = self.events.range(range).rev().filter(|(_, row)| fits(row));
        Ok(page(rows.map(|(key, row)| (*key, self.event_view(row))), 'e', filter.limit))
    }

    pub(super) fn list_deliveries(&self, filter: &DeliveryFilter) -> Result<Page<DeliveryView>, StoreError> {
        let Some(range) = range(filter.since, filter.until, 'd', filter.cursor.as_deref())? else {
            return Ok(end());
        };
        let kind_fits = |row: &DeliveryRow| {
            filter.kind.is_none()
                || self.events.get(&row.event).is_some_and(|event| event.event.kind == filter.kind)
        };
        let fits = |row: &DeliveryRow| {
            filter.state.is_none_or(|state| row.state == state)
                && (filter.reason.is_none() || row.reason == filter.reason)
                && kind_fits(row)
        };
        let rows = self.deliveries.range(range).rev().filter(|(_, row)| fits(row));
        let rows = rows.filter_map(|(key, row)| Some((*key, self.delivery_view(*key, row)?)));
        Ok(page(rows, 'd', filter.limit))
    }
}

type KeyRange = (Bound<Key>, Bound<Key>);

/// The keys asked for; `None` when there can be none.
fn range(
    since: Option<Millis>,
    until: Option<Millis>,
    listing: char,
    cursor: Option<&str>,
) -> Result<Option<KeyRange>, StoreError> {
    let lower = Key::first_at(since.unwrap_or_default());
    let last = cursor.map(|cursor| decode(listing, cursor)).transpose()?;
    let before = until.map(Key::first_at).into_iter().chain(last).min();
    Ok(match before {
        None => Some((Bound::Included(lower), Bound::Unbounded)),
        Some(before) if before <= lower => None,
        Some(before) => Some((Bound::Included(lower), Bound::Excluded(before))),
    })
}

fn page<T>(mut rows: impl Iterator<Item = (Key, T)>, listing: char, limit: u32) -> Page<T> {
    let limit = limit.clamp(1, MAX_PAGE) as usize;
    let (mut data, mut last) = (Vec::new(), None);
    for (key, row) in rows.by_ref().take(limit) {
        data.push(row);
        last = Some(key);
    }
    let more = rows.next().is_some();
    Page { data, next_cursor: last.filter(|_| more).map(|key| format!("{listing}{:015x}", key.raw())) }
}

fn decode(listing: char, cursor: &str) -> Result<Key, StoreError> {
    let raw = cursor.strip_prefix(listing).filter(|raw| raw.len() == 15);
    let raw = raw.and_then(|raw| i64::from_str_radix(raw, 16).ok());
    raw.and_then(Key::from_raw).ok_or_else(|| {
        StoreError::new(StoreErrorKind::InvalidCursor, "the cursor is not one that this listing gave out")
    })
}

const fn end<T>() -> Page<T> {
    Page { data: Vec::new(), next_cursor: None }
}
