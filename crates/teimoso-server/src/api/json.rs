//! Strict reading of JSON objects: unknown and repeated members are refused by name, with the place.
//!
//! Deliberately absent: `serde_json::Value`. A payload is skipped over, not read, so nothing in it can be
//! too deep, too long or too large for a number type (G7).

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::problem::{At, Code, Problem};
use crate::nearest::suggestion;

/// A JSON object whose members are known.
pub(crate) trait Fields<'de>: Default {
    /// Every member's name, at most 32.
    const NAMES: &'static [&'static str];

    /// Reads the value of the member `name`, one of [`Fields::NAMES`].
    fn read<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
        trace: &mut Trace,
    ) -> Result<(), A::Error>;
}

/// Where reading stands, for the message when it fails.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    path: Vec<&'static str>,
    fault: Option<NameFault>,
}

#[derive(Debug)]
enum NameFault {
    Unknown(String, &'static [&'static str]),
    Repeated(String),
}

/// Reads the whole of `bytes` as one object.
pub(crate) fn parse<'de, T: Fields<'de>>(bytes: &'de [u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let byte = error.valid_up_to();
        Problem::new(Code::MalformedJson, format!("the JSON is not UTF-8 at byte {byte}"))
    })?;
    let mut trace = Trace::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let object = Object::new(&mut trace).deserialize(&mut json);
    let object = object.and_then(|value| json.end().map(|()| value));
    object.map_err(|error| explain(&error, trace, text))
}

fn explain(error: &serde_json::Error, trace: Trace, text: &str) -> Problem {
    let byte = byte_offset(error, text);
    if !error.is_data() {
        return Problem::new(Code::MalformedJson, format!("malformed JSON: {error} (byte {byte})"));
    }
    let path = trace.path;
    let place = format!("at line {} column {} (byte {byte})", error.line(), error.column());
    match trace.fault {
        Some(NameFault::Unknown(name, known)) => {
            let at = At::field(&[&path[..], &[name.as_str()]].concat());
            let hint = suggestion(&name, known);
            Problem::at(Code::UnknownField, at, format!("unknown field `{name}` {place}; {hint}"))
        }
        Some(NameFault::Repeated(name)) => {
            let at = At::field(&[&path[..], &[name.as_str()]].concat());
            Problem::at(Code::DuplicateField, at, format!("field `{name}` appears twice, {place}"))
        }
        None => Problem::at(Code::InvalidValue, At::field(&path), format!("{error} (byte {byte})")),
    }
}

/// `serde_json` counts lines, and bytes within a line, up to and including the offending one.
fn byte_offset(error: &serde_json::Error, text: &str) -> usize {
    if error.is_eof() {
        return text.len();
    }
    let mut newlines =
        text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(index, _)| index + 1);
    let line_start = match error.line() {
        0 | 1 => 0,
        line => newlines.nth(line - 2).unwrap_or(text.len()),
    };
    (line_start + error.column().saturating_sub(1)).min(text.len())
}

/// Reads one object.
pub(crate) struct Object<'t, T> {
    trace: &'t mut Trace,
    kind: PhantomData<T>,
}

impl<'t, T> Object<'t, T> {
    pub(crate) fn new(trace: &'t mut Trace) -> Self {
        Self { trace, kind: PhantomData }
    }
}

impl<'de, T: Fields<'de>> DeserializeSeed<'de> for Object<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Fields<'de>> Visitor<'de> for Object<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut value = T::default();
        let mut seen = 0_u32;
        while let Some(Text(name)) = map.next_key()? {
            let Some(index) = T::NAMES.iter().position(|known| *known == name) else {
                self.trace.fault = Some(NameFault::Unknown(shortened(&name), T::NAMES));
                return Err(de::Error::custom("unknown field"));
            };
            if seen & 1 << index != 0 {
                self.trace.fault = Some(NameFault::Repeated(name.into_owned()));
                return Err(de::Error::custom("repeated field"));
            }
            seen |= 1 << index;
            self.trace.path.push(T::NAMES[index]);
            value.read(T::NAMES[index], &mut map, self.trace)?;
            self.trace.path.pop();
        }
        Ok(value)
    }
}

/// A caller's own text in a message must not be as long as the caller likes.
fn shortened(name: &str) -> String {
    const MAX_CHARS: usize = 64;
    match name.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// A string, borrowed from the input where it holds no escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow;

        impl<'de> Visitor<'de> for Borrow {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Borrow)
    }
}
