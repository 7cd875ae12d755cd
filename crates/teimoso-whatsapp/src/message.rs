//! What is sent, and to whom: types that refuse what no provider could send; absent: files, which stand in `media.rs`,
//! and how each provider spells it.

use std::fmt;

use crate::media::MediaKind;

/// The longest text, in characters: WhatsApp's own limit for a message.
pub const TEXT_CHARS_MAX: usize = 65_536;

/// Why something cannot be sent to anybody. The text is lower case and repeats neither number nor text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidMessage {
    /// Not a phone number in international form.
    Recipient,
    /// Not an id of 8 to 64 letters, digits, `_` and `-`.
    Id,
    /// A text without a character.
    EmptyText,
    /// A text of more than [`TEXT_CHARS_MAX`] characters.
    LongText,
    /// A file without a byte.
    EmptyMedia,
    /// A file of more bytes than its kind may have.
    LargeMedia {
        /// Its kind.
        kind: MediaKind,
        /// How many bytes it has.
        bytes: usize,
    },
    /// Not a media type such as `image/png`.
    MediaType,
    /// Audio carries no caption.
    CaptionOfAudio,
    /// A file name with a separator, a quote or a control character.
    FileName,
}

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipient => f.write_str(
                "the number must be in international form, 8 to 15 digits from the country code on, such as \
                 5511999998888",
            ),
            Self::Id => f.write_str("an id is 8 to 64 letters, digits, _ and -"),
            Self::EmptyText => f.write_str("the text is empty"),
            Self::LongText => write!(f, "the text is longer than {TEXT_CHARS_MAX} characters"),
            Self::EmptyMedia => f.write_str("the file is empty"),
            Self::LargeMedia { kind, bytes } => {
                write!(f, "the file has {bytes} bytes; {kind} may have {}", kind.bytes_max())
            }
            Self::MediaType => f.write_str("a media type is two words and a slash, such as image/png"),
            Self::CaptionOfAudio => f.write_str("audio carries no caption; send it as a text of its own"),
            Self::FileName => {
                f.write_str("a file name holds no separator, no quote and no control character")
            }
        }
    }
}

impl std::error::Error for InvalidMessage {}

/// One phone number, in international form without the plus sign (E.164). It is not printed: it is somebody's.
#[derive(Clone, PartialEq, Eq)]
pub struct Recipient(String);

impl Recipient {
    /// Reads a number; one plus sign before it is dropped.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage::Recipient`] for anything but 8 to 15 digits that begin with a country code, which no zero does.
    pub fn parse(text: &str) -> Result<Self, InvalidMessage> {
        let text = text.trim();
        let digits = text.strip_prefix('+').unwrap_or(text);
        let valid = (8..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        if valid { Ok(Self(digits.to_owned())) } else { Err(InvalidMessage::Recipient) }
    }

    /// The digits.
    pub fn digits(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[recipient]")
    }
}

/// The id that a caller gives a message, where the provider carries one. The same on every attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageId(String);

impl MessageId {
    /// Takes an id.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage::Id`] for anything but 8 to 64 letters, digits, `_` and `-`.
    pub fn parse(text: &str) -> Result<Self, InvalidMessage> {
        let fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let valid = (8..=64).contains(&text.len()) && text.bytes().all(fit);
        if valid { Ok(Self(text.to_owned())) } else { Err(InvalidMessage::Id) }
    }

    /// An id as WhatsApp's own clients make them, `3EB0` and 18 hexadecimal digits, from two draws of 64 random bits.
    pub fn random(mut bits: impl FnMut() -> u64) -> Self {
        Self(format!("3EB0{:016X}{:02X}", bits(), bits() & 0xff))
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A text for one recipient. Neither is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    to: Recipient,
    text: String,
}

impl Text {
    /// Takes a text as it is.
    ///
    /// # Errors
    ///
    /// A text that is empty, or longer than [`TEXT_CHARS_MAX`].
    pub fn new(to: Recipient, text: &str) -> Result<Self, InvalidMessage> {
        match text.chars().nth(TEXT_CHARS_MAX) {
            Some(_) => Err(InvalidMessage::LongText),
            None if text.trim().is_empty() => Err(InvalidMessage::EmptyText),
            None => Ok(Self { to, text: text.to_owned() }),
        }
    }

    /// To whom.
    pub fn to(&self) -> &Recipient {
        &self.to
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("chars", &self.text.chars().count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::Media;

    fn to() -> Recipient {
        Recipient::parse("+5511999998888").expect("a number")
    }

    #[test]
    fn a_number_in_another_form_is_refused_with_the_expected_one() {
        assert_eq!(to().digits(), "5511999998888");
        let wrong = [
            "",
            "+",
            "11 99999-8888",
            "(11)999998888",
            "999",
            "0119999988",
            "5511999998888@c.us",
            "５５１１９９９９",
        ];
        for number in wrong {
            assert_eq!(Recipient::parse(number), Err(InvalidMessage::Recipient), "{number}");
        }
        assert!(InvalidMessage::Recipient.to_string().ends_with("such as 5511999998888"));
    }

    #[test]
    fn texts_have_a_character_and_an_end() {
        assert_eq!(Text::new(to(), " \n"), Err(InvalidMessage::EmptyText));
        assert_eq!(Text::new(to(), &"ã".repeat(TEXT_CHARS_MAX)).map(|_| ()), Ok(()));
        assert_eq!(Text::new(to(), &"ã".repeat(TEXT_CHARS_MAX + 1)), Err(InvalidMessage::LongText));
    }

    #[test]
    fn ids_are_those_of_whatsapp_or_a_callers_own() {
        assert_eq!(MessageId::random(|| 0xab).text(), "3EB000000000000000ABAB");
        assert_eq!(MessageId::parse("pedido-1234").map(|id| id.to_string()), Ok("pedido-1234".to_owned()));
        for id in ["short", "with space", "a/b/c/d/e", &"x".repeat(65)] {
            assert_eq!(MessageId::parse(id), Err(InvalidMessage::Id), "{id}");
        }
    }

    #[test]
    fn neither_number_nor_text_is_printed() {
        let text = Text::new(to(), "s3cret").expect("a text");
        let media = Media::new(to(), "image/png", "s3cret", "s3cret").expect("a file");
        let shown = format!("{text:?} {media:?} {:?}", text.to());
        assert!(!shown.contains("s3cret") && !shown.contains("5511"), "{shown}");
    }
}
