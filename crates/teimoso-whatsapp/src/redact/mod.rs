//! Takes out of a provider's words what must not be shown again: tokens, and the message that it echoes. Absent:
//! headers and URLs, which never get as far as the words.

mod echo;

use crate::account::Account;

/// What stands where something was taken out.
const TAKEN_OUT: &str = "[redacted]";

/// The longest text of a provider that is kept, in characters.
pub(crate) const WORDS_CHARS_MAX: usize = 300;

/// A text of fewer characters is taken out only where it stands alone: every `a` of an answer is no echo of it.
const ALONE_CHARS_MAX: usize = 3;

/// How many digits at its end make a number: providers add a digit before them, or leave one out.
const NUMBER_DIGITS: usize = 8;

/// Texts that are not to be shown.
pub(crate) struct Redactor {
    /// The longest first, so that no part of one is left behind.
    hidden: Vec<String>,
    /// The ends of numbers.
    numbers: Vec<String>,
}

impl Redactor {
    /// For the tokens of an account, and whatever else the request says in confidence.
    pub(crate) fn new(account: &Account, confidential: &[&str]) -> Self {
        let tokens = [Some(account.token()), account.client_token()];
        let tokens = tokens.into_iter().flatten().map(|secret| secret.reveal());
        let all = tokens.chain(confidential.iter().map(|text| text.trim()));
        let mut hidden: Vec<String> = all.filter(|text| !text.is_empty()).map(str::to_owned).collect();
        hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let numbers = confidential.iter().filter_map(|text| end_of_number(text)).map(str::to_owned).collect();
        Self { hidden, numbers }
    }

    /// The text without them, and no longer than [`WORDS_CHARS_MAX`].
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for hidden in &self.hidden {
            let alone = hidden.chars().count() <= ALONE_CHARS_MAX;
            clean = echo::replaced(&clean, hidden, alone, TAKEN_OUT);
        }
        let clean = without_runs(&clean, |letter| letter.is_ascii_digit(), |run| self.is_number(run));
        let of_a_file = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '=');
        let clean = without_runs(&clean, of_a_file, |run| run.len() >= FILE_CHARS_MIN);
        match clean.char_indices().nth(WORDS_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &clean[..end]),
            None => clean,
        }
    }

    fn is_number(&self, run: &str) -> bool {
        self.numbers.iter().any(|end| run.ends_with(end.as_str()))
    }
}

/// The last digits of a number.
fn end_of_number(text: &str) -> Option<&str> {
    let is_number = text.len() >= NUMBER_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    text.get(text.len().checked_sub(NUMBER_DIGITS)?..).filter(|_| is_number)
}

/// The shortest run of base64 that is taken for a file.
const FILE_CHARS_MIN: usize = 80;

/// The text without those runs of such letters that are to be taken out.
fn without_runs(text: &str, of_a_run: impl Fn(char) -> bool, is_taken_out: impl Fn(&str) -> bool) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let is = of_a_run(letter);
        let end = rest.find(|letter| of_a_run(letter) != is).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        clean.push_str(if is && is_taken_out(run) { TAKEN_OUT } else { run });
        rest = after;
    }
    clean
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
    fn a_number_that_the_provider_changed_is_taken_out_too() {
        let clean =
            redactor(&["5511999998888"]).clean("551199998888@s.whatsapp.net, 5511999998887 at 1789136700");
        assert_eq!(clean, "[redacted]@s.whatsapp.net, 5511999998887 at 1789136700");
    }

    #[test]
    fn a_short_text_is_taken_out_where_it_stands_alone() {
        let clean = redactor(&[" ok "]).clean("cannot send `ok` to him: broken token");
        assert_eq!(clean, "cannot send `[redacted]` to him: broken token");
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
