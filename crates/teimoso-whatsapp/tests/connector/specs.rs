//! The requests of our adapters against the providers' own specifications, where those are at hand:
//! `TEIMOSO_WHATSAPP_SPECS` names the folder that holds them. Where we knowingly go beyond one, it says so here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use teimoso_whatsapp::testkit::{Asked, Double};
use yaml_rust2::{Yaml, YamlLoader};

use crate::requests::all_requests;
use crate::support::connector;

/// Provider and file.
const SPECS: [(&str, &str); 7] = [
    ("waha", "waha-nodes_WAHA_v202409_openapi.json"),
    ("evolution-go", "evolution-go-swagger.json"),
    ("uazapi", "uazapi-openapi.json"),
    ("wuzapi", "wuzapi-spec.yml"),
    ("whapi", "whapi-mcp-manifest.json"),
    ("wppconnect", "wppconnect-server-swagger.json"),
    ("quepasa", "quepasa-swagger.json"),
];

/// What our requests have that the specification has not, and where that is known from.
const BEYOND: [(&str, &str); 14] = [
    // Newer releases than the document's.
    ("waha send_text", "`id` is not declared"),
    ("waha find", "no such operation"),
    // The document calls media type and file name objects, and has texts for them in its own examples.
    ("waha video", "`file` fits none of its forms"),
    ("waha audio", "`file` fits none of its forms"),
    // The source takes a form; the document knows the URL of a file only.
    ("evolution-go image", "the body is no JSON"),
    ("evolution-go video", "the body is no JSON"),
    ("evolution-go audio", "the body is no JSON"),
    ("evolution-go document", "the body is no JSON"),
    // Its own text says that a QR code is made when there is no number.
    ("uazapi connect", "`phone` is missing"),
    // The source takes it.
    ("quepasa send_text", "`id` is not declared"),
    ("quepasa image", "`id` is not declared"),
    ("quepasa video", "`id` is not declared"),
    ("quepasa audio", "`id` is not declared"),
    ("quepasa document", "`id` is not declared"),
];

/// One operation of a specification.
struct Operation {
    method: String,
    path: String,
    /// The schema of its JSON body; `null` for none.
    body: Value,
    required_query: Vec<String>,
}

#[tokio::test]
async fn our_requests_are_those_of_the_specifications() {
    let Some(folder) = std::env::var_os("TEIMOSO_WHATSAPP_SPECS") else {
        eprintln!("SKIPPED: TEIMOSO_WHATSAPP_SPECS names no folder with the providers' specifications");
        return;
    };
    let mut found = BTreeSet::new();
    for (name, file) in SPECS {
        let operations = operations(&Path::new(&folder).join(file));
        let double = Double::of(name);
        let (connector, _) = connector(&double);
        for (operation, asked) in all_requests(&double, &connector).await {
            let complaints = complaints(&operations, &asked);
            found.extend(complaints.into_iter().map(|complaint| (format!("{name} {operation}"), complaint)));
        }
    }
    let known: BTreeSet<_> =
        BEYOND.iter().map(|(who, what)| ((*who).to_owned(), (*what).to_owned())).collect();
    assert_eq!(found, known);
}

fn complaints(operations: &[Operation], asked: &Asked) -> Vec<String> {
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let fits = |operation: &&Operation| operation.method == asked.method && is_path(&operation.path, path);
    let Some(operation) = operations.iter().find(fits) else { return vec!["no such operation".to_owned()] };
    let given: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    let missing = operation.required_query.iter().filter(|name| !given.contains(&name.as_str()));
    let mut complaints: Vec<String> = missing.map(|name| format!("the query `{name}` is missing")).collect();
    if asked.body.is_empty() {
        return complaints;
    }
    match serde_json::from_slice(&asked.body) {
        Ok(body) => check(&operation.body, &body, "", &mut complaints),
        Err(_) => complaints.push("the body is no JSON".to_owned()),
    }
    complaints
}

/// Whether a path is one of this template.
fn is_path(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let fits = |(wanted, is): (&&str, &&str)| wanted == is || (wanted.starts_with('{') && !is.is_empty());
    template.len() == path.len() && template.iter().zip(&path).all(fits)
}

