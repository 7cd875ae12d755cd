//! One line on a terminal that is written over until something is said; nothing elsewhere.
//! Deliberately absent: the words, and a time of its own at which it changes.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::Output;
use crate::messages::Message;

/// The line, and whether it stands there.
#[derive(Debug)]
pub struct Live {
    output: Output,
    terminal: bool,
    drawn: AtomicBool,
}

impl Live {
    /// Nothing is shown yet.
    #[must_use]
    pub fn new(output: Output) -> Live {
        Live { output, terminal: io::stderr().is_terminal(), drawn: AtomicBool::new(false) }
    }

    /// Shows these words in place of the last.
    pub fn show(&self, message: &Message<'_>) {
        if self.terminal {
            self.drawn.store(true, Ordering::Relaxed);
            let words = message.text(self.output.language);
            write(&format!("\r{}\x1b[K", words.lines().next().unwrap_or_default()));
        }
    }

    /// Says something for good, on a line of its own.
    pub fn say(&self, message: &Message<'_>) {
        self.clear();
        self.output.say(message);
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.drawn.swap(false, Ordering::Relaxed) {
            write("\r\x1b[K");
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

/// If stderr cannot be written there is nobody to tell.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _nobody = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
