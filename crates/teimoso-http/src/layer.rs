//! The same repetition around any tower service: a [`Layer`] with the client's decisions; absent: evidence, which only
//! the service can have, time-outs of an attempt, which only it can enforce, and redirects.

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body_util::{Empty, Full};
use teimoso_retry::{Decision, Fate, Outcome, Proof, RetryPolicy, WaitSource, Why};
use tower_layer::Layer;
use tower_service::Service;

use crate::attempt::Timings;
use crate::body::RequestBody;
use crate::client::{
    Account, Budgets, Marks, Payment, Ports, Repeat, RetryEvent, default_budget, hint, kind_of_status,
    reason_of, redacted, say, told,
};
use crate::clock::{Clock, Entropy, SystemClock, SystemEntropy};
use crate::trace::{AttemptTrace, RetryTrace};

/// Says what a service's error proves of the request, so that more than safe requests can be repeated.
///
/// Only a proof may be anything else than [`Fate::Ambiguous`]: a wrong [`Fate::NeverSent`] doubles writes. "The
/// connection failed" is a proof only for services that follow no redirects and repeat nothing themselves. Closures
/// are classifiers.
pub trait Classify<E> {
    /// What is known of the request that ended with this error.
    fn fate(&self, error: &E) -> Fate;
}

impl<E, F: Fn(&E) -> Fate> Classify<E> for F {
    fn fate(&self, error: &E) -> Fate {
        self(error)
    }
}

/// The default classifier: no error proves anything, so every one is ambiguous.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoEvidence;

impl<E> Classify<E> for NoEvidence {
    fn fate(&self, _: &E) -> Fate {
        Fate::Ambiguous(Why::Other)
    }
}

/// A request body that may exist more than once.
pub trait Replay: Sized {
    /// Another body of the same bytes, or `None` if there is no other: such a request is sent once.
    fn replay(&self) -> Option<Self>;
}

/// Bodies whose clone is the same body.
macro_rules! replay_by_clone {
    ($($body:ty),+) => {
        $(impl Replay for $body {
            fn replay(&self) -> Option<Self> {
                Some(self.clone())
            }
        })+
    };
}

replay_by_clone!((), Bytes, String, Vec<u8>, &'static str, &'static [u8]);

impl<D: Buf + Clone> Replay for Full<D> {
    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<D> Replay for Empty<D> {
    fn replay(&self) -> Option<Self> {
        Some(Self::new())
    }
}

impl Replay for RequestBody {
    fn replay(&self) -> Option<Self> {
        Self::replay(self)
    }
}

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
/// an error of ours would not be the service's; its total decides only whether another attempt begins.
pub struct RetryLayer<C = NoEvidence> {
    shared: Arc<Shared>,
    classify: C,
}

struct Shared {
    policy: RetryPolicy,
    budgets: Option<Budgets>,
    ports: Ports,
}

/// Settings of a [`RetryLayer`] beside its policy.
pub struct RetryLayerBuilder<C = NoEvidence> {
    policy: RetryPolicy,
    retry_budget: Option<(u32, u32)>,
    ports: Ports,
    classify: C,
}

impl RetryLayer {
    /// A layer with this policy and everything else by default.
    pub fn new(policy: impl Into<RetryPolicy>) -> Self {
        Self::builder(policy).build()
    }

    /// A layer with more to say than its policy.
    pub fn builder(policy: impl Into<RetryPolicy>) -> RetryLayerBuilder {
        let policy = policy.into();
        RetryLayerBuilder {
            retry_budget: default_budget(&policy),
            policy,
            ports: Ports {
                clock: Arc::new(SystemClock::new()),
                entropy: Arc::new(SystemEntropy),
                observer: None,
            },
            classify: NoEvidence,
        }
    }
}

impl<C> RetryLayer<C> {
    /// The same layer with another classifier.
    #[must_use]
    pub fn classify<D>(self, classify: D) -> RetryLayer<D> {
        RetryLayer { shared: self.shared, classify }
    }
}

impl<C> RetryLayerBuilder<C> {
    /// What the service's errors prove; default [`NoEvidence`].
    #[must_use]
    pub fn classify<D>(self, classify: D) -> RetryLayerBuilder<D> {
        let Self { policy, retry_budget, ports, .. } = self;
        RetryLayerBuilder { policy, retry_budget, ports, classify }
    }

    /// The retry budget, as [`ClientBuilder::retry_budget`](crate::ClientBuilder::retry_budget) has it.
    #[must_use]
    pub fn retry_budget(mut self, per_mille_and_reserve: Option<(u32, u32)>) -> Self {
        self.retry_budget = per_mille_and_reserve;
        self
    }

    /// The clock; default [`SystemClock`].
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.ports.clock = Arc::new(clock);
        self
    }

    /// Where jitter comes from; default [`SystemEntropy`].
    #[must_use]
    pub fn entropy(mut self, entropy: impl Entropy) -> Self {
        self.ports.entropy = Arc::new(entropy);
        self
    }

    /// Hears of every retry, before its wait begins, beside the `tracing` warning.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&RetryEvent) + Send + Sync + 'static) -> Self {
        self.ports.observer = Some(Box::new(observer));
        self
    }

    /// Makes the layer.
    pub fn build(self) -> RetryLayer<C> {
        let budgets = self.retry_budget.map(|(share, reserve)| Budgets::new(share, reserve));
        let shared = Shared { policy: self.policy, budgets, ports: self.ports };
        RetryLayer { shared: Arc::new(shared), classify: self.classify }
    }
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

