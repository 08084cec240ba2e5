//! NVIDIA: Mesa's NVK on the nouveau shim; the assembly of its compiler NAK.

use std::collections::BTreeMap;

use crate::line::{CodeAccess, CodePath, LineKind};
use crate::text::{DialectReader, DisassemblerDialect};

/// The functions of its dialect.
pub(crate) const READER: DialectReader =
    DialectReader { resource_numbers, ..DialectReader::of_lines(read_line) };

/// Returns the descriptor of each address, traced from its load (`c[0x1][+0x10]`) through registers in
/// straight-line code.
fn resource_numbers(dialect: &DisassemblerDialect, lines: &[&str]) -> Vec<Option<u64>> {
    let mut descriptor_of_register: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        let (target, operation) = line.split_once(" = ").unwrap_or(("", line));
        let is_access = matches!(read_line(dialect, line), Some((_, LineKind::Access(_))));
        let address = operation.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let operands = if is_access { address.map_or("", |(address, _)| address) } else { operation };
        let mut sources = descriptor_indices(operands).map(Some).collect::<Vec<_>>();
        sources.extend(
            register_names(operands).filter_map(|register| descriptor_of_register.get(register).copied()),
        );
        // A value computed from two descriptors has no single one.
        let first = sources.first().copied();
        let descriptor =
            first.map(|first| if sources.iter().all(|one| *one == first) { first } else { None });
        found.push(descriptor.flatten().filter(|_| is_access));
        for register in register_names(target) {
            match descriptor.filter(|_| !is_access) {
                Some(of) => descriptor_of_register.insert(register, of),
                None => descriptor_of_register.remove(register),
            };
        }
    }
    found
}

fn register_names(text: &str) -> impl Iterator<Item = &str> {
    let is_register = |word: &&str| {
        let number = word.strip_prefix('u').unwrap_or(word).strip_prefix('r');
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_register)
}

/// Returns the descriptor indices among the operands.
fn descriptor_indices(text: &str) -> impl Iterator<Item = u64> {
    text.split("c[0x1][").skip(1).filter_map(|rest| {
        let offset = rest.split(']').next()?.trim_start_matches('+').strip_prefix("0x")?;
        u64::from_str_radix(offset, 16).ok().map(|offset| offset / DESCRIPTOR_BYTES)
    })
}

/// The size of a storage buffer descriptor.
const DESCRIPTOR_BYTES: u64 = 16;

fn read_line<'t>(dialect: &DisassemblerDialect, line: &'t str) -> Option<(&'t str, LineKind)> {
    let text = line.split("//").next().unwrap_or(line).trim();
    let is_frame = text.starts_with("block") || text.starts_with('}') || text.starts_with("sm:");
    if text.is_empty() {
        return None;
    }
    let kind = match dialect.classify_line(text) {
        _ if is_frame => LineKind::Label,
        LineKind::Access(access) if text.contains(".shared") => {
            LineKind::Access(CodeAccess { path: CodePath::Workgroup, ..access })
        }
        kind => kind,
    };
    Some((text, kind))
}
