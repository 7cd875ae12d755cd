//! A file for one recipient, refused where no provider could send it; absent: what each provider takes of it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::message::{InvalidMessage, Recipient, Text};

/// The largest image, video or audio, in bytes: 16 MiB. Ours, after WhatsApp's long-standing limit; a provider may
/// allow less.
pub const MEDIA_BYTES_MAX: usize = 16 << 20;

/// The largest document, in bytes: 64 MiB. Ours: it is held in memory, and grows by a third on its way.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;

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
    /// Takes a file. `media_type` is such as `image/png`; what it is shown as follows from it, see [`Media::document`].
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
        let kind = MediaKind::of(&media_type.to_ascii_lowercase());
        Self::of_kind(kind, to, media_type, file_name, bytes.into())
    }

    /// Takes a file of any type that is shown as a document, which may be larger than other kinds.
    ///
    /// # Errors
    ///
    /// As of [`Media::new`].
    pub fn document(
        to: Recipient,
        media_type: &str,
        file_name: &str,
        bytes: impl Into<Bytes>,
    ) -> Result<Self, InvalidMessage> {
        Self::of_kind(MediaKind::Document, to, media_type, file_name, bytes.into())
    }

    fn of_kind(
        kind: MediaKind,
        to: Recipient,
        media_type: &str,
        file_name: &str,
        bytes: Bytes,
    ) -> Result<Self, InvalidMessage> {
        let media_type = media_type.to_ascii_lowercase();
        if !is_media_type(&media_type) {
            return Err(InvalidMessage::MediaType);
        }
        let path = |letter: char| letter.is_control() || matches!(letter, '/' | '\\' | '"');
        if file_name.is_empty() || file_name.contains(path) {
            return Err(InvalidMessage::FileName);
        }
        match bytes.len() {
            0 => Err(InvalidMessage::EmptyMedia),
            bytes if bytes > kind.bytes_max() => Err(InvalidMessage::LargeMedia { kind, bytes }),
            _ => {
                let file_name = file_name.to_owned();
                Ok(Self { to, kind, media_type, file_name, caption: None, bytes })
            }
        }
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
        Ok(Self { caption: Some(text.text().to_owned()), ..self })
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
    fn media_too_large_or_of_no_type_is_refused() {
        let media = |media_type, bytes: usize| Media::new(to(), media_type, "a.png", vec![0; bytes]);
        assert_eq!(media("image/png", MEDIA_BYTES_MAX).expect("fits").kind(), MediaKind::Image);
        let large = media("image/png", MEDIA_BYTES_MAX + 1).unwrap_err();
        assert_eq!(large.to_string(), "the file has 16777217 bytes; image may have 16777216");
        assert_eq!(media("application/pdf", MEDIA_BYTES_MAX + 1).expect("fits").kind(), MediaKind::Document);
        let document = Media::document(to(), "image/png", "a.png", vec![0; MEDIA_BYTES_MAX + 1]);
        assert_eq!(document.map(|media| media.kind()), Ok(MediaKind::Document), "large, and no image");
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
        assert_eq!(audio.with_caption("hi"), Err(InvalidMessage::CaptionOfAudio));
        let document =
            Media::document(to(), "audio/ogg", "a.ogg", "x").and_then(|media| media.with_caption("hi"));
        let document = document.expect("a document");
        assert_eq!(
            (document.caption(), document.data_uri().as_str()),
            (Some("hi"), "data:audio/ogg;base64,eA==")
        );
    }
}
