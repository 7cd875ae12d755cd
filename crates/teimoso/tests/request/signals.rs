//! Ctrl-C and SIGTERM: the code of the signal, and what is known of the request.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::peer::{Peer, Play, Silent};
use crate::support::teimoso;

fn start(line: &[&str]) -> Child {
    let mut command = teimoso(&[&["request"], line].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

/// Sends the signal; gives the exit code, and what was said that nobody has read yet.
fn end(mut child: Child, signal: &str, mut stderr: impl Read) -> (Option<i32>, String) {
    let kill = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("text");
    (child.wait().expect("it ends").code(), said)
}

#[test]
fn ctrl_c_while_a_post_is_on_the_wire_says_that_it_may_have_taken_effect() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let peer = Peer::start(&[Play::Hang]);
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("answer").display().to_string();
        let mut child = start(&["POST", &peer.url, "-d", "a=1", "-o", &file, "-s"]);
        peer.until_asked();
        let stderr = child.stderr.take().expect("piped");
        let said = "teimoso: interrupted during attempt 1: the request may have taken effect\n  \
                    look at the other side before you send it again\n";
        assert_eq!(end(child, signal, stderr), (Some(code), said.to_owned()));
        assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0, "no half file");
    }
}

#[test]
fn ctrl_c_while_a_get_is_on_the_wire_says_that_there_is_no_effect() {
    let peer = Peer::start(&[Play::Hang]);
    let mut child = start(&["GET", &peer.url]);
    peer.until_asked();
    let stderr = child.stderr.take().expect("piped");
    let said = "teimoso: interrupted during attempt 1: its method asks for no effect\n";
    assert_eq!(end(child, "INT", stderr), (Some(130), said.to_owned()));
}

#[test]
fn ctrl_c_in_a_wait_says_what_became_of_the_attempts_before() {
    let silent = Silent::new();
    let closing = Peer::start(&[Play::Close]);
    let unsent = "teimoso: interrupted in the wait before attempt 2: nothing has taken effect\n";
    let unknown = "teimoso: interrupted in the wait before attempt 2: an earlier attempt may have taken effect\n  \
                   where keys are honoured it is safe to send it again with --idempotency-key k-1\n";
    for (url, expected) in [(&silent.url, unsent), (&closing.url, unknown)] {
        let mut child =
            start(&["POST", url, "--idempotency-key", "k-1", "--retry", "1", "--retry-delay", "1h"]);
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        assert!(line.ends_with(" — retry in 3600000ms\n"), "{line}");
        assert_eq!(end(child, "INT", stderr), (Some(130), expected.to_owned()));
    }
}
