//! Intel: Mesa's ANV, and hasvk for chips before Skylake, on a shim that no distribution packages.
//!
//! Their assembly is read in the formats before and since Mesa 26.2.

use crate::line::{CodeAccess, CodePath, LineKind};
use crate::order::number_after;
use crate::text::{DialectReader, DisassemblerDialect};

/// The functions of its dialect.
pub(crate) const READER: DialectReader = DialectReader {
    preprocess: |_, text| join_descriptors(text),
    resource_numbers: |_, lines| resource_numbers(lines),
    ..DialectReader::of_lines(read_line)
};

/// Returns the binding table entry of each line.
fn resource_numbers(lines: &[&str]) -> Vec<Option<u64>> {
    let words = ["bti[", "bti(", "BTI ", "Surface = "];
    lines.iter().map(|line| words.iter().find_map(|word| number_after(line, word))).collect()
}

fn read_line<'t>(dialect: &DisassemblerDialect, line: &'t str) -> Option<(&'t str, LineKind)> {
    let text = line.trim();
    if text.is_empty()
        || text.starts_with("//")
        || text.starts_with("Push constant")
        || text.starts_with("RANGE")
    {
        return None;
    }
    let kind = match dialect.classify_line(text) {
        _ if text.ends_with(':') => LineKind::Label,
        // A message to the workgroup's memory.
        LineKind::Access(access) if text.contains(".slm.") || text.contains("slm MsgDesc") => {
            LineKind::Access(CodeAccess { path: CodePath::Workgroup, ..access })
        }
        kind => kind,
    };
    Some((text, kind))
}

/// Joins a message descriptor with the previous instruction.
fn join_descriptors(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.lines() {
        let is_continuation = line.starts_with("                ") && line.contains("MsgDesc");
        joined.push_str(if is_continuation { " " } else { "\n" });
        joined.push_str(line.trim());
    }
    joined
}
