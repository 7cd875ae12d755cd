//! The one thread on which everything that talks to Redis runs, whatever runtime its callers are on.

use std::future::Future;
use std::thread::JoinHandle;

use teimoso_delivery::store::StoreError;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::shared::closed;

/// A runtime on a thread of its own. Dropping it abandons what runs there.
pub(crate) struct Io {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Io {
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("teimoso-redis".into()).spawn(move || {
            // Ends, too, when the sender is dropped.
            drop(runtime.block_on(stopped));
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Runs something there for ever.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(task));
    }

    /// Runs something there and waits for it here, on any runtime or none that is tokio's.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        verb: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.handle.spawn(verb).await.unwrap_or_else(|_| Err(closed()))
    }

    /// The same for a thread that may block.
    pub(crate) fn run_blocking<T: Send + 'static>(
        &self,
        verb: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = std::sync::mpsc::channel();
        self.spawn(async move { drop(reply.send(verb.await)) });
        answer.recv().ok()
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
