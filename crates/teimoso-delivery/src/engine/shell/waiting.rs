//! The one timer, and the ear for new work.

use std::time::Duration;

use super::{Shell, Timer};
use crate::engine::anchor::Now;

/// A wait for a known due time is cut into pieces of at most this length, so that a step of the wall
/// clock is noticed. Two clocks are read then; the store is not asked.
const LOOK_AT_THE_CLOCK: Duration = Duration::from_secs(5);
/// The shortest wait for a due time: a store that names a past one must not make the loop spin.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

impl Shell<'_> {
    /// Sets the one timer, and listens for work when nothing else would make us claim.
    pub(super) fn listen(&mut self) {
        let idle = !self.claim_again && self.claiming.is_none() && !self.stopping;
        if idle && self.work.is_none() {
            self.work = Some(self.ports.store.wait());
        }
        let due = if idle { self.wake_at } else { None };
        let renew = (self.held() > 0).then_some(self.renew_at);
        let backoff = if self.stopping { None } else { self.backoff };
        let known = renew.into_iter().chain(backoff).chain(self.give_up_at).min();
        if due.is_none() && known.is_none() {
            self.timer = None;
            return;
        }
        let armed = self.timer.as_ref().map(|timer| timer.at);
        if due.is_none() && armed.is_some() && armed <= known {
            return;
        }
        let now = Now::read(&*self.ports.clock);
        let due = due.map(|at| now.mono_of(at).min(now.mono.saturating_add(LOOK_AT_THE_CLOCK)));
        let due = due.map(|at| at.max(now.mono.saturating_add(SHORTEST_WAIT)));
        let Some(at) = known.into_iter().chain(due).min() else { return };
        if armed.is_none_or(|armed| armed > at) {
            let rings = self.ports.clock.sleep(at.saturating_sub(now.mono));
            self.timer = Some(Timer { at, rings });
        }
    }

    /// Whatever the timer was set for: everything that hangs on a clock is looked at.
    pub(super) fn look_at_the_clock(&mut self) {
        let now = Now::read(&*self.ports.clock);
        self.re_anchor(now);
        if self.backoff.is_some_and(|until| until <= now.mono) {
            self.backoff = None;
        }
        if self.wake_at.is_some_and(|at| at <= now.wall) {
            self.wake_at = None;
            self.claim_again = true;
        }
        if self.renew_at <= now.mono {
            self.renew(now);
        }
        self.gave_up = self.give_up_at.is_some_and(|at| at <= now.mono);
    }
}
