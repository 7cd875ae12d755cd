//! `teimoso forgejo` from outside: the real binary against a Forgejo in miniature, and exit codes to rely on.

mod automerge;
mod docs;
mod issues;
mod pulls;
mod refusals;
#[path = "../support/mod.rs"]
mod support;

use std::process::Command;

use support::{Ended, ended, teimoso};
use teimoso_forgejo::testkit::{Forge, TOKEN};

/// `teimoso forgejo` with these words, at this Forgejo, with its token.
fn command(forge: &Forge, words: &str) -> Command {
    let mut args = vec!["forgejo"];
    args.extend(words.split(' '));
    let mut command = teimoso(&args);
    command.env("TEIMOSO_FORGEJO_URL", forge.url()).env("TEIMOSO_FORGEJO_TOKEN", TOKEN);
    command
}

/// The same, run to its end; the token is in none of its words.
fn forgejo(forge: &Forge, words: &str) -> Ended {
    let ended = ended(command(forge, words).output().expect("the binary runs"));
    assert!(!ended.stdout.contains(TOKEN) && !ended.stderr.contains(TOKEN));
    ended
}

/// A Forgejo whose pull request 7 is green.
fn green() -> Forge {
    let forge = Forge::start();
    forge.change(|state| state.report("ci / build", "success"));
    forge
}
