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
