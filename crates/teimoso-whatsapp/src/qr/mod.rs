//! The QR code that links a phone, as text and as a picture, whichever of the two the provider has; absent: scanning.

mod draw;
mod finders;
mod picture;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bytes::Bytes;

/// A QR code: its text, and a PNG of it. Whoever has it can link a phone, so neither is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Qr {
    code: String,
    png: Bytes,
}

/// Why something is no QR code that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadableQr {
    /// The text is longer than a QR code can hold, or empty.
    Code,
    /// The text is none that WhatsApp shows as a code.
    Text,
    /// The base64 is none.
    Base64,
    /// The picture is no PNG, or too large.
    Picture,
    /// No code is to be found in the picture, or not exactly one.
    NoCode,
}

impl fmt::Display for UnreadableQr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Code => "the text is too long for a qr code, or empty",
            Self::Text => "the text is no qr code of whatsapp",
            Self::Base64 => "the picture is not in base64",
            Self::Picture => "the picture is no png, or too large",
            Self::NoCode => "the picture shows no readable qr code",
        })
    }
}

impl std::error::Error for UnreadableQr {}

impl Qr {
    /// From the text of the code; the picture is drawn.
    ///
    /// # Errors
    ///
    /// [`UnreadableQr::Code`].
    pub fn from_code(code: &str) -> Result<Self, UnreadableQr> {
        let code = code.trim();
        if code.is_empty() {
            return Err(UnreadableQr::Code);
        }
        let png = picture::write(&draw::modules(code)?)?.into();
        Ok(Self { code: code.to_owned(), png })
    }

    /// From a PNG; the text is read out of it.
    ///
    /// # Errors
    ///
    /// [`UnreadableQr::Picture`] or [`UnreadableQr::NoCode`].
    pub fn from_png(png: impl Into<Bytes>) -> Result<Self, UnreadableQr> {
        let png = png.into();
        let code = picture::read(&png)?;
        Ok(Self { code, png })
    }

    /// From whatever a provider calls a QR code: a data URI, base64 of a PNG, or the text of the code. WhatsApp's own are
    /// several words with commas between them, which tells them from a picture in another format, and from a message.
    ///
    /// # Errors
    ///
    /// As of [`Qr::from_code`] and [`Qr::from_png`]; or [`UnreadableQr::Base64`] or [`UnreadableQr::Text`].
    pub fn from_text(text: &str) -> Result<Self, UnreadableQr> {
        let text = text.trim();
        if let Some(uri) = text.strip_prefix("data:") {
            let (_, data) = uri.split_once(";base64,").ok_or(UnreadableQr::Base64)?;
            return Self::from_base64(data);
        }
        match text {
            _ if text.starts_with(PNG_IN_BASE64) => Self::from_base64(text),
            "" => Err(UnreadableQr::Code),
            _ if text.contains(',') && !text.contains(char::is_whitespace) => Self::from_code(text),
            _ => Err(UnreadableQr::Text),
        }
    }

    fn from_base64(text: &str) -> Result<Self, UnreadableQr> {
        let text: String = text.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
        let bytes = STANDARD.decode(&text).or_else(|_| STANDARD_NO_PAD.decode(&text));
        Self::from_png(bytes.map_err(|_| UnreadableQr::Base64)?)
    }

    /// The text that the code shows.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The picture, a PNG: the provider's own, or ours.
    pub fn png(&self) -> &Bytes {
        &self.png
    }

    /// The code in block characters, two rows in a line, for a terminal that writes light on dark; with its margin.
    pub fn blocks(&self) -> String {
        // What came in as a code, or was read as one, is drawn as one.
        draw::modules(&self.code).map_or_else(|_| String::new(), |modules| draw::blocks(&modules))
    }
}

/// The first bytes of every PNG, in base64.
const PNG_IN_BASE64: &str = "iVBORw0KGgo";

