//! What makes no sense is refused in a sentence that says what to do next, and nothing is sent.

use teimoso_whatsapp::testkit::{Double, Fault, NUMBER, Reply};

use crate::support::{Ended, ended, teimoso};
use crate::{command, whatsapp};

fn bare(args: &[&str]) -> Ended {
    ended(teimoso(&[&["whatsapp"], args].concat()).output().expect("the binary runs"))
}

#[test]
fn an_unknown_provider_names_the_nearest() {
    let ended = bare(&["status", "--provider", "evolutiongo"]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("evolution-go"), "{}", ended.stderr);
    assert!(ended.stderr.contains("similar value"), "{}", ended.stderr);
}

#[test]
fn s1_9_without_a_token_nothing_is_sent_and_the_code_is_4() {
    for name in ["waha", "z-api", "wuzapi"] {
        let double = Double::of(name);
        for token in ["", "  \n"] {
            let mut sending = command(&double, &["send-text", "--to", NUMBER, "--text", "x"]);
            let ended =
                ended(sending.env("TEIMOSO_WHATSAPP_TOKEN", token).output().expect("the binary runs"));
            let sentence = "teimoso: the token is missing\n  put it into TEIMOSO_WHATSAPP_TOKEN, or into a file \
                            given with --token-file\n";
            assert_eq!((ended.code, ended.stderr.as_str()), (4, sentence), "{name}");
        }
        assert_eq!(double.asked(), []);
    }
}

#[test]
fn a_token_file_that_is_no_text_is_not_taken_for_an_empty_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("token");
    std::fs::write(&file, [0xff, 0xfe, b'x']).expect("written");
    let path = file.display().to_string();
    let double = Double::of("waha");
    let ended = whatsapp(&double, &["status", "--token-file", &path]);
    let sentence = format!("teimoso: the token is not one word of visible ASCII\n  look into {path}\n");
    assert_eq!((ended.code, ended.stderr), (4, sentence));
    assert_eq!(double.asked(), []);
}

#[test]
fn a_token_file_that_cannot_be_read_ends_with_4_and_nothing_is_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("absent").display().to_string();
    let double = Double::of("waha");
    let ended = whatsapp(&double, &["status", "--token-file", &path]);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("\n  look into {path}\n")), "{}", ended.stderr);
    assert_eq!(double.asked(), []);
}

#[test]
fn a_token_that_is_rejected_ends_with_4() {
    let double = Double::of("wuzapi");
    let mut sending = command(&double, &["send-text", "--to", NUMBER, "--text", "x"]);
    let ended = ended(sending.env("TEIMOSO_WHATSAPP_TOKEN", "an0ther").output().expect("the binary runs"));
    let line = "wuzapi: not sent: the token was not accepted; look at TEIMOSO_WHATSAPP_TOKEN or its file (HTTP 401: \
                unauthorized)\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (4, line));
}

#[test]
fn a_number_in_the_wrong_form_is_answered_with_the_right_one() {
    let double = Double::of("waha");
    for number in ["(11) 99999-8888", "0119999988", "joao", ""] {
        let ended = whatsapp(&double, &["send-text", "--to", number, "--text", "x"]);
        let sentence = "teimoso: the number must be in international form, 8 to 15 digits from the country code on, \
                        such as 5511999998888\n  give it with --to, for one person\n";
        assert_eq!((ended.code, ended.stderr.as_str()), (2, sentence), "{number}");
    }
    assert_eq!(double.asked(), []);
}

