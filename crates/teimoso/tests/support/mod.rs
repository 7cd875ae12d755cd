//! The real binary, run with nothing of this machine's environment that could change its words.

use std::process::{Command, Output, Stdio};

/// The binary with these arguments, English, without a server, colours or a terminal's width.
pub fn teimoso(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teimoso"));
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TEIMOSO_") {
            command.env_remove(name);
        }
    }
    for name in ["LC_ALL", "LC_MESSAGES", "LANG"] {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1").env("COLUMNS", "100");
    command
}

/// What it wrote and how it ended.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The words of an output.
pub fn ended(output: Output) -> Ended {
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let code = output.status.code().expect("it was not killed");
    Ended { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}
