//! Deliveries: one, a page of them, their attempts.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Result, Row};
use teimoso_delivery::lanes::LaneId;
use teimoso_delivery::model::{
    DeadReason, DeliveryId, DeliveryState, IdSpace, Key, Millis, NextWhy, PauseWhy,
};
use teimoso_delivery::store::{AttemptView, DeliveryFilter, DeliveryView, MAX_PAGE, Page, StoreError};

use super::MAX_LOOKED_AT;
use crate::EmbeddedStore;
use crate::error::invalid_cursor;
use crate::rows::{self, EVENT_HEAD_COLUMNS, EventHead, event_columns, progress_columns};

/// A view as the file has it, before what only memory knows is laid over it.
pub(super) struct Stored {
    key: Key,
    lane: LaneId,
    due: Millis,
    why: NextWhy,
    pub(super) view: DeliveryView,
}

pub(super) const SELECT: &str = concat!(
    "SELECT ",
    event_columns!(),
    ", ",
    progress_columns!(),
    ", d.id, d.lane, d.due, d.state, d.reason, d.finished_at, l.address, t.status, t.error",
    " FROM delivery d JOIN event e ON e.id = d.event JOIN application a ON a.id = e.application",
    " JOIN lane l ON l.id = d.lane LEFT JOIN attempt t ON t.delivery = d.id AND t.number = d.attempts",
    " WHERE d.id = ?1"
);

pub(super) fn read(row: &Row<'_>, ids: IdSpace) -> Result<Stored> {
    const REST: usize = EVENT_HEAD_COLUMNS + 6;
    let head = EventHead::read(row, 0, ids)?;
    let progress = rows::progress(row, EVENT_HEAD_COLUMNS)?;
    let key = rows::key(row, REST)?;
    let address = || -> Result<Arc<str>> { Ok(row.get_ref(REST + 6)?.as_str()?.into()) };
    let state = DeliveryState::from_tag(row.get(REST + 3)?);
    let error: Option<String> = row.get(REST + 8)?;
    let view = DeliveryView {
        id: ids.delivery(key),
        event_id: head.id,
        application: head.application,
        url: match head.url {
            Some(url) => url,
            None => address()?,
        },
        state: state.ok_or_else(|| rows::unreadable(REST + 3, "an unknown state"))?,
        attempts: progress.attempts,
        budget_from: progress.budget_from,
        policy: head.policy,
        mode: progress.mode,
        reason: row.get::<_, Option<u8>>(REST + 4)?.and_then(DeadReason::from_tag),
        next_attempt: None,
        created_at: head.key.at(),
        finished_at: row.get::<_, Option<i64>>(REST + 5)?.map(rows::millis),
        last_status: row.get(REST + 7)?,
        last_error: error.map(Into::into),
    };
    let (lane, due) = (LaneId(row.get(REST + 1)?), rows::millis(row.get(REST + 2)?));
    Ok(Stored { key, lane, due, why: progress.why, view })
}

pub(super) fn find(conn: &Connection, key: Key, ids: IdSpace) -> Result<Option<Stored>> {
    conn.prepare_cached(SELECT)?.query_row([key.raw()], |row| read(row, ids)).optional()
}

/// Where a page goes on.
enum Position {
    /// Below this key, newest first.
    Key(i64),
    /// After this entry of the schedule.
    Due(i64, i64, i64),
}

impl Position {
    fn parse(cursor: &str) -> Option<Self> {
        let numbers = |text: &str| text.split('.').map(|n| n.parse().ok()).collect::<Option<Vec<i64>>>();
        match cursor.split_at_checked(1)? {
            ("k", rest) => rest.parse().ok().map(Self::Key),
            ("d", rest) => match numbers(rest)?.as_slice() {
                [lane, due, key] => Some(Self::Due(*lane, *due, *key)),
                _ => None,
            },
            _ => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Key(key) => format!("k{key}"),
            Self::Due(lane, due, key) => format!("d{lane}.{due}.{key}"),
        }
    }
}

struct Wanted {
    filter: DeliveryFilter,
    limit: usize,
    position: Option<Position>,
    from: i64,
    until: i64,
}

impl Wanted {
    fn new(filter: DeliveryFilter) -> std::result::Result<Self, StoreError> {
        let position = match filter.cursor.as_deref() {
            None => None,
            Some(text) => Some(Position::parse(text).ok_or_else(invalid_cursor)?),
        };
        let bound = |at: Option<Millis>, otherwise| at.map_or(otherwise, |at| Key::first_at(at).raw());
        let (from, until) = (bound(filter.since, 0), bound(filter.until, i64::MAX));
        let limit = filter.limit.clamp(1, MAX_PAGE) as usize;
        Ok(Self { limit, position, from, until, filter })
    }

