//! How the API's objects look to a person: table cells and blocks of `name: value`.
//! Deliberately absent: fetching them. Fields that are missing are left empty, never guessed.

use serde_json::Value;

use super::list::Columns;
use crate::messages::printable;
use crate::output::table::{Cell, Table};

/// A field as text; nothing when it is missing or null.
pub(super) fn text(value: &Value, name: &str) -> String {
    match value.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A field as a number; zero when it is missing.
pub(super) fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// A field as an array; empty when it is missing.
pub(super) fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) const EVENTS: Columns =
    Columns { header: &["ID", "TYPE", "CREATED", "BYTES", "DELIVERIES"], cells: event_cells };

pub(super) const DELIVERIES: Columns =
    Columns { header: &["ID", "STATE", "ATTEMPTS", "LAST", "NEXT", "URL"], cells: delivery_cells };

pub(super) const DEAD: Columns =
    Columns { header: &["ID", "REASON", "ATTEMPTS", "LAST", "FINISHED", "URL"], cells: dead_cells };

fn event_cells(event: &Value) -> Vec<Cell> {
    let field = |name| Cell::from(text(event, name));
    vec![field("id"), field("type"), field("created_at"), field("payload_bytes"), summary(event).into()]
}

/// `delivered`, or `2 delivered, 1 dead`.
fn summary(event: &Value) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for delivery in array(event, "deliveries") {
        let state = text(delivery, "state");
        match counts.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state, 1)),
        }
    }
    match counts.as_slice() {
        [(state, 1)] => state.clone(),
        counts => {
            let parts: Vec<_> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
            parts.join(", ")
        }
    }
}

fn delivery_cells(delivery: &Value) -> Vec<Cell> {
    let field = |name| Cell::from(text(delivery, name));
    let next = match text(delivery, "state").as_str() {
        "dead" => text(delivery, "reason"),
        _ => text(delivery, "next_attempt_at"),
    };
    vec![
        field("id"),
        Cell::state(&text(delivery, "state")),
        tries(delivery).into(),
        last(delivery).into(),
        next.into(),
        field("url"),
    ]
}

fn dead_cells(delivery: &Value) -> Vec<Cell> {
    let field = |name| Cell::from(text(delivery, name));
    let (attempts, last) = (tries(delivery).into(), last(delivery).into());
    vec![field("id"), field("reason"), attempts, last, field("finished_at"), field("url")]
}

/// `2/5`, or `2` when the most is not known.
fn tries(delivery: &Value) -> String {
    let made = text(delivery, "attempts");
    match text(delivery, "max_attempts").as_str() {
        "" => made,
        max => format!("{made}/{max}"),
    }
}

/// The last answer, else the last error.
fn last(delivery: &Value) -> String {
    match text(delivery, "last_status").as_str() {
        "" => text(delivery, "last_error"),
        status => status.to_owned(),
    }
}

/// The fields of an object, one per line; arrays and objects are left out.
pub(super) fn fields(value: &Value, names: &[&str]) -> String {
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0) + 1;
    let mut lines = String::new();
    for name in names {
        let text = text(value, name);
        if !text.is_empty() {
            let label = format!("{name}:");
            lines += &format!("{label:width$}  {}\n", printable(&text));
        }
    }
    lines
}

pub(super) const EVENT_FIELDS: &[&str] =
    &["id", "type", "application", "created_at", "content_type", "payload_bytes"];

pub(super) const DELIVERY_FIELDS: &[&str] = &[
    "id",
    "event_id",
    "application",
    "endpoint",
    "url",
    "state",
    "reason",
    "mode",
    "attempts",
    "max_attempts",
    "next_attempt_at",
    "next_attempt_why",
    "created_at",
    "finished_at",
    "last_status",
    "last_error",
];

/// The attempts of a delivery as a table; nothing when there are none.
pub(super) fn attempts(list: &[Value]) -> String {
    let header = ["ATTEMPT", "STARTED", "TOOK", "FATE", "ANSWER", "DECISION", "WAIT"];
    let mut table = Table::new(&header);
    for attempt in list {
        let field = |name| text(attempt, name);
        let answer = match field("status") {
            status if status.is_empty() => field("error"),
            status => status,
        };
        let milliseconds = |name| match field(name) {
            number if number.is_empty() => number,
            number => format!("{number}ms"),
        };
        let cells = [
            field("number"),
            field("started_at"),
            milliseconds("duration_ms"),
            field("fate"),
            answer,
            field("decision"),
            milliseconds("wait_ms"),
        ];
        table.row(cells.map(Cell::from));
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.render()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(columns: &Columns, value: &Value) -> String {
        let mut table = Table::new(columns.header);
        table.row((columns.cells)(value));
        table.render().lines().nth(1).expect("a row").to_owned()
    }

    #[test]
    fn a_delivery_is_one_row() {
        let delivery = json!({"id": "dlv_1", "state": "in_flight", "attempts": 2, "max_attempts": 5,
            "last_status": 503, "next_attempt_at": null, "url": "http://x/"});
        assert_eq!(row(&DELIVERIES, &delivery), "dlv_1  in_flight  2/5       503         http://x/");
        let dead = json!({"id": "dlv_1", "reason": "poison", "attempts": 0, "last_error": "boom"});
        assert_eq!(row(&DEAD, &dead), "dlv_1  poison  0         boom");
    }

    #[test]
    fn an_event_sums_its_deliveries_up() {
        let states = |states: &[&str]| {
            let deliveries: Vec<_> = states.iter().map(|state| json!({"state": state})).collect();
            summary(&json!({ "deliveries": deliveries }))
        };
        assert_eq!(states(&[]), "");
        assert_eq!(states(&["dead"]), "dead");
        assert_eq!(states(&["dead", "delivered", "dead"]), "2 dead, 1 delivered");
    }

    #[test]
    fn missing_fields_are_left_out() {
        let shown = fields(&json!({"id": "evt_1", "type": null, "payload_bytes": 12}), EVENT_FIELDS);
        assert_eq!(shown, "id:             evt_1\npayload_bytes:  12\n");
    }
}
