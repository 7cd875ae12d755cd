//! The loop: one call from its first attempt to its last, over all redirects; absent: every decision, which is
//! [`Repeat`]'s, and the wire, which is behind [`Exchanger`].

use std::future::Future;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use teimoso_retry::{Decision, RetryPolicy, WaitSource};
use tokio::time::Instant;

use crate::attempt::AttemptLimits;
use crate::body::{RequestBody, ResponseBody};
use crate::clock::{Clock, Entropy};
use crate::error::Error;
use crate::exchange::{Exchange, ExchangeRequest};
use crate::redirect::Redirect;
use crate::trace::{AttemptTrace, RetryTrace};
use crate::transport::{ADDED_HEADERS, Transport};

use super::budgets::Payment;
use super::event::{Observer, RetryEvent, say, shown};
use super::hint::{hint, told};
use super::marks::{Marks, ShownPath, own_policy};
use super::receive::Receive;
use super::repeat::Repeat;
use super::targets::{Destination, Destinations};
use super::tried::{Came, Ended, Tried};

/// Makes one exchange: the transport, or a script in its place.
pub(crate) trait Exchanger: Send + Sync {
    fn exchange(&self, request: ExchangeRequest) -> impl Future<Output = Exchange> + Send;
}

impl Exchanger for Transport {
    fn exchange(&self, request: ExchangeRequest) -> impl Future<Output = Exchange> + Send {
        self.exchange(request)
    }
}

/// Time, chance and who listens.
pub(crate) struct Ports {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) observer: Option<Observer>,
}

/// What all calls of a client share.
pub(crate) struct Core<T> {
    pub(crate) transport: T,
    pub(crate) policy: RetryPolicy,
    pub(crate) default_headers: HeaderMap,
    pub(crate) redirects: u32,
    pub(crate) destinations: Destinations,
    pub(crate) ports: Ports,
}

/// One request of a call, as it stands between two redirects.
struct Hop<'a> {
    policy: &'a RetryPolicy,
    marks: Marks,
    /// When the call began.
    started: Duration,
    /// How many redirects were followed before.
    number: u32,
    may_follow: bool,
    method: &'a Method,
    destination: &'a Destination,
    headers: &'a HeaderMap,
    shown_path: Option<&'a ShownPath>,
}

impl<T: Exchanger> Core<T> {
    /// Makes one call.
    pub(crate) async fn call<R: Receive>(
        &self,
        request: http::Request<RequestBody>,
        receive: R,
    ) -> Result<http::Response<R::Body>, Error> {
        let started = self.ports.clock.now();
        let (mut parts, mut body) = request.into_parts();
        let mut destination = self.destinations.of(parts.uri)?;
        self.add_defaults(&mut parts.headers);
        let marks = Marks::read(&parts.extensions, &parts.headers);
        let own = own_policy(&parts.extensions);
        let policy = own.as_ref().unwrap_or(&self.policy);
        let mut trace = RetryTrace::default();
        let mut number = 0;
        loop {
            let hop = Hop {
                policy,
                marks,
                started,
                number,
                may_follow: number < self.redirects,
                method: &parts.method,
                destination: &destination,
                headers: &parts.headers,
                shown_path: parts.extensions.get(),
            };
            let (redirect, rest) = match self.hop(&hop, body, receive, &mut trace).await {
                Ended::Answer(mut response) => {
                    response.extensions_mut().insert(trace);
                    return Ok(response);
                }
                Ended::Failed(fate, error) => return Err(Error::new(fate, error, trace)),
                Ended::Moved(redirect, rest) => (redirect, rest),
            };
            redirect.strip(&destination.target, &mut parts.headers);
            parts.method = redirect.method;
            destination = self.destinations.of_target(redirect.target);
            body = rest;
            number += 1;
        }
    }

    fn add_defaults(&self, headers: &mut HeaderMap) {
        for name in self.default_headers.keys() {
            if !headers.contains_key(name) {
                for value in self.default_headers.get_all(name) {
                    headers.append(name.clone(), value.clone());
                }
            }
        }
    }

