//! Opening: lock, format, counters, lanes, what was in flight when the last process ended. The time this
//! takes does not depend on the backlog.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, Result};
use teimoso_delivery::lanes::{Horizon, LaneId, Limits};
use teimoso_delivery::model::{IdSpace, Key, KeyClock};
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::store::Counts;

use crate::core::Core;
use crate::error::OpenError;
use crate::lock::Lock;
use crate::rows::lane_columns;
use crate::shared::{Options, Shared};
use crate::{EmbeddedStore, checkpoint, moving, query, read_back, rows, schema, writer};

/// The database within its directory …
pub(crate) const FILE: &str = "teimoso.db";
/// … and its log.
pub(crate) const LOG: &str = "teimoso.db-wal";

/// After an unclean end every claim is journaled before it is returned, for this long.
const CAUTION: Duration = Duration::from_secs(60);

impl EmbeddedStore {
    /// Opens the store in `directory`, creating it when there is none.
    ///
    /// # Errors
    /// One sentence when another process holds it, it is not writable, not ours, damaged or of a newer
    /// format. Nothing is changed then.
    pub fn open(
        directory: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
    ) -> std::result::Result<Self, OpenError> {
        Self::open_with_limits(directory, options, Limits::default(), clock, entropy)
    }

    /// The same with other bounds on lanes and memory, for tests of those bounds.
    ///
    /// # Errors
    /// As [`EmbeddedStore::open`].
    pub fn open_with_limits(
        directory: &Path,
        options: Options,
        limits: Limits,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
    ) -> std::result::Result<Self, OpenError> {
        let mut lock = Lock::take(directory)?;
        let path = directory.join(FILE);
        let is_empty = std::fs::metadata(&path).map_or(true, |file| file.len() == 0);
        if is_empty && lock.is_marked() {
            return Err(OpenError::emptied(&path));
        }
        let conn = schema::open_for_writing(&path)?;
        let unusable = |error: rusqlite::Error| OpenError::unusable(&path, &error);
        if !options.moving && rows::meta(&conn, moving::IMPORTING).map_err(unusable)?.is_some() {
            return Err(OpenError::half_moved(directory));
        }
        lock.mark().map_err(|error| OpenError::io(directory, &error))?;
        let clean = begin_life(&conn).map_err(unusable)?;
        let cautious_until = if clean { Duration::ZERO } else { clock.monotonic() + CAUTION };
        let shared = load(&conn, options, limits, clock, entropy).map_err(unusable)?;
        let shared = Arc::new(shared);
        writer::recover_leased(&conn, &shared).map_err(unusable)?;
        first_fill(&conn, &shared).map_err(unusable)?;

        let checkpointer = checkpoint::start(&path)?;
        let (read_backs, claims) = read_back::start(&path)?;
        let (readers, mut threads) = query::Readers::start(&path)?;
        let started = writer::start(conn, Arc::clone(&shared), checkpointer);
        let (sender, thread) = started.map_err(|error| match error {
            writer::StartError::Sql(error) => unusable(error),
            writer::StartError::Thread(error) => OpenError::io(directory, &error),
        })?;
        // The others end by themselves when the store's senders are gone; the writer must be waited for.
        threads.push(claims);
        drop(threads);
        Ok(Self {
            shared,
            writer: sender,
            read_backs,
            readers,
            directory: directory.to_owned(),
            cautious_until,
            threads: Mutex::new(vec![thread]),
            _lock: lock,
        })
    }
}

/// Whether the last process ended by itself; from now on this one has not.
fn begin_life(conn: &Connection) -> Result<bool> {
    let clean = rows::meta(conn, "clean")?.is_none_or(|clean| clean == 1);
    rows::set_meta(conn, "clean", 0)?;
    Ok(clean)
}

fn load(
    conn: &Connection,
    options: Options,
    limits: Limits,
    clock: Arc<dyn Clock>,
    entropy: &dyn Entropy,
) -> Result<Shared> {
    let salt = match rows::meta(conn, "salt")? {
        Some(salt) => salt.cast_unsigned(),
        None => {
            let salt = entropy.next_u64();
            rows::set_meta(conn, "salt", salt.cast_signed())?;
            salt
        }
    };
    let last =
        "SELECT max((SELECT ifnull(max(id), -1) FROM event), (SELECT ifnull(max(id), -1) FROM delivery),
        (SELECT ifnull(max(id), -1) FROM replay))";
    let last: i64 = conn.query_row(last, [], |row| row.get(0))?;
    let expunged = rows::meta(conn, rows::LAST_EXPUNGED)?.unwrap_or(-1);
    let replays = rows::meta(conn, rows::LAST_REPLAY)?.unwrap_or(-1);
    let keys = KeyClock::after(Key::from_raw(last.max(expunged).max(replays)));
    let mut core = Core::new(counts(conn)?, limits);
    load_lanes(conn, &mut core)?;
    Ok(Shared::new(clock, IdSpace::new(salt), keys, options, limits, core))
}

/// The counters as the file keeps them; what is in flight rests there.
pub(crate) fn counts(conn: &Connection) -> Result<Counts> {
    let sql = "SELECT accepted, pending, scheduled, delivered, dead, cancelled, expunged FROM counter";
    conn.query_row(sql, [], |row| {
        let count = |column: usize| row.get::<_, i64>(column).map(|n| u64::try_from(n).unwrap_or(0));
        Ok(Counts {
            accepted: count(0)?,
            pending: count(1)?,
            in_flight: 0,
            scheduled: count(2)?,
            delivered: count(3)?,
            dead: count(4)?,
            cancelled: count(5)?,
            expunged: count(6)?,
        })
    })
}

/// Lanes with something due or something to remember. The others are opened when they are needed.
fn load_lanes(conn: &Connection, core: &mut Core) -> Result<()> {
    if let Some(last) = conn.query_row("SELECT max(id) FROM lane", [], |row| row.get(0))? {
        core.lanes.skip_ids(LaneId(last));
    }
    let mut select = conn.prepare(concat!(
        "SELECT ",
        lane_columns!(),
        " WHERE l.not_before IS NOT NULL OR l.allowance IS NOT NULL OR l.openings > 0",
        " OR EXISTS (SELECT 1 FROM due WHERE due.lane = l.id) ORDER BY l.id"
    ))?;
    let mut lanes = select.query([])?;
    while let Some(row) = lanes.next()? {
        let (id, key, record) = rows::lane(row)?;
        core.lanes.open(id, key, record, Horizon::Nothing);
    }
    Ok(())
}

/// The head of every lane's schedule, so that the first claim finds what is due.
fn first_fill(conn: &Connection, shared: &Shared) -> Result<()> {
    let now = shared.clock.now();
    let core = &mut *shared.core();
    // One by one: how much each gets depends on how much memory the others took.
    for lane in core.lanes.ids() {
        if let Some(thirst) = core.lanes.take_thirst(lane) {
            let entries = writer::read_on(conn, &thirst)?;
            core.refill(&thirst, entries, now);
        }
    }
    Ok(())
}
