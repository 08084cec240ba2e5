//! Apple: Mesa's Honeykrisp on the asahi shim; its disassembly, which it prints to standard output.

use std::collections::BTreeMap;

use crate::line::LineKind;
use crate::order::number_after;
use crate::text::{DialectReader, DisassemblerDialect};

/// The functions of its dialect.
pub(crate) const READER: DialectReader = DialectReader {
    preprocess: extract_main_part,
    resource_numbers: |_, lines| lines.iter().map(|line| number_after(line, BINDING)).collect(),
    ..DialectReader::of_lines(read_line)
};

/// The note after an access to a descriptor that the preamble has read.
const BINDING: &str = " // descriptor ";

/// Returns the main code up to its end, or up to the start of a continuation.
///
/// The preamble after it loads numbered descriptors into uniform registers; accesses are annotated with these
/// numbers.
fn extract_main_part(dialect: &DisassemblerDialect, text: &str) -> String {
    let mut code: Vec<&str> = Vec::new();
    let mut continuation_start = None;
    for line in text.lines() {
        let Some((text, _)) = read_line(dialect, line) else { continue };
        if !code.is_empty() && line.trim_start().starts_with("0: ") {
            continuation_start = continuation_start.or(Some(code.len()));
        }
        code.push(text);
    }
    let end = code.iter().position(|line| *line == "stop").map_or(code.len(), |at| at + 1);
    let end = continuation_start.map_or(end, |next| end.min(next));
    // The descriptor in a register, and that in a uniform register.
    let mut loaded: BTreeMap<&str, u64> = BTreeMap::new();
    let mut descriptors: BTreeMap<&str, u64> = BTreeMap::new();
    for line in code.get(end..).unwrap_or_default() {
        let operands: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        match operands.as_slice() {
            ["load", registers, _, index, ..] => {
                let register = registers.split('_').next().unwrap_or(registers);
                loaded.extend(index.parse().ok().map(|index: u64| (register, index)));
            }
            ["mov", uniform, register, ..] if uniform.starts_with("du") => {
                let number = loaded.get(register.trim_start_matches(['^', 'd']));
                descriptors.extend(number.map(|number| (*uniform, *number)));
            }
            _ => {}
        }
    }
    let mut main_code = String::new();
    for (place, line) in (0..).zip(code.get(..end).unwrap_or_default()) {
        let mut words = line.split([' ', ',']);
        let descriptor = words.find_map(|word| descriptors.get(word));
        let note = descriptor.map_or_else(String::new, |number| format!("{BINDING}{number}"));
        // In the original format, so that lines can be read again.
        let place: u32 = place;
        main_code.push_str(&format!("{place:x}: 0000 {line}{note}\n"));
    }
    main_code
}

/// Parses a line of the disassembly: `  18: 4511280e00f01200       store    r2, du4, …`.
///
/// Other output about a shader, such as intermediate forms, has no such offsets.
fn read_line<'t>(dialect: &DisassemblerDialect, line: &'t str) -> Option<(&'t str, LineKind)> {
    let (offset, rest) = line.trim().split_once(": ")?;
    let is_offset = !offset.is_empty() && offset.chars().all(|c| c.is_ascii_hexdigit());
    let (bytes, text) = rest.trim_start().split_once(char::is_whitespace)?;
    if !is_offset || bytes.len() < 4 || !bytes.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let text = text.trim();
    Some((text, dialect.classify_line(text)))
}
