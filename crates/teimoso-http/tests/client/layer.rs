//! `RetryLayer` around a service written by hand.

use std::collections::VecDeque;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Empty, Full};
use teimoso_http::{
    Deadline, Idempotent, NoRetry, Replay, RequestBody, Retry, RetryEvent, RetryLayer, RetryTrace,
};
use teimoso_retry::{Budget, Decision, Fate, GiveUp, Jitter, Preset, Proof, RetryPolicy, Why};
use tower_layer::Layer;
use tower_service::Service;

use crate::support::{Asleep, Bits, TestClock, attempts, millis, trace};

/// An error of the service's own, which the layer must not change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Broken(&'static str);

type Scene = Result<http::Response<&'static str>, Broken>;

/// Gives one result per call, and keeps what it was called with. It is ready only if it was asked.
#[derive(Clone, Default)]
struct Scripted {
    script: Arc<Mutex<VecDeque<Scene>>>,
    calls: Arc<Mutex<Vec<(String, String)>>>,
    ready: bool,
    /// The number of the call before which it breaks instead of becoming ready.
    breaks_before: Option<usize>,
}

impl Scripted {
    fn playing(script: impl IntoIterator<Item = Scene>) -> Self {
        Self { script: Arc::new(Mutex::new(script.into_iter().collect())), ..Self::default() }
    }

    fn calls(&self) -> Vec<(String, String)> {
        self.calls.lock().unwrap().clone()
    }
}

impl<B: std::fmt::Debug> Service<http::Request<B>> for Scripted {
    type Response = http::Response<&'static str>;
    type Error = Broken;
    type Future = Ready<Result<Self::Response, Broken>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        if self.breaks_before == Some(self.calls().len() + 1) {
            return Poll::Ready(Err(Broken("not ready")));
        }
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been asked whether it is ready");
        let head = format!("{} {}", request.method(), request.uri());
        self.calls.lock().unwrap().push((head, format!("{:?}", request.body())));
        ready(self.script.lock().unwrap().pop_front().expect("the script is long enough"))
    }
}

fn status(status: u16) -> Scene {
    Ok(http::Response::builder().status(status).header("x-status", status).body("body").unwrap())
}

fn layered(service: &Scripted, preset: Preset, clock: &TestClock) -> Retry<Scripted> {
    RetryLayer::builder(preset).clock(clock.clone()).entropy(Bits(u64::MAX)).build().layer(service.clone())
}

async fn call<S, B>(mut service: S, request: http::Request<B>) -> Result<S::Response, S::Error>
where
    S: Service<http::Request<B>>,
{
    std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
    service.call(request).await
}

fn get() -> http::Request<()> {
    http::Request::get("http://user:s3cret@H.example/a?token=s3cret").body(()).unwrap()
}

fn post() -> http::Request<Full<Bytes>> {
    http::Request::post("http://h.example/a").body(Full::from("payload")).unwrap()
}

#[tokio::test]
async fn a_response_comes_back_as_the_service_made_it_with_the_trace_beside_it() {
    let service = Scripted::playing([status(503), Err(Broken("once")), status(200)]);
    let clock = TestClock::default();
    let response = call(layered(&service, Preset::Standard, &clock), get()).await.unwrap();
    assert_eq!((response.status().as_u16(), *response.body(), attempts(&response)), (200, "body", 3));
    assert_eq!(response.headers()["x-status"], "200");
    let fates: Vec<_> = trace(&response).attempts().iter().map(|attempt| attempt.fate).collect();
    assert_eq!(fates, [Fate::Answered, Fate::Ambiguous(Why::Other), Fate::Answered]);
    assert_eq!(clock.waits(), millis(&[100, 200]));
    assert_eq!(service.calls().len(), 3);
}

#[tokio::test]
async fn an_error_comes_back_as_the_service_s_own() {
    let service = Scripted::playing([Err(Broken("first")), Err(Broken("second")), Err(Broken("third"))]);
    let error = call(layered(&service, Preset::Standard, &TestClock::default()), get()).await.unwrap_err();
    assert_eq!((error, service.calls().len()), (Broken("third"), 3));
}

#[tokio::test]
async fn without_evidence_a_write_is_sent_once() {
    let service = Scripted::playing([Err(Broken("connect?")), status(200)]);
    let error = call(layered(&service, Preset::Standard, &TestClock::default()), post()).await.unwrap_err();
    assert_eq!((error, service.calls().len()), (Broken("connect?"), 1));
}

#[tokio::test]
async fn a_classifier_that_can_prove_it_lets_a_write_be_repeated_with_its_bytes() {
    let service = Scripted::playing([Err(Broken("connect")), Err(Broken("lost")), status(200)]);
    let layer = RetryLayer::builder(Preset::Standard)
        .clock(TestClock::default())
        .classify(|error: &Broken| match error.0 {
            "connect" => Fate::NeverSent(Proof::Connect),
            _ => Fate::Ambiguous(Why::Other),
        })
        .build();
    let error = call(layer.layer(service.clone()), post()).await.unwrap_err();
    assert_eq!(error, Broken("lost"));
    let calls = service.calls();
    assert_eq!(calls.len(), 2);
    assert!(calls[0] == calls[1] && calls[0].1.contains("payload"), "{calls:?}");
}

#[tokio::test]
async fn marks_are_read_as_the_client_reads_them() {
    for (request, sent) in [
        (http::Request::post("http://h.example/").extension(Idempotent).body("x").unwrap(), 2),
        (http::Request::post("http://h.example/").header("idempotency-key", "k").body("x").unwrap(), 2),
        (http::Request::get("http://h.example/").extension(NoRetry).body("x").unwrap(), 1),
        (http::Request::get("http://h.example/").body("x").unwrap(), 2),
        (http::Request::post("http://h.example/").body("x").unwrap(), 1),
    ] {
        let service = Scripted::playing([status(503), status(200)]);
        let response =
            call(layered(&service, Preset::Standard, &TestClock::default()), request).await.unwrap();
        assert_eq!((service.calls().len(), attempts(&response)), (sent, sent));
    }
}