#[test]
fn media_too_large_or_of_unknown_type_is_refused_before_anything_is_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("nota.xyz"), "x").expect("written");
    std::fs::File::create(path("big.png")).and_then(|file| file.set_len((16 << 20) + 1)).expect("written");
    let double = Double::of("waha");
    let send = |name: &str, more: &[&str]| {
        let file = path(name).display().to_string();
        whatsapp(&double, &[&["send-media", "--to", NUMBER, "--file", &file], more].concat())
    };
    let unknown = send("nota.xyz", &[]);
    let sentence = "teimoso: the type of nota.xyz is not known\n  give it with --media-type, such as --media-type \
                    application/pdf\n";
    assert_eq!((unknown.code, unknown.stderr.as_str()), (2, sentence));
    let large = send("big.png", &[]);
    let sentence = "teimoso: the file has 16777217 bytes; image may have 16777216\n  make it smaller, or send it with \
                    --as-document, which may have more\n";
    assert_eq!((large.code, large.stderr.as_str()), (2, sentence));
    assert_eq!(send("nota.xyz", &["--media-type", "pdf"]).code, 2);
    assert_eq!(send("nothing.png", &[]).code, 1);
    std::fs::File::create(path("huge.pdf")).and_then(|file| file.set_len(300 << 20)).expect("written");
    let sentence = "teimoso: the file has 314572800 bytes; document may have 67108864\n  make it smaller, or send a \
                    link to it\n";
    let huge = send("huge.pdf", &[]);
    assert_eq!((huge.code, huge.stderr.as_str()), (2, sentence));
    assert_eq!(double.asked(), []);
    let document = send("big.png", &["--as-document"]);
    assert_eq!((document.code, double.sends().len()), (0, 1), "as it says: {}", document.stderr);
    let named = send("nota.xyz", &["--media-type", "text/plain"]);
    assert_eq!((named.code, double.sends().len()), (0, 2), "{}", named.stderr);
}

#[test]
fn what_a_provider_needs_and_nobody_said_is_asked_for() {
    let with_token = |args: &[&str]| {
        let mut command = teimoso(&[&["whatsapp", "status"], args].concat());
        ended(command.env("TEIMOSO_WHATSAPP_TOKEN", "x").output().expect("the binary runs"))
    };
    let server = with_token(&["--provider", "waha"]);
    let sentence = "teimoso: the address of the provider is missing\n  give it with --server URL or \
                    TEIMOSO_WHATSAPP_SERVER\n";
    assert_eq!((server.code, server.stderr.as_str()), (2, sentence));
    let instance = with_token(&["--provider", "evolution", "--server", "http://127.0.0.1:9"]);
    let sentence = "teimoso: the name of the instance is missing\n  give it with --instance NAME or \
                    TEIMOSO_WHATSAPP_INSTANCE\n";
    assert_eq!((instance.code, instance.stderr.as_str()), (2, sentence));
    let address = with_token(&["--provider", "waha", "--server", "127.0.0.1:9"]);
    assert_eq!(address.code, 2);
    assert!(address.stderr.starts_with("teimoso: the address cannot be used: "), "{}", address.stderr);
}

#[test]
fn an_option_that_the_provider_cannot_honour_is_refused() {
    let cases = [
        (
            "z-api",
            "--idempotent",
            "a repeated message is not recognised there, so that a send cannot be idempotent",
        ),
        ("evolution", "--reconcile", "there is no lookup by an id of the caller's"),
    ];
    for (name, flag, reason) in cases {
        let double = Double::of(name);
        let ended = whatsapp(&double, &["send-text", "--to", NUMBER, "--text", "x", flag]);
        let line = format!("{name}: not sent: not possible there ({reason})\n");
        assert_eq!((ended.code, ended.stderr), (2, line));
        assert_eq!(double.asked(), []);
    }
    let double = Double::of("evolution");
    assert_eq!(whatsapp(&double, &["find", "3EB0C0FFEE"]).code, 2);
}

#[test]
fn an_instance_that_does_not_exist_ends_with_3() {
    let double = Double::of("waha");
    double.fail([Fault::Answer(Reply::json(404, r#"{"message":"Session not found"}"#))]);
    let ended = whatsapp(&double, &["status"]);
    let line = "waha: there is no such instance; look at the address and the instance (HTTP 404: Session not \
                found)\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (3, line));
}
