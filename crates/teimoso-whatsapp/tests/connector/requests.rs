//! The requests that adapters make: those of the fixtures, and no others.

use serde_json::Value;
use teimoso_whatsapp::testkit::{Asked, Double, RequestCase, media, text};
use teimoso_whatsapp::{Connector, MediaKind, Repeat};

use crate::support::{connector, id, media_options, names, options};

pub const KINDS: [MediaKind; 4] = [MediaKind::Image, MediaKind::Video, MediaKind::Audio, MediaKind::Document];

/// Makes every request of every operation once, media of every kind with a caption where one is carried, and says what
/// arrived for each.
pub async fn all_requests(double: &Double, connector: &Connector) -> Vec<(String, Asked)> {
    let mut all = Vec::new();
    let mut take = |operation: &str| {
        let asked = double.asked().pop().unwrap_or_else(|| panic!("{operation} asked nothing"));
        all.push((operation.to_owned(), asked));
    };
    connector.connect(Repeat::Never).await.expect("connects");
    take("connect");
    connector.status().await.expect("a status");
    take("status");
    // What shares its request with another operation may be told that there is nothing to scan.
    let _either = connector.qr().await;
    take("qr");
    connector.logout(Repeat::Never).await.expect("logs out");
    take("logout");
    let _sent = connector.send_text(&text(), &options(connector, Repeat::Never)).await;
    take("send_text");
    for kind in KINDS {
        let case = double.fixture().media_request(kind);
        let captioned = case.body.to_string().contains("a legenda");
        let options = media_options(connector, Repeat::Never);
        let outcome = connector.send_media(&media(kind, captioned), &options).await;
        assert_eq!(outcome.name(), "sent", "{kind}: {outcome:?}");
        take(kind.name());
    }
    if connector.adapter().facts().lookup {
        connector.find(&id()).await.expect("a lookup");
        take("find");
    }
    all
}

/// The fields of a form as JSON, files as `file NAME TYPE BYTES`.
fn form(asked: &Asked) -> Value {
    let content_type = asked.header("content-type").expect("a content type");
    let boundary = content_type.strip_prefix("multipart/form-data; boundary=").expect("a form");
    let text = String::from_utf8(asked.body.clone()).expect("the test sends text");
    let delimiter = format!("--{boundary}");
    let parts = text.split(&delimiter).filter(|part| part.starts_with("\r\n"));
    let fields = parts.map(|part| {
        let (head, content) = part.trim_start().split_once("\r\n\r\n").expect("a head");
        let content = content.strip_suffix("\r\n").expect("an end");
        let quoted: Vec<&str> = head.split('"').collect();
        let value = match head.split_once("\r\nContent-Type: ") {
            Some((_, media_type)) => format!("file {} {media_type} {content}", quoted[3]),
            None => content.to_owned(),
        };
        (quoted[1].to_owned(), Value::from(value))
    });
    Value::Object(fields.collect())
}

fn assert_is(asked: &Asked, case: &RequestCase, what: &str) {
    assert_eq!((&asked.method, &asked.path), (&case.method, &case.path), "{what}");
    for (name, value) in &case.headers {
        assert_eq!(asked.header(name), Some(value.as_str()), "{what}: {name}");
    }
    let body = match (case.form, asked.body.is_empty()) {
        (true, _) => form(asked),
        (false, true) => Value::Null,
        (false, false) => {
            assert_eq!(asked.header("content-type"), Some("application/json"), "{what}");
            serde_json::from_slice(&asked.body).expect("JSON")
        }
    };
    assert_eq!(body, case.body, "{what}");
}

#[tokio::test]
async fn every_adapter_makes_the_requests_of_its_fixture() {
    for name in names() {
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        for (operation, asked) in all_requests(&double, &connector).await {
            let fixture = double.fixture();
            let case = match KINDS.into_iter().find(|kind| kind.name() == operation) {
                Some(kind) => fixture.media_request(kind),
                None => fixture.request(&operation),
            };
            assert_is(&asked, &case, &format!("{name} {operation}"));
        }
    }
}
