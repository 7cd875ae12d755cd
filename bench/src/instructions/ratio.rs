//! What our client takes in terms of a bare one, counted in the same run. Deliberately absent: anything written down:
//! the bound is a promise, and holds on every machine.

use std::fmt;

use crate::args::HotPath;
use crate::trouble::{Result, Trouble};

/// The most that the client may take of what hyper-util's takes.
const RATIO_MAX: f64 = 1.10;

/// The client's instructions by those of hyper-util's client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(f64);

impl Ratio {
    /// From the counts of one run; `None` unless both were counted.
    pub fn of(counts: &[(HotPath, u64)]) -> Option<Self> {
        let count = |wanted| counts.iter().find(|(path, _)| *path == wanted).map(|(_, count)| *count as f64);
        Some(Self(count(HotPath::Client)? / count(HotPath::HyperUtil)?.max(1.0)))
    }

    /// # Errors
    /// When the client takes more than it may.
    pub fn check(self) -> Result<()> {
        if self.0 <= RATIO_MAX {
            return Ok(());
        }
        let Self(ratio) = self;
        Err(Trouble::new(format!(
            "the client takes {ratio:.2} times the instructions of hyper-util's, and may take {RATIO_MAX:.2}"
        )))
    }
}

impl fmt::Display for Ratio {
    /// As a line of the table of counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| client / hyper-util | {:.2} | ≤ {RATIO_MAX:.2} | – |", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(ours: u64, bare: u64) -> Ratio {
        Ratio::of(&[(HotPath::HyperUtil, bare), (HotPath::Decide, 7), (HotPath::Client, ours)]).unwrap()
    }

    #[test]
    fn the_client_may_take_a_tenth_more_than_a_bare_one() {
        assert!(ratio(1_100, 1_000).check().is_ok());
        let error = ratio(1_150, 1_000).check().unwrap_err();
        let said = "the client takes 1.15 times the instructions of hyper-util's, and may take 1.10";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn a_ratio_needs_both_counts() {
        assert_eq!(Ratio::of(&[(HotPath::Client, 7)]), None);
        assert_eq!(Ratio::of(&[(HotPath::HyperUtil, 7), (HotPath::Attempt, 7)]), None);
        assert_eq!(ratio(900, 1_000).to_string(), "| client / hyper-util | 0.90 | ≤ 1.10 | – |");
    }
}
