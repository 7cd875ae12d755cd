//! Finds a text in another as it is, or escaped as JSON (RFC 8259 §7), URLs (RFC 3986 §2.1) and forms do, each letter in
//! its own way. Absent: anything that is to be hidden.

/// `text` with `instead` in the place of every echo of `hidden`; only of those between which and their neighbours a word
/// ends, if it must stand `alone`.
pub(super) fn replaced(text: &str, hidden: &str, alone: bool, instead: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let stands =
            |end| !alone || !(clean.ends_with(is_of_a_word) || rest[end..].starts_with(is_of_a_word));
        match echo_len(rest.as_bytes(), hidden.as_bytes()).filter(|end| stands(*end)) {
            Some(end) => {
                clean.push_str(instead);
                rest = &rest[end..];
            }
            None => {
                clean.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    clean
}

fn is_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric()
}

/// How many bytes at the beginning of `text` are an echo of `hidden`, the longer one if there are two ways to read it.
/// They end between two characters.
fn echo_len(text: &[u8], hidden: &[u8]) -> Option<usize> {
    let as_it_is = text.starts_with(hidden).then_some(hidden.len());
    as_it_is.max(escaped_len(text, hidden))
}

fn escaped_len(text: &[u8], hidden: &[u8]) -> Option<usize> {
    let (mut at, mut rest) = (0, hidden);
    while !rest.is_empty() {
        let (used, told) = next(text.get(at..)?, rest)?;
        at += used;
        rest = &rest[told..];
    }
    Some(at)
}

/// How many bytes of `text` tell how many of `hidden`, of the first letter or byte.
fn next(text: &[u8], hidden: &[u8]) -> Option<(usize, usize)> {
    let escaped = match text {
        [b'%', hex @ ..] => number(hex, 2).map(|byte| (3, vec![byte as u8])),
        [b'\\', b'u', hex @ ..] => unicode(hex).map(|(used, letter)| (2 + used, utf8(letter))),
        [b'\\', letter, ..] => Some((2, vec![unescaped(*letter)])),
        [b'+', ..] => Some((1, vec![b' '])),
        _ => None,
    };
    let escaped = escaped.filter(|(_, bytes)| hidden.starts_with(bytes));
    let as_it_is = || (text.first()? == hidden.first()?).then_some((1, 1));
    escaped.map(|(used, bytes)| (used, bytes.len())).or_else(as_it_is)
}

/// The number in so many hexadecimal digits.
fn number(hex: &[u8], digits: usize) -> Option<u32> {
    let digits = hex.get(..digits)?;
    digits.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}

/// The letter in four digits, or in twice four with `\u` between them.
fn unicode(hex: &[u8]) -> Option<(usize, char)> {
    let first = number(hex, 4)?;
    if let Some(letter) = char::from_u32(first) {
        return Some((4, letter));
    }
    let second = number(hex.get(4..)?.strip_prefix(b"\\u")?, 4)?;
    let units = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    let letter = char::decode_utf16(units).next()?.ok()?;
    Some((10, letter))
}

fn utf8(letter: char) -> Vec<u8> {
    letter.to_string().into_bytes()
}

fn unescaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str, hidden: &str) -> String {
        replaced(text, hidden, false, "*")
    }

    #[test]
    fn a_letter_is_found_however_it_is_written() {
        let secret = "a-b/c+d é😀\"\\\n";
        let echoes = [
            secret,
            "a-b%2Fc%2Bd%20%C3%A9%F0%9F%98%80%22%5C%0A",
            "a%2Db%2fc%2bd+%c3%a9%f0%9f%98%80%22%5c%0a",
            r#"a-b\/c+d \u00e9\ud83d\ude00\"\\\n"#,
            r#"\u0061-b/c+d é😀\u0022\u005C\u000a"#,
        ];
        for echo in echoes {
            assert_eq!(hidden(&format!("<{echo}>"), secret), "<*>", "{echo}");
        }
    }

    #[test]
    fn what_only_begins_like_it_stays() {
        for text in
            ["a-", "a-%", "a-%2", "a-%zz", "a-\\", "a-\\u00", "a-\\ud83d", "a-\\ud83d\\u0041", "a%2Dé"]
        {
            assert_eq!(hidden(text, "a-b"), text, "{text}");
        }
        assert_eq!(hidden("%41 %%41", "%41"), "* %*");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_found_as_json_and_urls_write_it(secret in "\\PC{1,12}", before in "[<> ]{0,3}") {
            let json = serde_json::Value::from(secret.as_str()).to_string();
            let url = percent_encoding::utf8_percent_encode(&secret, percent_encoding::NON_ALPHANUMERIC);
            for echo in [secret.clone(), json[1..json.len() - 1].to_owned(), url.to_string()] {
                proptest::prop_assume!(!before.contains(&*secret) && !secret.starts_with(['<', '>', ' ', '*']));
                let clean = hidden(&format!("{before}{echo}"), &secret);
                // Two of the same letter may be told as two echoes.
                proptest::prop_assert!(clean.ends_with('*'), "{clean}");
                proptest::prop_assert_eq!(clean.trim_end_matches('*'), &before);
            }
        }
    }
}
