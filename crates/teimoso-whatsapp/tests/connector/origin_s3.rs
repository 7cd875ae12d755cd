//! S3, the connector's client, sentence by sentence, at the providers.

use std::time::Duration;

use teimoso_whatsapp::testkit::{Double, Fault, Reply, media, text};
use teimoso_whatsapp::{Connector, MediaKind, Repeat, SendOptions, State};

use crate::support::{connector, id, media_options, names, nowhere, options, with};

fn answer(status: u16) -> Fault {
    Fault::Answer(Reply::json(status, "{}"))
}

fn told(status: u16, retry_after: &str) -> Fault {
    Fault::Answer(Reply::json(status, "{}").with("retry-after", retry_after))
}

/// What S3.2 retries, as far as a peer can bring it about.
fn eligible() -> [Fault; 8] {
    let network = [Fault::Close, Fault::Reset, Fault::ResetUnread, Fault::Cut];
    let statuses = [429, 502, 503, 504].map(answer);
    let [a, b, c, d] = network;
    let [e, f, g, h] = statuses;
    [a, b, c, d, e, f, g, h]
}

/// Makes one write or send without a mark.
async fn unmarked(connector: &Connector, operation: &str) {
    match operation {
        "connect" => drop(connector.connect(Repeat::default()).await),
        "logout" => drop(connector.logout(Repeat::default()).await),
        "send_text" => drop(connector.send_text(&text(), &SendOptions::default()).await),
        "send_media" => {
            let file = media(MediaKind::Image, false);
            drop(connector.send_media(&file, &SendOptions::default()).await);
        }
        other => panic!("no operation is called {other}"),
    }
}

#[tokio::test]
async fn s3_1_a_send_is_idempotent_only_if_it_says_so() {
    assert_eq!(SendOptions::default().repeat, Repeat::Never);
    let double = Double::of("evolution-go");
    let (connector, _) = connector(&double);
    double.fail([answer(503)]);
    let outcome = connector.send_text(&text(), &SendOptions::default()).await;
    assert_eq!((outcome.name(), double.sends().len()), ("unknown", 1));
    double.fail([answer(503)]);
    let marked = SendOptions { repeat: Repeat::Idempotent, ..SendOptions::default() };
    let outcome = connector.send_text(&text(), &marked).await;
    let sends = double.sends();
    assert_eq!((outcome.name(), sends.len()), ("sent", 3));
    assert_eq!(sends[1].body, sends[2].body, "every attempt says the same, the id too");
}

#[tokio::test]
async fn s3_2_a_read_is_retried_after_every_eligible_failure() {
    for name in names() {
        let double = Double::of(name);
        let (connector, clock) = connector(&double);
        for (count, fault) in eligible().into_iter().enumerate() {
            double.fail([fault.clone()]);
            let status = connector.status().await.unwrap_or_else(|error| panic!("{name} {fault:?}: {error}"));
            assert_ne!(status.state, State::Error, "{name} {fault:?}");
            assert_eq!(clock.waits().len(), count + 1, "{name} {fault:?}");
        }
        let silent = with(&double, &nowhere(), |builder| builder.clock(clock.clone()));
        let error = silent.status().await.unwrap_err();
        assert_eq!((error.attempts(), error.is_exhausted()), (4, true), "{name}");
    }
}

#[tokio::test]
async fn s3_2_other_statuses_are_answers() {
    for name in names() {
        let double = Double::of(name);
        let (connector, clock) = connector(&double);
        for status in [400, 401, 404, 408, 409, 500, 501] {
            double.fail([answer(status)]);
            let _either = connector.status().await;
        }
        assert_eq!((double.asked().len(), clock.waits()), (7, Vec::new()), "{name}");
    }
}

#[tokio::test]
async fn s3_2_a_marked_send_is_retried_where_its_id_is_recognised_and_refused_elsewhere() {
    for name in names() {
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        let recognised = connector.adapter().facts().caller_id.allows_repeats();
        let marked = SendOptions { repeat: Repeat::Idempotent, ..SendOptions::default() };
        for fault in eligible() {
            let before = double.sends().len();
            double.fail([fault.clone()]);
            let outcome = connector.send_text(&text(), &marked).await;
            let unread = usize::from(fault == Fault::ResetUnread);
            let expected = if recognised { ("sent", 2 - unread) } else { ("not_sent", 0) };
            assert_eq!((outcome.name(), double.sends().len() - before), expected, "{name} {fault:?}");
        }
    }
}

