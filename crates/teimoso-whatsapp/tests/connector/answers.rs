//! What providers really answer, and what is read in it.

use teimoso_whatsapp::testkit::{AnswerCase, Double, Fault, media, text};
use teimoso_whatsapp::{Connector, MediaKind, Repeat};

use crate::support::{
    connection_line, connector, found_line, id, media_options, names, options, outcome_line, status_line,
    told,
};

/// What this connector makes of the operation, in a line.
async fn line(connector: &Connector, operation: &str) -> String {
    match operation {
        "connect" => told(connector.connect(Repeat::Never).await, |connection| connection_line(&connection)),
        "status" => told(connector.status().await, |status| status_line(&status)),
        "qr" => told(connector.qr().await, |qr| format!("code {}", qr.code())),
        "logout" => told(connector.logout(Repeat::Never).await, |()| "done".to_owned()),
        "send_text" => {
            let options = options(connector, Repeat::Never);
            outcome_line(&connector.send_text(&text(), &options).await)
        }
        "send_media" => {
            let options = media_options(connector, Repeat::Never);
            outcome_line(&connector.send_media(&media(MediaKind::Image, false), &options).await)
        }
        "find" => told(connector.find(&id()).await, found_line),
        other => panic!("no operation is called {other}"),
    }
}

#[tokio::test]
async fn every_answer_of_every_fixture_is_read_as_it_says() {
    for name in names() {
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        for operation in double.fixture().operations() {
            let answers = double.fixture().answers(operation);
            assert!(!answers.is_empty(), "{name} {operation} has no answer");
            for AnswerCase { name: case, reply, expect } in answers {
                double.fail([Fault::Answer(reply)]);
                assert_eq!(line(&connector, operation).await, expect, "{name} {operation}: {case}");
            }
        }
    }
}
