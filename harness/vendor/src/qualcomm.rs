//! Qualcomm: Mesa's Turnip on the freedreno shim; the assembly of its compiler ir3.

use crate::line::{CodeAccess, CodePath, LineKind};
use crate::order::number_after;
use crate::text::{DialectReader, DisassemblerDialect};

/// The functions of the dialect of ir3. Its heading contains a hash of the shader, and its end counts
/// instructions: neither is code.
pub(crate) const READER: DialectReader = DialectReader {
    preprocess: |_, text| truncate_at_end(text),
    resource_numbers,
    ..DialectReader::of_lines(read_line)
};

/// Returns the resource number: `t#2` of a texture, else the last operand of an access if it is a constant.
fn resource_numbers(dialect: &DisassemblerDialect, lines: &[&str]) -> Vec<Option<u64>> {
    let last_operand = |line: &str| line.rsplit(", ").next().and_then(|word| word.trim().parse().ok());
    let resource_number = |line: &&str| match read_line(dialect, line)? {
        (_, LineKind::Access(_)) => number_after(line, "t#").or_else(|| last_operand(line)),
        _ => None,
    };
    lines.iter().map(resource_number).collect()
}

/// Returns the text up to the end of the shader; the rest is padding for the instruction fetch.
fn truncate_at_end(text: &str) -> String {
    let mut code = String::new();
    for line in text.lines() {
        code.push_str(line);
        code.push('\n');
        if line.trim() == "end" {
            break;
        }
    }
    code
}

fn read_line<'t>(dialect: &DisassemblerDialect, line: &'t str) -> Option<(&'t str, LineKind)> {
    let text = line.trim();
    let is_heading = text.starts_with(';') || text.starts_with('@') || text.starts_with("Native code");
    if text.is_empty() || is_heading {
        return None;
    }
    let kind = match dialect.classify_line(text) {
        _ if text.ends_with(':') => LineKind::Label,
        LineKind::Access(access) if text.contains(".typed.") => {
            LineKind::Access(CodeAccess { path: CodePath::Image, ..access })
        }
        kind => kind,
    };
    Some((text, kind))
}
