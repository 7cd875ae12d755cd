//! Lists of the API, page by page. Deliberately absent: columns, which belong to the commands.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Context;
use crate::api_client::{ApiClient, ApiError, Query};
use crate::exit::CliError;
use crate::messages::Message;
use crate::output::table::{Cell, Table};

/// How many items one request asks for.
const PAGE_MAX: usize = 200;

/// One element of a list: as the server wrote it, and readable.
#[derive(Debug)]
pub(super) struct Item {
    raw: Box<RawValue>,
    pub(super) value: Value,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// A list that is being read.
#[derive(Debug)]
pub(super) struct Pages {
    query: Query,
    cursor: Option<String>,
    ended: bool,
}

impl Pages {
    pub(super) fn new(query: Query) -> Pages {
        Pages { query, cursor: None, ended: false }
    }

    /// The next page, at most `want` items and at most [`PAGE_MAX`]; `None` after the last.
    pub(super) async fn next(
        &mut self,
        client: &mut ApiClient,
        want: usize,
    ) -> Result<Option<Vec<Item>>, ApiError> {
        if self.ended {
            return Ok(None);
        }
        let query = self.query.clone().with("limit", Some(want.min(PAGE_MAX)));
        let path = query.with("cursor", self.cursor.as_deref()).finish();
        let answer = client.get(&path).await?;
        let page: Page = serde_json::from_slice(&answer.body).map_err(|_| ApiError::NotOurs)?;
        self.ended = page.next_cursor.is_none();
        self.cursor = page.next_cursor;
        page.data.into_iter().map(item).collect::<Result<_, _>>().map(Some)
    }

    pub(super) fn has_more(&self) -> bool {
        !self.ended
    }
}

pub(super) fn item(raw: Box<RawValue>) -> Result<Item, ApiError> {
    let value = serde_json::from_str(raw.get()).map_err(|_| ApiError::NotOurs)?;
    Ok(Item { raw, value })
}

/// How a list is shown: which columns, and each item's cells.
pub(super) struct Columns {
    pub(super) header: &'static [&'static str],
    pub(super) cells: fn(&Value) -> Vec<Cell>,
}

impl fmt::Debug for Columns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Columns").field(&self.header).finish()
    }
}

/// Prints up to `limit` items: as NDJSON while they come, or as one table.
pub(super) async fn print(
    client: &mut ApiClient,
    query: Query,
    limit: usize,
    json: bool,
    columns: &Columns,
    context: Context,
) -> Result<(), CliError> {
    let mut pages = Pages::new(query);
    let mut table = Table::new(columns.header);
    let mut shown = 0;
    while shown < limit
        && let Some(items) = pages.next(client, limit - shown).await?
    {
        let items = &items[..items.len().min(limit - shown)];
        shown += items.len();
        if json {
            context.output.data(&lines(items))?;
        } else {
            items.iter().for_each(|item| table.row((columns.cells)(&item.value)));
        }
    }
    if json {
        return Ok(());
    }
    if table.is_empty() {
        context.output.say(&Message::NothingToShow);
        return Ok(());
    }
    context.output.data(&table.render())?;
    if pages.has_more() {
        context.output.say(&Message::MoreToShow { shown });
    }
    Ok(())
}

/// Items as NDJSON, each as the server wrote it.
pub(super) fn lines(items: &[Item]) -> String {
    items.iter().map(|item| one_line(item.raw.get())).collect()
}

/// A JSON text on one line. Line ends can only stand between tokens: within a string they are escaped.
pub(super) fn one_line(json: &str) -> String {
    let mut line = json.trim().replace(['\n', '\r'], "");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_printed_on_one_line_as_it_came() {
        assert_eq!(one_line(" {\"b\":1.0,\n \"a\":\"x\\ny\"}\r\n"), "{\"b\":1.0, \"a\":\"x\\ny\"}\n");
    }
}
