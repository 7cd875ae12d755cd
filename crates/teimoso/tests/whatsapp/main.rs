//! `teimoso whatsapp` from outside: the real binary, doubles of the providers, exit codes that a script can rely on.

mod docs;
mod linking;
mod refusals;
mod sending;
#[path = "../support/mod.rs"]
mod support;

use std::process::Command;

use serde_json::Value;
use support::{Ended, ended, teimoso};
use teimoso_whatsapp::testkit::{Double, TOKEN};

/// `teimoso whatsapp` with these arguments for the double's account, its tokens in the environment.
fn command(double: &Double, args: &[&str]) -> Command {
    let mut command = teimoso(&[&["whatsapp"], args].concat());
    command
        .env("TEIMOSO_WHATSAPP_PROVIDER", double.fixture().name())
        .env("TEIMOSO_WHATSAPP_SERVER", double.url())
        .env("TEIMOSO_WHATSAPP_TOKEN", TOKEN)
        .env("TEIMOSO_WHATSAPP_CLIENT_TOKEN", format!("{TOKEN}-client"));
    if let Some(instance) = double.fixture().instance() {
        command.env("TEIMOSO_WHATSAPP_INSTANCE", instance);
    }
    command
}

/// Runs it to its end.
fn whatsapp(double: &Double, args: &[&str]) -> Ended {
    let ended = ended(command(double, args).output().expect("the binary runs"));
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!shown.contains(TOKEN), "a token is shown: {shown}");
    ended
}

/// The one object on stdout.
fn object(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}