    fn takes(&self, view: &DeliveryView) -> bool {
        self.filter.reason.is_none_or(|reason| view.reason == Some(reason))
    }
}

/// Reads a page from a statement of (key, type, position …), looking at a bounded number of rows.
fn page(
    conn: &Connection,
    ids: IdSpace,
    wanted: &Wanted,
    sql: &str,
    params: &[&dyn rusqlite::ToSql],
    position: impl Fn(&Row<'_>) -> Result<Position>,
) -> Result<(Vec<Stored>, Option<Position>)> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let (mut found, mut looked) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        looked += 1;
        let at = position(row)?;
        if fits(conn, row, wanted)?
            && let Some(stored) =
                find(conn, rows::key(row, 0)?, ids)?.filter(|stored| wanted.takes(&stored.view))
        {
            found.push(stored);
        }
        if found.len() == wanted.limit || looked == MAX_LOOKED_AT {
            return Ok((found, Some(at)));
        }
    }
    Ok((found, None))
}

fn fits(conn: &Connection, row: &Row<'_>, wanted: &Wanted) -> Result<bool> {
    if !(wanted.from..wanted.until).contains(&row.get(0)?) {
        return Ok(false);
    }
    if let Some(state) = wanted.filter.state
        && row.get::<_, u8>(1)? != state.tag()
    {
        return Ok(false);
    }
    let Some(kind) = &wanted.filter.kind else { return Ok(true) };
    let sql = "SELECT e.type IS ?2 FROM delivery d JOIN event e ON e.id = d.event WHERE d.id = ?1";
    conn.prepare_cached(sql)?.query_row((row.get::<_, i64>(0)?, kind.as_str()), |row| row.get(0))
}

/// Along the schedule, whatever was accepted when: [`fits`] looks at that, so that the work stays bounded.
const UNFINISHED: &str = "SELECT d.id, d.state, s.lane, s.due FROM due s JOIN delivery d ON d.id = s.delivery
    WHERE (s.lane, s.due, s.delivery) > (?1, ?2, ?3) ORDER BY s.lane, s.due, s.delivery";
/// `state >= 4` says nothing new; it is what lets the planner use the index of ended deliveries.
const ENDED: &str = "SELECT id, state FROM delivery
    WHERE state = ?1 AND id >= ?2 AND id < ?3 AND state >= 4 ORDER BY id DESC";
const ALL: &str = "SELECT id, state FROM delivery WHERE id >= ?1 AND id < ?2 ORDER BY id DESC";

fn list(conn: &Connection, ids: IdSpace, wanted: &Wanted) -> Result<(Vec<Stored>, Option<Position>)> {
    use DeliveryState::{Cancelled, Dead, Pending, Scheduled};
    let by_key = |row: &Row<'_>| Ok(Position::Key(row.get(0)?));
    let below = match wanted.position {
        Some(Position::Key(key)) => key.min(wanted.until),
        _ => wanted.until,
    };
    match wanted.filter.state {
        Some(Pending | Scheduled) => {
            let (lane, due, key) = match wanted.position {
                Some(Position::Due(lane, due, key)) => (lane, due, key),
                _ => (-1, -1, -1),
            };
            let position = |row: &Row<'_>| Ok(Position::Due(row.get(2)?, row.get(3)?, row.get(0)?));
            page(conn, ids, wanted, UNFINISHED, &[&lane, &due, &key], position)
        }
        Some(state @ (Dead | Cancelled)) => {
            page(conn, ids, wanted, ENDED, &[&state.tag(), &wanted.from, &below], by_key)
        }
        _ => page(conn, ids, wanted, ALL, &[&wanted.from, &below], by_key),
    }
}

impl EmbeddedStore {
    /// Lays over a stored row what only memory knows: leases and paused lanes.
    pub(super) fn finish(&self, stored: Stored) -> DeliveryView {
        let Stored { key, lane, due, why, mut view } = stored;
        if view.state.is_final() {
            return view;
        }
        let core = self.shared.core();
        if core.leases.contains_key(&key) {
            view.state = DeliveryState::InFlight;
            return view;
        }
        view.next_attempt = Some(match core.lanes.record(lane).not_before {
            Some((at, PauseWhy::RetryAfter)) if at > due => (at, NextWhy::LanePaused),
            Some((at, PauseWhy::Breaker)) if at > due => (at, NextWhy::Breaker),
            _ => (due, why),
        });
        view
    }

    pub(crate) async fn find_delivery(
        &self,
        id: DeliveryId,
    ) -> std::result::Result<Option<DeliveryView>, StoreError> {
        let ids = self.shared.ids();
        let Some(key) = ids.delivery_key(id) else { return Ok(None) };
        let stored = self.readers.ask(move |conn| find(conn, key, ids)).await?;
        Ok(stored.map(|stored| self.finish(stored)))
    }

