//! An event: what its delivery begins with, a head, and behind it the payload as it came.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use teimoso_delivery::model::{
    Application, ContentType, Event, EventId, EventType, Headers, IdSpace, Key, NewEvent, PolicyName,
};

use super::bytes::put_counted;
use super::{Reader, Unreadable};

const VERSION: u8 = 2;
/// What scripts put in front: the version, and what a delivery that was never claimed begins with ([`super::delivery`]).
pub(super) const START_BYTES: usize = 25;

/// An event without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventHead {
    pub(crate) application: Application,
    /// The caller's own id, if there is one; else the key says it.
    pub(crate) named: Option<EventId>,
    pub(crate) kind: Option<EventType>,
    pub(crate) content_type: ContentType,
    pub(crate) policy: Option<PolicyName>,
    pub(crate) url: Option<Arc<str>>,
    pub(crate) headers: Headers,
    /// Of an event that came in as JSON: where in it its payload stands. What is kept is the whole text.
    body: Option<Range<usize>>,
}

/// An event that came in as JSON.
#[derive(Debug)]
pub(crate) struct Adoption<'a> {
    pub(crate) id: Option<&'a EventId>,
    pub(crate) url: &'a str,
    pub(crate) policy: Option<&'a PolicyName>,
    pub(crate) body: &'a Range<usize>,
}

/// Begins an id of our own form; no caller's id has it.
const OWN_ID: &str = ".";

/// Length of the head, head, payload: all but the start, which scripts write.
fn record(head: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + head.len() + payload.len());
    put_counted(&mut out, head);
    out.extend_from_slice(payload);
    out
}

pub(crate) fn encode_event(event: &NewEvent) -> Vec<u8> {
    let mut head = Vec::with_capacity(128);
    let texts = [
        event.application.as_str(),
        super::named(event).unwrap_or_default(),
        event.kind.as_ref().map_or("", EventType::as_str),
        event.content_type.as_str(),
        event.policy.as_ref().map_or("", PolicyName::as_str),
        event.destination.as_ref().map_or("", |to| &*to.url),
    ];
    texts.into_iter().for_each(|text| put_counted(&mut head, text.as_bytes()));
    put_counted(&mut head, event.headers.to_lines().as_bytes());
    record(&head, &event.payload)
}

/// An event that moved in from another store; an id of our form that is not its key's stands there like a caller's.
pub(crate) fn encode_moved(event: &Event, key: Key, ids: IdSpace) -> Vec<u8> {
    let id = match &event.id {
        own @ EventId::Own(_) if *own == ids.event(key) => String::new(),
        own @ EventId::Own(_) => format!("{OWN_ID}{own}"),
        EventId::Named(text) => text.to_string(),
    };
    let mut head = Vec::with_capacity(128);
    let texts = [
        event.application.as_str(),
        &id,
        event.kind.as_ref().map_or("", EventType::as_str),
        event.content_type.as_str(),
        event.policy.as_ref().map_or("", PolicyName::as_str),
        event.url.as_deref().unwrap_or(""),
    ];
    texts.into_iter().for_each(|text| put_counted(&mut head, text.as_bytes()));
    put_counted(&mut head, event.headers.to_lines().as_bytes());
    record(&head, &event.payload)
}

/// The whole text is the payload of the record; the head says which part of it is the event's.
pub(crate) fn encode_adopted(adoption: &Adoption<'_>, text: &[u8]) -> Vec<u8> {
    let id = match adoption.id {
        Some(own @ EventId::Own(_)) => format!("{OWN_ID}{own}"),
        Some(EventId::Named(text)) => text.to_string(),
        None => String::new(),
    };
    let (application, content_type) = (Application::default(), ContentType::default());
    let policy = adoption.policy.map_or("", PolicyName::as_str);
    let mut head = Vec::with_capacity(128);
    let texts = [application.as_str(), &id, "", content_type.as_str(), policy, adoption.url, ""];
    texts.into_iter().for_each(|text| put_counted(&mut head, text.as_bytes()));
    for bound in [adoption.body.start, adoption.body.end] {
        head.extend(u32::try_from(bound).unwrap_or(u32::MAX).to_be_bytes());
    }
    record(&head, text)
}

fn id(text: &str) -> Result<EventId, Unreadable> {
    let parsed = match text.strip_prefix(OWN_ID) {
        Some(own) => EventId::parse(own),
        None => EventId::named(text),
    };
    parsed.map_err(|_| Unreadable)
}

