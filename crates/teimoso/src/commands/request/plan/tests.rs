use std::time::Duration;

use clap::Parser;

use super::*;
use crate::args::{Cli, Command};
use crate::exit::Exit;

/// Chance that is none.
struct Ones;

impl Entropy for Ones {
    fn next_u64(&self) -> u64 {
        u64::MAX
    }
}

fn plan(line: &[&str]) -> Result<Plan, CliError> {
    let line = ["teimoso", "request"].iter().chain(line);
    let Command::Request(args) = Cli::try_parse_from(line).expect("parses").command else {
        panic!("not request")
    };
    Plan::new(&args, &mut Input::default(), &Ones)
}

fn refused(line: &[&str]) -> String {
    let error = plan(line).err().expect("refused");
    assert_eq!(error.code, Exit::USAGE, "{line:?}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
    error.sentence
}

const URL: &str = "http://h.example/a/b?token=s3cret";

#[test]
fn what_is_missing_or_in_the_wrong_place_is_said() {
    assert_eq!(refused(&[URL]), "the method is missing");
    assert_eq!(refused(&[URL, "GET"]), "the method is missing");
    assert_eq!(refused(&["GET"]), "the URL is missing");
    assert_eq!(refused(&["GET", "h.example/?s3cret"]), "the URL does not say how to get there");
    assert_eq!(refused(&["GET", "localhost:80"]), "the URL does not say how to get there");
    let ftp = "cannot use the URL: the url must start with http:// or https://";
    assert_eq!(refused(&["GET", "ftp://s3cret.example/"]), ftp);
    let user = "cannot use the URL: the url holds a user name or password; put credentials in a header";
    assert_eq!(refused(&["GET", "http://u:s3cret@h.example/"]), user);
    assert_eq!(refused(&["CONNECT", URL]), "CONNECT asks for a tunnel, not for an answer");
    assert_eq!(refused(&["G T", URL]), "a method is one word of letters, such as GET or POST");
}

#[test]
fn what_curl_does_otherwise_is_answered_with_our_way() {
    let said = "credentials do not belong on a command line, where every process can read them";
    assert_eq!(refused(&["GET", URL, "-u", "me:s3cret"]), said);
    assert_eq!(refused(&["GET", URL, "-X", "PUT"]), "the method is an argument of its own");
    assert_eq!(refused(&["GET", URL, "-k"]), "certificates are always checked");
    assert!(refused(&["GET", URL, "-fsSL"]).starts_with("the exit code is 1 or 6"));
    assert!(plan(&["GET", URL, "-sSL"]).is_ok());
}

#[test]
fn a_method_in_small_letters_is_the_one_that_everybody_knows() {
    assert_eq!(plan(&["get", URL]).expect("a plan").method, Method::GET);
    assert_eq!(plan(&["purge", URL]).expect("a plan").method.as_str(), "purge");
}

#[test]
fn the_path_is_shown_without_its_query() {
    let path = |url| plan(&["GET", url]).expect("a plan").path().to_owned();
    assert_eq!(path(URL), "/a/b");
    assert_eq!(path("http://h.example"), "/");
    assert_eq!(path("http://h.example?a=/b"), "/");
    assert_eq!(path("http://h.example/a//b/"), "/a//b/");
}

#[test]
fn a_body_is_a_form_unless_it_is_said_to_be_something_else() {
    let form = plan(&["POST", URL, "-d", "a=1", "-d", "-b"]).expect("a plan");
    assert_eq!((&form.body[..], &form.headers[CONTENT_TYPE]), (&b"a=1&-b"[..], &FORM));
    let json = plan(&["POST", URL, "--data-raw", "@x", "-H", "content-type: a/b"]).expect("a plan");
    assert_eq!((&json.body[..], &json.headers[CONTENT_TYPE]), (&b"@x"[..], &"a/b".parse().unwrap()));
    let none = plan(&["POST", URL]).expect("a plan");
    assert!(none.body.is_empty() && !none.headers.contains_key(CONTENT_TYPE));
    let empty = plan(&["POST", URL, "-d", ""]).expect("a plan");
    assert!(empty.body.is_empty() && empty.headers.contains_key(CONTENT_TYPE));
}

#[test]
fn only_data_takes_line_ends_out_of_a_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("body");
    std::fs::write(&file, b"a\r\n b\0\xff\n").expect("written");
    let at = format!("@{}", file.display());
    assert_eq!(&plan(&["POST", URL, "-d", &at]).expect("a plan").body[..], b"a b\xff");
    assert_eq!(&plan(&["POST", URL, "--data-binary", &at]).expect("a plan").body[..], b"a\r\n b\0\xff\n");
    assert_eq!(&plan(&["POST", URL, "-d", "a\nb"]).expect("a plan").body[..], b"a\nb");
}

#[test]
fn a_key_is_sent_as_given_or_made_fresh() {
    let given = plan(&["POST", URL, "--idempotency-key", "order-7"]).expect("a plan");
    assert_eq!(
        (given.key(), &given.headers[IDEMPOTENCY_KEY]),
        (Some("order-7"), &"order-7".parse().unwrap())
    );
    let fresh = plan(&["POST", URL, "--idempotency-key", "auto"]).expect("a plan");
    assert_eq!(fresh.key(), Some("ffffffff-ffff-4fff-bfff-ffffffffffff"));
    let twice = ["POST", URL, "-H", "idempotency-key: a", "--idempotency-key", "b"];
    assert!(refused(&twice).starts_with("the idempotency key is given twice"));
    assert!(refused(&["POST", URL, "--idempotency-key", " "]).starts_with("--idempotency-key: "));
    assert!(refused(&["POST", URL, "-A", "a\nb"]).starts_with("--user-agent: "));
}

#[test]
fn flags_change_the_policy_and_nothing_else_of_it() {
    let policy = |line: &[&str]| plan(&[&["GET", URL], line].concat()).expect("a plan").policy;
    assert_eq!(policy(&[]), RetryPolicy::preset(teimoso_retry::Preset::Standard));
    assert_eq!(policy(&["--policy", "forgejo"]), RetryPolicy::preset(teimoso_retry::Preset::Forgejo));
    let five = policy(&["--retry", "5", "-m", "60", "--connect-timeout", "2.5"]);
    assert_eq!((five.max_attempts().get(), five.give_up_after()), (6, None));
    assert_eq!(five.attempt_timeout(), Duration::from_secs(60));
    assert_eq!(five.connect_timeout(), Duration::from_millis(2_500));
    let timed = policy(&["--retry", "0", "--retry-max-time", "7", "--retry-delay", "20ms"]);
    assert_eq!((timed.max_attempts().get(), timed.give_up_after()), (1, Some(Duration::from_secs(7))));
    assert_eq!((timed.waits().first(), timed.jitter()), (Duration::from_millis(20), Jitter::None));
}

#[test]
fn a_policy_that_cannot_be_is_refused_by_its_flag() {
    let long = "--max-time must be above zero and at most 24 hours";
    assert_eq!(refused(&["GET", URL, "-m", "25h"]), long);
    let total = "--retry-max-time must be above zero and at most 366 days";
    assert_eq!(refused(&["GET", URL, "--retry-max-time", "400d"]), total);
    let wait = "--retry-delay must each lie between 1 ms and 30 days";
    assert_eq!(refused(&["GET", URL, "--retry-delay", "31d"]), wait);
}
