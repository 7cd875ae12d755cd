//! The counts that are written down, and how far a new one may be from them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::trouble::{Doing, Result};

/// A count may differ by this part of what was expected: compilers and libraries differ by a few per cent.
const TOLERANCE: f64 = 0.10;

/// What is written down.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Expected {
    /// The processor's kind: another one's counts say nothing.
    architecture: String,
    /// Instructions by path.
    paths: BTreeMap<String, u64>,
}

/// How a count compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Nothing is written down.
    New,
    /// Close enough.
    Within {
        /// What was expected.
        expected: u64,
        /// The difference, as a part of it.
        difference: f64,
    },
    /// Too far away, in either direction: what got cheaper is to be written down, too.
    Beyond {
        /// What was expected.
        expected: u64,
        /// The difference, as a part of it.
        difference: f64,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("– | –"),
            Self::Within { expected, difference } => write!(f, "{expected} | {:+.1} %", difference * 100.0),
            Self::Beyond { expected, difference } => {
                write!(f, "{expected} | **{:+.1} %**", difference * 100.0)
            }
        }
    }
}

impl Expected {
    /// What the file says; nothing when there is none.
    ///
    /// # Errors
    /// When it cannot be understood.
    pub fn read(path: &Path) -> Result<Self> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).doing(&format!("understand {}", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).doing(&format!("read {}", path.display())),
        }
    }

    /// Whether they were counted on this kind of processor.
    pub fn is_of_this_machine(&self) -> bool {
        self.paths.is_empty() || self.architecture == std::env::consts::ARCH
    }

    /// Compares.
    pub fn judge(&self, path: &str, counted: u64) -> Verdict {
        let Some(expected) = self.paths.get(path).copied() else { return Verdict::New };
        let difference = (counted as f64 - expected as f64) / (expected as f64).max(1.0);
        if difference.abs() <= TOLERANCE {
            Verdict::Within { expected, difference }
        } else {
            Verdict::Beyond { expected, difference }
        }
    }

    /// Takes a count over.
    pub fn note(&mut self, path: String, counted: u64) {
        self.paths.insert(path, counted);
    }

    /// Writes them down as this machine's.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(mut self, path: &Path) -> Result<()> {
        std::env::consts::ARCH.clone_into(&mut self.architecture);
        let text = serde_json::to_string_pretty(&self).doing("write counts")?;
        fs::write(path, text + "\n").doing(&format!("write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_more_or_less_is_within() {
        let mut expected = Expected::default();
        assert_eq!(expected.judge("decide", 1_000), Verdict::New);
        expected.note("decide".to_owned(), 1_000);
        assert!(matches!(expected.judge("decide", 1_100), Verdict::Within { .. }));
        assert!(matches!(expected.judge("decide", 900), Verdict::Within { .. }));
        assert!(matches!(expected.judge("decide", 1_101), Verdict::Beyond { .. }));
        assert!(matches!(expected.judge("decide", 899), Verdict::Beyond { .. }));
    }

    #[test]
    fn counts_survive_being_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("counts.json");
        let mut expected = Expected::read(&path).unwrap();
        expected.note("lanes".to_owned(), 7);
        expected.write(&path).unwrap();
        let read = Expected::read(&path).unwrap();
        assert!(read.is_of_this_machine());
        assert_eq!(read.judge("lanes", 7), Verdict::Within { expected: 7, difference: 0.0 });
    }
}
