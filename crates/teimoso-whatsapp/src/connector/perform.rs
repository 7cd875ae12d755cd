//! The one way in which anything is asked of a provider: marks by the class of the act, one call of the client, one
//! judgement of what came back. Absent: the meaning of any request or answer.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{Request, Response};
use teimoso_http::retry::{
    Decision, Effect, Fate, GiveUp, PolicyBuilder, Preset, RetryPolicy, Scope, StatusSet,
};
use teimoso_http::{AttemptTrace, Idempotent, NoRetry, RetryTrace, ShownPath};

use super::{ATTEMPT_TIMEOUT, Connector, Repeat, SEND_TIMEOUT};
use crate::adapter::{Answer, Call, Class, Reading};
use crate::error::{Error, ErrorKind, Inner, Operation};
use crate::message::MessageId;
use crate::redact::Redactor;

/// What is asked for, beside the request itself.
pub(super) struct Act<'a> {
    pub(super) operation: Operation,
    pub(super) repeat: Repeat,
    /// What of the request must not come back in an error.
    pub(super) confidential: Vec<&'a str>,
    /// The id by which a doubt can be settled.
    pub(super) lookup: Option<MessageId>,
}

impl Act<'_> {
    pub(super) fn new(operation: Operation, repeat: Repeat) -> Self {
        Self { operation, repeat, confidential: Vec::new(), lookup: None }
    }
}

/// A call that came to nothing.
struct Failure {
    kind: ErrorKind,
    /// Whether the last attempt may have taken effect.
    last_may_have: bool,
    status: Option<u16>,
    message: Option<String>,
    reason: Option<String>,
}

impl Connector {
    /// Makes a call and reads what came of it.
    pub(super) async fn perform<T>(&self, act: Act<'_>, call: Call<T>) -> Result<T, Error> {
        let class = call.class;
        let sent = match self.request(act.repeat, &call) {
            Ok(request) => self.client.send_and_collect(request).await,
            Err(error) => Err(error.into()),
        };
        let (failure, trace) = match sent {
            Ok(response) => {
                let trace = response.extensions().get().cloned().unwrap_or_default();
                let answer = answer(&response);
                match (call.reader)(&answer) {
                    Reading::Done(value) => return Ok(value),
                    Reading::Declined(why) => (Failure::told(ErrorKind::Declined(why), &answer), trace),
                    Reading::Unclear => (Failure::told(ErrorKind::Unclear, &answer), trace),
                }
            }
            Err(error) => {
                let trace = error.trace().clone();
                (Failure::silent(&error), trace)
            }
        };
        Err(self.error(act, class, failure, &trace))
    }

    /// The request with what its class and its caller's mark allow.
    fn request<T>(&self, repeat: Repeat, call: &Call<T>) -> Result<Request<Bytes>, http::Error> {
        let url = format!("{}{}", self.account.server(), call.path.wire);
        let mut request = Request::builder().method(call.method.clone()).uri(url).body(call.body.clone())?;
        request.headers_mut().clone_from(&call.headers);
        if let Some((name, prefix)) = self.adapter.facts().token_header {
            let token = self.account.token().header(prefix);
            request.headers_mut().insert(HeaderName::from_static(name), token);
        }
        let extensions = request.extensions_mut();
        extensions.insert(ShownPath(call.path.shown.clone()));
        let timeout = match call.class {
            Class::Send => SEND_TIMEOUT,
            Class::Read | Class::Write => ATTEMPT_TIMEOUT,
        };
        let mut policy = RetryPolicy::preset(Preset::Connector)
            .to_builder()
            .attempt_timeout(self.attempt_timeout.unwrap_or(timeout));
        if call.limit_is_final {
            policy = without_429(policy);
        }
        match (call.class, repeat) {
            (Class::Read, _) | (_, Repeat::Idempotent) => {
                extensions.insert(Idempotent);
            }
            // A write by GET would be repeated for its method.
            (Class::Write, _) | (Class::Send, Repeat::Never) => {
                extensions.insert(NoRetry);
            }
            (Class::Send, Repeat::Unsent) => {
                policy = policy.never_sent(Scope::AnyRequest).not_processed(Scope::AnyRequest);
            }
        }
        extensions
            .insert(policy.build().expect("the builder keeps an attempt between a millisecond and a day"));
        Ok(request)
    }

    fn error(&self, act: Act<'_>, class: Class, failure: Failure, trace: &RetryTrace) -> Error {
        let redactor = Redactor::new(&self.account, &act.confidential);
        let clean = |text: Option<String>| text.map(|text| redactor.clean(&text));
        let attempts = trace.attempts();
        let earlier = attempts.split_last().map_or(&[][..], |(_, earlier)| earlier);
        let may_have = class != Class::Read && (failure.last_may_have || earlier.iter().any(may_have));
        let inner = Inner {
            provider: self.adapter.facts().name,
            operation: act.operation,
            kind: failure.kind,
            status: failure.status,
            message: clean(failure.message),
            reason: clean(failure.reason),
            fate: trace.last().map(|last| last.fate),
            attempts: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
            retry_after: trace.retry_after(),
            exhausted: is_repeated(class, act.repeat)
                && trace.last().is_some_and(|last| ran_out(last.decision)),
            may_have_taken_effect: may_have,
            lookup: act.lookup.filter(|_| may_have),
        };
        Error { inner: Box::new(inner) }
    }
}

/// What a 429 says that is no matter of waiting is not worth asking again (S3.2 but for it).
fn without_429(policy: PolicyBuilder) -> PolicyBuilder {
    match StatusSet::of(&[502, 503, 504]) {
        Some(statuses) => policy.statuses(statuses, Scope::ReplaySafe),
        None => policy,
    }
}

fn answer(response: &Response<Bytes>) -> Answer {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    Answer::new(response.status().as_u16(), content_type.unwrap_or_default(), response.body().clone())
}

/// Whether an attempt that was followed by another may have taken effect. Its method is not asked: a `GET` that
/// disconnects has an effect.
fn may_have(attempt: &AttemptTrace) -> bool {
    attempt.fate.may_have_taken_effect(attempt.status) != Effect::No
}

/// Whether there was more than one attempt to be had.
fn is_repeated(class: Class, repeat: Repeat) -> bool {
    class == Class::Read || repeat != Repeat::Never
}

fn ran_out(decision: Decision) -> bool {
    use GiveUp::{AttemptsExhausted, BudgetExhausted, DeadlineExceeded, RetryAfterBeyondCap};
    let Decision::GiveUp(why) = decision else { return false };
    matches!(why, AttemptsExhausted | BudgetExhausted | DeadlineExceeded | RetryAfterBeyondCap)
}

impl Failure {
    /// The provider answered. What it declined it has not done; an adapter says so only where that is known.
    fn told(kind: ErrorKind, answer: &Answer) -> Self {
        let last_may_have = kind == ErrorKind::Unclear;
        let status = Some(answer.status());
        Self { kind, last_may_have, status, message: answer.words(), reason: None }
    }

    /// No answer, or not all of it. Half an answer may hold an error in the half that is missing, or in a success, so
    /// that its status proves nothing.
    fn silent(error: &teimoso_http::Error) -> Self {
        let last_may_have = match error.fate() {
            Fate::NeverSent(_) | Fate::NotProcessed(_) | Fate::Refused(_) => false,
            Fate::Answered | Fate::BodyLost | Fate::Ambiguous(_) => true,
        };
        let kind = ErrorKind::NoAnswer;
        Self { kind, last_may_have, status: error.status(), message: None, reason: Some(error.to_string()) }
    }
}
