//! Counted permissions: how much is going on at once, and a refusal instead of a queue when it is too much.
//!
//! Deliberately absent: waiting. A request that does not fit is told so at once, and its client, which has
//! a retry policy, waits where waiting costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bounded amount of something.
#[derive(Debug)]
pub(crate) struct Gauge {
    used: AtomicUsize,
    limit: usize,
}

impl Gauge {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit })
    }

    /// Takes `amount`, or nothing when it does not fit.
    pub(crate) fn take(self: &Arc<Self>, amount: usize) -> Option<Hold> {
        let mut hold = Hold { gauge: Arc::clone(self), amount: 0 };
        hold.grow(amount).then_some(hold)
    }
}

/// A part of a [`Gauge`], given back when dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    gauge: Arc<Gauge>,
    amount: usize,
}

impl Hold {
    /// Takes `more`; `false` and unchanged when it does not fit.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        let fits = |used: usize| used.checked_add(more).filter(|sum| *sum <= self.gauge.limit);
        let grown = self.gauge.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if grown {
            self.amount += more;
        }
        grown
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.gauge.used.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_what_is_dropped_fits_again() {
        let gauge = Gauge::new(10);
        let mut first = gauge.take(6).expect("fits");
        assert!(gauge.take(5).is_none());
        assert!(first.grow(4));
        assert!(!first.grow(1));
        assert!(!first.grow(usize::MAX));
        drop(first);
        assert!(gauge.take(10).is_some());
    }
}
