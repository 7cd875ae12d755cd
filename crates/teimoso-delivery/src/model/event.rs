//! An event: what a producer asks to have delivered. Immutable once accepted.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;

use super::{EventId, Millis, Mode};

/// Most extra headers an event may carry.
pub const MAX_HEADERS: usize = 64;
/// Most bytes of one header, name and value together.
pub const MAX_HEADER_BYTES: usize = 8 * 1024;

/// A value the model refuses: which field, and the rule it breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {rule}")]
pub struct InvalidValue {
    field: &'static str,
    rule: Cow<'static, str>,
}

impl InvalidValue {
    /// `rule` reads after the field's name: "must be …", "may hold …".
    #[must_use]
    pub const fn new(field: &'static str, rule: &'static str) -> Self {
        Self { field, rule: Cow::Borrowed(rule) }
    }

    /// The field's name in the API.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// The broken rule.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

macro_rules! text {
    ($(#[$meta:meta])* $name:ident, $field:literal, $max:literal, $ok:expr, $rule:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Validates `text`.
            ///
            /// # Errors
            /// When it is empty, longer than the limit or holds another character.
            pub fn parse(text: &str) -> Result<Self, InvalidValue> {
                let allowed: fn(u8) -> bool = $ok;
                if text.is_empty() || text.len() > $max || !text.bytes().all(allowed) {
                    return Err(InvalidValue::new($field, $rule));
                }
                Ok(Self(text.into()))
            }

            /// The text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text! {
    /// A tenant's name: the unit of isolation and of sharding.
    Application, "application", 64,
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
    "must be 1 to 64 letters, digits, _ or -"
}

impl Default for Application {
    /// `default`, shared: nearly every event has it.
    fn default() -> Self {
        static DEFAULT: LazyLock<Application> = LazyLock::new(|| Application("default".into()));
        DEFAULT.clone()
    }
}

text! {
    /// What kind of thing happened, for filters: dotted words.
    EventType, "type", 128,
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b':'),
    "must be 1 to 128 letters, digits or any of _ - . / :"
}

text! {
    /// A producer's key for safe repetition, kept 24 h by default.
    IdempotencyKey, "idempotency_key", 256,
    |b| b.is_ascii_graphic() || b == b' ',
    "must be 1 to 256 bytes of visible ASCII"
}

text! {
    /// The payload's media type as it is sent.
    ContentType, "content_type", 256,
    |b| b.is_ascii_graphic() || b == b' ' || b == b'\t',
    "must be 1 to 256 bytes of visible ASCII"
}

impl Default for ContentType {
    /// `application/json`, shared: nearly every event has it.
    fn default() -> Self {
        static DEFAULT: LazyLock<ContentType> = LazyLock::new(|| ContentType("application/json".into()));
        DEFAULT.clone()
    }
}

text! {
    /// The name of a retry policy.
    PolicyName, "policy", 64,
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
    "must be 1 to 64 letters, digits, _ or -"
}

/// One extra header of an event's requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Header {
    name: Box<str>,
    value: Box<str>,
}

impl Header {
    /// Validates a field name (RFC 9110 §5.1 token) and value (§5.5, visible ASCII, space and tab).
    ///
    /// # Errors
    /// When either is malformed, too long, or the name is one the sender itself writes.
    pub fn new(name: &str, value: &str) -> Result<Self, InvalidValue> {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(token) {
            return Err(InvalidValue::new("headers", "must have names that are RFC 9110 tokens"));
        }
        let visible = |b: u8| b.is_ascii_graphic() || b == b' ' || b == b'\t';
        if value.trim() != value || !value.bytes().all(visible) {
            return Err(InvalidValue::new(
                "headers",
                "must have values of visible ASCII, without outer spaces",
            ));
        }
        if name.len() + value.len() > MAX_HEADER_BYTES {
            return Err(InvalidValue::new("headers", "must be at most 8192 bytes each"));
        }
        let name = name.to_ascii_lowercase();
        if RESERVED.contains(&name.as_str()) || name.starts_with("webhook-") || name.starts_with("teimoso-") {
            let rule = format!("must not name `{name}`, which the sender writes itself");
            return Err(InvalidValue { field: "headers", rule: rule.into() });
        }
        Ok(Self { name: name.into(), value: value.into() })
    }

    /// Lower-case name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// Written by the transport or by the framing itself, where a second one would be request smuggling; and the
/// product's own name (G10).
const RESERVED: &[&str] = &[
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "user-agent",
];

/// An event's extra headers, in the producer's order, at most [`MAX_HEADERS`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(Arc<[Header]>);

impl Headers {
    /// Takes validated headers.
    ///
    /// # Errors
    /// When there are more than [`MAX_HEADERS`].
    pub fn new(headers: Vec<Header>) -> Result<Self, InvalidValue> {
        if headers.len() > MAX_HEADERS {
            return Err(InvalidValue::new("headers", "must be at most 64"));
        }
        Ok(Self(headers.into()))
    }

