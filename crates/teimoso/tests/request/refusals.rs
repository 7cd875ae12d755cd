//! Wrong input: refused before anything is sent, with code 2, and without a secret in what is said.

use crate::peer::{Peer, answer};
use crate::request;

#[test]
fn what_makes_no_sense_is_refused_with_code_2_and_sends_nothing() {
    let peer = Peer::start(&[answer("200 OK", "")]);
    let url = peer.url.as_str();
    let lines: [&[&str]; 16] = [
        &[url],
        &["GET"],
        &["G T", url],
        &["CONNECT", url],
        &["GET", "h.example/s3cret"],
        &["GET", "ftp://s3cret"],
        &["GET", "http://me:s3cret@127.0.0.1/"],
        &["GET", "http://127.0.0.1:99999/?s3cret"],
        &["GET", url, "-H", "authorization s3cret"],
        &["GET", url, "-H", "a: s3cret\u{1b}"],
        &["GET", url, "-H", "host: s3cret"],
        &["GET", url, "-u", "me:s3cret"],
        &["GET", url, "-x", "http://me:s3cret@127.0.0.1:1"],
        &["GET", url, "-x", "socks5://s3cret"],
        &["GET", url, "--policy", "nothing"],
        &["GET", url, "-d", "-", "-H", "@-"],
    ];
    for line in lines {
        let ended = request(line);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{line:?}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty() && !ended.stderr.contains("s3cret"), "{}", ended.stderr);
    }
    assert_eq!(peer.asked().len(), 0);
}

#[test]
fn the_way_out_is_named() {
    let missing = "teimoso: the method is missing\n  write it before the URL: teimoso request GET URL\n";
    assert_eq!(request(&["http://127.0.0.1/"]).stderr, missing);
    let scheme = "teimoso: the URL does not say how to get there\n  begin it with https:// or http://\n";
    assert_eq!(request(&["GET", "example.com/x"]).stderr, scheme);
    assert!(request(&["GET", "http://127.0.0.1/", "-u", "a:b"]).stderr.contains("-H @FILE"));
    assert!(request(&["GET", "http://127.0.0.1/", "--policy", "standrad"]).stderr.contains("standard"));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let url = "http://127.0.0.1:9/";
    for flag in ["-H", "-d", "--data-binary", "-x"] {
        let ended = request(&["GET", url, flag, "@/no/such/file"]);
        assert_eq!(ended.code, 1, "{flag}");
        assert!(ended.stderr.starts_with("teimoso: cannot read /no/such/file: "), "{}", ended.stderr);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("roots.pem");
    std::fs::write(&file, "nothing of the kind").expect("written");
    let ended = request(&["GET", url, "--cacert", &file.display().to_string()]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.ends_with("roots.pem holds no certificate\n"), "{}", ended.stderr);
}

#[test]
fn a_proxy_with_a_password_is_read_from_a_file_and_told_nothing_of() {
    let proxy = Peer::start(&[answer("200 OK", "through\n")]);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("proxy");
    std::fs::write(&file, proxy.url.replace("http://", "http://me:s3cret@") + "\n").expect("written");
    let ended = request(&["GET", "http://h.example/a?b", "-x", &format!("@{}", file.display()), "-i"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.ends_with("through\n") && !ended.stderr.contains("s3cret"));
    let asked = &proxy.asked()[0];
    assert_eq!(asked.line, "GET http://h.example/a?b HTTP/1.1");
    assert_eq!(asked.header("proxy-authorization"), Some("Basic bWU6czNjcmV0"));
}

#[test]
fn the_environment_s_proxies_are_not_looked_at() {
    let peer = Peer::start(&[answer("200 OK", "")]);
    let mut command = crate::support::teimoso(&["request", "GET", &peer.url]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:1");
    }
    assert_eq!(command.output().expect("it runs").status.code(), Some(0));
    assert_eq!(peer.asked().len(), 1);
}
