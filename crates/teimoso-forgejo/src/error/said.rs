//! What a server says in the body of an answer that is no success, in all the shapes that it comes in; absent: any
//! decision by what it says.

use std::fmt;

use serde_json::Value;

/// The longest text that is kept, in characters.
const TEXT_MAX: usize = 500;

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Nothing: an empty body, an empty message.
    Nothing,
    /// Its message: `{"message": …}`, with the errors beside it where they say more.
    Message(String),
    /// What Git said: the structure that a failed merge is answered with, `{"StdErr": …}`.
    Git(String),
    /// A web page of this title: a proxy's, or a crash of the server's.
    Page(String),
    /// Anything else, as it came.
    Other(String),
}

impl Said {
    /// Reads a body.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        if text.is_empty() {
            return Self::Nothing;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(object)) => of_object(&Value::Object(object), text),
            Ok(_) => Self::Other(short(text)),
            Err(_) if text.starts_with('<') => Self::Page(title(text)),
            Err(_) => Self::Other(short(text)),
        }
    }

    /// The text, if there is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Message(text) | Self::Git(text) | Self::Page(text) | Self::Other(text) => Some(text),
        }
    }

    /// Whether it contains these words; the server's sentences are no promise, so that nothing may depend on this alone.
    #[must_use]
    pub(crate) fn mentions(&self, words: &str) -> bool {
        self.text().is_some_and(|text| text.to_ascii_lowercase().contains(words))
    }
}

/// Names of fields that only the structures of Git's failures have.
const OF_GIT: [&str; 3] = ["StdErr", "StdOut", "Style"];

fn of_object(object: &Value, text: &str) -> Said {
    if OF_GIT.iter().any(|field| object.get(field).is_some()) {
        return Said::Git(of_git(object));
    }
    let message = object.get("message").and_then(Value::as_str).unwrap_or_default().trim();
    let errors = object.get("errors").and_then(Value::as_array).map(|errors| {
        let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
        errors.join("; ")
    });
    match errors.filter(|errors| !errors.is_empty()) {
        // The message beside them is a formula, and in any language.
        Some(errors) => Said::Message(short(&errors)),
        None if !message.is_empty() => Said::Message(short(message)),
        None if object.get("message").is_some() => Said::Nothing,
        None => Said::Other(short(text)),
    }
}

fn of_git(object: &Value) -> String {
    let lines = |field| {
        let text = object.get(field).and_then(Value::as_str).unwrap_or_default();
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    };
    let said = [lines("StdErr"), lines("StdOut")].into_iter().find(|said| !said.is_empty());
    short(&said.unwrap_or_else(|| "a conflict".to_owned()))
}

/// The title of a page, else its first words.
fn title(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let from = lower.find("<title").and_then(|at| lower[at..].find('>').map(|end| at + end + 1));
    let title = from.and_then(|from| lower[from..].find('<').map(|end| page[from..from + end].trim()));
    short(title.filter(|title| !title.is_empty()).unwrap_or("without a title"))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("the server gives no reason"),
            Self::Message(text) | Self::Other(text) => f.write_str(text),
            Self::Git(text) => write!(f, "git says: {text}"),
            Self::Page(title) => write!(f, "a web page, not the API ({title})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_body_gives_a_sentence() {
        let cases = [
            ("", "the server gives no reason"),
            (" \n", "the server gives no reason"),
            (r#"{"message":"","url":"u"}"#, "the server gives no reason"),
            (r#"{"message":"head out of date","url":"u"}"#, "head out of date"),
            (r#"{"message":"formula","errors":null}"#, "formula"),
            (r#"{"message":"formula","errors":["a","b"]}"#, "a; b"),
            (
                r#"{"Style":"merge","StdOut":"Auto-merging a\nCONFLICT (content): a\n","StdErr":"","Err":{}}"#,
                "git says: Auto-merging a; CONFLICT (content): a",
            ),
            (r#"{"Style":"rebase","StdOut":"","StdErr":"","Err":{}}"#, "git says: a conflict"),
            (r#"{"ID":1,"IssueID":2}"#, r#"{"ID":1,"IssueID":2}"#),
            ("<html><head><TITLE>502 Bad Gateway</title>", "a web page, not the API (502 Bad Gateway)"),
            ("<p>", "a web page, not the API (without a title)"),
            ("null", "null"),
            ("nginx is down", "nginx is down"),
        ];
        for (body, sentence) in cases {
            assert_eq!(Said::read(body.as_bytes()).to_string(), sentence, "{body}");
        }
        assert_eq!(Said::read(b"\xff\xfe").to_string(), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let said = Said::read("é".repeat(600).as_bytes());
        assert_eq!(said.text().unwrap().chars().count(), TEXT_MAX + 1);
    }

    #[test]
    fn odd_pages_do_no_harm() {
        for page in ["<title", "<title>", "<title>İ</title>", "<İ><title>x", "<"] {
            assert!(matches!(Said::read(page.as_bytes()), Said::Page(_)), "{page}");
        }
    }
}
