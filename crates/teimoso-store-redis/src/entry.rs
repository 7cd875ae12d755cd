//! S2's JSON: read as far as the four fields need it, and edited without ever being printed again (G7).
//!
//! An entry of the ready list is anybody's text. What is found is where its parts stand; a new number of attempts
//! replaces the digits of the old one, and what only we need to know goes behind it as `_wh`. Every other byte stays.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use teimoso_delivery::model::{DeadReason, EventId};

use crate::codec::{Tried, lenient_tried};

/// What only we need to know of an event that waits or is dead in a public key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The id its receiver knows, when the producer's own is not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Its key: the same delivery when it comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chave: Option<String>,
    /// Attempts before the current budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) desde: Option<u32>,
    /// When this budget's first attempt started, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) primeira: Option<u64>,
    /// Why it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) motivo: Option<String>,
    /// Since when, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) morto_em: Option<u64>,
    /// What is kept of its attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "lenient_tried")]
    pub(crate) tentou: Vec<Tried>,
}

/// An event as somebody pushed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) url: String,
    /// What the producer calls it, if that can be sent as an id.
    pub(crate) id: Option<EventId>,
    /// Where the body stands; empty when there is none.
    pub(crate) body: Range<usize>,
    /// `tentativas`.
    pub(crate) attempts: u32,
    pub(crate) mark: Mark,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Read {
    Event(Box<Entry>),
    /// Not an event: not JSON, no object, no URL.
    Malformed,
    /// One of these that came back: it is kept already as what it is.
    KeptRaw,
}

/// Where the parts of an object stand in its text.
#[derive(Debug, Default)]
struct Spans<'a> {
    url: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    body: Option<&'a RawValue>,
    attempts: Option<&'a RawValue>,
    mark: Option<&'a RawValue>,
    raw: bool,
    fields: usize,
}

impl<'de> Deserialize<'de> for Spans<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Spans<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            /// Of a field that is there twice the last one counts, as everywhere.
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut spans = Spans::default();
                while let Some((name, value)) = map.next_entry::<Cow<'_, str>, &'de RawValue>()? {
                    spans.fields += 1;
                    match &*name {
                        "url" => spans.url = Some(value),
                        "id" => spans.id = Some(value),
                        "corpo" => spans.body = Some(value),
                        "tentativas" => spans.attempts = Some(value),
                        "_wh" => spans.mark = Some(value),
                        "bruto" | "bruto_base64" => spans.raw = true,
                        _ => {}
                    }
                }
                Ok(spans)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Where `part` stands in `text`, of which it is a slice.
fn range(text: &str, part: &RawValue) -> Range<usize> {
    let start = (part.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + part.get().len()
}

/// What the producer calls it: a string or a number.
fn label(raw: &RawValue) -> Option<EventId> {
    let text = match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => text,
        Err(_) => serde_json::from_str::<serde_json::Number>(raw.get()).ok()?.to_string(),
    };
    EventId::parse(&text).ok()
}

impl Entry {
    /// Reads what somebody pushed.
    pub(crate) fn read(bytes: &[u8]) -> Read {
        let Ok(text) = std::str::from_utf8(bytes) else { return Read::Malformed };
        let Ok(spans) = serde_json::from_str::<Spans<'_>>(text) else { return Read::Malformed };
        let url = spans.url.and_then(|url| serde_json::from_str::<String>(url.get()).ok());
        let Some(url) = url.filter(|url| !url.is_empty()) else {
            return if spans.raw { Read::KeptRaw } else { Read::Malformed };
        };
        let mark =
            spans.mark.and_then(|mark| serde_json::from_str::<Mark>(mark.get()).ok()).unwrap_or_default();
        let known = mark.id.as_deref().and_then(|id| EventId::parse(id).ok());
        Read::Event(Box::new(Self {
            url,
            id: spans.id.and_then(label).or(known),
            body: spans.body.map_or(0..0, |body| range(text, body)),
            attempts: spans.attempts.and_then(|digits| digits.get().parse().ok()).unwrap_or(0),
            mark,
        }))
    }
}

/// The same text with this number of attempts and this mark. What is no object comes back as it is.
pub(crate) fn edited(bytes: &[u8], attempts: u32, mark: &Mark) -> Vec<u8> {
    let parsed = std::str::from_utf8(bytes).ok().and_then(|text| {
        let spans = serde_json::from_str::<Spans<'_>>(text).ok()?;
        Some((text, spans))
    });
    let Some((text, spans)) = parsed else { return bytes.to_vec() };
    let mark = serde_json::to_string(mark).unwrap_or_else(|_| "{}".to_owned());
    let end = text.rfind('}').unwrap_or(text.len());
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut added = String::new();
    match spans.attempts {
        Some(digits) => edits.push((range(text, digits), attempts.to_string())),
        None => added.push_str(&format!(",\"tentativas\":{attempts}")),
    }
    match spans.mark {
        Some(old) => edits.push((range(text, old), mark)),
        None => added.push_str(&format!(",\"_wh\":{mark}")),
    }
    if spans.fields == 0 {
        added = added.trim_start_matches(',').to_owned();
    }
    edits.push((end..end, added));
    edits.sort_by_key(|(range, _)| range.start);
    let (mut out, mut at) = (Vec::with_capacity(text.len() + 128), 0);
    for (range, new) in edits {
        out.extend_from_slice(&bytes[at..range.start]);
        out.extend_from_slice(new.as_bytes());
        at = range.end;
    }
    out.extend_from_slice(&bytes[at..]);
    out
}

