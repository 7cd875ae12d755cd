//! What is said about a retry: one `warn`, one event, and no secret in either.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderValue;
use teimoso_http::{RetryEvent, ShownPath};
use teimoso_retry::{Fate, Preset, WaitSource, Why};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{Play, Stage, TestClock, answer, builder, nowhere, status};

/// Keeps every event as `LEVEL target name=value …`.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("teimoso")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn one_warning_and_one_event_per_retry_and_no_secret_in_either() {
    let log = Log::default();
    let events: Arc<Mutex<Vec<RetryEvent>>> = Arc::default();
    let kept = events.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = tracing::subscriber::with_default(log.clone(), || {
        runtime.block_on(async {
            let told = answer(503, "retry-after: 7\r\nset-cookie: s3cret\r\n", "s3cret");
            let stage = Stage::playing([told, Play::Reset, status(200)]).await;
            let mut token = HeaderValue::from_static("Bearer s3cret");
            token.set_sensitive(true);
            let client = builder(Preset::Standard, &TestClock::default())
                .default_header("authorization", token)
                .observer(move |event| kept.lock().unwrap().push(event.clone()))
                .build()
                .unwrap();
            let request = http::Request::post(stage.url("/pay?token=s3cret&s3cret"))
                .header("idempotency-key", "s3cret")
                .body("s3cret")
                .unwrap();
            client.send(request).await.unwrap();
            stage.url("/pay")
        })
    });
    let lines = log.0.lock().unwrap();
    let first = format!(
        "WARN teimoso_http message=attempt failed, will retry method=POST url={url}?token=***&*** attempt=1 \
         max_attempts=3 fate=\"answered\" status=503 kind=\"http_5xx\" reason=http 503 wait_ms=7100 \
         source=\"retry_after\" elapsed_ms=0"
    );
    let second = format!(
        "WARN teimoso_http message=attempt failed, will retry method=POST url={url}?token=***&*** attempt=2 \
         max_attempts=3 fate=\"ambiguous\" kind=\"reset\" \
         reason=get a response: the peer reset the connection wait_ms=200 source=\"schedule\" elapsed_ms=7100"
    );
    assert_eq!(*lines, [first, second]);
    let events = events.lock().unwrap();
    let told: Vec<_> =
        events.iter().map(|event| (event.number.get(), event.fate, event.wait, event.source)).collect();
    let wait = Duration::from_millis;
    assert_eq!(
        told,
        [
            (1, Fate::Answered, wait(7100), WaitSource::RetryAfter),
            (2, Fate::Ambiguous(Why::Reset), wait(200), WaitSource::Schedule),
        ]
    );
    assert!(!format!("{events:?} {lines:?}").contains("s3cret"));
}

#[test]
fn a_path_with_a_credential_is_shown_as_its_caller_says() {
    let log = Log::default();
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = events.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(log.clone(), || {
        runtime.block_on(async {
            let stage = Stage::playing([status(503), status(200)]).await;
            let client = builder(Preset::Standard, &TestClock::default())
                .observer(move |event| kept.lock().unwrap().push(event.path().to_owned()))
                .build()
                .unwrap();
            let request = http::Request::get(stage.url("/token/s3cret/status"))
                .extension(ShownPath("/token/***/status".to_owned()))
                .body(())
                .unwrap();
            client.send(request).await.unwrap();
        });
    });
    assert_eq!(*events.lock().unwrap(), ["/token/***/status"]);
    let lines = log.0.lock().unwrap().join("\n");
    assert!(lines.contains("/token/***/status") && !lines.contains("s3cret"), "{lines}");
}

#[tokio::test]
async fn an_error_and_its_trace_hold_no_secret() {
    let client = builder(Preset::Standard, &TestClock::default())
        .default_header("authorization", "Bearer s3cret")
        .build()
        .unwrap();
    let request =
        http::Request::post(nowhere("/a?token=s3cret")).header("cookie", "s3cret").body("s3cret").unwrap();
    let error = client.send(request).await.unwrap_err();
    let shown = format!("{error} {error:?} {:?}", error.trace());
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(error.to_string().starts_with("failed to connect to 127.0.0.1:"), "{error}");
    assert!(!format!("{client:?}").contains("s3cret"));
}
