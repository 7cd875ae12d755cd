//! What belongs to nothing, table by table, a chunk of rows at a time.
//!
//! A file that somebody edited by hand, or that a defect damaged, keeps its deliveries: what still can be attempted is
//! made due, what cannot is a dead letter that a person sees, and only what stands for nothing is removed.

use rusqlite::{Connection, Result, Row};
use teimoso_delivery::model::{DeadReason, DeliveryState, Key};
use teimoso_delivery::store::{Checkup, FindingKind};

use super::Visit;
use crate::rows::LAST_EXPUNGED;
use crate::writer::name_tables;

/// Rows of one step.
const STEP: i64 = 2_000;

const DELIVERIES: &str = "
SELECT d.id, d.lane, d.due, d.state, d.state IN (0, 2, 3, 4, 5) AND d.mode IN (0, 1) AND d.why BETWEEN 0 AND 8,
    EXISTS (SELECT 1 FROM due q WHERE q.lane = d.lane AND q.due = d.due AND q.delivery = d.id),
    EXISTS (SELECT 1 FROM event e WHERE e.id = d.event), EXISTS (SELECT 1 FROM lane l WHERE l.id = d.lane)
FROM delivery d WHERE d.id > ?1 ORDER BY d.id LIMIT ?2";

const QUEUE: &str = "
SELECT q.lane, q.due, q.delivery,
    d.id IS NULL OR d.state >= 3 OR d.lane IS NOT q.lane OR d.due IS NOT q.due
FROM due q LEFT JOIN delivery d ON d.id = q.delivery
WHERE (q.lane, q.due, q.delivery) > (?1, ?2, ?3) ORDER BY q.lane, q.due, q.delivery LIMIT ?4";

const LEASES: &str = "
SELECT l.delivery, d.id IS NULL OR d.state >= 3 FROM leased l LEFT JOIN delivery d ON d.id = l.delivery
WHERE l.delivery > ?1 ORDER BY l.delivery LIMIT ?2";

const ATTEMPTS: &str = "
SELECT DISTINCT a.delivery, NOT EXISTS (SELECT 1 FROM delivery d WHERE d.id = a.delivery)
FROM attempt a WHERE a.delivery > ?1 ORDER BY a.delivery LIMIT ?2";

const EVENTS: &str = "
SELECT e.id, e.fanout > (SELECT count(*) FROM delivery d WHERE d.id > e.id AND d.id <= e.id + e.fanout)
FROM event e WHERE e.id > ?1 ORDER BY e.id LIMIT ?2";

/// A delivery as it is judged.
struct Seen {
    id: i64,
    lane: i64,
    due: i64,
    state: i64,
    readable: bool,
    queued: bool,
    has_event: bool,
    has_lane: bool,
}

impl Seen {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            lane: row.get::<_, Option<i64>>(1)?.unwrap_or(-1),
            due: row.get::<_, Option<i64>>(2)?.unwrap_or(0),
            state: row.get::<_, Option<i64>>(3)?.unwrap_or(-1),
            readable: row.get::<_, Option<bool>>(4)?.unwrap_or(false),
            queued: row.get(5)?,
            has_event: row.get(6)?,
            has_lane: row.get(7)?,
        })
    }

    fn is_alive(&self) -> bool {
        !(3..=5).contains(&self.state)
    }

    /// The gravest of what is wrong with it.
    fn finding(&self) -> Option<FindingKind> {
        match self {
            // As a dead letter it is already all that can be kept of it.
            Self { has_event: false, .. } if self.state != 4 => Some(FindingKind::DeliveryWithoutEvent),
            // What is in flight rests in the file.
            Self { state: 1, .. } => Some(FindingKind::InFlightWithoutLease),
            Self { readable: false, .. } => Some(FindingKind::UnreadableRecord),
            Self { has_lane: false, .. } => Some(FindingKind::LaneMissing),
            Self { queued: false, .. } if self.is_alive() => Some(FindingKind::AliveNotQueued),
            _ => None,
        }
    }
}

