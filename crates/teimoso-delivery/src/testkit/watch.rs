//! An observer that remembers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ports::{Finished, Note, Observer};
use crate::store::Next;

/// An attempt's end as the observer was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Where it went.
    pub url: Arc<str>,
    /// The attempt's number.
    pub number: u32,
    /// What follows.
    pub next: Next,
    /// The wait before the next attempt.
    pub wait: Option<Duration>,
    /// Attempts of the budget used, and the policy's number.
    pub of: (u32, u32),
    /// From due to started.
    pub lag: Duration,
}

/// Remembers every end and every note.
#[derive(Debug, Default)]
pub struct Watch {
    seen: Mutex<(Vec<Seen>, Vec<Note>)>,
}

impl Watch {
    /// Every attempt's end, in order.
    #[must_use]
    pub fn ends(&self) -> Vec<Seen> {
        self.lock().0.clone()
    }

    /// Every note, in order.
    #[must_use]
    pub fn notes(&self) -> Vec<Note> {
        self.lock().1.clone()
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<Seen>, Vec<Note>)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watch {
    fn finished(&self, end: &Finished<'_>) {
        let seen = Seen {
            url: end.attempt.url.clone(),
            number: end.attempt.number.get(),
            next: *end.next,
            wait: end.wait,
            of: (end.budget_used, end.max_attempts),
            lag: end.lag,
        };
        self.lock().0.push(seen);
    }

    fn note(&self, note: &Note) {
        self.lock().1.push(note.clone());
    }
}