fn check(schema: &Value, value: &Value, place: &str, complaints: &mut Vec<String>) {
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = |choice: &&Value| {
            let mut complaints = Vec::new();
            check(choice, value, place, &mut complaints);
            complaints.is_empty()
        };
        if !choices.iter().any(|choice| fits(&choice)) {
            complaints.push(format!("`{place}` fits none of its forms"));
        }
        return;
    }
    let is = match value {
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null => "null",
    };
    let wanted = schema["type"].as_str().unwrap_or(is);
    if wanted != is {
        return complaints.push(format!("`{place}` is {is} and not {wanted}"));
    }
    let choices = schema["enum"].as_array();
    if choices.is_some_and(|choices| !choices.contains(value)) {
        complaints.push(format!("`{place}` is none of its values"));
    }
    let Value::Object(members) = value else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            complaints.push(format!("`{name}` is missing"));
        }
    }
    for (name, member) in members {
        match schema["properties"].get(name) {
            Some(schema) => check(schema, member, name, complaints),
            None => complaints.push(format!("`{name}` is not declared")),
        }
    }
}

fn operations(file: &Path) -> Vec<Operation> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let document = match file.extension().is_some_and(|extension| extension == "yml") {
        true => from_yaml(&YamlLoader::load_from_str(&text).expect("YAML")[0]),
        false => serde_json::from_str(&text).expect("JSON"),
    };
    match document.as_array() {
        Some(tools) => tools.iter().map(of_manifest).collect(),
        None => of_openapi(&document),
    }
}

/// A manifest of tools, each with its request.
fn of_manifest(tool: &Value) -> Operation {
    let http = &tool["http"];
    let text = |field: &str| http[field].as_str().expect("a text").to_owned();
    Operation {
        method: text("method"),
        path: text("path"),
        body: http["requestBody"]["schema"].clone(),
        required_query: required(&http["queryParams"], |_| true),
    }
}

fn required(parameters: &Value, wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let parameters = parameters.as_array().into_iter().flatten();
    let required = parameters.filter(|parameter| parameter["required"] == true && wanted(parameter));
    required.map(|parameter| parameter["name"].as_str().expect("a name").to_owned()).collect()
}

/// OpenAPI 3, or Swagger 2 with its parameter in the body.
fn of_openapi(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods");
        methods.iter().map(move |(method, operation)| (path, method, operation))
    });
    all.map(|(path, method, operation)| {
        let parameters = resolved(document, &operation["parameters"], 0);
        let in_body = parameters.as_array().into_iter().flatten().find(|parameter| parameter["in"] == "body");
        let body = match in_body {
            Some(parameter) => parameter["schema"].clone(),
            None => resolved(document, &operation["requestBody"]["content"]["application/json"]["schema"], 0),
        };
        Operation {
            method: method.to_uppercase(),
            path: path.clone(),
            body,
            required_query: required(&parameters, |parameter| parameter["in"] == "query"),
        }
    })
    .collect()
}

/// With every reference replaced by what it points at.
fn resolved(document: &Value, value: &Value, depth: usize) -> Value {
    match value {
        _ if depth > 12 => Value::Null,
        Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
            Some(reference) => {
                // One document forgets the slash.
                let pointer = format!("/{}", reference.trim_start_matches(['#', '/']));
                resolved(
                    document,
                    document.pointer(&pointer).expect("a reference points somewhere"),
                    depth + 1,
                )
            }
            None => members
                .iter()
                .map(|(name, value)| (name.clone(), resolved(document, value, depth + 1)))
                .collect(),
        },
        Value::Array(list) => list.iter().map(|value| resolved(document, value, depth + 1)).collect(),
        other => other.clone(),
    }
}

fn from_yaml(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::String(text) | Yaml::Real(text) => json!(text),
        Yaml::Integer(number) => json!(number),
        Yaml::Boolean(value) => json!(value),
        Yaml::Array(list) => list.iter().map(from_yaml).collect(),
        Yaml::Hash(members) => {
            let members = members.iter().map(|(name, value)| {
                let name = name.as_str().map_or_else(|| format!("{name:?}"), str::to_owned);
                (name, from_yaml(value))
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        _ => Value::Null,
    }
}
