//! How the process ends: the exit codes, and the error a person reads before one of them.
//! Deliberately absent: wording of particular errors, which stands where they arise.

use std::fmt;
use std::process::ExitCode;

/// An exit code. The numbers are part of the interface: scripts branch on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Exit(u8);

impl Exit {
    /// It worked.
    pub const OK: Exit = Exit(0);
    /// It failed, for any reason without a code of its own.
    pub const FAILURE: Exit = Exit(1);
    /// The command line makes no sense; nothing was done.
    pub const USAGE: Exit = Exit(2);
    /// What was asked for does not exist.
    pub const NOT_FOUND: Exit = Exit(3);
    /// There was no token or password where one is needed, or it was rejected.
    pub const AUTHENTICATION: Exit = Exit(4);
    /// Of several things, some worked and some did not.
    pub const PARTLY_FAILED: Exit = Exit(5);
    /// Retries, or the time to wait, ran out.
    pub const EXHAUSTED: Exit = Exit(6);
    /// It may or may not have taken effect; only a look at the other side can tell.
    pub const UNKNOWN_OUTCOME: Exit = Exit(7);
    /// `pr checks`: some are not over, and none has failed.
    pub const PENDING: Exit = Exit(8);
    /// Stopped by SIGINT (128 + 2).
    pub const INTERRUPTED: Exit = Exit(130);
    /// Stopped by SIGTERM (128 + 15).
    pub const TERMINATED: Exit = Exit(143);

    /// The number the shell sees.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The code for a set of things of which `failed` out of `all` did not work.
    #[must_use]
    pub const fn of_many(all: usize, failed: usize) -> Exit {
        match failed {
            0 => Exit::OK,
            _ if failed < all => Exit::PARTLY_FAILED,
            _ => Exit::FAILURE,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.0)
    }
}

/// Why a command ends early: what happened, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    /// How the process ends.
    pub code: Exit,
    /// What happened, in one sentence without a full stop; empty when nothing is to be said.
    pub sentence: String,
    /// What to try next, if there is anything to try.
    pub next_step: Option<String>,
}

impl CliError {
    /// An error of this code.
    #[must_use]
    pub fn new(code: Exit, sentence: impl Into<String>) -> CliError {
        CliError { code, sentence: sentence.into(), next_step: None }
    }

    /// A failure without a code of its own.
    #[must_use]
    pub fn failure(sentence: impl Into<String>) -> CliError {
        CliError::new(Exit::FAILURE, sentence)
    }

    /// A command line that makes no sense.
    #[must_use]
    pub fn usage(sentence: impl Into<String>) -> CliError {
        CliError::new(Exit::USAGE, sentence)
    }

    /// The end of a command whose reader has left (`teimoso events list | head -1`): nothing is said.
    #[must_use]
    pub fn reader_left() -> CliError {
        CliError::new(Exit::OK, "")
    }

    /// The same error with advice.
    #[must_use]
    pub fn with_next_step(mut self, next_step: impl Into<String>) -> CliError {
        self.next_step = Some(next_step.into());
        self
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "teimoso: {}", self.sentence)?;
        match &self.next_step {
            Some(next_step) => write!(formatter, "\n  {next_step}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CliError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_documented_ones() {
        let numbers = [
            (Exit::OK, 0),
            (Exit::FAILURE, 1),
            (Exit::USAGE, 2),
            (Exit::NOT_FOUND, 3),
            (Exit::AUTHENTICATION, 4),
            (Exit::PARTLY_FAILED, 5),
            (Exit::EXHAUSTED, 6),
            (Exit::UNKNOWN_OUTCOME, 7),
            (Exit::PENDING, 8),
            (Exit::INTERRUPTED, 130),
            (Exit::TERMINATED, 143),
        ];
        for (exit, number) in numbers {
            assert_eq!(exit.number(), number);
        }
    }

    #[test]
    fn of_many_tells_none_some_and_all_apart() {
        assert_eq!(Exit::of_many(0, 0), Exit::OK);
        assert_eq!(Exit::of_many(3, 0), Exit::OK);
        assert_eq!(Exit::of_many(3, 1), Exit::PARTLY_FAILED);
        assert_eq!(Exit::of_many(3, 3), Exit::FAILURE);
    }

    #[test]
    fn an_error_is_a_sentence_and_a_next_step() {
        let error = CliError::failure("the port is taken").with_next_step("choose another with --listen");
        assert_eq!(error.to_string(), "teimoso: the port is taken\n  choose another with --listen");
    }
}
