//! The counters and the conservation law (G2). Deliberately absent: leases; the file counts what rests.

use rusqlite::{Connection, Result};
use teimoso_delivery::model::DeliveryState;
use teimoso_delivery::store::{Checkup, Counts, FindingKind};

use super::Visit;
use crate::open::counts;

pub(super) fn kept(conn: &Connection) -> Result<Counts> {
    counts(conn)
}

/// The deliveries that are there, by state; `accepted` and `expunged` cannot be counted.
fn scanned(conn: &Connection, kept: &Counts) -> Result<Counts> {
    let mut counts = Counts { accepted: kept.accepted, expunged: kept.expunged, ..Counts::default() };
    let mut select = conn.prepare("SELECT state, attempts = 0, count(*) FROM delivery GROUP BY 1, 2")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let number = row.get::<_, i64>(2)?.unsigned_abs();
        match DeliveryState::from_tag(row.get(0)?) {
            Some(DeliveryState::Delivered) => counts.delivered += number,
            Some(DeliveryState::Dead) => counts.dead += number,
            Some(DeliveryState::Cancelled) => counts.cancelled += number,
            _ if row.get::<_, Option<bool>>(1)?.unwrap_or(true) => counts.pending += number,
            _ => counts.scheduled += number,
        }
    }
    Ok(counts)
}

impl Visit<'_> {
    pub(super) fn counters(&self, checkup: &mut Checkup) -> Result<()> {
        self.step(|conn| {
            let kept = counts(conn)?;
            let there = scanned(conn, &kept)?;
            checkup.counts = kept;
            checkup.scanned = Some(there);
            compare(&kept, &there, checkup);
            Ok(())
        })
    }

    /// Makes the counters say what is there.
    pub(super) fn recount(&self, checkup: &mut Checkup) -> Result<()> {
        self.step(|conn| {
            let kept = counts(conn)?;
            let there = scanned(conn, &kept)?;
            if !there.conserved() || kept != there {
                write(conn, there)?;
            }
            for kind in [FindingKind::CountersOff, FindingKind::AcceptedMissing] {
                let found = checkup.count_of(kind);
                if found > 0 {
                    checkup.healed(kind, found);
                }
            }
            Ok(())
        })
    }
}

/// Names what differs, and what was accepted and is nowhere.
fn compare(kept: &Counts, there: &Counts, checkup: &mut Checkup) {
    let pairs = [
        ("pending", kept.pending, there.pending),
        ("scheduled", kept.scheduled, there.scheduled),
        ("delivered", kept.delivered, there.delivered),
        ("dead", kept.dead, there.dead),
        ("cancelled", kept.cancelled, there.cancelled),
    ];
    for (name, kept, there) in pairs {
        if kept != there {
            checkup.found(FindingKind::CountersOff, format!("{name}: {kept} counted, {there} there"));
        }
    }
    let known = there.pending + there.scheduled + there.delivered + there.dead + there.cancelled;
    let accounted = known + there.expunged;
    match there.accepted.cmp(&accounted) {
        std::cmp::Ordering::Greater => {
            let missing = there.accepted - accounted;
            checkup.found_many(
                FindingKind::AcceptedMissing,
                missing,
                format!("{} accepted, {accounted} accounted for", there.accepted),
            );
        }
        std::cmp::Ordering::Less => checkup.found(
            FindingKind::CountersOff,
            format!("accepted: {} counted, {accounted} accounted for", there.accepted),
        ),
        std::cmp::Ordering::Equal => {}
    }
}

/// What is there is counted. What is nowhere cannot come back: from then on it counts as expunged.
fn write(conn: &Connection, there: Counts) -> Result<()> {
    let known = there.pending + there.scheduled + there.delivered + there.dead + there.cancelled;
    let expunged = there.accepted.saturating_sub(known).max(there.expunged);
    let raw = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let sql = "UPDATE counter SET accepted = ?1, pending = ?2, scheduled = ?3, delivered = ?4, dead = ?5,
        cancelled = ?6, expunged = ?7 WHERE id = 1";
    let numbers = [
        known + expunged,
        there.pending,
        there.scheduled,
        there.delivered,
        there.dead,
        there.cancelled,
        expunged,
    ];
    conn.execute(sql, rusqlite::params_from_iter(numbers.map(raw))).map(drop)
}
