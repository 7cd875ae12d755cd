//! The real binary from outside: help, usage errors, exit codes, languages, and the sink as a process.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use support::{Ended, ended, teimoso};

fn run(args: &[&str]) -> Ended {
    ended(teimoso(args).output().expect("the binary runs"))
}

const COMMANDS: [&str; 12] = [
    "serve",
    "send",
    "events",
    "deliveries",
    "dead",
    "sink",
    "policy",
    "request",
    "doctor",
    "migrate",
    "forgejo",
    "whatsapp",
];

#[test]
fn help_goes_to_stdout_and_lists_what_exists_only() {
    let help = run(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    for command in COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command}");
    }
    for absent in ["endpoints", "applications", "tokens"] {
        assert!(!help.stdout.contains(absent), "{absent}");
    }
    assert!(help.stdout.contains("Examples:"));
    let dead = run(&["dead", "--help"]).stdout;
    assert!(!dead.contains("export") && !dead.contains("expunge"), "{dead}");
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in COMMANDS {
        let help = run(&[command, "--help"]);
        assert_eq!(help.code, 0, "{command}");
        assert!(help.stdout.contains("Examples:"), "{command}");
    }
}

#[test]
fn lines_of_help_fit_a_terminal() {
    let commands = [
        &[][..],
        &["sink"],
        &["send"],
        &["request"],
        &["serve"],
        &["events", "list"],
        &["dead"],
        &["dead", "replay"],
        &["forgejo"],
        &["forgejo", "pr"],
        &["forgejo", "pr", "automerge"],
        &["forgejo", "pr", "view"],
        &["forgejo", "issue"],
        &["forgejo", "issue", "create"],
        &["forgejo", "issue", "claim"],
        &["forgejo", "protection"],
        &["whatsapp"],
        &["whatsapp", "send-text"],
        &["whatsapp", "send-media"],
        &["whatsapp", "qr"],
    ];
    for args in commands.map(|command| [command, &["--help"]].concat()) {
        for line in run(&args).stdout.lines() {
            assert!(line.chars().count() <= 100, "{args:?}: {line}");
        }
    }
}

