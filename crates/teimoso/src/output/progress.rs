//! How far a long job is: a bar on a terminal, a line now and then elsewhere.
//! Deliberately absent: the words, and anything on stdout; a job that prints as it goes tells its progress by lines.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Cells of the bar.
const BAR_CELLS: u64 = 30;

/// A progress display on stderr.
#[derive(Debug)]
pub struct Progress {
    terminal: bool,
    told: Instant,
    drawn: bool,
}

impl Progress {
    /// One that begins at `now`; nothing is shown yet.
    #[must_use]
    pub fn new(now: Instant) -> Progress {
        Progress { terminal: io::stderr().is_terminal(), told: now, drawn: false }
    }

    /// Shows that `done` of `of` are over, in these words.
    pub fn show(&mut self, words: &str, done: u64, of: u64, now: Instant) {
        if self.terminal {
            self.drawn = true;
            write(&format!("\r{} {words}\x1b[K", bar(done, of)));
        } else if now.saturating_duration_since(self.told) >= LINE_EVERY {
            self.told = now;
            write(&format!("{words}\n"));
        }
    }

    /// Takes the bar away, so that the next line stands alone.
    pub fn finish(&mut self) {
        if std::mem::take(&mut self.drawn) {
            write("\r\x1b[K");
        }
    }
}

/// If stderr cannot be written there is nobody to tell.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _nobody = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

fn bar(done: u64, of: u64) -> String {
    let full = BAR_CELLS.saturating_mul(done.min(of)).checked_div(of).unwrap_or(BAR_CELLS);
    (0..BAR_CELLS).map(|cell| if cell < full { '#' } else { '.' }).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_leaves_its_cells() {
        assert_eq!(bar(0, 3), ".".repeat(30));
        assert_eq!(bar(1, 3), "#".repeat(10) + &".".repeat(20));
        assert_eq!(bar(7, 3), "#".repeat(30));
        assert_eq!(bar(0, 0), "#".repeat(30));
    }
}
