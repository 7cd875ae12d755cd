//! The machine's clocks, for tests in which a real server's time passes.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use teimoso_delivery::model::Millis;
use teimoso_delivery::ports::{BoxFuture, Clock};

/// Real time.
#[derive(Debug)]
pub struct RealClock(Instant);

impl RealClock {
    /// Monotonic time counts from now.
    #[expect(clippy::disallowed_methods, reason = "redis-server keeps real time, so these tests do, too")]
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "redis-server keeps real time, so these tests do, too")]
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "redis-server keeps real time, so these tests do, too")]
    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(wait))
    }
}