/// What is no event, kept as a dead letter that `LRANGE … | jq` can read (S2.7).
pub(crate) fn kept_raw(bytes: &[u8], reason: DeadReason, at: u64) -> Vec<u8> {
    let mark = Mark { motivo: Some(reason.name().to_owned()), morto_em: Some(at), ..Mark::default() };
    let (name, value) = match std::str::from_utf8(bytes) {
        Ok(text) => ("bruto", Cow::Borrowed(text)),
        Err(_) => ("bruto_base64", Cow::Owned(BASE64_STANDARD.encode(bytes))),
    };
    let text = |value: &str| serde_json::to_string(value).unwrap_or_else(|_| "\"\"".to_owned());
    let mark = serde_json::to_string(&mark).unwrap_or_else(|_| "{}".to_owned());
    format!("{{\"{name}\":{},\"_wh\":{mark}}}", text(&value)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(text: &str) -> Entry {
        match Entry::read(text.as_bytes()) {
            Read::Event(entry) => *entry,
            other => panic!("{text}: {other:?}"),
        }
    }

    const PEDIDO: &str = r#"{"id":"evt_1789136700349","url":"http://loja.example/ok","corpo":{"b":1, "a":1.0},"tentativas":0}"#;

    #[test]
    fn s2_2_the_four_fields_are_found() {
        let entry = event(PEDIDO);
        assert_eq!(entry.url, "http://loja.example/ok");
        assert_eq!(entry.id, EventId::named("evt_1789136700349").ok());
        assert_eq!((&PEDIDO[entry.body], entry.attempts), (r#"{"b":1, "a":1.0}"#, 0));
    }

    #[test]
    fn g7_a_body_is_found_as_it_stands_whatever_is_in_it() {
        let bodies = [
            r#""\ud800\u0000""#,
            "12345678901234567890",
            "1e400",
            "null",
            r#"{"a":1,"a":[ 2 ]}"#,
            "\"\u{2028}\"",
        ];
        for body in bodies {
            let text = format!(r#" {{"corpo" : {body} , "url":"http://a/"}} "#);
            assert_eq!(&text[event(&text).body], body);
        }
        assert_eq!(event(r#"{"url":"http://a/"}"#).body, 0..0);
    }

    #[test]
    fn s2_7_what_is_no_event_is_malformed() {
        for text in ["", "x", "[]", "{}", r#"{"url":1}"#, r#"{"url":""}"#, r#"{"url":"http://a"} x"#] {
            assert_eq!(Entry::read(text.as_bytes()), Read::Malformed, "{text}");
        }
        assert_eq!(Entry::read(b"\xff"), Read::Malformed);
        let kept = kept_raw(b"x\"", DeadReason::Malformed, 5);
        assert_eq!(kept, br#"{"bruto":"x\"","_wh":{"motivo":"malformed","morto_em":5}}"#);
        assert_eq!(Entry::read(&kept), Read::KeptRaw);
        assert_eq!(
            kept_raw(b"\xff\x00", DeadReason::Malformed, 5),
            br#"{"bruto_base64":"/wA=","_wh":{"motivo":"malformed","morto_em":5}}"#
        );
    }

    #[test]
    fn ids_are_labels_of_any_kind() {
        for (id, expected) in
            [("7", Some("7")), (r#""p-1""#, Some("p-1")), ("null", None), (r#""a b""#, None)]
        {
            let text = format!(r#"{{"url":"http://a/","id":{id}}}"#);
            assert_eq!(event(&text).id.map(|id| id.to_string()).as_deref(), expected, "{id}");
        }
    }

    #[test]
    fn an_edit_changes_the_digits_and_adds_the_mark_behind_them() {
        let mark = Mark { chave: Some("0".into()), ..Mark::default() };
        let once = edited(PEDIDO.as_bytes(), 1, &mark);
        assert_eq!(
            String::from_utf8_lossy(&once),
            PEDIDO.replace(r#""tentativas":0}"#, r#""tentativas":1,"_wh":{"chave":"0"}}"#)
        );
        let twice = edited(&once, 12, &Mark::default());
        assert_eq!(
            String::from_utf8_lossy(&twice),
            PEDIDO.replace(r#""tentativas":0}"#, r#""tentativas":12,"_wh":{}}"#)
        );
        let without = edited(br#" {"url":"http://a/" } "#, 3, &Mark::default());
        assert_eq!(String::from_utf8_lossy(&without), r#" {"url":"http://a/" ,"tentativas":3,"_wh":{}} "#);
        assert_eq!(edited(b"{}", 3, &Mark::default()), br#"{"tentativas":3,"_wh":{}}"#);
        assert_eq!(edited(b"\xff", 3, &Mark::default()), b"\xff");
    }

    proptest! {
        #[test]
        fn an_edited_entry_reads_as_the_same_event(
            body in "[ -~]{0,40}", attempts: u32, before in 0u32..9, first: bool, padding in " {0,3}",
        ) {
            let body = serde_json::to_string(&body).unwrap();
            let text = if first {
                format!(r#"{padding}{{"tentativas":{before},"url":"http://a/","corpo":{body}{padding}}}"#)
            } else {
                format!(r#"{{"corpo":{body},{padding}"url":"http://a/","tentativas" :{padding}{before}}}{padding}"#)
            };
            let mark = Mark { desde: Some(attempts), ..Mark::default() };
            let after = edited(text.as_bytes(), attempts, &mark);
            let after = String::from_utf8(after).unwrap();
            let (old, new) = (event(&text), event(&after));
            prop_assert_eq!((new.attempts, &new.mark), (attempts, &mark));
            prop_assert_eq!(&after[new.body], &text[old.body]);
            prop_assert_eq!(new.url, old.url);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, attempts: u32) {
            let read = Entry::read(&bytes);
            let after = edited(&bytes, attempts, &Mark::default());
            prop_assert!(matches!(read, Read::Malformed | Read::KeptRaw) || after.len() >= bytes.len());
        }
    }
}