impl Visit<'_> {
    fn delivery_id(&self, raw: i64) -> String {
        Key::from_raw(raw).map_or_else(|| raw.to_string(), |key| self.ids.delivery(key).to_string())
    }

    fn event_id(&self, raw: i64) -> String {
        Key::from_raw(raw).map_or_else(|| raw.to_string(), |key| self.ids.event(key).to_string())
    }

    pub(super) fn deliveries(&self, checkup: &mut Checkup, watch: &mut dyn FnMut(u64)) -> Result<()> {
        let (mut after, mut looked) = (-1, 0);
        loop {
            let seen: Vec<Seen> = self.step(|conn| {
                let seen = all(conn, DELIVERIES, (after, STEP), Seen::read)?;
                for delivery in &seen {
                    if let Some(kind) = delivery.finding() {
                        checkup.found(kind, self.delivery_id(delivery.id));
                        if self.heal && heal_delivery(conn, delivery, kind)? {
                            checkup.healed(kind, 1);
                        }
                    }
                }
                Ok(seen)
            })?;
            looked += seen.len() as u64;
            watch(looked);
            let Some(last) = seen.last() else { return Ok(()) };
            after = last.id;
        }
    }

    pub(super) fn queue(&self, checkup: &mut Checkup) -> Result<()> {
        let mut after = (i64::MIN, i64::MIN, i64::MIN);
        loop {
            let entries = self.step(|conn| {
                let read = |row: &Row<'_>| {
                    Ok(((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?), row.get(3)?))
                };
                let entries: Vec<((i64, i64, i64), bool)> =
                    all(conn, QUEUE, (after.0, after.1, after.2, STEP), read)?;
                for (entry, _) in entries.iter().filter(|(_, stray)| *stray) {
                    checkup.found(FindingKind::QueuedWithoutDelivery, self.delivery_id(entry.2));
                    if self.heal {
                        let sql = "DELETE FROM due WHERE lane = ?1 AND due = ?2 AND delivery = ?3";
                        conn.execute(sql, *entry)?;
                        checkup.healed(FindingKind::QueuedWithoutDelivery, 1);
                    }
                }
                Ok(entries)
            })?;
            let Some((last, _)) = entries.last() else { return Ok(()) };
            after = *last;
        }
    }

    pub(super) fn leases(&self, checkup: &mut Checkup) -> Result<()> {
        let forget = "DELETE FROM leased WHERE delivery = ?1";
        self.strays(checkup, LEASES, FindingKind::LeaseWithoutDelivery, Some(forget), |raw| {
            self.delivery_id(raw)
        })
    }

    pub(super) fn attempts(&self, checkup: &mut Checkup) -> Result<()> {
        let forget = "DELETE FROM attempt WHERE delivery = ?1";
        self.strays(checkup, ATTEMPTS, FindingKind::AttemptWithoutDelivery, Some(forget), |raw| {
            self.delivery_id(raw)
        })
    }

    /// Whether they were delivered nobody knows any more: they are shown and not repeated.
    pub(super) fn events(&self, checkup: &mut Checkup) -> Result<()> {
        self.strays(checkup, EVENTS, FindingKind::EventWithoutDeliveries, None, |raw| self.event_id(raw))
    }

    /// Rows of which `sql` says that they belong to nothing; `forget` removes one.
    fn strays(
        &self,
        checkup: &mut Checkup,
        sql: &str,
        kind: FindingKind,
        forget: Option<&str>,
        name: impl Fn(i64) -> String,
    ) -> Result<()> {
        let mut after = -1;
        loop {
            let rows: Vec<(i64, bool)> = self.step(|conn| {
                let rows = all(conn, sql, (after, STEP), |row| Ok((row.get(0)?, row.get(1)?)))?;
                for (raw, _) in rows.iter().filter(|(_, stray)| *stray) {
                    checkup.found(kind, name(*raw));
                    if let Some(forget) = forget.filter(|_| self.heal) {
                        conn.execute(forget, [raw])?;
                        checkup.healed(kind, 1);
                    }
                }
                Ok(rows)
            })?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after = *last;
        }
    }

    /// A name of an event that expiry removed is meant to outlive it; one of an event that never was hides a loss:
    /// without it, the producer's repetition is accepted.
    pub(super) fn names(&self, checkup: &mut Checkup) -> Result<()> {
        for (_, table) in name_tables(self.conn)? {
            self.step(|conn| {
                let expunged = crate::rows::meta(conn, LAST_EXPUNGED)?.unwrap_or(-1);
                let stray = format!(
                    "FROM {table} WHERE event > ?1 AND NOT EXISTS (SELECT 1 FROM event e WHERE e.id = {table}.event)"
                );
                let events: Vec<i64> =
                    all(conn, &format!("SELECT event {stray}"), [expunged], |row| row.get(0))?;
                for event in &events {
                    checkup.found(FindingKind::NameWithoutEvent, self.event_id(*event));
                }
                if self.heal && !events.is_empty() {
                    let removed = conn.execute(&format!("DELETE {stray}"), [expunged])?;
                    checkup.healed(FindingKind::NameWithoutEvent, removed as u64);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Whether it is well again.
fn heal_delivery(conn: &Connection, seen: &Seen, kind: FindingKind) -> Result<bool> {
    match kind {
        FindingKind::AliveNotQueued => queue_again(conn, seen).map(|()| true),
        FindingKind::InFlightWithoutLease => {
            let rest = "UPDATE delivery SET state = CASE attempts WHEN 0 THEN 0 ELSE 2 END WHERE id = ?1";
            conn.execute(rest, [seen.id])?;
            queue_again(conn, seen).map(|()| true)
        }
        FindingKind::LaneMissing => open_lane(conn, seen),
        FindingKind::DeliveryWithoutEvent | FindingKind::UnreadableRecord if seen.is_alive() => {
            bury(conn, seen).map(|()| true)
        }
        FindingKind::UnreadableRecord => bury(conn, seen).map(|()| true),
        FindingKind::DeliveryWithoutEvent => {
            conn.execute("DELETE FROM delivery WHERE id = ?1", [seen.id])?;
            conn.execute("DELETE FROM attempt WHERE delivery = ?1", [seen.id])?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn queue_again(conn: &Connection, seen: &Seen) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO due VALUES (?1, ?2, ?3)";
    conn.execute(sql, (seen.lane, seen.due, seen.id)).map(drop)
}

/// A dead letter that every view can read; the payload stays as it is.
fn bury(conn: &Connection, seen: &Seen) -> Result<()> {
    let sql = "UPDATE delivery SET state = ?2, reason = ?3, finished_at = ifnull(finished_at, due),
        mode = CASE WHEN mode IN (0, 1) THEN mode ELSE 0 END,
        why = CASE WHEN why BETWEEN 0 AND 8 THEN why ELSE 0 END WHERE id = ?1";
    conn.execute(sql, (seen.id, DeliveryState::Dead.tag(), DeadReason::Malformed.tag()))?;
    conn.execute("DELETE FROM due WHERE delivery = ?1", [seen.id])?;
    Ok(())
}

/// The lane of the event's URL, under the number that the delivery knows. An event that left its URL to its lane has
/// lost it.
fn open_lane(conn: &Connection, seen: &Seen) -> Result<bool> {
    let find = "SELECT e.application, e.url FROM delivery d JOIN event e ON e.id = d.event WHERE d.id = ?1";
    let (application, url): (i64, Option<String>) =
        conn.query_row(find, [seen.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some(url) = url else { return Ok(false) };
    let address = url.split('?').next().unwrap_or_default();
    let known = "SELECT id FROM lane WHERE application = ?1 AND address = ?2";
    let known: Vec<i64> = all(conn, known, (application, address), |row| row.get(0))?;
    let lane = match known.first() {
        Some(lane) => *lane,
        None => {
            let sql = "INSERT INTO lane(id, application, address) VALUES (?1, ?2, ?3)";
            conn.execute(sql, (seen.lane, application, address))?;
            seen.lane
        }
    };
    conn.execute("UPDATE delivery SET lane = ?2 WHERE id = ?1", (seen.id, lane))?;
    if seen.is_alive() {
        conn.execute(
            "DELETE FROM due WHERE lane = ?1 AND due = ?2 AND delivery = ?3",
            (seen.lane, seen.due, seen.id),
        )?;
        queue_again(conn, &Seen { lane, ..*seen })?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_goes_on_where_the_last_one_ended_and_reads_no_table_twice() {
        for (sql, first) in [
            (DELIVERIES, "SEARCH d USING INTEGER PRIMARY KEY (rowid>?)"),
            (QUEUE, "SEARCH q USING PRIMARY KEY ((lane,due,delivery)>(?,?,?))"),
            (LEASES, "SEARCH l USING INTEGER PRIMARY KEY (rowid>?)"),
            (ATTEMPTS, "SEARCH a USING PRIMARY KEY (delivery>?)"),
            (EVENTS, "SEARCH e USING INTEGER PRIMARY KEY (rowid>?)"),
        ] {
            let plan = crate::schema::plan(sql);
            assert_eq!(plan[0], first, "{plan:?}");
            assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{plan:?}");
        }
    }
}
