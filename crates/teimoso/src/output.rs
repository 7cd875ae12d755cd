//! Where a command's words go: data to stdout, everything else to stderr.
//! Deliberately absent: the words.

pub mod live;
pub mod progress;
pub mod table;

use std::io::{self, IsTerminal, Write};

use crate::exit::CliError;
use crate::messages::{Language, Message};

/// The two channels of a command, and the language spoken on the second.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// The language of messages.
    pub language: Language,
}

impl Output {
    /// Writes text to stdout as it is, and sees that it leaves at once.
    ///
    /// # Errors
    /// [`CliError::reader_left`] when nobody reads any more; a failure when stdout cannot be written (a full disk).
    pub fn data(self, text: &str) -> Result<(), CliError> {
        let mut stdout = anstream::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        written.map_err(|error| stdout_error(&error))
    }

    /// Writes bytes to stdout exactly as they are.
    ///
    /// # Errors
    /// As [`Output::data`].
    pub fn bytes(self, bytes: &[u8]) -> Result<(), CliError> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        written.map_err(|error| stdout_error(&error))
    }

    /// Writes a line for a person to stderr. If it cannot be written there is nobody to tell.
    pub fn say(self, message: &Message<'_>) {
        self.say_line(&message.text(self.language));
    }

    fn say_line(self, words: &str) {
        self.say_raw(&format!("{words}\n"));
    }

    /// Writes a line after an interruption: a terminal has shown `^C` where its cursor stood.
    pub fn say_apart(self, words: &str) {
        if io::stderr().is_terminal() {
            self.say_raw("\n");
        }
        self.say_line(words);
    }

    /// Says on stderr why a command ended early, if there is anything to say.
    pub fn report(self, error: &CliError) {
        if !error.sentence.is_empty() {
            self.say_raw(&format!("{error}\n"));
        }
    }

    /// Asks a person at the terminal, and takes `y`, `yes`, `s` or `sim` for a yes. The waiting can be given up.
    pub async fn ask(self, message: &Message<'_>) -> bool {
        self.say_raw(&message.text(self.language));
        let answer = tokio::task::spawn_blocking(|| {
            let mut answer = String::new();
            io::stdin().read_line(&mut answer).is_ok_and(|_| is_yes(&answer))
        });
        answer.await.unwrap_or(false)
    }

    fn say_raw(self, text: &str) {
        let _nobody = anstream::stderr().lock().write_all(text.as_bytes());
    }

    /// Whether a person can be asked: both stdin and stderr are terminals.
    #[must_use]
    pub fn can_ask(self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes" | "s" | "sim")
}

fn stdout_error(error: &io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => CliError::reader_left(),
        _ => CliError::failure(format!("cannot write to stdout: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for yes in ["y\n", "YES", " s ", "sim\r\n"] {
            assert!(is_yes(yes), "{yes}");
        }
        for no in ["", "\n", "n", "yep", "não"] {
            assert!(!is_yes(no), "{no}");
        }
    }
}