    /// Sends one request until the policy has enough. Nothing before it is ever sent again from here: retries sit below
    /// redirects, because what was answered by a redirect may have taken effect.
    async fn hop<R: Receive>(
        &self,
        hop: &Hop<'_>,
        mut body: RequestBody,
        receive: R,
        trace: &mut RetryTrace,
    ) -> Ended<R::Body> {
        let account = hop.destination.account.as_deref();
        if let Some(account) = account {
            account.request();
        }
        let mut repeat = Repeat::new(hop.policy, hop.method, hop.marks, hop.started);
        loop {
            let number = repeat.number();
            let spare = body.replay();
            let (mut tried, came) = self.attempt(hop, &repeat, body, spare.is_some(), receive).await;
            let rest = tried.unsent.take().or(spare);
            let repeatable = rest.is_some();
            let mut payment = Payment::from(account);
            let mut decide = |tried: &Tried| {
                let Ports { clock, entropy, .. } = &self.ports;
                let bits = || entropy.bits();
                repeat.after(&tried.outcome(), clock.now(), bits, repeatable, || payment.make())
            };
            let mut decision = decide(&tried);
            let mut received = Came::Nothing;
            if matches!(decision, Decision::RetryIn { .. }) {
                // An unread body would hold its connection through the wait, and a peer that serves one connection at a
                // time would never take the next.
                drop(came);
            } else {
                received = came.received(receive, &mut tried).await;
                if tried.lost_body() {
                    decision = decide(&tried);
                }
            }
            trace.push(hop.trace(&tried, number, decision));
            match (decision, rest) {
                (Decision::RetryIn { wait, source }, Some(again)) => {
                    self.announce(hop, &repeat, &tried, number, wait, source);
                    self.ports.clock.sleep(wait).await;
                    payment.settle();
                    body = again;
                }
                (_, rest) => return received.end(tried, rest),
            }
        }
    }

    /// One attempt up to its response head.
    async fn attempt<R: Receive>(
        &self,
        hop: &Hop<'_>,
        repeat: &Repeat<'_>,
        body: RequestBody,
        replayable: bool,
        receive: R,
    ) -> (Tried, Came<ResponseBody>) {
        let now = self.ports.clock.now();
        let started_after = repeat.elapsed(now);
        let Some(mut limits) = repeat.limits(now) else {
            return (Tried::out_of_time(started_after, body), Came::Nothing);
        };
        limits.response_body_max = receive.body_max();
        let begun = Instant::now();
        let exchange = self.transport.exchange(hop.request(body, limits)).await;
        let (mut tried, response) = Tried::of(exchange, started_after, begun);
        let Some(response) = response else { return (tried, Came::Nothing) };
        tried.hint = hint(response.status(), response.headers(), &*self.ports.clock);
        match hop.redirect(&response, replayable) {
            Some(redirect) => (tried, Came::Redirect(redirect)),
            None => (tried, Came::Response(response)),
        }
    }

    fn announce(
        &self,
        hop: &Hop<'_>,
        repeat: &Repeat<'_>,
        tried: &Tried,
        number: NonZeroU32,
        wait: Duration,
        source: WaitSource,
    ) {
        let event = RetryEvent {
            method: hop.method.clone(),
            url: shown(hop.destination.target.as_str(), hop.shown_path),
            number,
            max_attempts: repeat.max_attempts(),
            fate: tried.fate,
            status: tried.status,
            kind: tried.kind(),
            reason: tried.reason(),
            wait,
            source,
            elapsed: repeat.elapsed(self.ports.clock.now()),
        };
        say(&event, self.ports.observer.as_ref());
    }
}

impl Hop<'_> {
    /// The request once more.
    fn request(&self, body: RequestBody, limits: AttemptLimits) -> ExchangeRequest {
        ExchangeRequest {
            method: self.method.clone(),
            target: Arc::clone(&self.destination.target),
            headers: self.headers(),
            body,
            limits,
        }
    }

    /// The headers once more, for the wire consumes them; their values are shared. A clone would have no room for what
    /// the transport adds, and grow at once.
    fn headers(&self) -> HeaderMap {
        let room = self.headers.len() + ADDED_HEADERS;
        let mut headers = HeaderMap::try_with_capacity(room).unwrap_or_default();
        headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        headers
    }

    fn trace(&self, tried: &Tried, number: NonZeroU32, decision: Decision) -> AttemptTrace {
        AttemptTrace {
            number,
            hop: self.number,
            method: self.method.clone(),
            fate: tried.fate,
            status: tried.status,
            error: tried.error.clone(),
            retry_after: told(self.policy.retry_after(), tried.hint),
            started_after: tried.started_after,
            timings: tried.timings,
            peer: tried.peer,
            reused: tried.reused,
            decision,
        }
    }

    fn redirect<B>(&self, response: &http::Response<B>, replayable: bool) -> Option<Redirect> {
        let redirects = self.may_follow && response.status().is_redirection();
        let from = &self.destination.target;
        redirects
            .then(|| Redirect::read(from, self.method, response.status(), response.headers(), replayable))
            .flatten()
    }
}
