//! The disk: how large the store is, how much room is left, how long a sync takes, whether SQLite finds damage.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Result};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Checkup, FindingKind};

use crate::open::{FILE, LOG};

/// What is written before each sync: one page.
const PAGE: [u8; 4096] = [0; 4096];
/// Most syncs of a probe.
const MOST_SYNCS: usize = 100_000;
/// Sentences of SQLite's own that are kept.
const MOST_SENTENCES: u32 = 5;

pub(super) fn look(directory: &Path, sync_for: Duration, clock: &dyn Clock, checkup: &mut Checkup) {
    let size = |name| std::fs::metadata(directory.join(name)).map_or(0, |file| file.len());
    checkup.number("file_bytes", size(FILE));
    checkup.number("log_bytes", size(LOG));
    if let Ok(disk) = rustix::fs::statvfs(directory) {
        checkup.number("disk_free_bytes", disk.f_bavail.saturating_mul(disk.f_frsize));
    }
    match probe(directory, sync_for, clock) {
        Ok(mut syncs) => {
            syncs.sort_unstable();
            let micros = |part: usize| {
                let at = (syncs.len() * part / 100).min(syncs.len().saturating_sub(1));
                syncs.get(at).map_or(0, |sync| u64::try_from(sync.as_micros()).unwrap_or(u64::MAX))
            };
            checkup.number("fsyncs", syncs.len() as u64);
            checkup.number("fsync_p50_us", micros(50));
            checkup.number("fsync_p99_us", micros(99));
            checkup.number("fsync_max_us", micros(100));
        }
        Err(error) => checkup.found(FindingKind::NotWritable, format!("{}: {error}", directory.display())),
    }
}

/// How long each sync of a small write beside the store took.
fn probe(directory: &Path, sync_for: Duration, clock: &dyn Clock) -> io::Result<Vec<Duration>> {
    let path = directory.join(format!("sync-probe-{}", std::process::id()));
    let measured = measure(&path, sync_for, clock);
    let removed = std::fs::remove_file(&path);
    let measured = measured?;
    removed?;
    Ok(measured)
}

fn measure(path: &Path, sync_for: Duration, clock: &dyn Clock) -> io::Result<Vec<Duration>> {
    let mut file = File::create(path)?;
    let (start, mut syncs) = (clock.monotonic(), Vec::new());
    loop {
        let before = clock.monotonic();
        file.write_all(&PAGE)?;
        file.sync_data()?;
        let after = clock.monotonic();
        syncs.push(after.saturating_sub(before));
        if after.saturating_sub(start) >= sync_for || syncs.len() == MOST_SYNCS {
            return Ok(syncs);
        }
    }
}

/// SQLite's own check; whether the file is sound enough to be read any further.
pub(super) fn quick_check(conn: &Connection, checkup: &mut Checkup) -> Result<bool> {
    match check(conn, checkup) {
        // Some damage ends the check itself.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            checkup.found(FindingKind::DamagedFile, error.to_string());
            Ok(false)
        }
        checked => checked,
    }
}

fn check(conn: &Connection, checkup: &mut Checkup) -> Result<bool> {
    let mut select = conn.prepare(&format!("PRAGMA quick_check({MOST_SENTENCES})"))?;
    let mut rows = select.query([])?;
    let mut sound = true;
    while let Some(row) = rows.next()? {
        let sentence: String = row.get(0)?;
        if sentence != "ok" {
            sound = false;
            checkup.found(FindingKind::DamagedFile, sentence);
        }
    }
    Ok(sound)
}
