//! A set of HTTP status codes that are worth another try; absent: what each code means.

use std::fmt;

/// A set of client and server error codes (400–599). Successes and redirects cannot be in it: the first are never
/// repeated, the second are never followed from here. An answer of 600–999 counts as a 500 (RFC 9110 §15): it is retried
/// where 500 is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StatusSet {
    /// One bit per code, counted from [`LOWEST`].
    bits: [u64; WORDS],
}

const LOWEST: u16 = 400;
const HIGHEST: u16 = 599;
const WORDS: usize = 4;

impl StatusSet {
    /// The empty set.
    pub const EMPTY: Self = Self { bits: [0; WORDS] };

    /// The set of the given codes, or `None` when one lies outside 400–599.
    pub fn of(codes: &[u16]) -> Option<Self> {
        let all_errors = codes.iter().all(|code| (LOWEST..=HIGHEST).contains(code));
        all_errors.then(|| Self::EMPTY.with(codes))
    }

    /// This set and every server error, 500–599.
    pub const fn with_all_5xx(mut self) -> Self {
        let mut code = 500;
        while code <= HIGHEST {
            self = self.with(&[code]);
            code += 1;
        }
        self
    }

    /// This set and the given codes; codes outside 400–599 are left out.
    pub(crate) const fn with(mut self, codes: &[u16]) -> Self {
        let mut i = 0;
        while i < codes.len() {
            if codes[i] >= LOWEST && codes[i] <= HIGHEST {
                let offset = codes[i] - LOWEST;
                self.bits[(offset / 64) as usize] |= 1 << (offset % 64);
            }
            i += 1;
        }
        self
    }

    /// Whether the code is in the set.
    pub const fn contains(self, code: u16) -> bool {
        if code < LOWEST || code > HIGHEST {
            return false;
        }
        let offset = code - LOWEST;
        self.bits[(offset / 64) as usize] & (1 << (offset % 64)) != 0
    }

    /// The codes, ascending.
    pub fn codes(self) -> impl Iterator<Item = u16> {
        (LOWEST..=HIGHEST).filter(move |code| self.contains(*code))
    }
}

/// The code whose rule holds for `code`: 600–999, which no class has, are as good as 500 (RFC 9110 §15).
pub(crate) const fn ruling(code: u16) -> u16 {
    match code {
        600..=999 => 500,
        _ => code,
    }
}

impl fmt::Debug for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.codes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_error_statuses_can_be_worth_another_try() {
        assert_eq!(StatusSet::of(&[429, 200]), None);
        assert_eq!(StatusSet::of(&[302]), None);
        assert_eq!(StatusSet::of(&[399]), None);
        assert_eq!(StatusSet::of(&[600]), None);
        assert_eq!(StatusSet::of(&[]), Some(StatusSet::EMPTY));
    }

    #[test]
    fn a_set_holds_exactly_its_codes() {
        let set = StatusSet::of(&[599, 400, 463, 464, 429]).unwrap();
        assert_eq!(set.codes().collect::<Vec<_>>(), [400, 429, 463, 464, 599]);
        let held: Vec<u16> = (0..=u16::MAX).filter(|code| set.contains(*code)).collect();
        assert_eq!(held, [400, 429, 463, 464, 599]);
        assert_eq!(format!("{set:?}"), "{400, 429, 463, 464, 599}");
    }

    #[test]
    fn beyond_the_classes_500_rules() {
        assert_eq!([600, 700, 999].map(ruling), [500; 3]);
        assert_eq!([0, 199, 200, 404, 503, 599, 1_000].map(ruling), [0, 199, 200, 404, 503, 599, 1_000]);
    }

    #[test]
    fn all_5xx_is_one_hundred_codes() {
        let set = StatusSet::EMPTY.with_all_5xx();
        assert_eq!(set.codes().collect::<Vec<_>>(), (500..=599).collect::<Vec<_>>());
    }
}
