//! The known name that a wrong one was probably meant to be. Deliberately absent: any language but ASCII names.

/// The candidate with the smallest edit distance, or none that resembles `wrong`: more than half of its
/// letters would have to change.
pub(crate) fn nearest<'a>(wrong: &str, candidates: &[&'a str]) -> Option<&'a str> {
    // A longer text is no typing error, and its distance would cost time that an attacker chooses.
    if wrong.len() > 64 {
        return None;
    }
    let scored = candidates.iter().map(|candidate| (distance(wrong, candidate), *candidate));
    let (distance, best) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance * 2 <= wrong.len().max(best.len())).then_some(best)
}

/// "; did you mean `x`?" or, without a resemblance, the whole list.
pub(crate) fn suggestion(wrong: &str, candidates: &[&str]) -> String {
    match nearest(wrong, candidates) {
        Some(best) => format!("did you mean `{best}`?"),
        None => format!("known are {}", candidates.join(", ")),
    }
}

/// Edit distance over bytes: a letter inserted, left out or replaced, or two neighbours swapped, is one edit
/// (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut edits = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                edits = edits.min(before_last[j - 2] + 1);
            }
            row.push(edits);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["url", "type", "payload", "idempotency_key"];

    #[test]
    fn a_typing_error_finds_its_name() {
        assert_eq!(nearest("playload", NAMES), Some("payload"));
        assert_eq!(nearest("idempotencyKey", NAMES), Some("idempotency_key"));
        assert_eq!(nearest("uri", NAMES), Some("url"));
        assert_eq!(nearest("ulr", NAMES), Some("url"));
        assert_eq!(nearest("tpye", NAMES), Some("type"));
    }

    #[test]
    fn edits_are_counted_one_by_one() {
        let cases =
            [("", "", 0), ("", "ab", 2), ("ab", "ba", 1), ("abc", "acb", 1), ("kitten", "sitting", 3)];
        for (a, b, edits) in cases {
            assert_eq!((distance(a, b), distance(b, a)), (edits, edits), "{a} {b}");
        }
    }

    #[test]
    fn a_stranger_finds_the_list() {
        assert_eq!(nearest("zzzzzz", NAMES), None);
        assert_eq!(suggestion("zzzzzz", NAMES), "known are url, type, payload, idempotency_key");
        assert_eq!(nearest(&"x".repeat(100_000), NAMES), None);
    }
}
