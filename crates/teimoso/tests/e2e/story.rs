//! S2's story as an operator lives it: the real process, real time, the lines on stderr, the dead and their replay.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::{Api, Sent};
use crate::support::process::{Ended, Serving, command, serve};
use crate::support::receiver::Receiver;
use crate::support::{directory, sink};

/// What an operator reads in one language.
struct Words {
    lang: &'static str,
    up: &'static str,
    starts: fn(u64, &str, &str) -> String,
    delivered: &'static str,
    failed: &'static str,
    ours: &'static str,
    scheduled: (&'static str, &'static str, &'static str),
    drained: [&'static str; 2],
}

const PORTUGUESE: Words = Words {
    lang: "pt-BR",
    up: "enviador de pe, ouvindo em http://",
    starts: |number, event, url| format!("-> tentativa {number} do evento {event} para {url}"),
    delivered: "  entregue! HTTP 200",
    failed: "  HTTP 503: o destino falhou",
    ours: "  HTTP 404: erro nosso, nao adianta repetir",
    scheduled: ("  agendado para daqui a ", "s (tentativa ", " de 5)"),
    drained: ["encerrando: 0 tentativas em andamento; um segundo sinal sai na hora", "encerrado"],
};

const ENGLISH: Words = Words {
    lang: "en",
    up: "sender up, listening on http://",
    starts: |number, event, url| format!("-> attempt {number} of event {event} to {url}"),
    delivered: "  delivered! HTTP 200",
    failed: "  HTTP 503: the destination failed",
    ours: "  HTTP 404: our error, repeating is pointless",
    scheduled: ("  scheduled in ", "s (attempt ", " of 5)"),
    drained: ["draining: 0 attempts in flight; a second signal exits at once", "drained"],
};

/// The story in one language, under way.
struct Told<'a> {
    words: &'a Words,
    serving: Serving,
    events: [(String, Sent); 3],
    _directory: tempfile::TempDir,
}

#[test]
fn s2_14_the_story_in_real_time_letter_for_letter() {
    let sink = sink();
    let urls = ["/ok", "/nada", "/teimoso"].map(|path| sink.url(path));
    // Both at once: the waits are real.
    let told = [&PORTUGUESE, &ENGLISH].map(|words| {
        let directory = directory();
        let serving = serve(directory.path()).args(&["--lang", words.lang]).run();
        let events = urls.clone().map(|url| (url.clone(), serving.api.send(&url, "")));
        Told { words, serving, events, _directory: directory }
    });
    for told in told {
        told.check();
    }
    assert_eq!(sink.count(), 10, "each language: 1 + 1 + 3 requests");
}

impl Told<'_> {
    fn check(self) {
        let Told { words, serving, events: [(ok, first), (nowhere, second), (stubborn, third)], .. } = self;
        let api = serving.api;
        let delivered = api.until_state(&third.delivery, "delivered");
        assert_eq!(delivered["attempts"], 3);
        let waits = waits(&delivered);
        let Ended { stderr, .. } = serving.stop();
        let lines: Vec<&str> = stderr.lines().collect();
        assert!(lines[1].starts_with(words.up), "{stderr}");
        assert_eq!(lines[lines.len() - 2..], words.drained, "{stderr}");
        let block = |number, event: &str, url: &str, then: &[&str]| {
            let start = (words.starts)(number, event, url);
            let at =
                lines.iter().position(|line| *line == start).unwrap_or_else(|| panic!("{start}: {stderr}"));
            assert_eq!(&lines[at + 1..=at + then.len()], then, "{stderr}");
        };
        block(1, &first.event, &ok, &[words.delivered]);
        block(1, &second.event, &nowhere, &[words.ours]);
        let (before, between, after) = words.scheduled;
        for (number, wait) in (1..).zip(&waits) {
            let tenths = (wait + 50) / 100;
            let next = number + 1;
            let scheduled = format!("{before}{}.{}{between}{next}{after}", tenths / 10, tenths % 10);
            block(number, &third.event, &stubborn, &[words.failed, &scheduled]);
        }
        block(3, &third.event, &stubborn, &[words.delivered]);
        // Ready, up, 2 + 2 + 3 + 3 + 2 lines of attempts, draining, drained; nothing else.
        assert_eq!(lines.len(), 16, "{stderr}");
    }
}

