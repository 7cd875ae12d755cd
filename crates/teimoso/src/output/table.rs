//! Tables for people: a header, and columns as wide as their widest cell.
//! Deliberately absent: cutting cells to the width of the terminal; a copied id has to be whole.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};

use crate::messages::printable;

/// A table in the making.
#[derive(Debug)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// A cell, and how it is coloured where colours are shown.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A plain cell. Control characters are shown as escapes.
    #[must_use]
    pub fn plain(text: &str) -> Cell {
        Cell { text: printable(text), style: Style::new() }
    }

    /// A cell with a delivery state: green when delivered, red when dead, yellow while it is tried again.
    #[must_use]
    pub fn state(state: &str) -> Cell {
        let colour = match state {
            "delivered" => Some(AnsiColor::Green),
            "dead" => Some(AnsiColor::Red),
            "scheduled" => Some(AnsiColor::Yellow),
            _ => None,
        };
        Cell { text: printable(state), style: Style::new().fg_color(colour.map(Into::into)) }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::plain(&text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::plain(text)
    }
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(header: &[&str]) -> Table {
        Table { header: header.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row; cells beyond the header are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().take(self.header.len()).collect());
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines, each with its line end; nothing hangs over at the right.
    #[must_use]
    pub fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.header.len()).map(|column| self.width(column)).collect();
        let mut text = String::new();
        let header = self.header.iter().map(|name| Cell::plain(name)).collect::<Vec<_>>();
        for row in std::iter::once(&header).chain(&self.rows) {
            line(&mut text, row, &widths);
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count());
        cells.chain(self.header.get(column).map(|name| name.chars().count())).max().unwrap_or(0)
    }
}

fn line(text: &mut String, row: &[Cell], widths: &[usize]) {
    let last = row.len().saturating_sub(1);
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let Cell { text: words, style } = cell;
        let space = if index == last { 0 } else { width.saturating_sub(words.chars().count()) + 2 };
        // Writing to a string cannot fail.
        let _never = write!(text, "{style}{words}{style:#}{:space$}", "");
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["ID", "STATE", "WHY"]);
        table.row(["dlv_1".into(), Cell::plain("in_flight"), "".into()]);
        table.row(["dlv_1000".into(), Cell::plain("dead"), "poison".into()]);
        let expected = "ID        STATE      WHY\ndlv_1     in_flight\ndlv_1000  dead       poison\n";
        assert_eq!(table.render(), expected);
    }

    #[test]
    fn cells_cannot_steer_the_terminal_or_break_the_line() {
        let mut table = Table::new(&["A"]);
        table.row([Cell::plain("x\u{1b}[2J\ny")]);
        assert_eq!(table.render(), "A\nx\\u{1b}[2J\\ny\n");
    }

    #[test]
    fn states_are_coloured() {
        let mut table = Table::new(&["S"]);
        table.row([Cell::state("dead")]);
        assert_eq!(table.render(), "S\n\u{1b}[31mdead\u{1b}[0m\n");
    }
}
