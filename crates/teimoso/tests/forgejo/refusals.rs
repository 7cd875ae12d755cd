//! What is refused before anything is sent, and what the server refuses.

use teimoso_forgejo::testkit::{Fault, TOKEN};

use crate::support::ended;
use crate::{command, forgejo, green};

const VIEW: &str = "pr view acme/site 7 --json number";

#[test]
fn s1_9_without_a_token_nothing_is_sent_and_the_exit_is_4() {
    let forge = green();
    for words in
        [VIEW, "pr automerge acme/site 7", "issue create acme/site --title T", "protection view acme/site"]
    {
        let without =
            ended(command(&forge, words).env_remove("TEIMOSO_FORGEJO_TOKEN").output().expect("it runs"));
        let lines = "teimoso: there is no token\n  put it into TEIMOSO_FORGEJO_TOKEN, or into a file given with \
                     --token-file\n";
        assert_eq!((without.code, without.stderr.as_str()), (4, lines), "{words}");
    }
    let broken =
        ended(command(&forge, VIEW).env("TEIMOSO_FORGEJO_TOKEN", "s3 cret").output().expect("it runs"));
    assert_eq!((broken.code, broken.stderr.contains("s3")), (4, false));
    let unread = forgejo(&forge, &format!("{VIEW} --token-file /nowhere/token"));
    let next = "\n  put it into TEIMOSO_FORGEJO_TOKEN, or into a file given with --token-file\n";
    assert_eq!((unread.code, unread.stderr.ends_with(next)), (4, true), "{}", unread.stderr);
    assert!(unread.stderr.starts_with("teimoso: cannot read /nowhere/token: "), "{}", unread.stderr);
    assert_eq!(forge.asked().len(), 0);
}

#[test]
fn a_token_may_come_from_a_file_with_a_line_end() {
    let forge = green();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token");
    std::fs::write(&path, format!("{TOKEN}\n")).expect("written");
    let words = format!("{VIEW} --token-file {}", path.display());
    let mut command = command(&forge, &words);
    let with = ended(command.env("TEIMOSO_FORGEJO_TOKEN", "another").output().expect("it runs"));
    assert_eq!((with.code, with.stdout.as_str()), (0, "{\"number\":7}\n"));
}

#[test]
fn a_rejected_token_is_exit_4_and_a_missing_right_exit_1() {
    let forge = green();
    let rejected =
        ended(command(&forge, VIEW).env("TEIMOSO_FORGEJO_TOKEN", "expired").output().expect("it runs"));
    let lines = "teimoso: GET /repos/acme/site/pulls/7: HTTP 401: user does not exist [uid: 0, name: ]\n  make a new \
                 token in the settings of your account\n";
    assert_eq!((rejected.code, rejected.stderr.as_str()), (4, lines));
    forge.fail("GET", "/pulls/7", 2, 9, Fault::message(403, "token scope is limited to public repos"));
    let lacking = forgejo(&forge, VIEW);
    let line = "teimoso: GET /repos/acme/site/pulls/7: HTTP 403: token scope is limited to public repos\n  look at the \
                scopes of the token, and at what its user may do\n";
    assert_eq!((lacking.code, lacking.stderr.as_str(), forge.count("GET", "/pulls/7")), (1, line, 2));
}

#[test]
fn what_is_not_there_says_both_things_that_it_may_mean() {
    let forge = green();
    let ended = forgejo(&forge, "pr view acme/site 99");
    let lines = "teimoso: GET /repos/acme/site/pulls/99: HTTP 404: not found, or the token lacks access (The target \
                 couldn't be found.)\n  look at the spelling, and whether the token may see the repository\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (1, lines));
}

#[test]
fn a_redirect_that_is_not_followed_says_why_and_what_to_do() {
    let follow = "address of the server is right, and whether it is up";
    type Headers = &'static [(&'static str, &'static str)];
    let rows: [(Headers, &str, &str); 2] = [
        (
            &[("location", "http://127.0.0.1:9/")],
            "it leads to http://127.0.0.1:9, where the token must not go",
            "give the address that it leads to",
        ),
        (&[("location", "/user/login")], "it leads to another page of the server, not to an answer", follow),
    ];
    for (headers, why, next) in rows {
        let forge = green();
        forge.fail("GET", "/pulls/7", 1, 9, Fault::Says(302, headers, String::new()));
        for words in [VIEW, "pr automerge acme/site 7"] {
            let ended = forgejo(&forge, words);
            let told = ended.stderr.contains(why) && ended.stderr.contains(next);
            assert_eq!((ended.code, told), (1, true), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_number_may_have_its_mark() {
    let forge = green();
    assert_eq!(forgejo(&forge, "pr view acme/site #7 --json number").stdout, "{\"number\":7}\n");
}

#[test]
fn nobody_there_is_told_with_what_to_look_at() {
    let forge = green();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let ended = forgejo(&forge, &format!("{VIEW} --server http://{nobody}"));
    let next = "\n  look whether the address of the server is right, and whether it is up\n";
    assert_eq!((ended.code, ended.stderr.ends_with(next)), (1, true), "{}", ended.stderr);
}

#[test]
fn arguments_that_make_no_sense_are_usage_errors() {
    let forge = green();
    for words in [
        "pr view acme 7",
        "pr view acme/.. 7",
        "pr view acme/site 0",
        "pr view acme/site 7 --server ftp://x",
        "pr automerge acme/site 7 --method octopus",
        "pr automerge acme/site 7 --poll 0s",
        "pr automerge acme/site 7 --ignore *",
        "issue claim acme/site 3 --as a--b",
        "issue transition acme/site 3 x --scope a,b",
        "issue transition acme/site 3 ",
        "issue transition acme/site 3 status/x",
        "issue claim acme/site #0",
        "protection apply acme/site",
    ] {
        assert_eq!(forgejo(&forge, words).code, 2, "{words}");
    }
    let password = forgejo(&forge, "pr view acme/site 7 --server http://ana:s3cret@127.0.0.1");
    assert_eq!((password.code, password.stderr.contains("s3cret")), (2, false));
    let nowhere = ended(command(&forge, VIEW).env_remove("TEIMOSO_FORGEJO_URL").output().expect("it runs"));
    let lines = "teimoso: it is not said which Forgejo is meant\n  give its address with --server URL or \
                 TEIMOSO_FORGEJO_URL\n";
    assert_eq!((nowhere.code, nowhere.stderr.as_str(), forge.asked().len()), (2, lines, 0));
}
