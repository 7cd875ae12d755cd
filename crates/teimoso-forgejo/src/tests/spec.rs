//! Every request against the specification of the API, where one is at hand: `TEIMOSO_FORGEJO_SPEC` names the file, a
//! Swagger 2.0 document as a Forgejo serves it at `/swagger.v1.json`. Without it, the test says that it was skipped.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::operations::everything;
use crate::testkit::Asked;

/// What is asked about a value: its schema, and where the definitions are.
struct Spec<'a>(&'a Value);

impl Spec<'_> {
    /// What is wrong with a request, if anything is.
    fn objection(&self, asked: &Asked) -> Option<String> {
        let segments: Vec<String> = asked
            .path
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let paths = self.0["paths"].as_object()?;
        let method = asked.method.to_ascii_lowercase();
        let fitting: Vec<(&str, &Value)> = paths
            .iter()
            .filter(|(template, path)| fits(template, &segments) && !path[&method].is_null())
            .map(|(template, path)| (template.as_str(), &path[&method]))
            .collect();
        // A word is a better fit than a place for one: `{index}` before `{base}/{head}`.
        let (template, operation) = match fitting.iter().max_by_key(|(template, _)| words(template)) {
            Some(found) => *found,
            None => return Some("there is no such operation".to_owned()),
        };
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        self.path(template, &segments, &parameters)
            .or_else(|| self.query(asked, &parameters))
            .or_else(|| self.body(asked, &parameters))
    }

    fn path(&self, template: &str, segments: &[String], parameters: &[Value]) -> Option<String> {
        template.split('/').zip(segments).find_map(|(place, value)| {
            let name = place.strip_prefix('{')?.strip_suffix('}')?;
            let parameter = parameters.iter().find(|one| one["in"] == "path" && one["name"] == name)?;
            self.text(parameter, value)
        })
    }

    fn query(&self, asked: &Asked, parameters: &[Value]) -> Option<String> {
        asked.query.split('&').filter(|pair| !pair.is_empty()).find_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            match parameters.iter().find(|one| one["in"] == "query" && one["name"] == name) {
                Some(parameter) => self.text(parameter, &value),
                None => Some(format!("there is no parameter {name}")),
            }
        })
    }

    /// A value that stands in a path or a query.
    fn text(&self, parameter: &Value, value: &str) -> Option<String> {
        let well = match parameter["type"].as_str() {
            Some("integer") => value.parse::<i64>().is_ok(),
            Some("boolean") => matches!(value, "true" | "false"),
            _ => !value.is_empty(),
        };
        let allowed = parameter["enum"].as_array().is_none_or(|allowed| allowed.contains(&json!(value)));
        (!well || !allowed).then(|| format!("{} must not be {value}", parameter["name"]))
    }

    fn body(&self, asked: &Asked, parameters: &[Value]) -> Option<String> {
        let schema = parameters.iter().find(|one| one["in"] == "body").map(|one| &one["schema"]);
        match (&asked.body, schema) {
            (None, None) => None,
            (None, Some(_)) => (asked.method != "DELETE").then(|| "the body is missing".to_owned()),
            (Some(_), None) => Some("there must be no body".to_owned()),
            (Some(body), Some(schema)) => {
                let typed = asked.header("content-type") == Some("application/json");
                if typed { self.value(schema, body, "body") } else { Some("the body has no type".to_owned()) }
            }
        }
    }

    /// A value against its schema; fields that the schema does not know are objected to.
    fn value(&self, schema: &Value, value: &Value, at: &str) -> Option<String> {
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/definitions/")) {
            return self.value(&self.0["definitions"][name], value, at);
        }
        let well = match schema["type"].as_str() {
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            _ => true,
        };
        let allowed = schema["enum"].as_array().is_none_or(|allowed| allowed.contains(value));
        if !well || !allowed {
            return Some(format!("{at} must not be {value}"));
        }
        match value {
            Value::Object(fields) => self.fields(schema, fields, at),
            Value::Array(items) => items.iter().find_map(|item| self.value(&schema["items"], item, at)),
            _ => None,
        }
    }

    fn fields(&self, schema: &Value, fields: &serde_json::Map<String, Value>, at: &str) -> Option<String> {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let missing = required.iter().filter_map(Value::as_str).find(|name| !fields.contains_key(*name));
        if let Some(name) = missing {
            return Some(format!("{at}.{name} is missing"));
        }
        fields.iter().find_map(|(name, value)| match &schema["properties"][name] {
            Value::Null => Some(format!("{at}.{name} is unknown")),
            schema => self.value(schema, value, &format!("{at}.{name}")),
        })
    }
}

