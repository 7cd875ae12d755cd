//! What arguments point at: files and stdin, each within a bound. Deliberately absent: what it is for.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::exit::{CliError, Exit};

/// The largest file that is read, 256 MiB: a body is held in memory to be sent again.
const INPUT_MAX_BYTES: u64 = 256 << 20;

/// Reads files, and stdin once.
#[derive(Debug, Default)]
pub(in crate::commands) struct Input {
    /// The flag that has read stdin.
    stdin_taken: Option<&'static str>,
}

impl Input {
    /// All of a file, or of stdin for `-`. `flag` is the one that asks.
    ///
    /// # Errors
    /// It cannot be read or is too long; or stdin was read before.
    pub(in crate::commands) fn read(&mut self, name: &str, flag: &'static str) -> Result<Vec<u8>, CliError> {
        if name == "-" {
            return match self.stdin_taken.replace(flag) {
                None => read(io::stdin().lock(), "stdin"),
                Some(before) => Err(CliError::usage(format!("{before} and {flag} cannot both read stdin"))),
            };
        }
        if name.is_empty() {
            return Err(CliError::usage(format!("{flag}: a file name is missing after @")));
        }
        read_file(Path::new(name))
    }
}

/// All of a file.
///
/// # Errors
/// It cannot be read or is too long.
pub(in crate::commands) fn read_file(path: &Path) -> Result<Vec<u8>, CliError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
    read(file, &name)
}

/// The text of a token: that of the file, else that of the variable, which may hold none.
///
/// # Errors
/// The file cannot be read: exit 4, for without its token nothing is sent (S1.9).
pub(in crate::commands) fn token_text(file: Option<&Path>, variable: &str) -> Result<String, CliError> {
    let Some(path) = file else { return Ok(std::env::var(variable).unwrap_or_default()) };
    let bytes = read_file(path).map_err(|unread| CliError { code: Exit::AUTHENTICATION, ..unread })?;
    // What is no text is no token either, and is refused as one.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read(source: impl Read, name: &str) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = source.take(INPUT_MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(name, &error))?;
    if bytes.len() as u64 > INPUT_MAX_BYTES {
        return Err(CliError::failure(format!("{name} is longer than {INPUT_MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

fn unreadable(name: &str, error: &io::Error) -> CliError {
    CliError::failure(format!("cannot read {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stdin_can_be_asked_for_once() {
        let mut input = Input { stdin_taken: Some("--data") };
        let error = input.read("-", "--header").expect_err("taken");
        assert_eq!(error, CliError::usage("--data and --header cannot both read stdin"));
    }

    #[test]
    fn a_missing_file_is_named_and_a_missing_name_is_not_a_file() {
        let mut input = Input::default();
        assert!(input.read("/nowhere/x", "--data").expect_err("no file").sentence.contains("/nowhere/x"));
        let error = input.read("", "--data").expect_err("no name");
        assert_eq!(error, CliError::usage("--data: a file name is missing after @"));
    }
}
