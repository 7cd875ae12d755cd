//! Connect, status, QR code, log out, and the list of providers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use teimoso_whatsapp::Qr;
use teimoso_whatsapp::testkit::{CODE, Double, Fault, Reply};

use crate::support::{ended, teimoso};
use crate::{object, whatsapp};

#[test]
fn every_provider_is_connected_asked_and_logged_out() {
    for adapter in teimoso_whatsapp::PROVIDERS {
        let name = adapter.facts().name;
        let double = Double::of(name);
        for operation in ["connect", "status", "logout"] {
            let ended = whatsapp(&double, &[operation]);
            assert_eq!(ended.code, 0, "{name} {operation}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_status_is_told_in_its_normal_form_with_the_raw_one_behind() {
    let double = Double::of("wuzapi");
    double.fail([Fault::Answer(Reply::json(500, r#"{"code":500,"error":"No session","success":false}"#))]);
    let ended = whatsapp(&double, &["status"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "disconnected (No session)\n"), "{}", ended.stderr);
    let ended = whatsapp(&double, &["status", "--json"]);
    let expected = json!({
        "provider": "wuzapi",
        "operation": "instance.status",
        "state": "connected",
        "raw": "connected=true logged_in=true",
    });
    assert_eq!(object(&ended), expected);
}

#[test]
fn a_qr_code_is_drawn_in_blocks_or_written_as_a_picture_that_is_its_owners_alone() {
    let double = Double::of("quepasa");
    let drawn = whatsapp(&double, &["qr"]);
    let blocks = Qr::from_code(CODE).expect("a code").blocks();
    assert_eq!((drawn.code, drawn.stdout), (0, blocks), "{}", drawn.stderr);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("qr.png");
    let path = file.display().to_string();
    let written = whatsapp(&double, &["qr", "--out", &path]);
    assert_eq!((written.code, written.stdout.as_str()), (0, ""), "{}", written.stderr);
    assert_eq!(written.stderr, format!("written to {path}\n"));
    assert_eq!(
        Qr::from_png(fs::read(&file).expect("there")).map(|qr| qr.code().to_owned()),
        Ok(CODE.to_owned())
    );
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
    assert_eq!(whatsapp(&double, &["qr", "--out", &path]).code, 0);
    let mode = fs::metadata(&file).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "a file that was there is its owner's alone too");
    let refused = whatsapp(&double, &["qr", "--out", &directory.path().display().to_string()]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.ends_with("\n  name another file with --out\n"), "{}", refused.stderr);
    let both = object(&whatsapp(&double, &["qr", "--json"]));
    assert_eq!((&both["code"], &both["provider"]), (&json!(CODE), &json!("quepasa")));
}

#[test]
fn no_code_yet_and_none_needed_are_told_apart() {
    let double = Double::of("evolution-go");
    let not_yet = r#"{"error":"no QR code available. Please wait a moment and try again"}"#;
    double.fail([Fault::Answer(Reply::json(400, not_yet))]);
    let ended = whatsapp(&double, &["qr"]);
    let line = "evolution-go: not ready yet; try again in a moment (HTTP 400: no QR code available. Please wait a \
                moment and try again)\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (1, line));
    double.fail([Fault::Answer(Reply::json(400, r#"{"error":"session already logged in"}"#))]);
    let ended = whatsapp(&double, &["qr", "--json"]);
    assert_eq!((ended.code, &object(&ended)["error"]["kind"]), (1, &json!("already_connected")));
}

#[test]
fn an_answer_that_says_nothing_is_told_with_what_to_look_at() {
    let html = Reply {
        status: 200,
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        body: b"<html>".to_vec(),
    };
    let elsewhere = Reply::json(308, "").with("location", "http://127.0.0.1:9/");
    let cases = [
        (html, "the answer could not be understood; is the address that of the provider? (HTTP 200)"),
        (elsewhere, "it sends elsewhere, where nothing follows it; look at the address (HTTP 308)"),
        (Reply::json(500, "{}"), "the provider failed; try again later (HTTP 500)"),
    ];
    let double = Double::of("whapi");
    for (reply, words) in cases {
        double.fail([Fault::Answer(reply)]);
        let ended = whatsapp(&double, &["status"]);
        assert_eq!((ended.code, ended.stderr), (1, format!("whapi: {words}\n")));
    }
    assert_eq!(double.asked().len(), 3, "the one that it was sent to was asked nothing");
}

#[test]
fn a_write_that_is_made_once_ends_alike_by_whatever_method() {
    for name in ["quepasa", "z-api", "waha"] {
        let double = Double::of(name);
        double.fail([Fault::Answer(Reply::json(429, "{}"))]);
        let ended = whatsapp(&double, &["connect"]);
        assert_eq!((ended.code, double.asked().len()), (1, 1), "{name}: {}", ended.stderr);
    }
}

#[test]
fn a_write_that_may_have_been_done_ends_with_7_and_a_read_that_ran_out_with_6() {
    let double = Double::of("z-api");
    double.fail([Fault::Close]);
    let ended = whatsapp(&double, &["logout"]);
    assert_eq!((ended.code, double.asked().len()), (7, 1), "{}", ended.stderr);
    double.fail(vec![Fault::Answer(Reply::json(503, "{}").with("retry-after", "0")); 4]);
    let ended = whatsapp(&double, &["status"]);
    assert_eq!((ended.code, double.asked().len()), (6, 5), "{}", ended.stderr);
    let start = "[z-api] GET /instances/3C0FFEE/token/***/status failed (attempt 1/4): HTTP 503 — retry in ";
    assert!(ended.stderr.starts_with(start), "{}", ended.stderr);
}

#[test]
fn the_list_of_providers_needs_no_account() {
    let list = ended(teimoso(&["whatsapp", "providers"]).output().expect("the binary runs"));
    assert_eq!((list.code, list.stdout.lines().count()), (0, 10), "{}", list.stderr);
    let z_api = list.stdout.lines().find(|line| line.starts_with("z-api ")).expect("a row");
    let cells: Vec<&str> = z_api.split_whitespace().collect();
    assert_eq!(cells, ["z-api", "Z-API", "https://api.z-api.io", "required", "no", "no"]);
    let lines = ended(teimoso(&["whatsapp", "providers", "--json"]).output().expect("the binary runs"));
    let uazapi: serde_json::Value = lines
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .find(|line: &serde_json::Value| line["provider"] == "uazapi")
        .expect("a line");
    assert_eq!(
        (&uazapi["caller_id"], &uazapi["idempotent"], &uazapi["lookup"]),
        (&json!("labels"), &json!(false), &json!(true))
    );
}
