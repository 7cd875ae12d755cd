//! The one timer of an attempt, moved from phase to phase; absent: what the phases do.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep};

/// Moves the timer if it is set to another instant.
pub(crate) fn set_timer(timer: Pin<&mut Sleep>, at: Instant) {
    if timer.deadline() != at {
        timer.reset(at);
    }
}

/// Polls the timer outside tokio's cooperative budget. A peer that always has something to read uses the budget up, and
/// a timer that needed a share of it would never fire.
pub(crate) fn poll_timer(timer: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
    pin!(unconstrained(timer)).poll(cx)
}

/// Awaits a future until `at`; `None` when it takes longer.
pub(crate) async fn within<F: Future>(
    mut timer: Pin<&mut Sleep>,
    at: Instant,
    future: F,
) -> Option<F::Output> {
    set_timer(timer.as_mut(), at);
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => poll_timer(timer.as_mut(), cx).map(|()| None),
    })
    .await
}

/// An instant after `now`; a duration that no clock can hold means "never", which thirty years are.
pub(crate) fn later(now: Instant, duration: Duration) -> Instant {
    now.checked_add(duration).unwrap_or_else(|| now + Duration::from_secs(30 * 365 * 24 * 60 * 60))
}
