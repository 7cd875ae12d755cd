//! Invariants of whole calls over random scripts of faults: no socket, no waiting, every seed printed by proptest.

use std::collections::VecDeque;
use std::future::{Future, ready};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use teimoso_retry::{Budget, Decision, Effect, Fate, Nack, Preset, Proof, RetryPolicy, WaitSource, Why};

use super::budgets::Budgets;
use super::call::{Core, Exchanger, Ports};
use super::marks::{Deadline, Idempotent, NoRetry};
use super::receive::{Receive, Whole};
use super::targets::Destinations;
use crate::attempt::{AttemptError, ErrorKind, Timings};
use crate::body::{BodyError, RequestBody, ResponseBody};
use crate::clock::{Clock, Entropy, Sleeping};
use crate::error::Error;
use crate::evidence::Fault;
use crate::exchange::{Exchange, ExchangeRequest};
use crate::trace::{AttemptTrace, RetryTrace};

/// What happens to one attempt.
#[derive(Debug, Clone)]
struct Scene {
    end: End,
    /// How long it takes; never longer than the attempt may.
    takes: Duration,
}

#[derive(Debug, Clone)]
enum End {
    Fails(Fate, ErrorKind),
    /// Fails before anything of the body was read, which comes back.
    HandsBack(Proof),
    Answers {
        status: u16,
        retry_after: Option<&'static str>,
        body: Vec<u8>,
    },
    /// Answers with a head whose body breaks.
    Cuts {
        status: u16,
    },
    /// Answers with a redirect to another path of the same host.
    Redirects {
        status: u16,
    },
}

/// The body of an answer that breaks, as [`Scripted`] knows it. No other body of the script begins so.
const CUT: &[u8] = b"cut";

/// Reads a body whole, like a client does, and breaks where the script says so.
#[derive(Clone, Copy)]
struct Scripted;

impl Receive for Scripted {
    type Body = Bytes;

    const WHOLE: bool = true;

    fn body_max(self) -> usize {
        Whole(3).body_max()
    }

    async fn receive(self, body: ResponseBody) -> Result<Bytes, BodyError> {
        let bytes = Whole(3).receive(body).await?;
        if bytes == CUT { Err(BodyError::of(Fault::Closed)) } else { Ok(bytes) }
    }
}

/// Time that passes in attempts and waits, both kept.
#[derive(Default)]
struct World {
    now: Mutex<Duration>,
    waits: Mutex<Vec<Duration>>,
    script: Mutex<VecDeque<Scene>>,
    /// The limits every attempt was given, and when it began.
    sent: Mutex<Vec<(Duration, Duration)>>,
    entropy: Mutex<u64>,
    /// How much longer than asked a sleeper sleeps, as on a busy machine.
    oversleeps: Duration,
}

impl Clock for World {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn unix_now(&self) -> Duration {
        UNIX + self.now()
    }

    fn sleep(&self, duration: Duration) -> Sleeping {
        *self.now.lock().unwrap() += duration + self.oversleeps;
        self.waits.lock().unwrap().push(duration);
        Box::pin(ready(()))
    }
}

/// Tue, 01 Jan 2030 00:00:00 GMT.
const UNIX: Duration = Duration::from_secs(1_893_456_000);

impl Entropy for World {
    fn bits(&self) -> u64 {
        let mut state = self.entropy.lock().unwrap();
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state
    }
}

impl Exchanger for Arc<World> {
    fn exchange(&self, request: ExchangeRequest) -> impl Future<Output = Exchange> + Send {
        let scene =
            self.script.lock().unwrap().pop_front().unwrap_or(Scene { end: FINE, takes: Duration::ZERO });
        let began = self.now();
        self.sent.lock().unwrap().push((began, request.limits.total_timeout));
        *self.now.lock().unwrap() += scene.takes.min(request.limits.total_timeout);
        ready(exchange(scene.end, request.body))
    }
}

const FINE: End = End::Answers { status: 204, retry_after: None, body: Vec::new() };

fn exchange(end: End, body: RequestBody) -> Exchange {
    match end {
        End::Fails(fate, kind) => failed(fate, kind, None),
        End::HandsBack(proof) => failed(Fate::NeverSent(proof), ErrorKind::Closed, Some(body)),
        End::Answers { status, retry_after, body } => {
            answered(status, retry_after.map(|value| (RETRY_AFTER, value)), body.into())
        }
        End::Cuts { status } => answered(status, None, Bytes::from_static(CUT)),
        End::Redirects { status } => answered(status, Some((LOCATION, "/next")), Bytes::new()),
    }
}

fn failed(fate: Fate, kind: ErrorKind, unsent: Option<RequestBody>) -> Exchange {
    let error = Some(AttemptError { kind, message: "fail".to_owned() });
    Exchange { fate, response: None, error, timings: Timings::default(), peer: None, reused: false, unsent }
}

