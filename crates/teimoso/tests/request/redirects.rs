//! Redirects: returned, or followed with `-L` and without the credentials of somebody else's host.

use crate::peer::{Peer, Silent, answer, with};
use crate::request;

#[test]
fn a_redirect_is_an_answer_unless_it_is_to_be_followed() {
    let target = Peer::start(&[answer("200 OK", "there\n")]);
    let peer = Peer::start(&[with("302 Found", &format!("location: {}/b", target.url))]);
    let returned = request(&["GET", &peer.url]);
    assert_eq!((returned.code, returned.stderr.as_str(), target.asked().len()), (0, "", 0));
    let followed = request(&["GET", &peer.url, "-L"]);
    assert_eq!((followed.code, followed.stdout.as_str()), (0, "there\n"));
    assert_eq!(target.asked()[0].line, "GET /b HTTP/1.1");
}

#[test]
fn credentials_do_not_follow_to_another_host() {
    let target = Peer::start(&[answer("200 OK", "")]);
    let peer = Peer::start(&[with("307 Temporary Redirect", &format!("location: {}/", target.url))]);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("headers");
    std::fs::write(&file, "x-custom: s3cret\n").expect("written");
    let from_file = format!("@{}", file.display());
    let line = ["POST", &peer.url, "-L", "-d", "a=1", "-H", "Authorization: Bearer s3cret", "-H"];
    let ended =
        request(&[&line[..], &["X-Api-Key: s3cret", "-H", "x-other: kept", "-H", &from_file]].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let (first, second) = (&peer.asked()[0], &target.asked()[0]);
    for name in ["authorization", "x-api-key", "x-custom"] {
        assert!(first.header(name).is_some_and(|value| value.ends_with("s3cret")), "{name}");
        assert_eq!(second.header(name), None, "{name}");
    }
    assert_eq!((second.header("x-other"), second.body.as_slice()), (Some("kept"), &b"a=1"[..]));
}

#[test]
fn the_limit_of_redirects_ends_with_the_last_one_and_says_so() {
    let peer = Peer::start(&[with("302 Found", "location: /again")]);
    let ended = request(&["GET", &peer.url, "-L", "--max-redirs", "2"]);
    assert_eq!((ended.code, peer.asked().len()), (0, 3));
    assert_eq!(ended.stderr, "HTTP 302: not followed, after 2 that were\n");
}

#[test]
fn a_post_that_was_answered_by_a_redirect_is_not_sent_again_when_the_next_hop_fails() {
    let silent = Silent::new();
    let peer = Peer::start(&[with("303 See Other", &format!("location: {}/", silent.url))]);
    let ended = request(&["POST", &peer.url, "-L", "--retry", "1", "--retry-delay", "1ms"]);
    assert_eq!((ended.code, peer.asked().len()), (7, 1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("[request] GET (redirected) failed (attempt 2/2): not sent"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("outcome unknown after 3 attempts"), "{}", ended.stderr);
}
