//! The bodies a caller sends, as they are: borrowed from the request, nothing validated but their form.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use teimoso_delivery::model::MAX_HEADERS;

use super::json::{Fields, Object, Text, Trace};

/// `POST /v1/events`, and a line of `POST /v1/events/batch`. `null` is as good as absent, except for the
/// payload, of which it is a value.
#[derive(Debug, Default)]
pub(crate) struct EventBody<'a> {
    pub(crate) url: Option<Text<'a>>,
    pub(crate) kind: Option<Text<'a>>,
    pub(crate) payload: Option<&'a RawValue>,
    pub(crate) id: Option<Text<'a>>,
    pub(crate) application: Option<Text<'a>>,
    pub(crate) headers: Option<HeaderList<'a>>,
    pub(crate) mode: Option<Text<'a>>,
    pub(crate) deliver_at: Option<Text<'a>>,
    pub(crate) policy: Option<Text<'a>>,
    pub(crate) idempotency_key: Option<Text<'a>>,
}

impl<'de> Fields<'de> for EventBody<'de> {
    const NAMES: &'static [&'static str] = &[
        "url",
        "type",
        "payload",
        "id",
        "application",
        "headers",
        "mode",
        "deliver_at",
        "policy",
        "idempotency_key",
    ];

    fn read<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
        _trace: &mut Trace,
    ) -> Result<(), A::Error> {
        match name {
            "payload" => self.payload = Some(map.next_value()?),
            "url" => self.url = map.next_value()?,
            "type" => self.kind = map.next_value()?,
            "id" => self.id = map.next_value()?,
            "application" => self.application = map.next_value()?,
            "headers" => self.headers = map.next_value()?,
            "mode" => self.mode = map.next_value()?,
            "deliver_at" => self.deliver_at = map.next_value()?,
            "policy" => self.policy = map.next_value()?,
            _ => self.idempotency_key = map.next_value()?,
        }
        Ok(())
    }
}

/// An object of strings, in its order, repetitions included. One more than an event may carry is kept, which
/// suffices to refuse them all; the others are skipped.
#[derive(Debug, Default)]
pub(crate) struct HeaderList<'a>(pub(crate) Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de: 'a, 'a> Deserialize<'de> for HeaderList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = HeaderList<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeaderList<'de>, A::Error> {
                let mut pairs = Vec::new();
                while pairs.len() <= MAX_HEADERS {
                    let Some((Text(name), Text(value))) = map.next_entry()? else {
                        return Ok(HeaderList(pairs));
                    };
                    pairs.push((name, value));
                }
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(HeaderList(pairs))
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}

/// `POST /v1/deliveries/{id}/retry`.
#[derive(Debug, Default)]
pub(crate) struct RetryBody {
    pub(crate) explicit: Option<bool>,
}

impl<'de> Fields<'de> for RetryBody {
    const NAMES: &'static [&'static str] = &["explicit"];

    fn read<A: MapAccess<'de>>(
        &mut self,
        _name: &'static str,
        map: &mut A,
        _trace: &mut Trace,
    ) -> Result<(), A::Error> {
        self.explicit = map.next_value()?;
        Ok(())
    }
}

/// `POST /v1/replays`.
#[derive(Debug, Default)]
pub(crate) struct ReplayBody<'a> {
    pub(crate) filter: ReplayFilterBody<'a>,
    pub(crate) rate: Option<u64>,
    pub(crate) dry_run: Option<bool>,
}

impl<'de> Fields<'de> for ReplayBody<'de> {
    const NAMES: &'static [&'static str] = &["filter", "rate", "dry_run"];

    fn read<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
        trace: &mut Trace,
    ) -> Result<(), A::Error> {
        match name {
            "filter" => self.filter = map.next_value_seed(Object::new(trace))?,
            "rate" => self.rate = map.next_value()?,
            _ => self.dry_run = map.next_value()?,
        }
        Ok(())
    }
}

/// The `filter` of [`ReplayBody`].
#[derive(Debug, Default)]
pub(crate) struct ReplayFilterBody<'a> {
    pub(crate) reason: Option<Text<'a>>,
    pub(crate) since: Option<Text<'a>>,
    pub(crate) until: Option<Text<'a>>,
}

