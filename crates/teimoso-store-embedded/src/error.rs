//! Failures, each with one sentence that says what to do next.

use std::path::Path;

use rusqlite::ErrorCode;
use teimoso_delivery::store::{StoreError, StoreErrorKind};

/// Why a store could not be opened. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError {
    sentence: String,
}

impl OpenError {
    pub(crate) fn new(sentence: String) -> Self {
        Self { sentence }
    }

    pub(crate) fn unusable(path: &Path, error: &rusqlite::Error) -> Self {
        Self::new(describe(path, error))
    }

    pub(crate) fn foreign(path: &Path) -> Self {
        Self::new(format!("{} is not a teimoso store; choose another --store directory", path.display()))
    }

    pub(crate) fn newer(path: &Path, format: i32) -> Self {
        Self::new(format!(
            "{} has format {format}, which a newer teimoso wrote; this version reads up to format {}",
            path.display(),
            crate::schema::FORMAT
        ))
    }

    pub(crate) fn without_wal(path: &Path) -> Self {
        Self::new(format!(
            "{} is on a file system without shared memory (a network share?); choose a local --store directory",
            path.display()
        ))
    }

    pub(crate) fn emptied(path: &Path) -> Self {
        Self::new(format!(
            "{} is missing or empty although a store was here; restore a backup, or remove the directory to start empty",
            path.display()
        ))
    }

    pub(crate) fn locked(directory: &Path, holder: &str) -> Self {
        Self::new(format!(
            "the store at {} is in use by {holder}; stop it, or talk to it with --server",
            directory.display()
        ))
    }

    pub(crate) fn absent(directory: &Path) -> Self {
        Self::new(format!(
            "there is no store at {}; name the directory that `teimoso serve --store` was given",
            directory.display()
        ))
    }

    pub(crate) fn half_moved(directory: &Path) -> Self {
        Self::new(format!(
            "another store is half moved into {}; run the same `teimoso migrate` again to end it, or remove the directory",
            directory.display()
        ))
    }

    pub(crate) fn io(directory: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("the store directory {} cannot be used: {error}", directory.display()))
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for OpenError {}

/// One sentence for a failure of the file as a whole.
pub(crate) fn describe(path: &Path, error: &rusqlite::Error) -> String {
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            format!("the store {path} is not writable; check the owner and mode of its directory")
        }
        Some(ErrorCode::CannotOpen) => {
            format!("the store {path} cannot be opened; check the owner and mode of its directory")
        }
        Some(ErrorCode::DiskFull) => format!("no room left for the store {path}; free disk space"),
        Some(ErrorCode::NotADatabase) => {
            format!("{path} is not a teimoso store; choose another --store directory")
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            format!("the store {path} is damaged; restore a backup, or move it away and start empty")
        }
        _ => format!("the store {path} failed: {error}"),
    }
}

/// Whether the file as a whole can no longer be trusted. Anything else is about a row or a statement.
pub(crate) fn is_fatal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::OutOfMemory
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::DiskFull
        )
    )
}

/// A failed statement or commit, sorted by what helps: room, or a restart.
pub(crate) fn store_error(error: &rusqlite::Error) -> StoreError {
    // What SQLite says when the log's index cannot grow, which on a sound disk means that it is full.
    if error.sqlite_extended_error_code() == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
        return full();
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => full(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::new(StoreErrorKind::Busy, "the store is busy; try again")
        }
        _ => StoreError::new(
            StoreErrorKind::Failed,
            format!("the store failed: {error}; restart when the disk is well again"),
        ),
    }
}

pub(crate) fn full() -> StoreError {
    StoreError::new(StoreErrorKind::Full, "no room left on the disk; free some, deliveries wait")
}

pub(crate) fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Closed, "the store is closed")
}

pub(crate) fn invalid_cursor() -> StoreError {
    StoreError::new(StoreErrorKind::InvalidCursor, "the cursor is not one that this listing gave out")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sqlite(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
    }

    #[test]
    fn what_more_room_heals_is_full_and_what_only_a_restart_proves_is_failed() {
        use rusqlite::ffi;
        for (code, kind) in [
            (ffi::SQLITE_FULL, StoreErrorKind::Full),
            (ffi::SQLITE_IOERR_SHMSIZE, StoreErrorKind::Full),
            (ffi::SQLITE_IOERR_WRITE, StoreErrorKind::Failed),
            (ffi::SQLITE_IOERR_FSYNC, StoreErrorKind::Failed),
            (ffi::SQLITE_CORRUPT, StoreErrorKind::Failed),
            (ffi::SQLITE_BUSY, StoreErrorKind::Busy),
        ] {
            assert_eq!(store_error(&sqlite(code)).kind(), kind, "{code}");
        }
    }

    #[test]
    fn every_way_a_file_is_unusable_says_what_to_do() {
        use rusqlite::ffi;
        for (code, hint) in [
            (ffi::SQLITE_READONLY, "is not writable; check the owner and mode of its directory"),
            (ffi::SQLITE_CANTOPEN, "cannot be opened; check the owner and mode of its directory"),
            (ffi::SQLITE_FULL, "free disk space"),
            (ffi::SQLITE_NOTADB, "is not a teimoso store; choose another --store directory"),
            (ffi::SQLITE_CORRUPT, "is damaged; restore a backup, or move it away and start empty"),
        ] {
            let sentence = describe(Path::new("/data/teimoso.db"), &sqlite(code));
            assert!(sentence.contains("/data/teimoso.db") && sentence.ends_with(hint), "{sentence}");
        }
    }
}
