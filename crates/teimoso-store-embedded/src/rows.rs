//! Rows to model and back. The only place that knows column order.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rusqlite::types::Type;
use rusqlite::{Connection, Result, Row};
use teimoso_delivery::lanes::LaneId;
use teimoso_delivery::model::{
    Application, AttemptNumber, AttemptRecord, ContentType, DecisionName, ErrorKind, Event, EventId,
    EventType, Headers, IdSpace, Key, LaneKey, LaneRecord, Millis, Mode, NextWhy, PauseWhy, PhaseTimings,
    PolicyName, Progress, ResponseRecord, fate_tag,
};
use teimoso_delivery::retry::WaitSource;

/// A stored value that this version cannot read: damage, or a newer writer.
pub(crate) fn unreadable(column: usize, what: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, what.into())
}

pub(crate) fn key(row: &Row<'_>, column: usize) -> Result<Key> {
    Key::from_raw(row.get(column)?).ok_or_else(|| unreadable(column, "a key out of range"))
}

pub(crate) fn millis(raw: i64) -> Millis {
    Millis::new(u64::try_from(raw).unwrap_or(0))
}

pub(crate) fn raw_millis(at: Millis) -> i64 {
    i64::try_from(at.get()).unwrap_or(i64::MAX)
}

/// The columns of `delivery` that make a [`Progress`], in the order [`progress`] reads.
macro_rules! progress_columns {
    () => {
        "d.attempts, d.budget_from, d.first_attempt_at, d.recoveries, d.mode, d.why"
    };
}
pub(crate) use progress_columns;

pub(crate) fn progress(row: &Row<'_>, first: usize) -> Result<Progress> {
    let first_attempt_at: Option<i64> = row.get(first + 2)?;
    Ok(Progress {
        attempts: row.get(first)?,
        budget_from: row.get(first + 1)?,
        first_attempt_at: first_attempt_at.map(millis),
        recoveries: row.get(first + 3)?,
        mode: Mode::from_tag(row.get(first + 4)?).ok_or_else(|| unreadable(first + 4, "an unknown mode"))?,
        why: NextWhy::from_tag(row.get(first + 5)?).ok_or_else(|| unreadable(first + 5, "an unknown why"))?,
    })
}

/// The columns of `event` without its payload, in the order [`EventHead::read`] reads.
macro_rules! event_columns {
    () => {
        "e.id, a.name, e.name, e.type, e.content_type, e.headers, e.policy, e.url"
    };
}
pub(crate) use event_columns;
/// How many columns [`event_columns`] names.
pub(crate) const EVENT_HEAD_COLUMNS: usize = 8;

/// An event without its payload.
pub(crate) struct EventHead {
    pub key: Key,
    pub id: EventId,
    pub application: Application,
    pub kind: Option<EventType>,
    pub content_type: ContentType,
    pub headers: Headers,
    pub policy: Option<PolicyName>,
    pub url: Option<Arc<str>>,
}

fn text<T, E>(
    row: &Row<'_>,
    column: usize,
    parse: impl Fn(&str) -> std::result::Result<T, E>,
) -> Result<Option<T>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
    parse(text).map(Some).map_err(|_| unreadable(column, "a text this version refuses"))
}

/// The default application is shared instead of parsed: claims read one per delivery.
pub(crate) fn application(row: &Row<'_>, column: usize) -> Result<Application> {
    let default = Application::default();
    if row.get_ref(column)?.as_str_or_null()? == Some(default.as_str()) {
        return Ok(default);
    }
    Ok(text(row, column, Application::parse)?.unwrap_or(default))
}

impl EventHead {
    pub(crate) fn read(row: &Row<'_>, first: usize, ids: IdSpace) -> Result<Self> {
        let key = key(row, first)?;
        let headers = row.get_ref(first + 5)?.as_str_or_null()?.map(Headers::from_lines);
        Ok(Self {
            key,
            id: text(row, first + 2, EventId::named)?.unwrap_or_else(|| ids.event(key)),
            application: application(row, first + 1)?,
            kind: text(row, first + 3, EventType::parse)?,
            content_type: text(row, first + 4, ContentType::parse)?.unwrap_or_default(),
            headers: headers.unwrap_or_default(),
            policy: text(row, first + 6, PolicyName::parse)?,
            url: row.get_ref(first + 7)?.as_str_or_null()?.map(Arc::from),
        })
    }

