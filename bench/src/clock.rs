//! The real clocks: the only file that reads them. Deliberately absent: anything else.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use teimoso_delivery::model::Millis;
use teimoso_delivery::ports::{BoxFuture, Clock};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time, and reads it here")]
pub fn now() -> Instant {
    Instant::now()
}

/// Microseconds since the epoch: the clock that two processes share.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time, and reads it here")]
pub fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The wall clock as stores keep it.
pub fn wall() -> Millis {
    Millis::new(wall_micros() / 1_000)
}

/// Blocks this thread.
pub fn pause(wait: Duration) {
    std::thread::sleep(wait);
}

/// Blocks this thread until then.
pub fn pause_until(at: Instant) {
    pause(at.saturating_duration_since(now()));
}

/// The real clocks behind the engine's port.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Monotonic time counts from now.
    pub fn start() -> Self {
        Self(now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        wall()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move { tokio::time::sleep_until((now() + wait).into()).await })
    }
}