/// A text that may be absent; an empty one stands for that.
fn optional<T, E>(text: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<Option<T>, Unreadable> {
    if text.is_empty() { Ok(None) } else { parse(text).map(Some).map_err(|_| Unreadable) }
}

/// The default application is shared instead of parsed: claims read one per delivery.
fn application(text: &str) -> Result<Application, Unreadable> {
    let default = Application::default();
    if text == default.as_str() { Ok(default) } else { Application::parse(text).map_err(|_| Unreadable) }
}

/// The same for the usual media type.
fn content_type(text: &str) -> Result<ContentType, Unreadable> {
    let default = ContentType::default();
    if text == default.as_str() { Ok(default) } else { ContentType::parse(text).map_err(|_| Unreadable) }
}

impl EventHead {
    /// Reads a record, or the beginning of one that ends with its head.
    pub(crate) fn decode(record: &[u8]) -> Result<Self, Unreadable> {
        Self::split(record).map(|(head, _)| head)
    }

    /// The head, and how many bytes come before the payload.
    fn split(record: &[u8]) -> Result<(Self, usize), Unreadable> {
        let mut reader = Reader::new(record);
        reader.version(VERSION)?;
        reader.take(START_BYTES - 1)?;
        let mut head = Reader::new(reader.counted()?);
        let read = Self {
            application: application(head.text()?)?,
            named: optional(head.text()?, id)?,
            kind: optional(head.text()?, EventType::parse)?,
            content_type: content_type(head.text()?)?,
            policy: optional(head.text()?, PolicyName::parse)?,
            url: optional(head.text()?, |url| Ok::<_, Unreadable>(Arc::from(url)))?,
            headers: Headers::from_lines(head.text()?),
            body: body(head)?,
        };
        Ok((read, record.len() - reader.rest().len()))
    }

    /// Whether it came in through the ready list.
    pub(crate) fn is_adopted(&self) -> bool {
        self.body.is_some()
    }

    /// How long the payload is, in a record with so many bytes behind its head.
    pub(crate) fn payload_bytes(&self, behind: u64) -> u64 {
        self.body.as_ref().map_or(behind, |body| body.len() as u64)
    }

    pub(crate) fn id(&self, key: Key, ids: IdSpace) -> EventId {
        self.named.clone().unwrap_or_else(|| ids.event(key))
    }
}

/// What may stand behind the rest of a head.
fn body(mut head: Reader<'_>) -> Result<Option<Range<usize>>, Unreadable> {
    if head.rest().is_empty() {
        return Ok(None);
    }
    let bound = |raw: u32| usize::try_from(raw).map_err(|_| Unreadable);
    Ok(Some(bound(head.u32()?)?..bound(head.u32()?)?))
}

/// The event with this key, its payload sharing the record's memory; and the text it came in as, if it did.
pub(crate) fn decode_event(
    record: &Bytes,
    key: Key,
    ids: IdSpace,
) -> Result<(Event, Option<Bytes>), Unreadable> {
    let (head, payload_at) = EventHead::split(record)?;
    let behind = record.slice(payload_at..);
    let (payload, raw) = match &head.body {
        None => (behind, None),
        Some(body) if body.start <= body.end && body.end <= behind.len() => {
            (behind.slice(body.clone()), Some(behind))
        }
        Some(_) => return Err(Unreadable),
    };
    let event = Event {
        id: head.id(key, ids),
        application: head.application,
        kind: head.kind,
        content_type: head.content_type,
        headers: head.headers,
        payload,
        created_at: key.at(),
        url: head.url,
        policy: head.policy,
    };
    Ok((event, raw))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use teimoso_delivery::model::{Header, Millis};
    use teimoso_delivery::testkit::offer;

    /// As scripts keep it.
    fn kept(record: &[u8]) -> Bytes {
        [&[VERSION; START_BYTES][..], record].concat().into()
    }

    proptest! {
        #[test]
        fn g7_an_event_leads_back_byte_for_byte(
            payload: Vec<u8>, named: bool, kind: bool, policy: bool, header in "[ -~&&[^ ]]{0,40}",
            raw in 0i64..1 << 60,
        ) {
            let mut offered = offer("http://loja.example/a?b=1").payload(payload);
            if named { offered = offered.named("p-1"); }
            if kind { offered = offered.kind("pedido.pago"); }
            if policy { offered = offered.policy("webhook"); }
            let mut event = offered.event();
            event.headers = Headers::new(vec![Header::new("x-a", &header).unwrap()]).unwrap();
            let (key, ids) = (Key::from_raw(raw).unwrap(), IdSpace::new(7));
            let id = event.id.clone().unwrap_or_else(|| ids.event(key));
            let read = decode_event(&kept(&encode_event(&event)), key, ids);
            prop_assert_eq!(read, Ok((Event::accepted(&event, id, key.at()), None)));
        }

        #[test]
        fn bytes_of_no_kind_are_unreadable_and_never_panic(bytes: Vec<u8>) {
            let key = Key::first_at(Millis::new(1));
            let read = decode_event(&bytes.clone().into(), key, IdSpace::new(7));
            prop_assert!(read.is_err() || bytes[0] == VERSION);
        }
    }

    #[test]
    fn g7_an_adopted_event_has_the_bytes_of_its_body_and_keeps_its_text() {
        let text = br#"{"url":"http://a/","corpo":{"a":1.0}}"#;
        let (ids, key) = (IdSpace::new(7), Key::first_at(Millis::new(5)));
        for id in [None, Some(ids.event(key)), EventId::named("evt_1").ok()] {
            let adoption = Adoption { id: id.as_ref(), url: "http://a/", policy: None, body: &(27..36) };
            let (event, raw) = decode_event(&kept(&encode_adopted(&adoption, text)), key, ids).unwrap();
            assert_eq!((&event.payload[..], raw.as_deref()), (&br#"{"a":1.0}"#[..], Some(&text[..])));
            assert_eq!(event.id, id.unwrap_or_else(|| ids.event(key)));
        }
        let outside = Adoption { id: None, url: "http://a/", policy: None, body: &(0..99) };
        assert_eq!(decode_event(&kept(&encode_adopted(&outside, text)), key, ids), Err(Unreadable));
    }

    #[test]
    fn g7_an_event_that_moved_in_is_the_same_event() {
        let (ids, key) = (IdSpace::new(7), Key::first_at(Millis::new(5)));
        let others = IdSpace::new(9).event(key);
        for id in [ids.event(key), others, EventId::named("p-1").unwrap()] {
            let offered = offer("http://a/?x=1").kind("pedido.pago").payload(vec![0, 0xff]).event();
            let event = Event::accepted(&offered, id, key.at());
            let read = decode_event(&kept(&encode_moved(&event, key, ids)), key, ids);
            assert_eq!(read, Ok((event, None)));
        }
    }

    #[test]
    fn an_event_for_nobody_has_no_url() {
        let record = kept(&encode_event(&offer("http://loja.example/").nowhere().event()));
        assert_eq!(EventHead::decode(&record).map(|head| head.url), Ok(None));
    }
}