#[tokio::test]
async fn s3_2_the_operation_decides_and_not_the_verb() {
    // Writes by GET.
    for (name, operation) in
        [("z-api", "logout"), ("z-api", "connect"), ("evolution", "connect"), ("whapi", "connect")]
    {
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        double.fail([answer(503)]);
        unmarked(&connector, operation).await;
        let asked = double.asked();
        assert_eq!((asked.len(), asked[0].method.as_str()), (1, "GET"), "{name} {operation}");
        double.fail([answer(503)]);
        match operation {
            "logout" => connector.logout(Repeat::Idempotent).await.expect("marked, it is retried"),
            _ => drop(connector.connect(Repeat::Idempotent).await.expect("marked, it is retried")),
        }
        assert_eq!(double.asked().len(), 3, "{name} {operation}");
    }
    // A read by POST.
    let double = Double::of("uazapi");
    let (connector, _) = connector(&double);
    double.fail([answer(503)]);
    assert!(connector.find(&id()).await.expect("retried").is_some());
    assert_eq!(
        double.asked().iter().map(|asked| asked.method.as_str()).collect::<Vec<_>>(),
        ["POST", "POST"]
    );
}

#[tokio::test]
async fn s3_3_a_number_of_seconds_replaces_the_backoff_within_30_s_and_nothing_else_does() {
    let double = Double::of("waha");
    let (connector, clock) = connector(&double);
    let cases = [
        (429, "7", 7_000),
        (503, "30", 30_000),
        (503, "31", 30_000),
        (429, "99999999999999999999", 30_000),
        (503, "Tue, 01 Jan 2030 00:00:20 GMT", 375),
        (429, "soon", 375),
        (503, "-1", 375),
        (502, "7", 375),
    ];
    for (status, retry_after, wait_ms) in cases {
        double.fail([told(status, retry_after)]);
        connector.status().await.expect("the second attempt succeeds");
        assert_eq!(clock.waits().last(), Some(&Duration::from_millis(wait_ms)), "{status} {retry_after}");
    }
    assert_eq!(clock.waits().len(), cases.len());
}

#[tokio::test]
async fn s3_4_an_error_carries_the_capped_wait_of_a_429_or_503_with_a_valid_number() {
    for name in names() {
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        let cases = [
            (429, "7", Some(7_000)),
            (503, "7000", Some(30_000)),
            (503, "Tue, 01 Jan 2030 00:00:20 GMT", None),
            (429, "soon", None),
            (502, "7", None),
            (400, "7", None),
        ];
        for (status, retry_after, expected) in cases {
            double.fail([told(status, retry_after)]);
            let outcome = connector.send_text(&text(), &SendOptions::default()).await;
            let error = outcome.error().expect("it failed");
            assert_eq!(error.retry_after_ms(), expected, "{name} {status} {retry_after}");
            assert_eq!((error.provider(), error.status()), (name, Some(status)));
            assert_eq!(error.operation().name(), "messages.send_text");
        }
    }
}

#[tokio::test]
async fn s3_5_waits_grow_from_300_ms_with_jitter_upward() {
    let double = Double::of("wuzapi");
    let (connector, clock) = connector(&double);
    double.fail([answer(502), answer(503), answer(504), answer(502)]);
    assert_eq!(connector.status().await.unwrap_err().attempts(), 4);
    // The longest jitter, a quarter: 300, 600, 1200 ms before it.
    assert_eq!(clock.waits(), [375, 750, 1_500].map(Duration::from_millis));
}

#[tokio::test]
async fn s3_6_connect_logout_and_sends_carry_no_mark_and_never_retry() {
    for name in names() {
        for operation in ["connect", "logout", "send_text", "send_media"] {
            for fault in eligible() {
                let double = Double::of(name);
                let (connector, clock) = connector(&double);
                double.fail([fault.clone()]);
                unmarked(&connector, operation).await;
                let read = usize::from(fault != Fault::ResetUnread);
                assert_eq!(double.asked().len(), read, "{name} {operation} {fault:?}");
                assert_eq!(clock.waits(), Vec::new(), "{name} {operation} {fault:?}");
            }
        }
    }
}

#[tokio::test]
async fn beyond_s3_a_send_that_was_certainly_not_sent_is_retried_if_that_is_asked_for() {
    for name in names() {
        let double = Double::of(name);
        let (_, clock) = connector(&double);
        let silent = with(&double, &nowhere(), |builder| builder.clock(clock.clone()));
        let never = silent.send_text(&text(), &options(&silent, Repeat::Never)).await;
        let unsent = silent.send_text(&text(), &options(&silent, Repeat::Unsent)).await;
        let media =
            silent.send_media(&media(MediaKind::Image, false), &media_options(&silent, Repeat::Unsent)).await;
        for (outcome, attempts) in [(never, 1), (unsent, 4), (media, 4)] {
            let error = outcome.error().expect("nobody listens");
            assert_eq!((outcome.name(), error.attempts()), ("not_sent", attempts), "{name}");
        }
        let connected = with(&double, &double.url(), |builder| builder.clock(clock.clone()));
        double.fail([Fault::Close]);
        let ambiguous = connected.send_text(&text(), &options(&connected, Repeat::Unsent)).await;
        assert_eq!((ambiguous.name(), double.sends().len()), ("unknown", 1), "{name}");
    }
}
