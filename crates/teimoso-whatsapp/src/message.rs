//! What is sent, and to whom: types that refuse what no provider could send; absent: how each provider spells it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// The longest text, in characters: WhatsApp's own limit for a message.
pub const TEXT_CHARS_MAX: usize = 65_536;

/// The largest image, video or audio, in bytes: 16 MiB. Ours, after WhatsApp's long-standing limit; a provider may
/// allow less.
pub const MEDIA_BYTES_MAX: usize = 16 << 20;

/// The largest document, in bytes: 64 MiB. Ours: it is held in memory, and grows by a third on its way.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;

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
    /// A file name with a separator or a control character.
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
            Self::FileName => f.write_str("a file name holds no separator and no control character"),
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

/// How a file is shown to whoever receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A film.
    Video,
    /// Something to listen to.
    Audio,
    /// Anything, by its file name.
    Document,
}

impl MediaKind {
    /// The stable name: `image`, `video`, `audio` or `document`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Document => "document",
        }
    }

    /// The kind that a media type is shown as.
    pub fn of(media_type: &str) -> Self {
        match media_type.split('/').next() {
            Some("image") => Self::Image,
            Some("video") => Self::Video,
            Some("audio") => Self::Audio,
            _ => Self::Document,
        }
    }

    /// How many bytes it may have.
    pub fn bytes_max(self) -> usize {
        if self == Self::Document { DOCUMENT_BYTES_MAX } else { MEDIA_BYTES_MAX }
    }
}

impl fmt::Display for MediaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A file for one recipient, held in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Media {
    to: Recipient,
    kind: MediaKind,
    media_type: String,
    file_name: String,
    caption: Option<String>,
    bytes: Bytes,
}

impl Media {
    /// Takes a file. `media_type` is such as `image/png`; what it is shown as follows from it, see
    /// [`Media::as_document`].
    ///
    /// # Errors
    ///
    /// A file that is empty or too large, a media type that is none, a file name that is a path.
    pub fn new(
        to: Recipient,
        media_type: &str,
        file_name: &str,
        bytes: impl Into<Bytes>,
    ) -> Result<Self, InvalidMessage> {
        let media_type = media_type.to_ascii_lowercase();
        if !is_media_type(&media_type) {
            return Err(InvalidMessage::MediaType);
        }
        let path = |letter: char| letter.is_control() || matches!(letter, '/' | '\\' | '"');
        if file_name.is_empty() || file_name.contains(path) {
            return Err(InvalidMessage::FileName);
        }
        let kind = MediaKind::of(&media_type);
        let file_name = file_name.to_owned();
        Self { to, kind, media_type, file_name, caption: None, bytes: bytes.into() }.within_bounds()
    }

    /// The same file, shown as a document.
    ///
    /// # Errors
    ///
    /// None in practice: a document may be larger than any other kind.
    pub fn as_document(self) -> Result<Self, InvalidMessage> {
        Self { kind: MediaKind::Document, ..self }.within_bounds()
    }

    /// The same file with a text below it.
    ///
    /// # Errors
    ///
    /// [`InvalidMessage::CaptionOfAudio`], or a text that [`Text::new`] would refuse.
    pub fn with_caption(self, caption: &str) -> Result<Self, InvalidMessage> {
        if self.kind == MediaKind::Audio {
            return Err(InvalidMessage::CaptionOfAudio);
        }
        let text = Text::new(self.to.clone(), caption)?;
        Ok(Self { caption: Some(text.text), ..self })
    }

    fn within_bounds(self) -> Result<Self, InvalidMessage> {
        match self.bytes.len() {
            0 => Err(InvalidMessage::EmptyMedia),
            bytes if bytes > self.kind.bytes_max() => {
                Err(InvalidMessage::LargeMedia { kind: self.kind, bytes })
            }
            _ => Ok(self),
        }
    }

    /// To whom.
    pub fn to(&self) -> &Recipient {
        &self.to
    }

    /// What it is shown as.
    pub fn kind(&self) -> MediaKind {
        self.kind
    }

    /// The media type, in lower case.
    pub fn media_type(&self) -> &str {
        &self.media_type
    }

    /// The name it is shown under.
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// The text below it.
    pub fn caption(&self) -> Option<&str> {
        self.caption.as_deref()
    }

    /// The file.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The file in base64.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }

    /// The file as a data URI (RFC 2397) of this media type.
    pub fn data_uri_of(&self, media_type: &str) -> String {
        format!("data:{media_type};base64,{}", self.base64())
    }

    /// The file as a data URI of its own media type.
    pub fn data_uri(&self) -> String {
        self.data_uri_of(&self.media_type)
    }
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Media")
            .field("kind", &self.kind)
            .field("media_type", &self.media_type)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// Two tokens and a slash (RFC 6838 §4.2); parameters are not wanted by anybody here.
fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    text.len() <= 127 && text.split_once('/').is_some_and(|(main, sub)| token(main) && token(sub))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn media_too_large_or_of_no_type_is_refused() {
        let media = |media_type, bytes: usize| Media::new(to(), media_type, "a.png", vec![0; bytes]);
        assert_eq!(media("image/png", MEDIA_BYTES_MAX).expect("fits").kind(), MediaKind::Image);
        let large = media("image/png", MEDIA_BYTES_MAX + 1).unwrap_err();
        assert_eq!(large.to_string(), "the file has 16777217 bytes; image may have 16777216");
        assert_eq!(media("application/pdf", MEDIA_BYTES_MAX + 1).expect("fits").kind(), MediaKind::Document);
        assert_eq!(media("image/png", 0), Err(InvalidMessage::EmptyMedia));
        for media_type in ["png", "image/", "/png", "image/png; q=1", ""] {
            assert_eq!(media(media_type, 1), Err(InvalidMessage::MediaType), "{media_type}");
        }
        for name in ["", "../a", "a\"b", "a\nb"] {
            assert_eq!(Media::new(to(), "image/png", name, "x"), Err(InvalidMessage::FileName), "{name}");
        }
    }

    #[test]
    fn audio_refuses_a_caption_that_nobody_would_see() {
        let audio = Media::new(to(), "audio/ogg", "a.ogg", "x").expect("fits");
        assert_eq!(audio.clone().with_caption("hi"), Err(InvalidMessage::CaptionOfAudio));
        let document = audio.as_document().and_then(|media| media.with_caption("hi")).expect("a document");
        assert_eq!(
            (document.caption(), document.data_uri().as_str()),
            (Some("hi"), "data:audio/ogg;base64,eA==")
        );
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
