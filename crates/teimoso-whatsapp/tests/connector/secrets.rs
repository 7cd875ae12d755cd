//! Tokens, numbers and texts come back in no error, no log and no debugging output, even where the provider echoes the
//! whole request.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use teimoso_whatsapp::testkit::{Double, Fault, NUMBER, Reply, TEXT, TOKEN, media, text};
use teimoso_whatsapp::{MediaKind, Repeat, SendOptions};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{TestClock, names, with};

/// Keeps every event of this thread, with all its fields.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("a string takes everything");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut kept = self.0.lock().expect("no panic");
        event.record(&mut Line(&mut kept));
        kept.push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The caption of the files that the tests send.
const CAPTION: &str = "a legenda";

/// Answers that say everything they were told: the tokens, and of a message its number, its text and a file.
fn echoes(words: Option<&str>) -> Vec<Reply> {
    let file = "bm90IHJlYWxseSBhIHBpY3R1cmU".repeat(4);
    let message = words.map(|words| format!("{NUMBER}@c.us \\\"{words}\\\" {file}="));
    let all = format!("{TOKEN} {TOKEN}-client {}", message.unwrap_or_default());
    let json = |status, body: &str| Reply::json(status, &body.replace("ALL", &all));
    let places = [
        r#"{"error":"ALL"}"#,
        r#"{"message":"ALL"}"#,
        r#"{"error":{"message":"ALL"}}"#,
        r#"{"response":{"message":["ALL","ALL"]}}"#,
        r#"{"statusCode":500,"exception":{"message":"ALL"},"request":{"body":"ALL"}}"#,
        r#"{"success":false,"status":"ALL"}"#,
        r#"{"status":"ALL","instance":{"status":"ALL","state":"ALL"},"state":"ALL","connected":false}"#,
    ];
    let plain = |status: u16| Reply {
        status,
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: all.clone().into_bytes(),
    };
    let statuses = [200, 400, 500, 503];
    let answers = statuses.iter().flat_map(|status| places.map(|place| json(*status, place)));
    answers.chain(statuses.iter().map(|status| plain(*status))).collect()
}

#[test]
fn an_echo_of_the_request_is_redacted_in_errors_logs_and_debugging_output() {
    let log = Log::default();
    let shown = Arc::new(Mutex::new(String::new()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tracing::subscriber::with_default(log.clone(), || {
        for name in names() {
            runtime.block_on(ask_everything(name, &shown));
        }
    });
    let shown = shown.lock().expect("no panic");
    let log = log.0.lock().expect("no panic");
    assert!(log.contains("attempt failed, will retry"), "retries are logged");
    assert!(log.contains("/token/***/"), "a token in a path is shown as stars");
    assert!(shown.contains("[redacted]"), "echoes were there to be redacted");
    for secret in [TOKEN, NUMBER, TEXT, CAPTION, "bm90IHJlYWxseSBhIHBpY3R1cmU"] {
        for text in [&shown, &log] {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} is shown");
        }
    }
}

async fn ask_everything(name: &str, shown: &Arc<Mutex<String>>) {
    let double = Double::of(name);
    let show = |text: String| {
        let mut shown = shown.lock().expect("no panic");
        writeln!(shown, "{text}").expect("a string takes everything");
    };
    let heard = Arc::clone(shown);
    let connector = with(&double, &double.url(), |builder| {
        builder.clock(TestClock::default()).observer(move |event| {
            let mut heard = heard.lock().expect("no panic");
            writeln!(heard, "{event:?} {}", event.path()).expect("a string takes everything");
        })
    });
    show(format!("{connector:?}"));
    for operation in 0..6_usize {
        for reply in echoes([None, None, None, None, Some(TEXT), Some(CAPTION)][operation]) {
            // Enough for all attempts of a read.
            double.fail(vec![Fault::Answer(reply.clone()); 4]);
            match operation {
                0 => show(format!("{:?}", connector.connect(Repeat::Never).await)),
                1 => show(format!("{:?}", connector.status().await)),
                2 => show(format!("{:?}", connector.qr().await)),
                3 => show(format!("{:?}", connector.logout(Repeat::Never).await)),
                4 => {
                    let outcome = connector.send_text(&text(), &SendOptions::default()).await;
                    show(format!("{outcome:?}"));
                    outcome.error().into_iter().for_each(|error| show(error.to_string()));
                }
                _ => {
                    let file = media(MediaKind::Image, true);
                    show(format!("{:?}", connector.send_media(&file, &SendOptions::default()).await));
                }
            }
        }
    }
}
