//! Patterns of the contexts of checks; absent: anything but `*`.

use std::fmt;
use std::str::FromStr;

/// A context, where `*` stands for any characters: `automerge / *`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextPattern(String);

/// A pattern without a character, or of `*` alone, which would leave out every check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPattern;

impl ContextPattern {
    /// Whether a context is meant.
    #[must_use]
    pub fn fits(&self, context: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(rest) = parts.next().and_then(|first| context.strip_prefix(first)) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        // Each part in the middle at its first place: that leaves the most for those after it.
        let rest = parts.try_fold(rest, |rest, part| rest.find(part).map(|at| &rest[at + part.len()..]));
        rest.is_some_and(|rest| rest.ends_with(last))
    }
}

impl FromStr for ContextPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        match text.chars().all(|char| char == '*' || char.is_whitespace()) {
            true => Err(InvalidPattern),
            false => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pattern must leave some checks to count, such as 'automerge / *'")
    }
}

impl std::error::Error for InvalidPattern {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_all_else_for_itself() {
        let fits = |pattern: &str, context| pattern.parse::<ContextPattern>().unwrap().fits(context);
        for (pattern, context) in [
            ("ci", "ci"),
            ("ci / *", "ci / build (push)"),
            ("ci / *", "ci / "),
            ("* (push)", "ci / build (push)"),
            ("ci*build*", "ci / build / build (push)"),
            ("a*b*c", "abbc"),
        ] {
            assert!(fits(pattern, context), "{pattern} {context}");
        }
        for (pattern, context) in
            [("ci", "ci2"), ("ci / *", "ci /"), ("a*a", "a"), ("*b", "bc"), ("a*b*c", "acb"), ("[ab]", "a")]
        {
            assert!(!fits(pattern, context), "{pattern} {context}");
        }
    }

    #[test]
    fn a_pattern_that_leaves_nothing_is_refused() {
        for text in ["", "*", "**", " * "] {
            assert_eq!(text.parse::<ContextPattern>(), Err(InvalidPattern), "{text:?}");
        }
    }
}