#[tokio::test]
async fn a_request_may_bring_its_own_policy_and_its_own_deadline() {
    let own = RetryPolicy::builder().max_attempts(4).jitter(Jitter::None).build().unwrap();
    let within = |deadline| {
        let request =
            http::Request::get("http://h.example/").extension(own.clone()).extension(Deadline(deadline));
        request.body(()).unwrap()
    };
    for (deadline, sent, end) in [
        (Duration::from_secs(20), 4, GiveUp::AttemptsExhausted),
        (Duration::from_millis(300), 2, GiveUp::DeadlineExceeded),
    ] {
        let service = Scripted::playing([status(503), status(503), status(503), status(503)]);
        let clock = TestClock::default();
        let response = call(layered(&service, Preset::Connector, &clock), within(deadline)).await.unwrap();
        assert_eq!(
            (service.calls().len(), trace(&response).last().unwrap().decision),
            (sent, Decision::GiveUp(end))
        );
        assert!(clock.waited() < deadline);
    }
}

#[tokio::test]
async fn retry_after_is_obeyed_and_told() {
    let busy = http::Response::builder().status(429).header("retry-after", "7").body("busy").unwrap();
    let service = Scripted::playing([Ok(busy), status(200)]);
    let clock = TestClock::default();
    let response = call(layered(&service, Preset::Connector, &clock), get()).await.unwrap();
    assert_eq!(clock.waits(), millis(&[7000]));
    assert_eq!(trace(&response).attempts()[0].retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_body_that_exists_once_is_sent_once() {
    let service = Scripted::playing([status(503), status(200)]);
    let stream = RequestBody::stream(Empty::<Bytes>::new());
    let request = http::Request::get("http://h.example/").body(stream).unwrap();
    let response = call(layered(&service, Preset::Standard, &TestClock::default()), request).await.unwrap();
    assert_eq!((response.status().as_u16(), service.calls().len()), (503, 1));
    assert_eq!(trace(&response).last().unwrap().decision, Decision::GiveUp(GiveUp::NotReplaySafe));
}

#[tokio::test]
async fn a_service_that_fails_to_become_ready_again_is_spent_and_its_error_is_final() {
    let mut service = Scripted::playing([Err(Broken("lost"))]);
    service.breaks_before = Some(2);
    let events: Arc<Mutex<Vec<RetryEvent>>> = Arc::default();
    let kept = events.clone();
    let clock = TestClock::default();
    let layer = RetryLayer::builder(Preset::Standard)
        .clock(clock.clone())
        .observer(move |event| kept.lock().unwrap().push(event.clone()))
        .build();
    let error = call(layer.layer(service.clone()), get()).await.unwrap_err();
    assert_eq!((error, service.calls().len(), clock.waits().len()), (Broken("not ready"), 1, 1));
    let events = events.lock().unwrap();
    let fates: Vec<_> = events.iter().map(|event| event.fate).collect();
    assert_eq!(fates, [Fate::Ambiguous(Why::Other)]);
    assert_eq!(events[0].url, "http://H.example/a?token=***");
}

#[tokio::test]
async fn the_budget_is_one_per_host_and_port_whatever_its_case_and_user() {
    let clock = TestClock::default();
    let layer =
        RetryLayer::builder(Preset::Standard).clock(clock).retry_budget(Some(Budget::new(0, 2))).build();
    for (host, sent) in [("h.example", 3), ("H.Example", 1), ("me:pw@h.example", 1), ("h.example:81", 3)] {
        let service = Scripted::playing([status(503), status(503), status(503)]);
        let request = http::Request::get(format!("http://{host}/")).body(()).unwrap();
        call(layer.layer(service.clone()), request).await.unwrap();
        assert_eq!(service.calls().len(), sent, "{host}");
    }
}

#[tokio::test]
async fn a_dropped_call_makes_no_further_attempt() {
    let service = Scripted::playing([status(503)]);
    let clock = Asleep::default();
    let asleep = clock.0.clone();
    let layer = RetryLayer::builder(Preset::Standard).clock(clock).build();
    tokio::select! {
        ended = call(layer.layer(service.clone()), get()) => panic!("{ended:?}"),
        () = asleep.notified() => {}
    }
    assert_eq!(service.calls().len(), 1);
}

#[tokio::test]
async fn the_trace_of_the_outermost_layer_is_its_caller_s() {
    let service = Scripted::playing([status(503), status(200)]);
    let inner = layered(&service, Preset::Standard, &TestClock::default());
    let outer = RetryLayer::builder(Preset::Standard).clock(TestClock::default()).build().layer(inner);
    let response = call(outer, get()).await.unwrap();
    // It saw one good answer.
    assert_eq!(
        (service.calls().len(), response.extensions().get::<RetryTrace>().unwrap().attempts().len()),
        (2, 1)
    );
}

#[test]
fn bodies_that_can_be_sent_again_are_the_same_again() {
    assert_eq!(().replay(), Some(()));
    assert_eq!(Bytes::from_static(b"x").replay().unwrap(), "x");
    assert_eq!("x".to_owned().replay().unwrap(), "x");
    assert_eq!("x".replay(), Some("x"));
    assert!(Full::new(Bytes::from_static(b"x")).replay().is_some());
    assert!(Empty::<Bytes>::new().replay().is_some());
    assert!(Replay::replay(&RequestBody::from("x")).is_some());
}
