//! Time that only a test moves, and a runtime in which it moves by itself when nothing else can.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::model::Millis;
use crate::ports::{BoxFuture, Clock};

/// Both clocks, moved by hand. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<Time>>);

#[derive(Debug)]
struct Time {
    wall: Duration,
    mono: Duration,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    next_sleeper: u64,
}

impl ManualClock {
    /// A clock whose wall shows `now`.
    #[must_use]
    pub fn at(now: Millis) -> Self {
        let wall = Duration::from_millis(now.get());
        let time = Time { wall, mono: Duration::ZERO, sleepers: BTreeMap::new(), next_sleeper: 0 };
        Self(Arc::new(Mutex::new(time)))
    }

    /// Lets `time` pass on both clocks and wakes whoever slept that long.
    pub fn advance(&self, time: Duration) {
        let woken = {
            let mut state = self.time();
            state.wall += time;
            state.mono += time;
            state.wake()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// Steps the wall clock forward, as a correction or a resumed machine does; no time passes.
    pub fn step_forward(&self, by: Duration) {
        self.time().wall += by;
    }

    /// Steps the wall clock back; no time passes.
    pub fn step_back(&self, by: Duration) {
        let mut time = self.time();
        time.wall = time.wall.saturating_sub(by);
    }

    /// Lets time pass until the next sleeper wakes; `false` when nobody sleeps.
    pub fn advance_to_next_sleeper(&self) -> bool {
        let wait = {
            let time = self.time();
            time.sleepers.first_key_value().map(|((until, _), _)| until.saturating_sub(time.mono))
        };
        wait.map(|wait| self.advance(wait)).is_some()
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Time {
    fn wake(&mut self) -> Vec<Waker> {
        let later = self.sleepers.split_off(&(self.mono, u64::MAX));
        std::mem::replace(&mut self.sleepers, later).into_values().collect()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis::new(u64::try_from(self.time().wall.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.time().mono
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        let mut time = self.time();
        time.next_sleeper += 1;
        let key = (time.mono.saturating_add(wait), time.next_sleeper);
        Box::pin(Sleep { clock: self.clone(), key })
    }
}

struct Sleep {
    clock: ManualClock,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut time = self.clock.time();
        if time.mono >= self.key.0 {
            return Poll::Ready(());
        }
        time.sleepers.insert(self.key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.time().sleepers.remove(&self.key);
    }
}

/// Longest virtual time a test may take: what waits longer waits for something that never comes.
const HORIZON: Duration = Duration::from_secs(4 * 24 * 3_600);

/// Runs `future` on a runtime of one thread in which `clock` moves to the next sleeper whenever
/// nothing else can run. Seventy-five hours take milliseconds, in the same order every time.
///
/// # Panics
/// When nothing can run and nobody sleeps, or after four days of the clock's time.
pub fn in_virtual_time<T>(clock: &ManualClock, future: impl Future<Output = T>) -> T {
    let (idle, end) = (clock.clone(), clock.monotonic() + HORIZON);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.on_thread_park(move || {
        assert!(idle.advance_to_next_sleeper(), "nothing can run and nobody sleeps");
        assert!(idle.monotonic() < end, "waited for four days of virtual time");
    });
    let runtime = builder.build().expect("a runtime without drivers needs nothing");
    runtime.block_on(future)
}
