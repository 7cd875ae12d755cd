//! What goes wrong, as one sentence for whoever runs it. Deliberately absent: kinds to match on.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A sentence.
#[derive(Debug)]
pub struct Trouble(String);

/// The result of everything here.
pub type Result<T, E = Trouble> = std::result::Result<T, E>;

impl Trouble {
    /// Says it.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

/// Turns a foreign error into a sentence.
pub trait Doing<T> {
    /// `what` reads after "failed to".
    ///
    /// # Errors
    /// The same error, with what was being done.
    fn doing(self, what: &str) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|error| Trouble(format!("failed to {what}: {error}")))
    }
}

/// The lock, whether or not a thread died with it: what is behind it is only ever added to.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
