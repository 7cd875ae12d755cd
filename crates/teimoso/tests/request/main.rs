//! `teimoso request` from outside: the real binary, real sockets, exit codes that a script can rely on.

mod effect;
mod output;
mod peer;
mod redirects;
mod refusals;
mod retries;
mod signals;
#[path = "../support/mod.rs"]
mod support;

use support::{Ended, ended, teimoso};

/// Runs `teimoso request` with these arguments to its end.
fn request(args: &[&str]) -> Ended {
    ended(teimoso(&[&["request"], args].concat()).output().expect("the binary runs"))
}