fn answered(status: u16, header: Option<(HeaderName, &'static str)>, body: Bytes) -> Exchange {
    let mut response = http::Response::new(ResponseBody::from(body));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    response.headers_mut().extend(header.map(|(name, value)| (name, HeaderValue::from_static(value))));
    Exchange { response: Some(response), error: None, ..failed(Fate::Answered, ErrorKind::Closed, None) }
}

fn end() -> impl Strategy<Value = End> {
    let never_sent =
        [Proof::Dns, Proof::Connect, Proof::TlsCertificate, Proof::HandedBack, Proof::ZeroBytesWritten]
            .to_vec();
    let retry_after = [
        None,
        Some("0"),
        Some("1"),
        Some("25"),
        Some("3600"),
        Some("99999999999999999999999"),
        Some("Tue, 01 Jan 2030 00:00:10 GMT"),
        Some("Sat, 01 Jan 2000 00:00:00 GMT"),
        Some("soon"),
        Some("-1"),
    ];
    let status =
        prop::sample::select(vec![200, 204, 301, 400, 404, 408, 421, 425, 429, 500, 502, 503, 504, 599]);
    prop_oneof![
        prop::sample::select(never_sent.clone())
            .prop_map(|proof| End::Fails(Fate::NeverSent(proof), ErrorKind::Dns)),
        prop::sample::select(never_sent).prop_map(End::HandsBack),
        prop::sample::select(vec![200, 404, 429, 503]).prop_map(|status| End::Cuts { status }),
        prop::sample::select(vec![301, 302, 303, 307, 308]).prop_map(|status| End::Redirects { status }),
        Just(End::Fails(Fate::NotProcessed(Nack::GoAway), ErrorKind::Reset)),
        prop::sample::select(vec![Why::Timeout, Why::Closed, Why::Reset, Why::Protocol, Why::Other])
            .prop_map(|why| End::Fails(Fate::Ambiguous(why), ErrorKind::Closed)),
        (status, prop::sample::select(retry_after.to_vec()), prop::collection::vec(0..b'c', 0..4))
            .prop_map(|(status, retry_after, body)| End::Answers { status, retry_after, body }),
    ]
}

fn scene() -> impl Strategy<Value = Scene> {
    (end(), 0..12_000_u64).prop_map(|(end, millis)| Scene { end, takes: Duration::from_millis(millis) })
}

#[derive(Debug, Clone)]
struct Case {
    preset: Preset,
    script: Vec<Scene>,
    method: &'static str,
    idempotent: bool,
    once: bool,
    deadline: Option<Duration>,
    budget: Option<(u32, u32)>,
    streamed: bool,
    redirects: u32,
    entropy: u64,
}

fn case() -> impl Strategy<Value = Case> {
    (
        prop::sample::select(Preset::ALL.to_vec()),
        prop::collection::vec(scene(), 0..12),
        prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]),
        any::<bool>(),
        prop::bool::weighted(0.1),
        prop::option::of((0..60_000_u64).prop_map(Duration::from_millis)),
        prop::option::of((0..400_u32, 0..4_u32)),
        prop::bool::weighted(0.1),
        0..3_u32,
        any::<u64>(),
    )
        .prop_map(
            |(preset, script, method, idempotent, once, deadline, budget, streamed, redirects, entropy)| {
                Case {
                    preset,
                    script,
                    method,
                    idempotent,
                    once,
                    deadline,
                    budget,
                    streamed,
                    redirects,
                    entropy,
                }
            },
        )
}

impl Case {
    fn policy(&self) -> RetryPolicy {
        self.preset.into()
    }

    fn request(&self) -> http::Request<RequestBody> {
        let body = match self.streamed {
            true => RequestBody::stream(http_body_util::Full::new(Bytes::from_static(b"payload"))),
            false => RequestBody::from("payload"),
        };
        let mut request =
            http::Request::builder().method(self.method).uri("http://h.example/a").body(body).unwrap();
        let extensions = request.extensions_mut();
        if self.idempotent {
            extensions.insert(Idempotent);
        }
        if self.once {
            extensions.insert(NoRetry);
        }
        if let Some(deadline) = self.deadline {
            extensions.insert(Deadline(deadline));
        }
        request
    }

    fn total(&self) -> Duration {
        [self.policy().give_up_after(), self.deadline].into_iter().flatten().min().unwrap_or(Duration::MAX)
    }
}