impl<'de> Fields<'de> for ReplayFilterBody<'de> {
    const NAMES: &'static [&'static str] = &["reason", "since", "until"];

    fn read<A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        map: &mut A,
        _trace: &mut Trace,
    ) -> Result<(), A::Error> {
        match name {
            "reason" => self.reason = map.next_value()?,
            "since" => self.since = map.next_value()?,
            _ => self.until = map.next_value()?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::json::parse;
    use super::super::problem::{Code, Problem};
    use super::*;

    fn refused(text: &str) -> (Code, String) {
        let problem = parse::<EventBody<'_>>(text.as_bytes()).map(|_| ()).unwrap_err();
        (problem.code(), problem.to_string())
    }

    #[test]
    fn g7_a_payload_is_the_very_bytes() {
        let payloads = [
            "1.0",
            "1e400",
            "null",
            r#"{"a":1,"a":2,  "b" : [ 1 ]}"#,
            "12345678901234567890",
            "\"\u{2028}\"",
            r#""\ud800""#,
            r#""\u0041""#,
        ];
        for payload in payloads {
            let text = format!("{{\"url\": \"http://x/\",\"payload\" :\n {payload} }} ");
            let body: EventBody<'_> = parse(text.as_bytes()).unwrap();
            assert_eq!(body.payload.unwrap().get(), payload);
        }
    }

    #[test]
    fn g7_depth_is_the_receivers_business() {
        let payload = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!("{{\"payload\":{payload}}}");
        let body: EventBody<'_> = parse(text.as_bytes()).unwrap();
        assert_eq!(body.payload.unwrap().get(), payload);
    }

    #[test]
    fn malformed_json_is_told_with_line_column_and_byte() {
        let (code, text) = refused("{\"url\":\"x\",\n\"payload\": tru }");
        assert_eq!(code, Code::MalformedJson);
        assert!(text.contains("line 2 column 15") && text.contains("(byte 26)"), "{text}");
        let (code, text) = refused("{\"payload\":1");
        assert_eq!(code, Code::MalformedJson);
        assert!(text.contains("(byte 12)"), "{text}");
        assert_eq!(refused("{\"payload\":1} x").0, Code::MalformedJson);
        assert_eq!(refused("").0, Code::MalformedJson);
        let problem = parse::<EventBody<'_>>(b"{\"payload\":\"\xff\"}").map(|_| ()).unwrap_err();
        assert_eq!(problem.to_string(), "malformed_json: the JSON is not UTF-8 at byte 12");
    }

    #[test]
    fn an_unknown_field_is_told_with_the_nearest_and_the_place() {
        let (code, text) = refused("{\"playload\":1}");
        assert_eq!(code, Code::UnknownField);
        assert!(text.contains("unknown field `playload` at line 1 column 11 (byte 10)"), "{text}");
        assert!(text.contains("did you mean `payload`?"), "{text}");
    }

    #[test]
    fn a_repeated_field_is_refused() {
        let (code, text) = refused("{\"payload\":1,\"payload\":2}");
        assert_eq!(code, Code::DuplicateField);
        assert!(text.contains("`payload` appears twice"), "{text}");
    }

    #[test]
    fn a_wrong_type_points_at_its_field() {
        let pointer =
            |problem: Problem| serde_json::to_value(problem.body()).unwrap()["errors"][0]["pointer"].clone();
        let problem = parse::<EventBody<'_>>(b"{\"url\":1}").map(|_| ()).unwrap_err();
        assert_eq!((problem.code(), pointer(problem)), (Code::InvalidValue, "/url".into()));
        let problem = parse::<ReplayBody<'_>>(b"{\"filter\":{\"since\":1}}").map(|_| ()).unwrap_err();
        assert_eq!((problem.code(), pointer(problem)), (Code::InvalidValue, "/filter/since".into()));
        let problem = parse::<ReplayBody<'_>>(b"{\"filter\":{\"sinse\":1}}").map(|_| ()).unwrap_err();
        assert_eq!((problem.code(), pointer(problem)), (Code::UnknownField, "/filter/sinse".into()));
        let problem = parse::<EventBody<'_>>(b"[1]").map(|_| ()).unwrap_err();
        assert_eq!((problem.code(), pointer(problem)), (Code::InvalidValue, "".into()));
    }

    proptest! {
        #[test]
        fn no_input_panics_and_every_place_is_within_it(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _refused = parse::<EventBody<'_>>(&bytes);
        }

        #[test]
        fn nearly_right_input_does_not_panic_either(text in "[{}\\[\\]\":, \\n0-9a-z\\\\é]{0,40}") {
            let wrapped = format!("{{\"payload\":{text}");
            let _refused = parse::<EventBody<'_>>(text.as_bytes());
            let _refused = parse::<EventBody<'_>>(wrapped.as_bytes());
        }
    }

    #[test]
    fn g11_of_headers_without_end_one_too_many_is_kept() {
        let list = |count: usize| {
            let pairs: Vec<_> = (0..count).map(|n| format!("\"h{n}\":\"v\"")).collect();
            let text = format!("{{\"headers\":{{{}}},\"payload\":1}}", pairs.join(","));
            let body: EventBody<'_> = parse(text.as_bytes()).unwrap();
            assert_eq!(body.payload.unwrap().get(), "1");
            body.headers.unwrap().0.len()
        };
        assert_eq!([0, 64, 65, 66, 50_000].map(list), [0, 64, 65, 65, 65]);
    }

    #[test]
    fn null_is_absent() {
        let body: EventBody<'_> = parse(b"{\"url\":null,\"headers\":null,\"payload\":null}").unwrap();
        assert!(body.url.is_none() && body.headers.is_none());
        assert_eq!(body.payload.unwrap().get(), "null");
    }
}
