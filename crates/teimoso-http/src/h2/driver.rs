//! The task that drives one HTTP/2 connection; absent: what travels over it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Sleep, sleep_until};

use super::Shared;
use crate::body::RequestBody;
use crate::io::{Counted, Wire};
use crate::timer::{later, poll_timer};

/// The shortest idle time-out of a connection: it is asked that often at most.
const IDLE_TIMEOUT_MIN: Duration = Duration::from_secs(1);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Takes what hyper would spawn, for the driver to poll. Only the driver's own futures ever put something in.
#[derive(Clone, Default)]
pub(super) struct Aside(Arc<Mutex<Vec<Task>>>);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Aside {
    fn execute(&self, task: F) {
        self.tasks().push(Box::pin(task));
    }
}

impl Aside {
    fn take(&self) -> Vec<Task> {
        std::mem::take(&mut *self.tasks())
    }

    fn is_empty(&self) -> bool {
        self.tasks().is_empty()
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Client<S> = http2::Connection<TokioIo<Counted<S>>, RequestBody, Aside>;

/// Drives a connection until nobody needs it.
pub(super) struct Driver<S: Wire> {
    /// Takes new requests; gone when there will be none.
    client: Option<Client<S>>,
    aside: Aside,
    tasks: FuturesUnordered<Task>,
    shared: Weak<Shared>,
    idle_timeout: Duration,
    idle: Pin<Box<Sleep>>,
    begun: u64,
}

impl<S: Wire> Driver<S> {
    pub(super) fn new(client: Client<S>, aside: Aside, shared: Weak<Shared>, idle_timeout: Duration) -> Self {
        let idle_timeout = idle_timeout.max(IDLE_TIMEOUT_MIN);
        let idle = Box::pin(sleep_until(later(Instant::now(), idle_timeout)));
        let (client, tasks) = (Some(client), FuturesUnordered::new());
        Self { client, aside, tasks, shared, idle_timeout, idle, begun: 0 }
    }

    /// What arrives is read before the next request is taken: a connection that is known to have ended hands the
    /// request back instead of losing it.
    fn advance(&mut self, cx: &mut Context<'_>) {
        loop {
            self.tasks.extend(self.aside.take());
            while let Poll::Ready(Some(())) = self.tasks.poll_next_unpin(cx) {}
            if let Some(client) = &mut self.client
                && Pin::new(client).poll(cx).is_ready()
            {
                // Its outcome is not lost: hyper gives errors to the requests that wait.
                self.client = None;
            }
            if self.aside.is_empty() {
                return;
            }
        }
    }

    /// Retires a connection that had no exchange for a whole idle time-out.
    fn look_for_idleness(&mut self, cx: &mut Context<'_>) {
        while poll_timer(self.idle.as_mut(), cx).is_ready() {
            if let Some(shared) = self.shared.upgrade()
                && let Some(begun) = shared.quiet_since()
            {
                if begun == self.begun {
                    shared.retire();
                }
                self.begun = begun;
            }
            self.idle.as_mut().reset(later(Instant::now(), self.idle_timeout));
        }
    }
}

impl<S: Wire> Future for Driver<S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.look_for_idleness(cx);
        this.advance(cx);
        if this.client.is_none() && this.tasks.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<S: Wire> Drop for Driver<S> {
    fn drop(&mut self) {
        // What lies there holds the place it lies in.
        drop(self.aside.take());
    }
}
