//! Time and chance as arguments of the client, with the real ones; absent: the timers of sockets, which belong to the
//! transport.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, sleep_until};

use crate::timer::later;

/// A wait that a [`Clock`] has begun; dropping it ends it.
pub type Sleeping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the client knows of time. A test passes one of its own, and no test really sleeps (S1.7).
pub trait Clock: Send + Sync + 'static {
    /// Monotonic time since any fixed instant.
    fn now(&self) -> Duration;

    /// Wall-clock time since the Unix epoch; only a `Retry-After` date without a `Date` beside it is read against it.
    fn unix_now(&self) -> Duration;

    /// Waits; never shorter than `duration`.
    fn sleep(&self, duration: Duration) -> Sleeping;
}

/// Where the client's jitter comes from.
pub trait Entropy: Send + Sync + 'static {
    /// 64 uniformly random bits.
    fn bits(&self) -> u64;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }

    fn unix_now(&self) -> Duration {
        (**self).unix_now()
    }

    fn sleep(&self, duration: Duration) -> Sleeping {
        (**self).sleep(duration)
    }
}

impl<E: Entropy + ?Sized> Entropy for Arc<E> {
    fn bits(&self) -> u64 {
        (**self).bits()
    }
}

/// The machine's clock; waits run on tokio's timer.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose [`Clock::now`] counts from here.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place of the library that reads the wall clock"
    )]
    fn unix_now(&self) -> Duration {
        // A machine that lives before 1970 has no date to compare with: zero makes every date lie ahead.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) -> Sleeping {
        Box::pin(sleep_until(later(Instant::now(), duration)))
    }
}

/// Random bits from a generator that each thread seeds from the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(clippy::disallowed_methods, reason = "this is the one place of the library that draws chance")]
    fn bits(&self) -> u64 {
        fastrand::u64(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_real_clock_never_wakes_early() {
        let clock = SystemClock::new();
        let before = clock.now();
        clock.sleep(Duration::from_millis(2)).await;
        assert!(clock.now() - before >= Duration::from_millis(2));
        assert!(clock.unix_now() > Duration::from_secs(1_700_000_000));
    }

    #[tokio::test]
    async fn a_wait_that_no_clock_can_hold_does_not_panic() {
        let mut endless = SystemClock::default().sleep(Duration::MAX);
        let polled =
            std::future::poll_fn(|cx| std::task::Poll::Ready(endless.as_mut().poll(cx).is_pending()));
        assert!(polled.await);
    }
}
