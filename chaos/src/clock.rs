//! The real clocks: the only file that reads them. Deliberately absent: anything else.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a storm strikes in real time, and reads it here")]
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since the epoch: scores of the waiting set, and the seed of who names none.
#[expect(clippy::disallowed_methods, reason = "a storm strikes in real time, and reads it here")]
pub fn wall_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Blocks this thread.
pub fn pause(wait: Duration) {
    std::thread::sleep(wait);
}
