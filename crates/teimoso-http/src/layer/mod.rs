//! The same repetition around any tower service: a [`Layer`] with the client's decisions; absent: evidence, which only
//! the service can have, time-outs of an attempt, which only it can enforce, and redirects.
//!
//! [`call`] is the loop. What follows an attempt is decided by the same brain as the client's, which does nothing
//! itself.

mod builder;
mod call;
mod classify;
mod replay;

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use teimoso_retry::RetryPolicy;
use tower_layer::Layer;
use tower_service::Service;

use crate::client::{Budgets, Ports};

pub use self::builder::RetryLayerBuilder;
pub use self::classify::{Classify, NoEvidence};
pub use self::replay::Replay;

/// Repeats requests to a tower service by the decisions of the [`Client`](crate::Client).
///
/// The caller gets the last attempt's own result: the response untouched but for the
/// [`RetryTrace`](crate::RetryTrace) in its extensions, or the service's own error. Marks and overrides are read from
/// the request's extensions and headers as the client reads them ([`Idempotent`](crate::Idempotent),
/// [`NoRetry`](crate::NoRetry), [`Deadline`](crate::Deadline), a policy, `Idempotency-Key`), and stay there.
///
/// What cannot be proved stays ambiguous. A service that offers no evidence (reqwest for one, whose connect errors may
/// be those of a later hop) is therefore repeated after an error only for requests that are safe to send twice, unless
/// a [`classifier`](Self::classify) knows better. The policy's attempt and connect time-outs are not enforced here, for
/// an error of ours would not be the service's; its total decides only whether another attempt begins. An error of the
/// service has no room for a trace: that earlier attempts may have taken effect is then for the observer to see.
///
/// A service that fails to become ready is spent, by tower's own contract: its error is final.
pub struct RetryLayer<C = NoEvidence> {
    shared: Arc<Shared>,
    classify: C,
}

struct Shared {
    policy: RetryPolicy,
    budgets: Option<Budgets>,
    ports: Ports,
}

impl<C: Clone> Clone for RetryLayer<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), classify: self.classify.clone() }
    }
}

impl<C> fmt::Debug for RetryLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer").field("policy", &self.shared.policy).finish_non_exhaustive()
    }
}

impl<S, C: Clone> Layer<S> for RetryLayer<C> {
    type Service = Retry<S, C>;

    fn layer(&self, service: S) -> Retry<S, C> {
        Retry { service, layer: self.clone() }
    }
}

/// A service whose requests are repeated; made by a [`RetryLayer`].
#[derive(Debug, Clone)]
pub struct Retry<S, C = NoEvidence> {
    service: S,
    layer: RetryLayer<C>,
}

impl<S, C, B, R> Service<http::Request<B>> for Retry<S, C>
where
    S: Service<http::Request<B>, Response = http::Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    C: Classify<S::Error> + Clone + Send + Sync + 'static,
    B: Replay + Send + 'static,
    R: Send + 'static,
{
    type Response = http::Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        // The one that was polled ready must be the one that is called.
        let unready = self.service.clone();
        let ready = mem::replace(&mut self.service, unready);
        let layer = self.layer.clone();
        Box::pin(async move { layer.repeat(ready, request).await })
    }
}