impl fmt::Debug for Qr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[qr code]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "2@Qk9VTkQ,aGVsbG8+/==,dGVpbW9zbw,MTIzNA==,1";

    #[test]
    fn every_form_comes_to_the_same_text_and_a_picture_of_it() {
        let drawn = Qr::from_code(CODE).expect("fits");
        let base64 = STANDARD.encode(drawn.png());
        let forms = [
            Qr::from_png(drawn.png().clone()),
            Qr::from_text(&base64),
            Qr::from_text(&format!("data:image/png;base64,{base64}")),
            Qr::from_text(base64.trim_end_matches('=')),
            Qr::from_text(&format!("{}\n{}\n", &base64[..76], &base64[76..])),
            Qr::from_text(&format!(" {CODE}\n")),
        ];
        for form in forms {
            assert_eq!(form.as_ref(), Ok(&drawn));
            assert_eq!(form.map(|qr| qr.code().to_owned()), Ok(CODE.to_owned()));
        }
    }

    #[test]
    fn what_is_no_code_is_refused() {
        let broken = &STANDARD.encode(Qr::from_code(CODE).expect("fits").png())[..80];
        let cases = [
            ("", UnreadableQr::Code),
            (&"2@x,".repeat(2_000), UnreadableQr::Code),
            ("null", UnreadableQr::Text),
            ("/9j/4AAQSkZJRgABAQ", UnreadableQr::Text),
            ("R0lGODlhAQABAA==", UnreadableQr::Text),
            ("no code yet, try again", UnreadableQr::Text),
            ("data:text/html;base64,PGh0bWw+", UnreadableQr::Picture),
            ("data:image/png;base64,", UnreadableQr::Picture),
            ("data:image/png;base64,§§", UnreadableQr::Base64),
            ("data:image/png", UnreadableQr::Base64),
            (broken, UnreadableQr::Picture),
        ];
        for (text, why) in cases {
            assert_eq!(Qr::from_text(text), Err(why), "{}", &text.chars().take(40).collect::<String>());
        }
        assert_eq!(Qr::from_png(&b"GIF89a"[..]), Err(UnreadableQr::Picture));
        let blank = picture::write(&draw::Modules::blank(21)).expect("drawn");
        assert_eq!(Qr::from_png(blank), Err(UnreadableQr::NoCode));
    }

    #[test]
    fn a_code_is_drawn_light_on_dark_with_its_margin() {
        let blocks = Qr::from_code("a").expect("fits").blocks();
        let lines: Vec<&str> = blocks.lines().collect();
        // 21 modules and a margin of 4 on each side, two rows in a line.
        assert_eq!((lines.len(), lines[0], lines[1]), (15, "█".repeat(29).as_str(), "█".repeat(29).as_str()));
        // The finder pattern: a dark frame of 7, a light one of 5, a dark square of 3.
        assert!(lines[2].starts_with("████ ▄▄▄▄▄ "), "{blocks}");
        assert!(lines[3].starts_with("████ █   █ "), "{blocks}");
    }

    /// Light and dark by a rule.
    fn painted(side: usize, is_dark: impl Fn(usize, usize) -> bool) -> Vec<u8> {
        let pixels: Vec<u8> =
            (0..side * side).map(|at| if is_dark(at % side, at / side) { 0 } else { 255 }).collect();
        picture::grey_png(side, &pixels).expect("drawn")
    }

    #[test]
    fn a_picture_made_to_be_searched_for_ever_is_refused() {
        // Finder patterns side by side: among every three of them there might be a code.
        let finder = |x: usize, y: usize| {
            let ring = x.abs_diff(3).max(y.abs_diff(3));
            x < 7 && y < 7 && ring != 2
        };
        let tiled = painted(1_024, |x, y| finder(x % 8, y % 8));
        assert_eq!(Qr::from_png(tiled), Err(UnreadableQr::NoCode));
        let noise = painted(700, |x, y| (x * 7_919 + y * 104_729 + x * y * 31) % 97 < 48);
        assert_eq!(Qr::from_png(noise), Err(UnreadableQr::NoCode));
        let wide = painted(2_049, |_, _| false);
        assert_eq!(Qr::from_png(wide), Err(UnreadableQr::Picture));
    }

    #[test]
    fn a_code_of_any_size_has_few_enough_finder_patterns_to_be_read() {
        for length in [1, 40, 237, 800] {
            let code: String = (0..length).map(|at| char::from(b'!' + (at * at * 7 % 90) as u8)).collect();
            let drawn = Qr::from_code(&code).expect("fits");
            assert_eq!(Qr::from_png(drawn.png().clone()), Ok(drawn), "{length}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

        /// Pictures come from outside: damaged ones are refused, or read as what they still show.
        #[test]
        fn a_damaged_picture_is_read_or_refused(
            length in 1..60_usize,
            flips in proptest::collection::vec((0..80_usize, 0..80_usize), 0..400),
        ) {
            let code = "x".repeat(length);
            let mut modules = draw::modules(&code).expect("fits");
            flips.iter().for_each(|(column, row)| modules.flip(*column, *row));
            match Qr::from_png(picture::write(&modules).expect("drawn")) {
                Ok(qr) => proptest::prop_assert_eq!(qr.code(), code),
                Err(why) => proptest::prop_assert_eq!(why, UnreadableQr::NoCode),
            }
        }

        #[test]
        fn bytes_that_are_no_picture_are_refused(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
            at in 0..400_usize,
            value in proptest::prelude::any::<u8>(),
        ) {
            proptest::prop_assert_eq!(Qr::from_png(bytes), Err(UnreadableQr::Picture));
            let mut png = Qr::from_code("x").expect("fits").png().to_vec();
            if let Some(byte) = png.get_mut(at) {
                *byte ^= value;
            }
            // One byte of a picture that is checked by sums: it is the same, or none.
            let read = Qr::from_png(png).map(|qr| qr.code().to_owned());
            proptest::prop_assert!(read.is_err() || read == Ok("x".to_owned()), "{read:?}");
        }
    }

    #[test]
    fn a_code_is_never_printed() {
        assert_eq!(format!("{:?}", Qr::from_code(CODE).expect("fits")), "[qr code]");
    }
}
