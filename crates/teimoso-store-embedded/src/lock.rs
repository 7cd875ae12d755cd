//! One process per store: a lock file that the system releases when its holder dies.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;

use crate::error::OpenError;

/// What the lock file holds once there was a store beside it.
const MARK: &[u8] = b"a teimoso store lives here\n";

/// Holds the directory until dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Creates the directory when missing (mode 0700 is left to the umask) and takes its lock.
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let io = |error: std::io::Error| OpenError::io(directory, &error);
        std::fs::create_dir_all(directory).map_err(io)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(directory.join("lock"))
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::locked(directory)),
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }

    /// Whether a store was opened here before. If its file is gone or empty, something went wrong: a new,
    /// empty one in its place would hide a loss.
    pub(crate) fn is_marked(&self) -> bool {
        self.0.metadata().is_ok_and(|file| file.len() > 0)
    }

    /// From now on there is a store here.
    pub(crate) fn mark(&mut self) -> std::io::Result<()> {
        if self.is_marked() { Ok(()) } else { self.0.write_all(MARK) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        let refused = Lock::take(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("in use by another process"), "{refused}");
        drop(first);
        assert!(Lock::take(dir.path()).is_ok());
    }
}