    pub(crate) fn with_payload(self, payload: Bytes) -> Event {
        Event {
            created_at: self.key.at(),
            id: self.id,
            application: self.application,
            kind: self.kind,
            content_type: self.content_type,
            headers: self.headers,
            payload,
            url: self.url,
            policy: self.policy,
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// Writes an attempt; of a 2xx mostly numbers.
/// The values of [`INSERT_ATTEMPT`].
pub(crate) fn with_attempt(
    delivery: Key,
    attempt: &AttemptRecord,
    insert: impl FnOnce(&[&dyn rusqlite::ToSql]) -> Result<()>,
) -> Result<()> {
    let timings = &attempt.timings;
    let response = attempt.response.as_deref();
    insert(rusqlite::params![
        delivery.raw(),
        attempt.number.get(),
        raw_millis(attempt.started_at),
        micros(timings.total),
        fate_tag::of(attempt.fate),
        attempt.status,
        attempt.decision.tag(),
        timings.dns.map(micros),
        timings.connect.map(micros),
        timings.tls.map(micros),
        timings.first_byte.map(micros),
        attempt.peer.map(|peer| peer.to_string()),
        attempt.wait.map(|(wait, _)| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        attempt.wait.map(|(_, source)| wait_source_tag(source)),
        attempt.error_kind.map(ErrorKind::tag),
        attempt.error.as_deref(),
        response.map(|response| &*response.headers),
        response.map(|response| &*response.body),
        response.filter(|response| response.truncated).map(|_| 1),
    ])
}

pub(crate) const INSERT_ATTEMPT: &str = "INSERT OR REPLACE INTO attempt VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)";

macro_rules! select_attempts {
    () => {
        "SELECT number, started_at, total_us, fate, status, decision, dns_us, connect_us, tls_us, first_byte_us,
            peer, wait_ms, wait_source, error_kind, error, response_headers, response_body, response_truncated
            FROM attempt WHERE delivery = ?1 ORDER BY number"
    };
}

/// As many as a view shows.
pub(crate) const SELECT_ATTEMPTS: &str = concat!(select_attempts!(), " LIMIT 1000");
pub(crate) const SELECT_ALL_ATTEMPTS: &str = select_attempts!();

fn wait_source_tag(source: WaitSource) -> u8 {
    match source {
        WaitSource::Schedule => 0,
        WaitSource::RetryAfter => 1,
    }
}

pub(crate) fn attempt(row: &Row<'_>) -> Result<AttemptRecord> {
    let number: u32 = row.get(0)?;
    let optional =
        |column: usize| -> Result<Option<Duration>> { Ok(row.get::<_, Option<i64>>(column)?.map(duration)) };
    let wait: Option<i64> = row.get(11)?;
    let source = match row.get::<_, Option<u8>>(12)? {
        Some(1) => WaitSource::RetryAfter,
        _ => WaitSource::Schedule,
    };
    let peer: Option<String> = row.get(10)?;
    let error: Option<String> = row.get(14)?;
    Ok(AttemptRecord {
        number: AttemptNumber::after(number.saturating_sub(1)),
        started_at: millis(row.get(1)?),
        fate: fate_tag::to(row.get(3)?),
        status: row.get(4)?,
        error_kind: row.get::<_, Option<u8>>(13)?.and_then(ErrorKind::from_tag),
        error: error.map(Into::into),
        decision: DecisionName::from_tag(row.get(5)?).unwrap_or(DecisionName::GiveUp),
        wait: wait.map(|ms| (Duration::from_millis(u64::try_from(ms).unwrap_or(0)), source)),
        peer: peer.and_then(|peer| peer.parse::<SocketAddr>().ok()),
        timings: PhaseTimings {
            dns: optional(6)?,
            connect: optional(7)?,
            tls: optional(8)?,
            first_byte: optional(9)?,
            total: duration(row.get(2)?),
        },
        response: response(row)?,
    })
}

fn response(row: &Row<'_>) -> Result<Option<Box<ResponseRecord>>> {
    let headers: Option<String> = row.get(15)?;
    let body: Option<Vec<u8>> = row.get(16)?;
    if headers.is_none() && body.is_none() {
        return Ok(None);
    }
    Ok(Some(Box::new(ResponseRecord {
        headers: headers.unwrap_or_default().into(),
        body: body.unwrap_or_default().into(),
        truncated: row.get::<_, Option<i64>>(17)?.is_some(),
    })))
}

/// In `meta`: the largest key that expiry removed. No key is given out twice, whatever the clock does.
pub(crate) const LAST_EXPUNGED: &str = "last_expunged";

/// The same of replay jobs; names are never theirs.
pub(crate) const LAST_REPLAY: &str = "last_replay";

/// The columns of a lane and where they are from, in the order [`lane`] reads.
macro_rules! lane_columns {
    () => {
        "l.id, a.name, l.address, l.not_before, l.why, l.allowance, l.openings
            FROM lane l JOIN application a ON a.id = l.application"
    };
}
pub(crate) use lane_columns;

/// A lane's number, name and record.
pub(crate) fn lane(row: &Row<'_>) -> Result<(LaneId, LaneKey, LaneRecord)> {
    lane_at(row, 0)
}

/// The same behind other columns.
pub(crate) fn lane_at(row: &Row<'_>, first: usize) -> Result<(LaneId, LaneKey, LaneRecord)> {
    let address = row.get_ref(first + 2)?.as_str()?.into();
    let key = LaneKey { application: application(row, first + 1)?, address };
    let not_before: Option<i64> = row.get(first + 3)?;
    let why = match row.get::<_, Option<u8>>(first + 4)? {
        Some(2) => PauseWhy::Breaker,
        _ => PauseWhy::RetryAfter,
    };
    let record = LaneRecord {
        not_before: not_before.map(|at| (millis(at), why)),
        allowance: row.get::<_, Option<u32>>(first + 5)?.and_then(NonZeroU32::new),
        openings: row.get(first + 6)?,
    };
    Ok((LaneId(row.get(first)?), key, record))
}

/// A number kept in `meta`, if it was ever set.
pub(crate) fn meta(conn: &Connection, name: &str) -> Result<Option<i64>> {
    use rusqlite::OptionalExtension;
    conn.prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

/// Keeps a number in `meta`.
pub(crate) fn set_meta(conn: &Connection, name: &str, value: i64) -> Result<()> {
    conn.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?.execute((name, value))?;
    Ok(())
}