/// The recorded waits of a delivery that was attempted three times: S2.3's, and kept.
fn waits(delivery: &Value) -> Vec<u64> {
    let records = delivery["attempt_records"].as_array().expect("records");
    let waits: Vec<u64> = records.iter().filter_map(|record| record["wait_ms"].as_u64()).collect();
    assert_eq!((records.len(), waits.len()), (3, 2));
    let started = |number: usize| -> jiff::Timestamp {
        records[number]["started_at"].as_str().expect("a time").parse().expect("RFC 3339")
    };
    for (number, (wait, base)) in waits.iter().zip([2_000, 4_000]).enumerate() {
        assert!((base..=base + 1_000).contains(wait), "{wait} after {base}");
        let waited = started(number + 1).duration_since(started(number));
        let waited = Duration::try_from(waited).expect("time goes forward").as_millis();
        assert!(waited >= u128::from(*wait), "{waited} is early for {wait}");
        assert!(waited < u128::from(*wait) + 1_000, "S2.8: {waited} is late for {wait}");
    }
    waits
}

/// What no parser leaves alone: spaces, `1.0`, a number beyond every float, a repeated key.
const BODY: &str = r#"{"corpo": 1.0,  "n":1e400, "n":12345678901234567890123}"#;

#[test]
fn s2_9_the_dead_keep_their_body_and_are_delivered_when_replayed_by_hand() {
    let directory = directory();
    let serving = serve(directory.path()).run();
    let api = serving.api;
    let receiver = Receiver::answering(&[404, 200]);
    let event = format!(r#"{{"url":"{}","type":"pedido.pago","payload":{BODY}}}"#, receiver.url("/pedido"));
    let sent = Sent::read(&api.post("/v1/events", &event).expect("answered").json());
    api.until_state(&sent.delivery, "dead");
    // The dead survive a restart like everything else.
    serving.stop();
    let serving = serve(directory.path()).run();
    let api = serving.api;
    listed_and_shown(api, &sent);

    let replayed = command(api, &["dead", "replay", &sent.delivery]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let delivered = api.until_state(&sent.delivery, "delivered");
    assert_eq!((&delivered["attempts"], &delivered["reason"]), (&json!(2), &Value::Null));
    let arrived = receiver.arrived();
    let numbers: Vec<_> = arrived.iter().map(|request| request.header("teimoso-attempt")).collect();
    assert_eq!(numbers, ["1", "2"]);
    for request in arrived {
        assert_eq!(request.body, BODY.as_bytes(), "G7");
        assert_eq!(request.header("webhook-id"), sent.event);
    }
    assert_eq!(command(api, &["dead", "list"]).stdout, "");
}

fn listed_and_shown(api: Api, sent: &Sent) {
    let listed = command(api, &["dead", "list", "--json"]);
    let listed: Vec<Value> =
        listed.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0]["id"], &listed[0]["reason"], &listed[0]["last_status"], &listed[0]["attempts"]),
        (&json!(sent.delivery), &json!("permanent_status"), &json!(404), &json!(1))
    );
    let shown = command(api, &["dead", "show", &sent.delivery, "--json"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.ends_with(&format!(",\"payload\":{BODY}}}\n")), "{}", shown.stdout);
    let shown = command(api, &["dead", "show", &sent.delivery]);
    assert!(shown.stdout.ends_with(&format!("\n{BODY}\n")), "{}", shown.stdout);
    assert_eq!(api.payload(&sent.event), BODY.as_bytes());
}
