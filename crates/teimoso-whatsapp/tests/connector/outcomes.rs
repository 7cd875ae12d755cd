//! How a send ends, in all the ways that it can go wrong, and how a doubt is settled.

use std::time::Duration;

use teimoso_whatsapp::client::retry::Why;
use teimoso_whatsapp::testkit::{Double, Fault, ID, Reply, media, text};
use teimoso_whatsapp::{ErrorKind, MediaKind, NotSent, Repeat, SendOptions, SendOutcome, Unknown, provider};

use crate::support::{connector, id, names, nowhere, options, outcome_line, told, with};

/// Whatever a provider, or what stands before it, may answer to a send, and what is known then.
#[tokio::test]
async fn answers_that_no_provider_documents_are_read_by_their_status_and_never_as_more() {
    let html = |status| Reply {
        status,
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        body: b"<html><h1>Bad Gateway</h1></html>".to_vec(),
    };
    let declined = "not_sent declined";
    let cases = [
        (html(200), "unknown unclear"),
        (html(502), "unknown unclear"),
        (Reply::json(200, r#"{"id":"3EB0"#), "unknown unclear"),
        (Reply::json(200, "[]"), "unknown unclear"),
        (Reply::json(200, r#"{"error":"x"}"#), "unknown unclear"),
        (Reply::json(200, ""), "unknown unclear"),
        (Reply::json(204, ""), "unknown unclear"),
        (Reply::json(200, "{}"), "unknown unclear"),
        (Reply::json(200, r#"{"status":500,"message":"x"}"#), "unknown unclear"),
        (Reply::json(400, r#"{"message":"Request timed out"}"#), "unknown unclear"),
        (Reply::json(422, r#"{"error":"timeout of 30000ms exceeded"}"#), "unknown unclear"),
        (Reply::json(301, "").with("location", "http://127.0.0.1:9/"), "unknown unclear"),
        (Reply::json(308, "").with("location", "http://127.0.0.1:9/"), "unknown unclear"),
        (Reply::json(408, "{}"), "unknown unclear"),
        (Reply::json(500, "{}"), "unknown unclear"),
        (Reply::json(503, "{}"), "unknown unclear"),
        (Reply::json(401, "{}"), declined),
        (Reply::json(403, "{}"), declined),
        (Reply::json(413, "{}"), declined),
        (Reply::json(422, "{}"), declined),
        (Reply::json(429, "{}"), declined),
    ];
    for name in names() {
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        for (reply, expected) in &cases {
            // Of this one, nothing but a 401 proves anything.
            let expected =
                if name == "wppconnect" && reply.status != 401 { "unknown unclear" } else { expected };
            double.fail([Fault::Answer(reply.clone())]);
            let outcome = connector.send_text(&text(), &options(&connector, Repeat::Never)).await;
            assert_eq!(outcome_line(&outcome), expected, "{name} {reply:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_the_outcome_open_and_says_under_which_id() {
    for name in names() {
        let double = Double::of(name);
        let (patient, _) = connector(&double);
        let impatient =
            with(&double, &double.url(), |builder| builder.attempt_timeout(Duration::from_millis(300)));
        let options = options(&patient, Repeat::Never);
        let cases = [
            (Fault::Close, Unknown::NoAnswer(Why::Closed)),
            (Fault::Reset, Unknown::NoAnswer(Why::Reset)),
            (Fault::Silence, Unknown::NoAnswer(Why::Timeout)),
            (Fault::Cut, Unknown::BodyLost),
        ];
        for (fault, expected) in cases {
            double.fail([fault.clone()]);
            let connector = if fault == Fault::Silence { &impatient } else { &patient };
            let outcome = connector.send_text(&text(), &options).await;
            let SendOutcome::Unknown { id, why, error } = outcome else {
                panic!("{name} {fault:?}: {outcome:?}")
            };
            assert_eq!((why, id), (expected, options.id.clone()), "{name}");
            assert!(error.may_have_taken_effect() && error.kind() == ErrorKind::NoAnswer, "{name}");
            let lookup = connector.adapter().facts().lookup;
            assert_eq!(error.reconcile().is_some(), lookup, "{name}");
        }
        assert_eq!(double.sends().len(), 4, "{name}");
    }
}

#[tokio::test]
async fn an_answer_too_large_to_be_read_leaves_the_outcome_open() {
    let double = Double::of("evolution");
    let (connector, _) = connector(&double);
    let large = " ".repeat(teimoso_whatsapp::client::RESPONSE_BODY_MAX + 1);
    for status in [201, 400] {
        double.fail([Fault::Answer(Reply::json(status, &large))]);
        let outcome = connector.send_text(&text(), &SendOptions::default()).await;
        assert_eq!(outcome_line(&outcome), "unknown body_lost", "{status}");
        assert_eq!(outcome.error().and_then(teimoso_whatsapp::Error::status), Some(status));
    }
    assert_eq!(double.sends().len(), 2);
}

#[tokio::test]
async fn who_is_not_there_was_not_sent_to() {
    for name in names() {
        let double = Double::of(name);
        let nobody = with(&double, &nowhere(), |builder| builder);
        let outcome = nobody.send_text(&text(), &options(&nobody, Repeat::Never)).await;
        let SendOutcome::NotSent { proof, error } = outcome else { panic!("{name}: {outcome:?}") };
        assert_eq!((proof.name(), error.attempts(), error.reconcile()), ("never_sent", 1, None), "{name}");
        assert!(!error.may_have_taken_effect(), "{name}");
    }
}

#[tokio::test]
async fn an_earlier_attempt_that_may_have_been_sent_keeps_the_outcome_open() {
    let double = Double::of("wuzapi");
    let (connector, _) = connector(&double);
    double.fail([Fault::Close, Fault::Answer(Reply::json(401, "{}"))]);
    let outcome = connector.send_text(&text(), &options(&connector, Repeat::Idempotent)).await;
    let SendOutcome::Unknown { id: used, why, error } = outcome else { panic!("{outcome:?}") };
    assert_eq!((used, why, error.status()), (Some(id()), Unknown::Earlier, Some(401)));
    assert_eq!(double.sends().len(), 2);
}

#[tokio::test]
async fn an_id_goes_along_by_itself_where_one_is_carried_and_is_a_fresh_one() {
    for name in names() {
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        let outcome = connector.send_text(&text(), &SendOptions::default()).await;
        let SendOutcome::Sent(sent) = outcome else { panic!("{name}: {outcome:?}") };
        let carried = connector.adapter().facts().caller_id.is_always_carried();
        assert_eq!(sent.caller_id.is_some(), carried, "{name}");
        let body = String::from_utf8(double.sends()[0].body.clone()).expect("text");
        let fresh = connector.fresh_id();
        assert_eq!(body.contains(fresh.text()), carried, "{name}: {body}");
    }
}

/// What cannot be honoured is refused before anything is sent.
#[tokio::test]
async fn an_option_that_a_provider_cannot_honour_is_refused_and_nothing_is_sent() {
    let marked = SendOptions { repeat: Repeat::Idempotent, ..SendOptions::default() };
    let named = SendOptions { id: Some(id()), ..SendOptions::default() };
    let looked_up = SendOptions { reconcile: true, ..SendOptions::default() };
    for name in names() {
        let facts = provider(name).expect("known").facts();
        let carries = facts.caller_id != teimoso_whatsapp::CallerId::None;
        let cases =
            [(&marked, facts.caller_id.allows_repeats()), (&named, carries), (&looked_up, facts.lookup)];
        for (options, honoured) in cases {
            let double = Double::of(name);
            let (connector, _) = connector(&double);
            let outcome = connector.send_text(&text(), options).await;
            if honoured {
                assert_eq!(outcome.name(), "sent", "{name} {options:?}");
                continue;
            }
            let SendOutcome::NotSent { proof, error } = outcome else { panic!("{name}: {outcome:?}") };
            assert_eq!(
                (proof, error.kind(), error.attempts()),
                (NotSent::Refused, ErrorKind::Unsupported, 0)
            );
            assert_eq!(double.asked(), [], "{name} {options:?}");
        }
    }
}

#[tokio::test]
async fn media_that_a_provider_does_not_take_is_refused_and_nothing_is_sent() {
    let cases = [
        ("wuzapi", media(MediaKind::Document, true), "a document carries no caption there"),
        ("z-api", media(MediaKind::Document, true), "a document carries no caption there"),
    ];
    for (name, file, reason) in cases {
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        let outcome = connector.send_media(&file, &SendOptions::default()).await;
        assert_eq!(outcome_line(&outcome), "not_sent refused", "{name}");
        assert_eq!(outcome.error().and_then(|error| error.reason()), Some(reason), "{name}");
        assert_eq!(double.asked(), [], "{name}");
    }
}

#[tokio::test]
async fn a_lookup_that_finds_the_message_settles_the_doubt() {
    let reconcile = SendOptions { id: Some(id()), reconcile: true, ..SendOptions::default() };
    for name in ["waha", "uazapi"] {
        let double = Double::of(name);
        let (connector, clock) = connector(&double);
        double.fail([Fault::Close]);
        let outcome = connector.send_text(&text(), &reconcile).await;
        let SendOutcome::Sent(sent) = outcome else { panic!("{name}: {outcome:?}") };
        assert_eq!((sent.caller_id, sent.reconciled), (Some(id()), true), "{name}");
        assert_eq!((double.sends().len(), clock.waits()), (1, Vec::new()), "{name}");
    }
}

#[tokio::test]
async fn a_lookup_that_finds_nothing_proves_nothing() {
    let reconcile = SendOptions { id: Some(id()), reconcile: true, ..SendOptions::default() };
    for name in ["waha", "uazapi"] {
        let double = Double::of(name);
        let (connector, clock) = connector(&double);
        let cases = double.fixture().answers("find");
        let reply = |expect: &str| {
            let case = cases.iter().find(|case| case.expect.starts_with(expect)).expect("a case");
            Fault::Answer(case.reply.clone())
        };
        let absent = reply("not_found");
        double.fail([Fault::Close, absent.clone(), absent.clone(), absent]);
        let outcome = connector.send_text(&text(), &reconcile).await;
        let SendOutcome::Unknown { id: used, .. } = outcome else { panic!("{name}: {outcome:?}") };
        assert_eq!(used.map(|id| id.to_string()).as_deref(), Some(ID), "{name}");
        assert_eq!(clock.waits(), [Duration::from_secs(1); 2], "{name}: three lookups");
        // Nor does one that says that it failed, or one that fails.
        for last in [reply("failed"), Fault::Answer(Reply::json(500, "{}"))] {
            double.fail([Fault::Close, last]);
            let outcome = connector.send_text(&text(), &reconcile).await;
            assert_eq!(outcome_line(&outcome), "unknown no_answer", "{name}");
        }
        assert_eq!(double.sends().len(), 3, "{name}");
    }
}

#[tokio::test]
async fn what_is_sent_is_not_looked_up() {
    let double = Double::of("uazapi");
    let (connector, _) = connector(&double);
    let reconcile = SendOptions { reconcile: true, ..SendOptions::default() };
    assert_eq!(connector.send_text(&text(), &reconcile).await.name(), "sent");
    assert_eq!(double.asked().len(), 1);
}

#[tokio::test]
async fn what_is_made_once_never_runs_out_of_attempts() {
    for name in names() {
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        // By whatever method, for some of these are GETs.
        double.fail([Fault::Answer(Reply::json(503, "{}")), Fault::Answer(Reply::json(503, "{}"))]);
        let connected = connector.connect(Repeat::Never).await.unwrap_err();
        let logged_out = connector.logout(Repeat::Never).await.unwrap_err();
        for error in [connected, logged_out] {
            assert_eq!((error.attempts(), error.is_exhausted()), (1, false), "{name}: {error}");
        }
        double.fail(vec![Fault::Answer(Reply::json(503, "{}")); 4]);
        let marked = connector.connect(Repeat::Idempotent).await.unwrap_err();
        assert_eq!((marked.attempts(), marked.is_exhausted()), (4, true), "{name}: {marked}");
    }
}

#[tokio::test]
async fn a_limit_of_the_plan_is_not_waited_for() {
    let double = Double::of("uazapi");
    let (connector, clock) = connector(&double);
    let limit = double.fixture().answers("connect").remove(2).reply;
    double.fail([Fault::Answer(limit.with("retry-after", "5"))]);
    let line = told(connector.connect(Repeat::Idempotent).await, |_| "connected".to_owned());
    assert_eq!((line.as_str(), double.asked().len(), clock.waits()), ("error limit", 1, Vec::new()));
    double.fail([Fault::Answer(Reply::json(503, "{}"))]);
    assert!(connector.connect(Repeat::Idempotent).await.is_ok(), "other failures are");
    assert_eq!(double.asked().len(), 3);
}
