//! Takes out of a provider's words what must not be shown again: tokens, and the message that it echoes. Absent:
//! headers and URLs, which never get as far as the words.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::account::Account;

/// What stands where something was taken out.
const TAKEN_OUT: &str = "[redacted]";

/// The longest text of a provider that is kept, in characters.
pub(crate) const WORDS_CHARS_MAX: usize = 300;

/// Texts that are not to be shown, the longest first, so that no part of one is left behind.
pub(crate) struct Redactor(Vec<String>);

impl Redactor {
    /// For the tokens of an account, and whatever else the request says in confidence.
    pub(crate) fn new(account: &Account, confidential: &[&str]) -> Self {
        let tokens = [Some(account.token()), account.client_token()];
        let tokens = tokens.into_iter().flatten().map(|secret| secret.reveal());
        let mut hidden: Vec<String> =
            tokens.chain(confidential.iter().copied()).flat_map(spellings).collect();
        hidden.retain(|text| !text.is_empty());
        hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
        hidden.dedup();
        Self(hidden)
    }

    /// The text without them, and no longer than [`WORDS_CHARS_MAX`].
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for hidden in &self.0 {
            if clean.contains(hidden.as_str()) {
                clean = clean.replace(hidden.as_str(), TAKEN_OUT);
            }
        }
        let clean = without_files(&clean);
        match clean.char_indices().nth(WORDS_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &clean[..end]),
            None => clean,
        }
    }
}

/// The shortest run of base64 that is taken for a file.
const FILE_CHARS_MIN: usize = 80;

/// The text without what looks like a file that comes back.
fn without_files(text: &str) -> String {
    let of_a_file = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=');
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let is = of_a_file(letter);
        let end = rest.find(|letter| of_a_file(letter) != is).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        clean.push_str(if is && run.len() >= FILE_CHARS_MIN { TAKEN_OUT } else { run });
        rest = after;
    }
    clean
}

/// A text as it may come back: as it is, as JSON escapes it, and as URLs do.
fn spellings(text: &str) -> [String; 3] {
    let json = serde_json::Value::from(text).to_string();
    let json = json.trim_matches('"').to_owned();
    [text.to_owned(), json, utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Secret, Settings};
    use crate::provider;

    fn redactor(confidential: &[&str]) -> Redactor {
        let settings = Settings {
            server: Some("http://127.0.0.1:9"),
            client_token: Some(Secret::new("cli+ent").expect("a token")),
            ..Settings::new(Secret::new("s3cret").expect("a token"))
        };
        let account = Account::new(provider("wuzapi").expect("known").facts(), settings).expect("complete");
        Redactor::new(&account, confidential)
    }

    #[test]
    fn tokens_and_the_message_are_taken_out_however_they_are_spelt() {
        let redactor = redactor(&["5511999998888", "a \"secret\"\nword"]);
        let echo = r#"cannot POST /token/s3cret?c=cli%2Bent to 5511999998888@c.us: a \"secret\"\nword"#;
        let clean = "cannot POST /token/[redacted]?c=[redacted] to [redacted]@c.us: [redacted]";
        assert_eq!(redactor.clean(echo), clean);
    }

    #[test]
    fn a_file_that_comes_back_is_taken_out() {
        let file = "iVBORw0KGgo+/9aZ".repeat(5);
        let clean = redactor(&[]).clean(&format!("cannot read data:image/png;base64,{file}=: é too short"));
        assert_eq!(clean, "cannot read data:image/png;base64,[redacted]: é too short");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let clean = redactor(&[]).clean(&"ã".repeat(WORDS_CHARS_MAX + 1));
        assert_eq!(clean, format!("{}…", "ã".repeat(WORDS_CHARS_MAX)));
    }
}