/// Runs one call to its end, which nothing in it has to be waited for.
fn run(case: &Case) -> (Arc<World>, Result<http::Response<Bytes>, Error>) {
    let world = Arc::new(World::default());
    *world.script.lock().unwrap() = case.script.clone().into();
    *world.entropy.lock().unwrap() = case.entropy;
    let core = Core { redirects: case.redirects, ..core(&world, case.policy(), case.budget, world.clone()) };
    let outcome = finished(core.call(case.request(), Scripted));
    (world, outcome)
}

fn core(
    world: &Arc<World>,
    policy: RetryPolicy,
    budget: Option<(u32, u32)>,
    clock: Arc<dyn Clock>,
) -> Core<Arc<World>> {
    Core {
        transport: world.clone(),
        policy,
        default_headers: HeaderMap::new(),
        redirects: 0,
        destinations: Destinations::new(
            budget.map(|(share, reserve)| Budgets::new(Budget::new(share, reserve))),
        ),
        ports: Ports { clock, entropy: world.clone(), observer: None },
    }
}

/// The output of a future in which nothing has to be waited for.
fn finished<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a call waits for something that nobody gives it"),
    }
}

fn trace_of(outcome: &Result<http::Response<Bytes>, Error>) -> RetryTrace {
    match outcome {
        Ok(response) => response.extensions().get::<RetryTrace>().unwrap().clone(),
        Err(error) => error.trace().clone(),
    }
}

/// The attempts of each hop.
fn hops(trace: &RetryTrace) -> impl Iterator<Item = &[AttemptTrace]> {
    trace.attempts().chunk_by(|one, next| one.hop == next.hop)
}

/// How an attempt ends that no time was left for; no scene ends so.
const OUT_OF_TIME: Fate = Fate::NeverSent(Proof::NoConnection);

/// The longest wait the policy can give after this attempt, when nobody asked for another.
fn cap(policy: &RetryPolicy, number: NonZeroU32) -> Duration {
    policy.jitter().bounds(policy.waits().wait_after(number)).1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn i1_what_may_have_taken_effect_is_never_sent_twice_unless_that_is_safe(
        case in case(),
        method in prop::sample::select(vec!["POST", "PUT", "DELETE", "PATCH"]),
        // S1's preset accepts that risk by its own words; no other does.
        preset in prop::sample::select(vec![Preset::Standard, Preset::Connector, Preset::Webhook, Preset::Patient]),
    ) {
        let case = Case { method, preset, idempotent: false, ..case };
        let (_, outcome) = run(&case);
        let possibly = |attempt: &&AttemptTrace| {
            !attempt.method.is_safe() && attempt.fate.may_have_taken_effect(attempt.status) != Effect::No
        };
        let trace = trace_of(&outcome);
        // What a redirect asks to be sent elsewhere is another request.
        for hop in hops(&trace) {
            let executed = hop.iter().filter(possibly).count();
            prop_assert!(executed <= 1, "{trace:?}");
        }
    }

    #[test]
    fn i2_a_call_ends_within_its_time_and_attempts_get_no_more_than_is_left(case in case()) {
        let (world, outcome) = run(&case);
        prop_assert!(world.now() <= case.total(), "{outcome:?}");
        for (began, given) in world.sent.lock().unwrap().iter() {
            prop_assert!(*given <= case.policy().attempt_timeout());
            prop_assert!(began.saturating_add(*given) <= case.total());
        }
    }

    #[test]
    fn i3_and_i4_every_wait_is_within_its_cap_and_never_earlier_than_told(case in case()) {
        let (world, outcome) = run(&case);
        let policy = case.policy();
        let trace = trace_of(&outcome);
        let mut waits = world.waits.lock().unwrap().iter().copied().collect::<VecDeque<_>>();
        for attempt in trace.attempts() {
            let Decision::RetryIn { wait, source } = attempt.decision else { continue };
            prop_assert_eq!(waits.pop_front(), Some(wait));
            match source {
                WaitSource::Schedule => prop_assert!(wait <= cap(&policy, attempt.number)),
                WaitSource::RetryAfter => {
                    let rule = policy.retry_after();
                    prop_assert!(wait <= rule.cap() + rule.cap() / 10);
                    prop_assert!(Some(wait) >= attempt.retry_after);
                }
            }
        }
        prop_assert!(waits.is_empty());
    }

    #[test]
    fn i5_attempts_stay_within_the_policy_and_are_those_that_were_made(case in case()) {
        let (world, outcome) = run(&case);
        let trace = trace_of(&outcome);
        let max = if case.once { 1 } else { case.policy().max_attempts().get() as usize };
        prop_assert!(hops(&trace).count() <= 1 + case.redirects as usize);
        for hop in hops(&trace) {
            prop_assert!(hop.len() <= max);
            let numbers: Vec<usize> = hop.iter().map(|attempt| attempt.number.get() as usize).collect();
            prop_assert_eq!(numbers, (1..=hop.len()).collect::<Vec<_>>());
            // A stream is sent again only while nothing of it was read.
            if case.streamed && hop[0].hop == 0 {
                let unread = |attempt: &AttemptTrace| matches!(attempt.fate, Fate::NeverSent(_));
                prop_assert!(hop[..hop.len() - 1].iter().all(unread), "{trace:?}");
            }
        }
        // An attempt for which no time is left is recorded, and nothing is sent.
        let unsent = trace.attempts().iter().filter(|attempt| attempt.fate == OUT_OF_TIME).count();
        prop_assert_eq!(world.sent.lock().unwrap().len() + unsent, trace.attempts().len());
    }

    #[test]
    fn i6_retries_stay_within_the_budget_over_many_calls(
        case in case(),
        (per_mille, reserve) in (0..400_u32, 0..4_u32),
        calls in 1..8_usize,
    ) {
        let world = Arc::new(World::default());
        *world.script.lock().unwrap() = vec![case.script.clone(); calls].concat().into();
        let core = Core {
            redirects: case.redirects,
            ..core(&world, case.policy(), Some((per_mille, reserve)), world.clone())
        };
        let mut requests = 0;
        for _ in 0..calls {
            requests += hops(&trace_of(&finished(core.call(case.request(), Scripted)))).count();
            let earned = requests * per_mille as usize / 1000;
            prop_assert!(world.waits.lock().unwrap().len() <= reserve as usize + earned);
        }
    }

    #[test]
    fn i7_the_outcome_is_the_last_attempt_s_own(case in case()) {
        let (world, outcome) = run(&case);
        prop_assume!(trace_of(&outcome).last().is_some_and(|last| last.fate != OUT_OF_TIME));
        let made = world.sent.lock().unwrap().len();
        let last = case.script.get(made - 1).map_or(FINE, |scene| scene.end.clone());
        match (outcome, last) {
            (Ok(response), End::Answers { status, body, .. }) => {
                prop_assert_eq!(response.status().as_u16(), status);
                prop_assert_eq!(&response.body()[..], &body[..]);
            }
            (Ok(response), End::Redirects { status }) => prop_assert_eq!(response.status().as_u16(), status),
            (Err(error), End::Fails(fate, kind)) => {
                prop_assert_eq!((error.fate(), error.kind()), (fate, kind));
            }
            (Err(error), End::HandsBack(proof)) => prop_assert_eq!(error.fate(), Fate::NeverSent(proof)),
            (Err(error), End::Cuts { status }) => {
                prop_assert_eq!((error.fate(), error.status()), (Fate::BodyLost, Some(status)));
            }
            (outcome, last) => prop_assert!(false, "{outcome:?} after {last:?}"),
        }
    }
}

