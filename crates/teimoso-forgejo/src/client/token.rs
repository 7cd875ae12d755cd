//! The token, which is shown to nobody but the server; absent: where it is read from.

use std::fmt;

use http::HeaderValue;

/// An access token of Forgejo.
#[derive(Clone)]
pub struct Token(HeaderValue);

/// Why a text cannot be a token; it never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidToken {
    /// There is none.
    Missing,
    /// It holds a blank or a character that no header can carry: the server would read another token.
    Malformed,
}

impl Token {
    /// Takes a token; white space around it, such as the line end of a file, is dropped.
    ///
    /// # Errors
    ///
    /// Nothing is left, or what is left is not one word of visible ASCII.
    pub fn new(text: &str) -> Result<Self, InvalidToken> {
        let text = text.trim();
        if text.is_empty() {
            return Err(InvalidToken::Missing);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidToken::Malformed);
        }
        let value = HeaderValue::try_from(format!("token {text}")).map_err(|_| InvalidToken::Malformed)?;
        Ok(Self(value))
    }

    pub(super) fn authorization(&self) -> HeaderValue {
        let mut value = self.0.clone();
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

impl fmt::Display for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "there is no token",
            Self::Malformed => "the token is not one word of visible characters",
        })
    }
}

impl std::error::Error for InvalidToken {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_is_never_shown() {
        let token = Token::new(" s3cret\r\n").unwrap();
        assert_eq!(token.authorization().to_str().unwrap(), "token s3cret");
        assert!(token.authorization().is_sensitive());
        assert_eq!(format!("{token:?}"), "Token(***)");
    }

    #[test]
    fn what_the_server_would_read_otherwise_is_refused() {
        assert_eq!(Token::new(" \n").unwrap_err(), InvalidToken::Missing);
        for text in ["two words", "tab\tbed", "líne", "nul\0"] {
            assert_eq!(Token::new(text).unwrap_err(), InvalidToken::Malformed, "{text:?}");
        }
    }
}
