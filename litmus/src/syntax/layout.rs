//! Names, lines and aligned columns of printed tests.

use std::fmt::Write;

use crate::test::{LocationId, RegisterId, Test, Thread};

pub(super) fn location_name(test: &Test, id: LocationId) -> &str {
    &test.location(id).name
}

pub(super) fn register_name(thread: &Thread, id: RegisterId) -> &str {
    thread.registers.get(usize::from(id.0)).map_or("?", |register| &register.name)
}

pub(super) fn push_line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Writes the rows of a table; each column begins with its thread.
pub(super) fn push_aligned_rows(out: &mut String, columns: &[Vec<String>]) {
    // A table has at least one row after the header row, even if all threads are empty.
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0).max(2);
    let widths: Vec<usize> =
        columns.iter().map(|cells| cells.iter().map(String::len).max().unwrap_or(0)).collect();
    for row in 0..rows {
        for (index, (cells, width)) in columns.iter().zip(&widths).enumerate() {
            let cell = cells.get(row).map_or("", String::as_str);
            let separator = if index == 0 { " " } else { " | " };
            let written = write!(out, "{separator}{cell:width$}");
            debug_assert!(written.is_ok(), "writing to a string cannot fail");
        }
        out.push_str(" ;\n");
    }
}