    pub(crate) async fn list_deliveries(
        &self,
        filter: DeliveryFilter,
    ) -> std::result::Result<Page<DeliveryView>, StoreError> {
        let wanted = Wanted::new(filter)?;
        if wanted.filter.state == Some(DeliveryState::InFlight) {
            return self.list_in_flight(wanted).await;
        }
        let ids = self.shared.ids();
        let state = wanted.filter.state;
        let (found, next) = self.readers.ask(move |conn| list(conn, ids, &wanted)).await?;
        let data = found.into_iter().map(|stored| self.finish(stored));
        let data = data.filter(|view| state.is_none_or(|state| view.state == state)).collect();
        Ok(Page { data, next_cursor: next.map(|at| at.text()) })
    }

    /// What is leased is known to memory alone.
    async fn list_in_flight(&self, wanted: Wanted) -> std::result::Result<Page<DeliveryView>, StoreError> {
        let below = match wanted.position {
            Some(Position::Key(key)) => key.min(wanted.until),
            _ => wanted.until,
        };
        let mut keys: Vec<Key> = self.shared.core().leases.keys().copied().collect();
        keys.retain(|key| key.raw() < below && key.raw() >= wanted.from);
        keys.sort_unstable_by(|a, b| b.cmp(a));
        let more = keys.len() > wanted.limit;
        keys.truncate(wanted.limit);
        let next_cursor = keys.last().filter(|_| more).map(|key| Position::Key(key.raw()).text());
        let ids = self.shared.ids();
        let kind = wanted.filter.kind.clone();
        let read = move |conn: &Connection| {
            let of_kind = |key: &Key| -> Result<bool> {
                let Some(kind) = &kind else { return Ok(true) };
                let sql =
                    "SELECT e.type IS ?2 FROM delivery d JOIN event e ON e.id = d.event WHERE d.id = ?1";
                let found = conn.prepare_cached(sql)?.query_row((key.raw(), kind.as_str()), |row| row.get(0));
                found.optional().map(|found| found.unwrap_or(false))
            };
            let mut found = Vec::new();
            for key in keys {
                if of_kind(&key)? {
                    found.extend(find(conn, key, ids)?);
                }
            }
            Ok(found)
        };
        let found = self.readers.ask(read).await?;
        let data = found.into_iter().map(|stored| self.finish(stored));
        Ok(Page { data: data.filter(|view| view.state == DeliveryState::InFlight).collect(), next_cursor })
    }

    pub(crate) async fn find_attempts(
        &self,
        id: DeliveryId,
    ) -> std::result::Result<Vec<AttemptView>, StoreError> {
        let ids = self.shared.ids();
        let Some(key) = ids.delivery_key(id) else { return Ok(Vec::new()) };
        self.readers
            .ask(move |conn| {
                let sql = concat!(
                    "SELECT ",
                    event_columns!(),
                    " FROM delivery d JOIN event e ON e.id = d.event",
                    " JOIN application a ON a.id = e.application WHERE d.id = ?1"
                );
                let read = |row: &Row<'_>| EventHead::read(row, 0, ids);
                let head = conn.prepare_cached(sql)?.query_row([key.raw()], read).optional()?;
                let Some(head) = head else { return Ok(Vec::new()) };
                let mut select = conn.prepare_cached(rows::SELECT_ATTEMPTS)?;
                let view = |row: &Row<'_>| {
                    Ok(AttemptView {
                        record: rows::attempt(row)?,
                        event_id: head.id.clone(),
                        content_type: head.content_type.clone(),
                        headers: head.headers.clone(),
                    })
                };
                select.query_map([key.raw()], view)?.collect()
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::plan;

    #[test]
    fn a_page_walks_an_index_in_its_order_and_sorts_nothing() {
        assert_eq!(
            plan(UNFINISHED),
            [
                "SEARCH s USING PRIMARY KEY ((lane,due,delivery)>(?,?,?))",
                "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)",
            ]
        );
        assert_eq!(
            plan(ENDED),
            ["SEARCH delivery USING COVERING INDEX delivery_ended (state=? AND id>? AND id<?)"]
        );
        assert_eq!(plan(ALL), ["SEARCH delivery USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]);
    }

    #[test]
    fn one_delivery_is_found_by_keys_alone() {
        let steps = plan(SELECT);
        assert_eq!(steps.len(), 5);
        assert!(
            steps.iter().all(|step| step.starts_with("SEARCH") && step.contains("PRIMARY KEY")),
            "{steps:?}"
        );
    }
}
