//! The real clocks of the process: the only file that reads them, so that everything else takes time as an
//! argument. Deliberately absent: fake clocks, which live beside the tests that need them.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use teimoso_delivery::model::Millis;
use teimoso_delivery::ports::{BoxFuture, Clock};

/// The wall clock, for instants that people read and that cross a restart.
#[must_use]
pub fn wall_now() -> Timestamp {
    Timestamp::now()
}

/// The monotonic clock, for measuring how long something took.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place where the real monotonic clock is read")]
pub fn monotonic_now() -> Instant {
    Instant::now()
}

/// An instant as people and JSON read it: RFC 3339, UTC.
#[must_use]
pub fn rfc3339(at: Millis) -> String {
    let millis = i64::try_from(at.get()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX).to_string()
}

/// Waits for `wait` of real time on the current tokio runtime; not at all for zero, which a timer would round up.
#[expect(clippy::disallowed_methods, reason = "this is the one place where real time is waited for")]
pub async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

/// The real clocks behind the engine's port.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Monotonic time counts from now.
    #[must_use]
    pub fn start() -> Self {
        Self { started: monotonic_now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        Millis::new(u64::try_from(wall_now().as_millisecond()).unwrap_or(0))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        Box::pin(pause(wait))
    }
}
