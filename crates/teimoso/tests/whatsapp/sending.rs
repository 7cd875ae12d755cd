//! Sent, not sent, unknown: three ends, three exit codes.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;
use teimoso_whatsapp::testkit::{Double, Fault, ID, NUMBER, Reply, TEXT};

use crate::support::ended;
use crate::{command, object, whatsapp};

fn answer(status: u16, body: &str) -> Fault {
    Fault::Answer(Reply::json(status, body))
}

const TO: [&str; 4] = ["--to", NUMBER, "--text", TEXT];

fn send_text(double: &Double, more: &[&str]) -> crate::support::Ended {
    whatsapp(double, &[&["send-text"], &TO[..], more].concat())
}

#[test]
fn a_text_that_is_sent_prints_its_id_and_ends_with_0() {
    let double = Double::of("waha");
    let ended = send_text(&double, &["--id", ID]);
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (0, &*format!("{ID}\n"), "waha: sent\n")
    );
    assert_eq!(double.sends().len(), 1);
    let pt = send_text(&double, &["--lang", "pt-BR"]);
    assert_eq!(pt.stderr, "waha: enviada\n");
}

#[test]
fn a_text_that_was_not_sent_ends_with_1_and_says_why() {
    let double = Double::of("waha");
    double.fail([answer(422, r#"{"message":"Session status is not as expected"}"#)]);
    let ended = send_text(&double, &[]);
    let line = "waha: not sent: the request was not accepted (HTTP 422: Session status is not as expected)\n";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (1, "", line));
}

#[test]
fn s3_2_a_text_that_may_have_been_sent_is_never_sent_again_and_ends_with_7() {
    for name in
        ["waha", "evolution", "evolution-go", "uazapi", "z-api", "wuzapi", "whapi", "wppconnect", "quepasa"]
    {
        let double = Double::of(name);
        double.fail([Fault::Close]);
        let ended = send_text(&double, &[]);
        assert_eq!((ended.code, double.sends().len()), (7, 1), "{name}: {}", ended.stderr);
        let start = format!("{name}: outcome unknown: the message may have been sent, and no answer came (");
        assert!(ended.stderr.starts_with(&start), "{}", ended.stderr);
    }
}

#[test]
fn an_unknown_outcome_says_how_to_find_out() {
    let uazapi = Double::of("uazapi");
    uazapi.fail([Fault::Reset]);
    let ended = send_text(&uazapi, &["--id", ID]);
    assert!(
        ended.stderr.ends_with(&format!("\n  find out with: teimoso whatsapp find {ID}\n")),
        "{}",
        ended.stderr
    );
    let found = whatsapp(&uazapi, &["find", ID]);
    assert_eq!((found.code, found.stdout.as_str()), (0, "3EB0C0FFEE Sent\n"), "{}", found.stderr);
    uazapi.fail([answer(200, r#"{"messages":[]}"#)]);
    let absent = whatsapp(&uazapi, &["find", ID]);
    assert_eq!((absent.code, absent.stdout.as_str()), (3, ""), "{}", absent.stderr);

    let wuzapi = Double::of("wuzapi");
    wuzapi.fail([answer(500, r#"{"error":"Error sending message: timed out","success":false}"#)]);
    let ended = send_text(&wuzapi, &["--id", ID]);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let first = "wuzapi: outcome unknown: the message may have been sent, and the answer does not say (HTTP 500: \
                 Error sending message: timed out)";
    let second = format!("  look at the chat; to send it again is recognised under the same id: --id {ID}");
    assert_eq!((ended.code, lines), (7, vec![first, &second]));
}

/// Who reads "not sent" sends again.
#[test]
fn a_stdout_that_cannot_be_written_does_not_change_what_is_known_of_the_message() {
    let double = Double::of("whapi");
    let cases = [(Fault::None, 0), (Fault::Close, 7), (answer(402, "{}"), 1), (answer(401, "{}"), 4)];
    for (fault, code) in cases {
        for full in [true, false] {
            for json in [true, false] {
                double.fail([fault.clone()]);
                let mut sending = command(&double, &[&["send-text"], &TO[..]].concat());
                if json {
                    sending.arg("--json");
                }
                let stdout = if full { full_disk() } else { nobody() };
                let ended =
                    ended(sending.stdout(stdout).stderr(Stdio::piped()).output().expect("the binary runs"));
                assert_eq!(ended.code, code, "{fault:?} {full} {json}: {}", ended.stderr);
            }
        }
    }
    double.fail([Fault::Close]);
    let mut logout = command(&double, &["logout", "--json"]);
    let ended = ended(logout.stdout(nobody()).stderr(Stdio::piped()).output().expect("the binary runs"));
    assert_eq!(ended.code, 7, "{}", ended.stderr);
}

fn full_disk() -> Stdio {
    std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device that is full").into()
}

/// A pipe that nobody reads.
fn nobody() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn a_redirect_is_not_followed_and_says_what_to_look_at() {
    let (double, other) = (Double::of("evolution"), Double::of("evolution"));
    double.fail([Fault::Answer(Reply::json(308, "").with("location", &format!("{}/message", other.url())))]);
    let ended = send_text(&double, &[]);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let advice = "  it sends elsewhere, where nothing follows it; look at the address and at the chat";
    assert_eq!((ended.code, lines.last().copied()), (7, Some(advice)), "{}", ended.stderr);
    assert_eq!(other.asked(), []);
}

#[test]
fn reconcile_finds_what_was_sent() {
    for name in ["waha", "uazapi"] {
        let double = Double::of(name);
        double.fail([Fault::Close]);
        let ended = send_text(&double, &["--id", ID, "--reconcile", "--json"]);
        assert_eq!((ended.code, double.sends().len()), (0, 1), "{name}: {}", ended.stderr);
        let object = object(&ended);
        assert_eq!((&object["outcome"], &object["reconciled"]), (&json!("sent"), &json!(true)), "{object}");
    }
}

#[test]
fn a_marked_text_is_sent_again_under_the_same_id() {
    let double = Double::of("wuzapi");
    double.fail([answer(503, "{}")]);
    let ended = send_text(&double, &["--idempotent"]);
    let sends = double.sends();
    assert_eq!((ended.code, sends.len()), (0, 2), "{}", ended.stderr);
    assert_eq!(sends[0].body, sends[1].body);
    let start = "[wuzapi] POST /chat/send/text failed (attempt 1/4): HTTP 503 — retry in ";
    assert!(ended.stderr.starts_with(start), "{}", ended.stderr);
}

#[test]
fn s3_4_json_says_everything_that_is_known() {
    let double = Double::of("uazapi");
    double.fail([Fault::Answer(
        Reply::json(429, r#"{"error":"Rate limit exceeded"}"#).with("retry-after", "9000"),
    )]);
    let ended = send_text(&double, &["--id", ID, "--json"]);
    let expected = json!({
        "provider": "uazapi",
        "operation": "messages.send_text",
        "outcome": "not_sent",
        "id": null,
        "caller_id": null,
        "reconciled": false,
        "proof": "declined",
        "why": null,
        "error": {
            "kind": "rate_limited",
            "status": 429,
            "message": "Rate limit exceeded",
            "reason": null,
            "fate": "answered",
            "attempts": 1,
            "retry_after_ms": 30_000,
            "may_have_taken_effect": false,
            "reconcile": null,
        },
    });
    assert_eq!((ended.code, object(&ended)), (1, expected));
    double.fail([Fault::Close]);
    let unknown = object(&send_text(&double, &["--id", ID, "--json"]));
    assert_eq!((&unknown["outcome"], &unknown["why"]), (&json!("unknown"), &json!("no_answer")));
    assert_eq!(unknown["error"]["reconcile"], json!({"by": "lookup", "id": ID}));
    assert_eq!((&unknown["caller_id"], &unknown["error"]["fate"]), (&json!(ID), &json!("ambiguous")));
}

#[test]
fn a_text_may_come_from_stdin() {
    let double = Double::of("quepasa");
    let mut sending = command(&double, &["send-text", "--to", NUMBER, "--text-file", "-"]);
    sending.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = sending.spawn().expect("the binary runs");
    child.stdin.take().expect("stdin").write_all("linha 1\nlinha 2\n".as_bytes()).expect("it reads");
    let ended = ended(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let body = String::from_utf8(double.sends()[0].body.clone()).expect("text");
    assert!(body.contains(r#""text":"linha 1\nlinha 2""#), "{body}");
}

#[test]
fn a_file_is_sent_as_what_its_name_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("foto.png");
    std::fs::write(&file, "not really a picture").expect("written");
    let double = Double::of("whapi");
    let path = file.display().to_string();
    let ended = whatsapp(&double, &["send-media", "--to", NUMBER, "--file", &path, "--caption", "a legenda"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "P-1\n"), "{}", ended.stderr);
    let image = double.fixture().media_request(teimoso_whatsapp::MediaKind::Image);
    let asked = double.sends().remove(0);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&asked.body).expect("JSON"), image.body);
    let ended = whatsapp(&double, &["send-media", "--to", NUMBER, "--file", &path, "--as-document"]);
    assert_eq!((ended.code, double.sends()[1].path.as_str()), (0, "/messages/document"), "{}", ended.stderr);
}

#[test]
fn a_token_from_a_file_wins_over_the_environment() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("token");
    std::fs::write(&file, format!("{}\n", teimoso_whatsapp::testkit::TOKEN)).expect("written");
    let double = Double::of("waha");
    let path = file.display().to_string();
    let mut status = command(&double, &["status", "--token-file", &path]);
    let ended = ended(status.env("TEIMOSO_WHATSAPP_TOKEN", "another").output().expect("the binary runs"));
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "connected (WORKING)\n"), "{}", ended.stderr);
}

#[test]
fn a_signal_before_the_answer_says_that_the_message_may_have_been_sent_and_its_id() {
    let double = Double::of("wuzapi");
    double.fail([Fault::Silence]);
    let mut sending = command(&double, &[&["send-text"], &TO[..], &["--id", ID]].concat());
    let child = sending.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    double.until_sends(1);
    let kill = format!("kill -INT {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    let ended = ended(child.wait_with_output().expect("it ends"));
    let line = format!("interrupted: the message may have been sent, under the id {ID}\n");
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr), (130, "", line));
}

#[test]
fn the_three_ends_are_told_in_portuguese_too() {
    let double = Double::of("whapi");
    let unknown = "whapi: resultado desconhecido: a mensagem pode ter sido enviada, e a resposta nao diz (HTTP 500: x)\n  \
                   veja a conversa antes de enviar de novo\n";
    let declined = "whapi: nao enviada: um limite da conta, que esperar nao resolve (HTTP 402: x)\n";
    let cases = [(0, 200, "whapi: enviada\n"), (7, 500, unknown), (1, 402, declined)];
    for (code, status, words) in cases {
        if status != 200 {
            double.fail([answer(status, r#"{"error":{"message":"x"}}"#)]);
        }
        let ended = send_text(&double, &["--lang", "pt-BR"]);
        assert_eq!((ended.code, ended.stderr.as_str()), (code, words));
    }
}
