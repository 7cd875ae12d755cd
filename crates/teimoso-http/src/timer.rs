//! The timer of an attempt, moved from phase to phase, and instants that no clock can hold; absent: what is timed.

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

/// What "never" is: thirty years. The timer computes beyond an instant, so one that a clock can just hold is too far.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// An instant after `now`, at most [`NEVER`].
pub(crate) fn later(now: Instant, duration: Duration) -> Instant {
    now + duration.min(NEVER)
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep_until;

    use super::*;

    #[tokio::test]
    async fn no_duration_is_too_long_for_the_timer() {
        let now = Instant::now();
        // The longest that the clock can hold, bit by bit.
        let longest = (0..63).rev().fold(Duration::ZERO, |sum, bit| {
            let more = sum + Duration::from_secs(1 << bit);
            now.checked_add(more).map_or(sum, |_| more)
        });
        let longest = (0..30).rev().fold(longest, |sum, bit| {
            let more = sum + Duration::from_nanos(1 << bit);
            now.checked_add(more).map_or(sum, |_| more)
        });
        for duration in [longest, Duration::MAX] {
            let mut timer = pin!(sleep_until(later(now, duration)));
            let polled = poll_fn(|cx| Poll::Ready(poll_timer(timer.as_mut(), cx)));
            assert_eq!(polled.await, Poll::Pending);
        }
    }
}
