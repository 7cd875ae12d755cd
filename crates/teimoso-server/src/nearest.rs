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

/// Levenshtein distance over bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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
    }

    #[test]
    fn a_stranger_finds_the_list() {
        assert_eq!(nearest("zzzzzz", NAMES), None);
        assert_eq!(suggestion("zzzzzz", NAMES), "known are url, type, payload, idempotency_key");
        assert_eq!(nearest(&"x".repeat(100_000), NAMES), None);
    }
}
