//! The loop around a service: one request from its first call to its last; absent: every decision, which is
//! [`Repeat`]'s.

use std::future::poll_fn;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use teimoso_retry::{Decision, Fate, Outcome, RetryPolicy, WaitSource};
use tower_service::Service;

use super::{Classify, Replay, RetryLayer, Shared};
use crate::attempt::Timings;
use crate::client::{
    Account, Budgets, Marks, Payment, Repeat, RetryEvent, hint, kind_of_status, own_policy, reason_of, say,
    shown, told,
};
use crate::trace::{AttemptTrace, RetryTrace};

impl<C> RetryLayer<C> {
    /// Makes one call. The service must have been found ready.
    pub(super) async fn repeat<S, B, R>(
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
        let own = own_policy(request.extensions());
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
            let answer = service.call(request).await;
            let outcome = self.outcome(&answer);
            let mut payment = Payment::from(account.as_deref());
            let (now, entropy) = (ports.clock.now(), || ports.entropy.bits());
            let decision = repeat.after(&outcome, now, entropy, spare.is_some(), || payment.make());
            trace.push(attempt_trace(number, method, &outcome, policy, started_after, decision));
            let (Decision::RetryIn { wait, source }, Some(again)) = (decision, spare) else {
                return answer.map(|response| with_trace(response, trace));
            };
            // An unread body would hold its connection through the wait.
            drop(answer);
            say(&event(&again, &repeat, number, &outcome, (wait, source), now), ports.observer.as_ref());
            ports.clock.sleep(wait).await;
            // A service that fails here was not called: what was paid for the call goes back.
            poll_fn(|cx| service.poll_ready(cx)).await?;
            payment.settle();
            request = again;
        }
    }

    fn outcome<R, E>(&self, answer: &Result<http::Response<R>, E>) -> Outcome
    where
        C: Classify<E>,
    {
        match answer {
            Ok(response) => Outcome {
                fate: Fate::Answered,
                status: Some(response.status().as_u16()),
                hint: hint(response.status(), response.headers(), &*self.shared.ports.clock),
            },
            Err(error) => Outcome { fate: self.classify.fate(error), status: None, hint: None },
        }
    }
}

fn with_trace<R>(mut response: http::Response<R>, trace: RetryTrace) -> http::Response<R> {
    response.extensions_mut().insert(trace);
    response
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

/// The account of a URL's host and port; all URLs without one share an account. Host names are case-insensitive (RFC
/// 9110 §4.2.3), and nearly always written in lower case.
fn account_of(budgets: &Budgets, uri: &http::Uri) -> Arc<Account> {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    match host_and_port.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => budgets.of(&host_and_port.to_ascii_lowercase()),
        false => budgets.of(host_and_port),
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
        url: shown(&request.uri().to_string(), request.extensions().get()),
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