impl<C> fmt::Debug for RetryLayerBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayerBuilder").field("policy", &self.policy).finish_non_exhaustive()
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

impl<C> RetryLayer<C> {
    async fn repeat<S, B, R>(
        &self,
        mut service: S,
        mut request: http::Request<B>,
    ) -> Result<http::Response<R>, S::Error>
    where
        S: Service<http::Request<B>, Response = http::Response<R>>,
        C: Classify<S::Error>,
        B: Replay,
    {
        let Shared { policy, budgets, ports } = &*self.shared;
        let own = request.extensions().get::<RetryPolicy>().cloned();
        let policy = own.as_ref().unwrap_or(policy);
        let marks = Marks::read(request.extensions(), request.headers());
        let mut repeat = Repeat::new(policy, request.method(), marks, ports.clock.now());
        let account = budgets.as_ref().map(|budgets| account_of(budgets, request.uri()));
        if let Some(account) = &account {
            account.request();
        }
        let mut trace = RetryTrace::default();
        loop {
            let (number, method) = (repeat.number(), request.method().clone());
            let spare = if repeat.is_last() { None } else { copy(&request) };
            let started_after = repeat.elapsed(ports.clock.now());
            let sent = send(&mut service, request, number).await;
            let outcome = self.judge(&sent);
            let mut payment = Payment::from(account.as_deref());
            let (now, entropy) = (ports.clock.now(), || ports.entropy.bits());
            let decision = repeat.after(&outcome, now, entropy, spare.is_some(), || payment.make());
            trace.push(attempt_trace(number, method, &outcome, policy, started_after, decision));
            let (Decision::RetryIn { wait, source }, Some(again)) = (decision, spare) else {
                return sent.into_result(trace);
            };
            // An unread body would hold its connection through the wait.
            drop(sent);
            say(&event(&again, &repeat, number, &outcome, (wait, source), now), ports.observer.as_ref());
            ports.clock.sleep(wait).await;
            payment.settle();
            request = again;
        }
    }

    fn judge<R, E>(&self, sent: &Sent<R, E>) -> Outcome
    where
        C: Classify<E>,
    {
        match sent {
            Sent::Answered(response) => Outcome {
                fate: Fate::Answered,
                status: Some(response.status().as_u16()),
                hint: hint(response.status(), response.headers(), &*self.shared.ports.clock),
            },
            Sent::Failed(error) => Outcome { fate: self.classify.fate(error), status: None, hint: None },
            // A service that is not ready was not called.
            Sent::Unready(_) => {
                Outcome { fate: Fate::NeverSent(Proof::NoConnection), status: None, hint: None }
            }
        }
    }
}

/// What came of one call to the service.
enum Sent<R, E> {
    Answered(http::Response<R>),
    Failed(E),
    Unready(E),
}

impl<R, E> Sent<R, E> {
    fn into_result(self, trace: RetryTrace) -> Result<http::Response<R>, E> {
        match self {
            Self::Answered(mut response) => {
                response.extensions_mut().insert(trace);
                Ok(response)
            }
            Self::Failed(error) | Self::Unready(error) => Err(error),
        }
    }
}

/// Calls the service; before the first attempt its caller has seen it ready.
async fn send<S, B, R>(service: &mut S, request: http::Request<B>, number: NonZeroU32) -> Sent<R, S::Error>
where
    S: Service<http::Request<B>, Response = http::Response<R>>,
{
    if number > NonZeroU32::MIN
        && let Err(error) = poll_fn(|cx| service.poll_ready(cx)).await
    {
        return Sent::Unready(error);
    }
    match service.call(request).await {
        Ok(response) => Sent::Answered(response),
        Err(error) => Sent::Failed(error),
    }
}

/// The same request once more, if its body exists once more.
fn copy<B: Replay>(request: &http::Request<B>) -> Option<http::Request<B>> {
    let mut copy = http::Request::new(request.body().replay()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// Host names are case-insensitive (RFC 9110 §4.2.3), and nearly always written in lower case.
fn account_of(budgets: &Budgets, uri: &http::Uri) -> Arc<Account> {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    match authority.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => budgets.of(&authority.to_ascii_lowercase()),
        false => budgets.of(authority),
    }
}

fn attempt_trace(
    number: NonZeroU32,
    method: http::Method,
    outcome: &Outcome,
    policy: &RetryPolicy,
    started_after: Duration,
    decision: Decision,
) -> AttemptTrace {
    AttemptTrace {
        number,
        hop: 0,
        method,
        fate: outcome.fate,
        status: outcome.status,
        error: None,
        retry_after: told(policy.retry_after(), outcome.hint),
        started_after,
        timings: Timings::default(),
        peer: None,
        reused: false,
        decision,
    }
}

fn event<B>(
    request: &http::Request<B>,
    repeat: &Repeat<'_>,
    number: NonZeroU32,
    outcome: &Outcome,
    (wait, source): (Duration, WaitSource),
    now: Duration,
) -> RetryEvent {
    RetryEvent {
        method: request.method().clone(),
        url: redacted(&request.uri().to_string()),
        number,
        max_attempts: repeat.max_attempts(),
        fate: outcome.fate,
        status: outcome.status,
        kind: outcome.status.and_then(kind_of_status),
        reason: reason_of(outcome.fate, outcome.status),
        wait,
        source,
        elapsed: repeat.elapsed(now),
    }
}