fn fits(template: &str, segments: &[String]) -> bool {
    let places: Vec<&str> = template.split('/').collect();
    let one = |(place, value): (&&str, &String)| {
        if place.starts_with('{') { !value.is_empty() } else { place == value }
    };
    places.len() == segments.len() && places.iter().zip(segments).all(one)
}

fn words(template: &str) -> usize {
    template.split('/').filter(|place| !place.starts_with('{')).count()
}

#[tokio::test]
async fn every_request_conforms_to_the_specification() {
    let Some(path) = std::env::var_os("TEIMOSO_FORGEJO_SPEC") else {
        println!("SKIPPED: TEIMOSO_FORGEJO_SPEC names no specification");
        return;
    };
    let text = std::fs::read(&path).expect("TEIMOSO_FORGEJO_SPEC names a file that can be read");
    let document: Value = serde_json::from_slice(&text).expect("the specification is JSON");
    assert_eq!(document["swagger"], "2.0");
    let spec = Spec(&document);
    for asked in everything().await {
        let objection = spec.objection(&asked);
        assert_eq!(objection, None, "{} {}?{} {:?}", asked.method, asked.path, asked.query, asked.body);
    }
}

#[test]
fn what_does_not_conform_is_objected_to() {
    let parameter = |place: &str, name: &str, kind: &str| json!({"in": place, "name": name, "type": kind});
    let document = json!({
        "paths": {
            "/a/{n}": {"get": {"parameters": [
                parameter("path", "n", "integer"),
                {"in": "query", "name": "s", "type": "string", "enum": ["x", "y"]},
            ]}},
            "/a": {"post": {"parameters": [{"in": "body", "schema": {"$ref": "#/definitions/A"}}]}},
        },
        "definitions": {"A": {"type": "object", "required": ["t"], "properties": {
            "t": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}},
        }}},
    });
    let asked = |method: &str, path: &str, query: &str, body: Option<Value>| Asked {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body,
    };
    let objection = |asked: Asked| Spec(&document).objection(&asked).unwrap_or_default();
    let rows = [
        (asked("GET", "/a/1", "s=x", None), ""),
        (asked("GET", "/a/b", "", None), "\"n\" must not be b"),
        (asked("GET", "/a/1", "s=z", None), "\"s\" must not be z"),
        (asked("GET", "/a/1", "q=1", None), "there is no parameter q"),
        (asked("GET", "/b", "", None), "there is no such operation"),
        (asked("GET", "/a/1", "", Some(json!({}))), "there must be no body"),
        (asked("POST", "/a", "", None), "the body is missing"),
        (asked("POST", "/a", "", Some(json!({"t": "x", "l": [1]}))), ""),
        (asked("POST", "/a", "", Some(json!({"l": []}))), "body.t is missing"),
        (asked("POST", "/a", "", Some(json!({"t": 1}))), "body.t must not be 1"),
        (asked("POST", "/a", "", Some(json!({"t": "x", "l": ["1"]}))), "body.l must not be \"1\""),
        (asked("POST", "/a", "", Some(json!({"t": "x", "u": 1}))), "body.u is unknown"),
    ];
    for (asked, expected) in rows {
        assert_eq!(objection(asked.clone()), expected, "{asked:?}");
    }
}