#[test]
fn the_version_is_printed() {
    let version = run(&["--version"]);
    assert_eq!((version.code, version.stdout), (0, format!("teimoso {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn usage_errors_exit_2_and_say_nothing_on_stdout() {
    let lines = [
        &[][..],
        &["polcy"],
        &["send"],
        &["policy", "show", "nothing"],
        &["sink", "--listen", "nowhere"],
        &["dead", "replay"],
        &["forgejo"],
        &["forgejo", "pr"],
        &["forgejo", "pr", "automerge"],
        &["forgejo", "pr", "view"],
        &["forgejo", "issue"],
        &["forgejo", "issue", "create"],
        &["forgejo", "issue", "claim"],
        &["forgejo", "protection"],
        &["whatsapp"],
        &["whatsapp", "send-text"],
        &["whatsapp", "send-media"],
        &["whatsapp", "qr"],
        &["request"],
        &["request", "http://127.0.0.1/"],
        &["serve", "--store", "mysql://127.0.0.1:3306"],
        &["send", "http://x/", "--data", "{"],
        &["send", "http://x/", "-H", "a: 1", "-H", "a: 2"],
    ];
    for line in lines {
        let ended = run(line);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{line:?}");
        assert!(!ended.stderr.is_empty(), "{line:?}");
    }
}

#[test]
fn a_mistyped_command_names_the_nearest() {
    assert!(run(&["polcy"]).stderr.contains("'policy'"));
    assert!(run(&["deliveries", "retyr", "x"]).stderr.contains("'retry'"));
    assert!(run(&["deliveries", "list", "--state", "ded"]).stderr.contains("'dead'"));
}

#[test]
fn s2_12_send_without_a_url_prints_its_usage() {
    assert!(run(&["send"]).stderr.contains("Usage: teimoso send"));
}

#[test]
fn s2_13_policy_show_gives_the_true_span() {
    let shown = run(&["policy", "show", "webhook"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    assert!(shown.stdout.contains("Waiting in all: 30s to 34s."), "{}", shown.stdout);
    let json = run(&["policy", "show", "patient", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("one object");
    assert_eq!(json["attempts"], 10);
    assert_eq!(json["schedule"][9]["after_first_ms"], ((75 * 60 + 35) * 60 + 5) * 1_000);
    let more = run(&["policy", "show", "webhook", "--attempts", "12", "--plot"]).stdout;
    assert_eq!(more.lines().filter(|line| line.contains('#')).count(), 11);
}

#[test]
fn policy_list_is_a_table_or_ndjson() {
    let table = run(&["policy", "list"]).stdout;
    assert_eq!(table.lines().count(), 6);
    for line in run(&["policy", "list", "--json"]).stdout.lines() {
        let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(object["name"].is_string() && object["span_max_ms"].is_u64(), "{line}");
    }
}

#[test]
fn no_server_is_one_clear_sentence() {
    // Bound and dropped: a port on which nobody listens.
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let url = format!("http://127.0.0.1:{port}");
    for line in [&["events", "list"][..], &["send", "http://x/"], &["dead", "show", "x"]] {
        let ended = ended(teimoso(line).env("TEIMOSO_SERVER", &url).output().expect("it runs"));
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{line:?}");
        assert!(ended.stderr.starts_with(&format!("teimoso: no server at {url} (")), "{}", ended.stderr);
        assert!(ended.stderr.contains("start one with `teimoso serve`"), "{}", ended.stderr);
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("an address").to_string();
    let ended = run(&["sink", "--listen", &addr]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.starts_with(&format!("teimoso: {addr} is already in use\n")), "{}", ended.stderr);
}

/// A sink in a process of its own.
struct Sink {
    child: Child,
    address: String,
    ready: String,
}

impl Sink {
    fn start(args: &[&str]) -> Sink {
        let mut line = vec!["sink", "--listen", "127.0.0.1:0"];
        line.extend_from_slice(args);
        let spawned = teimoso(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.expect("the binary runs");
        let mut ready = String::new();
        let stderr = child.stderr.take().expect("piped");
        let mut stderr = BufReader::new(stderr);
        stderr.read_line(&mut ready).expect("a ready line");
        child.stderr = Some(stderr.into_inner());
        let address = ready.trim().rsplit("http://").next().expect("a URL").to_owned();
        Sink { child, address, ready }
    }

    fn post(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn first_line(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        line
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn s2_11_the_sink_prints_a_line_per_request_in_both_languages() {
    let headers = "webhook-id: evt_1\r\nteimoso-attempt: 2\r\n";
    let mut english = Sink::start(&[]);
    assert_eq!(english.ready, format!("sink: listening on http://{}\n", english.address));
    assert!(english.post("/teimoso", headers).starts_with("HTTP/1.1 503 "));
    assert_eq!(english.first_line(), "POST /teimoso evt_1 attempt 2 -> 503\n");
    let mut portuguese = Sink::start(&["--lang", "pt-BR"]);
    assert_eq!(portuguese.ready, format!("destino de teste: ouvindo em http://{}\n", portuguese.address));
    portuguese.post("/teimoso", headers);
    assert_eq!(portuguese.first_line(), "POST /teimoso evt_1 tentativa 2 -> 503\n");
}

#[test]
fn the_sink_prints_json_lines_of_the_documented_shape() {
    let mut sink = Sink::start(&["--json", "--keep", "0"]);
    sink.post("/gone", "webhook-id: evt_1\r\n");
    let line: serde_json::Value = serde_json::from_str(&sink.first_line()).expect("JSON");
    assert_eq!(line["path"], "/gone");
    assert_eq!(line["webhook_id"], "evt_1");
    assert_eq!(line["answered"], 410);
}

#[test]
fn a_signal_ends_the_sink_with_its_code_and_a_count() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut sink = Sink::start(&["--quiet"]);
        sink.post("/ok", "");
        let pid = sink.child.id().to_string();
        let sent = std::process::Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status();
        assert!(sent.expect("a shell").success());
        assert_eq!(sink.child.wait().expect("it ends").code(), Some(code));
        let mut said = String::new();
        sink.child.stderr.take().expect("piped").read_to_string(&mut said).expect("the last words");
        assert_eq!(said, "sink: 1 requests received\n");
        let mut printed = String::new();
        sink.child.stdout.take().expect("piped").read_to_string(&mut printed).expect("the output");
        assert_eq!(printed, "", "quiet");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child =
        teimoso(&["policy", "list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    drop(child.stdout.take());
    let ended = ended(child.wait_with_output().expect("it ends"));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}
