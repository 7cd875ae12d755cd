//! What waits and what died in the public keys, as deliveries like any other: listed, found by id, cancelled, retried.
//!
//! They lie in no index: to find one by its id, the keys are read from end to end, in small steps. An entry's key is
//! the one it had when it was ours, else one derived from its text. Deliberately absent: the ready list; its entries are
//! adopted within moments, and have no state before that. In a Cluster only what lies in our own slot is looked at.

mod order;
mod standing;
mod walk;

use teimoso_delivery::model::{DeliveryState, EventId, Key};
use teimoso_delivery::store::{DeliveryFilter, DeliveryView, MAX_PAGE, Page, StoreError};

pub(crate) use order::{Ordered, cancel, list_buried, retry};
pub(crate) use standing::Standing;
pub(crate) use walk::Cursor;

use crate::shared::Shared;

/// Entries looked at for one page, and their bytes, beyond the last step's.
const MOST_LOOKED_AT: usize = 1_000;
const MOST_BYTES: usize = 4 << 20;

/// Which entry.
pub(crate) enum Wanted<'a> {
    /// With this key.
    Key(Key),
    /// With this id; the first of several.
    Event(&'a EventId),
}

/// Where a listing goes on when the deliveries that are kept here are through; `None` when nothing there can fit.
fn first_of(filter: &DeliveryFilter) -> Option<Cursor> {
    // Nobody gave them a type.
    if filter.kind.is_some() {
        return None;
    }
    match filter.state {
        Some(DeliveryState::Scheduled) if filter.reason.is_none() => Some(Cursor::waiting()),
        None if filter.reason.is_none() => Some(Cursor::waiting()),
        Some(DeliveryState::Dead) | None => Some(Cursor::buried()),
        _ => None,
    }
}

fn fits(filter: &DeliveryFilter, view: &DeliveryView) -> bool {
    filter.state.is_none_or(|state| view.state == state)
        && (filter.reason.is_none() || view.reason == filter.reason)
        && filter.since.is_none_or(|since| view.created_at >= since)
        && filter.until.is_none_or(|until| view.created_at < until)
}

/// Fills a page up, from `cursor` on or, without one, from the beginning of what may fit.
pub(crate) async fn fill(
    shared: &Shared,
    filter: &DeliveryFilter,
    cursor: Option<Cursor>,
    mut page: Page<DeliveryView>,
) -> Result<Page<DeliveryView>, StoreError> {
    let limit = filter.limit.clamp(1, MAX_PAGE) as usize;
    let only_waiting = filter.state == Some(DeliveryState::Scheduled);
    let mut next = cursor.or_else(|| first_of(filter));
    let (mut looked, mut bytes) = (0, 0);
    while let Some(cursor) = next.filter(|cursor| !(only_waiting && cursor.is_buried())) {
        if looked >= MOST_LOOKED_AT || bytes >= MOST_BYTES {
            page.next_cursor = Some(cursor.text());
            break;
        }
        let step = walk::step(shared, cursor).await?;
        looked += step.found.len();
        bytes += step.found.iter().map(|(_, entry)| entry.text.len()).sum::<usize>();
        for (here, standing) in standing::named(shared, step.found).await? {
            if page.data.len() == limit {
                page.next_cursor = Some(here.text());
                return Ok(page);
            }
            let view = standing.delivery(shared);
            if fits(filter, &view) {
                page.data.push(view);
            }
        }
        next = step.next;
    }
    Ok(page)
}

/// Looks through both keys for an entry.
pub(crate) async fn find(shared: &Shared, wanted: &Wanted<'_>) -> Result<Option<Standing>, StoreError> {
    let key = match wanted {
        Wanted::Key(key) => Some(*key),
        Wanted::Event(id) => shared.ids().event_key(id),
    };
    let mut next = Some(Cursor::waiting());
    while let Some(cursor) = next {
        let step = walk::step(shared, cursor).await?;
        next = step.next;
        for (here, found) in step.found {
            if let Some(key) = key.filter(|key| found.goes_by(*key)) {
                return Ok(Some(Standing { key, found }));
            }
            if let Wanted::Event(id) = wanted
                && found.entry().and_then(|entry| entry.id.as_ref()) == Some(*id)
            {
                let named = standing::named(shared, vec![(here, found)]).await?;
                return Ok(named.into_iter().next().map(|(_, standing)| standing));
            }
        }
    }
    Ok(None)
}