/// A clock that goes to sleep for good.
struct Asleep(Arc<World>);

impl Clock for Asleep {
    fn now(&self) -> Duration {
        self.0.now()
    }

    fn unix_now(&self) -> Duration {
        self.0.unix_now()
    }

    fn sleep(&self, _: Duration) -> Sleeping {
        Box::pin(std::future::pending())
    }
}

#[test]
fn i8_a_call_that_is_dropped_in_its_wait_makes_no_further_attempt() {
    let world = Arc::new(World::default());
    let fails =
        || Scene { end: End::Fails(Fate::NeverSent(Proof::Dns), ErrorKind::Dns), takes: Duration::ZERO };
    world.script.lock().unwrap().extend([fails(), fails()]);
    let asleep = Arc::new(Asleep(world.clone()));
    let core = core(&world, Preset::Standard.into(), Some((0, 1)), asleep);
    for calls in 1..=2 {
        let request = http::Request::get("http://h.example/").body(RequestBody::from(())).unwrap();
        let mut call = Box::pin(core.call(request, Whole(3)));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(call);
        // The second one could not wait if the first had not got its payment back.
        assert_eq!(world.sent.lock().unwrap().len(), calls);
    }
}

#[test]
fn a_wait_that_was_overslept_leaves_no_time_and_nothing_is_sent() {
    let world = Arc::new(World { oversleeps: Duration::from_secs(60), ..World::default() });
    let busy = End::Answers { status: 503, retry_after: None, body: Vec::new() };
    world.script.lock().unwrap().push_back(Scene { end: busy, takes: Duration::ZERO });
    let core = core(&world, Preset::Standard.into(), None, world.clone());
    let request = http::Request::get("http://h.example/").body(RequestBody::from(())).unwrap();
    let error = finished(core.call(request, Whole(3))).unwrap_err();
    assert_eq!((error.fate(), error.kind()), (Fate::NeverSent(Proof::NoConnection), ErrorKind::Timeout));
    assert_eq!((error.attempts(), world.sent.lock().unwrap().len()), (2, 1));
}
