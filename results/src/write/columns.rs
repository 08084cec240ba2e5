//! Tables for terminals. If the words of a table do not fit the width, each row is printed as a list.

use std::fmt::Write;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{ContentArrangement, Table};

use crate::write::TextLayout;

/// Characters of padding and frame per column, and of frame per table.
const COLUMN_PADDING: usize = 3;
const TABLE_FRAME: usize = 1;

/// Creates an empty table for the layout.
pub(super) fn new_table(layout: TextLayout) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    match layout.width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    if layout.has_colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table
}

/// Formats a table. If a word would be broken, each row becomes a list of its cells.
pub(super) fn format_table(table: &Table, layout: TextLayout) -> String {
    match layout.width {
        Some(width) if words_width(table) > usize::from(width) => format_as_list(table),
        _ => format!("{table}\n"),
    }
}

/// Returns the cells of the header and of each row.
fn cell_texts(table: &Table) -> (Vec<String>, Vec<Vec<String>>) {
    let header =
        table.header().into_iter().flat_map(|row| row.cell_iter()).map(|cell| cell.content()).collect();
    let rows = table.row_iter().map(|row| row.cell_iter().map(|cell| cell.content()).collect()).collect();
    (header, rows)
}

/// Returns the width at which no word is broken.
fn words_width(table: &Table) -> usize {
    let (header, rows) = cell_texts(table);
    let longest = |cell: &String| cell.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    let column = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.get(index)).chain(header.get(index));
        cells.map(longest).max().unwrap_or(0) + COLUMN_PADDING
    };
    (0..header.len()).map(column).sum::<usize>() + TABLE_FRAME
}

/// Formats each row as its first cell, and below it the other nonempty cells with their column names.
fn format_as_list(table: &Table) -> String {
    let (header, rows) = cell_texts(table);
    let name = header.iter().skip(1).map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let mut named = header.iter().zip(row);
        // Writing to a string cannot fail.
        if let Some((_, first)) = named.next() {
            let _ = writeln!(text, "{first}");
        }
        for (header, cell) in named.filter(|(_, cell)| !cell.is_empty()) {
            let _ = writeln!(text, "  {header:name$}  {cell}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_at_width(width: u16) -> String {
        let layout = TextLayout { width: Some(width), has_colour: false, is_brief: false };
        let mut table = new_table(layout);
        table.set_header(["test", "device", "verdict"]);
        table.add_row(["mp/MP+rel-acq", "sim", "inconclusive: not exercised"]);
        table.add_row(["sb/SB", "sim", ""]);
        format_table(&table, layout)
    }

    #[test]
    fn narrow_tables_become_lists() {
        // The longest words have 13, 6 and 13 letters; the frame adds nine and one.
        let wide = format_at_width(42);
        assert!(wide.contains("inconclusive:") && wide.starts_with('┌'), "{wide}");
        assert_eq!(
            format_at_width(41),
            "mp/MP+rel-acq\n  device   sim\n  verdict  inconclusive: not exercised\nsb/SB\n  device   sim\n"
        );
    }
}