    /// The headers in order.
    pub fn iter(&self) -> impl Iterator<Item = &Header> {
        self.0.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One text for a store: `name: value` lines.
    #[must_use]
    pub fn to_lines(&self) -> String {
        self.iter().map(|h| format!("{}: {}\n", h.name, h.value)).collect()
    }

    /// Reads what [`Headers::to_lines`] wrote. Lines it did not write are skipped.
    #[must_use]
    pub fn from_lines(lines: &str) -> Self {
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some(Header { name: name.into(), value: value.into() })
        };
        Self(lines.lines().filter_map(header).collect())
    }
}

/// Where an event goes that names its own URL. Checked and taken apart by whoever accepts it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The normalised URL, with its query.
    pub url: Arc<str>,
    /// The same without query: the lane's address.
    pub lane: Arc<str>,
    /// Scheme, host and port: the lane's address when there are too many lanes.
    pub origin: Arc<str>,
}

/// An event as it is offered to a store.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// The tenant.
    pub application: Application,
    /// The caller's own id, if any. Always [`EventId::Named`] in effect: ours are given by the store.
    pub id: Option<EventId>,
    /// The producer's key for safe repetition, if any.
    pub idempotency_key: Option<IdempotencyKey>,
    /// A digest of all that makes two requests the same. Compared when a name is repeated.
    pub fingerprint: [u8; 16],
    /// For filters; `None` when the producer named none.
    pub kind: Option<EventType>,
    /// The payload's media type.
    pub content_type: ContentType,
    /// Extra request headers.
    pub headers: Headers,
    /// The bytes that will arrive (G7).
    pub payload: Bytes,
    /// The event's own URL; `None` fans out to the application's endpoints.
    pub destination: Option<Destination>,
    /// What repeating may cost.
    pub mode: Mode,
    /// The event's own retry policy.
    pub policy: Option<PolicyName>,
    /// Not before this instant; `None` is at once.
    pub deliver_at: Option<Millis>,
}

/// An accepted event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The same on every attempt.
    pub id: EventId,
    /// The tenant.
    pub application: Application,
    /// For filters.
    pub kind: Option<EventType>,
    /// The payload's media type.
    pub content_type: ContentType,
    /// Extra request headers.
    pub headers: Headers,
    /// The bytes that will arrive (G7).
    pub payload: Bytes,
    /// When it was accepted.
    pub created_at: Millis,
    /// The event's own URL, with its query.
    pub url: Option<Arc<str>>,
    /// The event's own retry policy.
    pub policy: Option<PolicyName>,
}

impl Event {
    /// The event that `offered` becomes under the id a store gave it.
    #[must_use]
    pub fn accepted(offered: &NewEvent, id: EventId, created_at: Millis) -> Self {
        Self {
            id,
            application: offered.application.clone(),
            kind: offered.kind.clone(),
            content_type: offered.content_type.clone(),
            headers: offered.headers.clone(),
            payload: offered.payload.clone(),
            created_at,
            url: offered.destination.as_ref().map(|destination| destination.url.clone()),
            policy: offered.policy.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_round_trip() {
        let headers = vec![Header::new("X-A", "1: 2").unwrap(), Header::new("x-b", "").unwrap()];
        let headers = Headers::new(headers).unwrap();
        assert_eq!(Headers::from_lines(&headers.to_lines()), headers);
    }

    #[test]
    fn a_header_cannot_smuggle_or_shadow_ours() {
        for (name, value) in [
            ("a b", "1"),
            ("x", "1\r\nhost: evil"),
            ("Content-Length", "1"),
            ("webhook-id", "1"),
            ("Host", "x"),
            ("User-Agent", "x"),
            ("x", "é"),
        ] {
            assert!(Header::new(name, value).is_err(), "{name}: {value}");
        }
    }

    #[test]
    fn a_header_of_ours_is_named_in_the_refusal() {
        for (given, named) in [("Host", "host"), ("WEBHOOK-ID", "webhook-id"), ("Teimoso-X", "teimoso-x")] {
            let refused = Header::new(given, "1").unwrap_err();
            let sentence = format!("headers must not name `{named}`, which the sender writes itself");
            assert_eq!(refused.to_string(), sentence);
        }
    }

    #[test]
    fn texts_have_bounds() {
        assert!(Application::parse("loja-1").is_ok());
        assert!(Application::parse("").is_err());
        assert!(Application::parse(&"a".repeat(65)).is_err());
        assert!(EventType::parse("pedido.pago").is_ok());
        assert!(EventType::parse("pedido pago").is_err());
        assert!(IdempotencyKey::parse("k\n").is_err());
    }
}
