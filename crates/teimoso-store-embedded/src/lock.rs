//! One process per store: a lock file that the system releases when its holder dies. Its text says who that is.

use std::fs::{File, TryLockError};
use std::io::{Seek, Write};
use std::path::Path;

use crate::error::OpenError;

/// What the lock file holds once there was a store beside it.
const MARK: &[u8] = b"a teimoso store lives here\n";
/// What stands before the holder's process id.
const HOLDER: &str = "pid ";
/// The lock file's name.
const LOCK: &str = "lock";

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
            .open(directory.join(LOCK))
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::locked(directory, &named(directory))),
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }

    /// Who holds the directory now, if anybody does; nothing is created and nothing stays locked.
    pub(crate) fn holder(directory: &Path) -> Option<String> {
        let file = File::open(directory.join(LOCK)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(named(directory)),
            _ => None,
        }
    }

    /// Whether a store was opened here before. If its file is gone or empty, something went wrong: a new,
    /// empty one in its place would hide a loss.
    pub(crate) fn is_marked(&self) -> bool {
        self.0.metadata().is_ok_and(|file| file.len() > 0)
    }

    /// From now on there is a store here, and this process has it.
    pub(crate) fn mark(&mut self) -> std::io::Result<()> {
        // The mark first: a file cut in between still says that there is a store.
        self.0.rewind()?;
        self.0.write_all(MARK)?;
        self.0.set_len(MARK.len() as u64)?;
        writeln!(self.0, "{HOLDER}{}", std::process::id())
    }
}

/// Whom the lock file names.
fn named(directory: &Path) -> String {
    let text = std::fs::read_to_string(directory.join(LOCK)).unwrap_or_default();
    let pid = text.lines().find_map(|line| line.strip_prefix(HOLDER)?.parse::<u32>().ok());
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("another process (pid {pid})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Lock::holder(dir.path()), None);
        let mut first = Lock::take(dir.path()).unwrap();
        let refused = Lock::take(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("in use by another process;"), "{refused}");
        first.mark().unwrap();
        first.mark().unwrap();
        let me = format!("another process (pid {})", std::process::id());
        assert_eq!(Lock::holder(dir.path()), Some(me.clone()));
        let refused = Lock::take(dir.path()).unwrap_err().to_string();
        assert!(refused.contains(&me), "{refused}");
        drop(first);
        assert_eq!(Lock::holder(dir.path()), None);
        assert!(Lock::take(dir.path()).unwrap().is_marked());
    }
}
