//! AMD: Mesa's RADV on its null back end or a shim; LLVM's assembly, or ACO's output without a disassembler.

use std::collections::BTreeMap;

use crate::line::{CodeAccess, CodeOperation, CodePath, LineKind};
use crate::text::DialectReader;

/// The functions of its dialect.
pub(crate) const READER: DialectReader = DialectReader {
    resource_numbers: |_, lines| resource_numbers(lines),
    ..DialectReader::of_lines(|_, line| read_line(line))
};

fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let text = line.split([';', '/']).next().unwrap_or(line).trim();
    (!text.is_empty()).then(|| (text, classify_text(text)))
}

/// Returns the mnemonic of a line; in ACO's format it follows the definitions.
fn line_mnemonic(text: &str) -> &str {
    let text = text.rsplit_once(" = ").map_or(text, |(_, instruction)| instruction);
    let word = text.split(' ').next().unwrap_or(text);
    word.strip_prefix("p_").map_or(word, |_| word)
}

fn classify_text(text: &str) -> LineKind {
    if text.ends_with(':') || text.starts_with("BB") {
        return LineKind::Label;
    }
    let mnemonic = line_mnemonic(text);
    let has_prefix = |prefixes: &[&str]| prefixes.iter().any(|prefix| mnemonic.starts_with(prefix));
    if has_prefix(&[
        "s_waitcnt",
        "s_wait_",
        "s_barrier",
        "buffer_gl",
        "buffer_wb",
        "buffer_inv",
        "global_inv",
        "global_wb",
        "s_dcache",
        "s_gl1_inv",
    ]) {
        return LineKind::Order;
    }
    if has_prefix(&["s_cbranch", "s_branch", "s_setpc"]) {
        return LineKind::Jump;
    }
    let path = if has_prefix(&["buffer_", "s_buffer_load"]) {
        CodePath::Buffer
    } else if has_prefix(&["global_", "flat_"]) {
        CodePath::Address
    } else if has_prefix(&["image_", "tbuffer_"]) {
        CodePath::Image
    } else if has_prefix(&[
        "ds_read",
        "ds_write",
        "ds_load",
        "ds_store",
        "ds_add",
        "ds_sub",
        "ds_and",
        "ds_or",
        "ds_xor",
        "ds_min",
        "ds_max",
        "ds_cmp",
        "ds_wrxchg",
        "ds_storexchg",
        "ds_rsub",
        "ds_mskor",
        "ds_inc",
        "ds_dec",
    ]) {
        CodePath::Workgroup
    } else if has_prefix(&["s_load"]) {
        return LineKind::Descriptor;
    } else {
        return LineKind::Other;
    };
    let operation = if path == CodePath::Workgroup {
        match mnemonic {
            _ if mnemonic.starts_with("ds_storexchg") => CodeOperation::Atomic,
            _ if has_prefix(&["ds_read", "ds_load"]) => CodeOperation::Load,
            _ if has_prefix(&["ds_write", "ds_store"]) => CodeOperation::Store,
            _ => CodeOperation::Atomic,
        }
    } else if mnemonic.contains("atomic") {
        CodeOperation::Atomic
    } else if mnemonic.contains("store") {
        CodeOperation::Store
    } else {
        CodeOperation::Load
    };
    // Formats and 16-bit halves: `buffer_load_format_x` uses the texel path.
    let path = if mnemonic.contains("format") { CodePath::Image } else { path };
    LineKind::Access(CodeAccess { operation, path, offset: constant_offset(text) })
}

/// Returns the byte offset of each access's descriptor in its set, traced from its load
/// (`s_load_b128 s[4:7], s[2:3], 0x10`) through straight-line code.
fn resource_numbers(lines: &[&str]) -> Vec<Option<u64>> {
    let mut descriptor_of_registers: BTreeMap<String, u64> = BTreeMap::new();
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        let (_, operands) = line.split_once(' ').unwrap_or_default();
        let operands: Vec<&str> = operands.split([',', ' ']).filter(|word| !word.is_empty()).collect();
        let kind = classify_text(line);
        let descriptor = operands.iter().skip(1).find_map(|operand| descriptor_of_registers.get(*operand));
        found.push(descriptor.copied().filter(|_| matches!(kind, LineKind::Access(_))));
        let (LineKind::Descriptor, [target, _, offset, ..]) = (kind, &operands[..]) else { continue };
        let bounds = target.strip_prefix("s[").and_then(|range| range.strip_suffix(']')?.split_once(':'));
        let Some((Ok(first), Ok(last))) = bounds.map(|(one, two)| (one.parse::<u64>(), two.parse::<u64>()))
        else {
            continue;
        };
        let offset = if *offset == "null" { Some(0) } else { number(offset) };
        // A load of 8 or 16 registers reads an image's descriptor, or those of several buffers.
        let parts = (first..=last).step_by(4).map(|part| (part, part + 3));
        for (start, end) in parts.chain([(first, last)]) {
            let registers = format!("s[{start}:{end}]");
            match offset {
                Some(offset) => descriptor_of_registers.insert(registers, offset + 4 * (start - first)),
                None => descriptor_of_registers.remove(&registers),
            };
        }
    }
    found
}

/// Returns a decimal or hexadecimal number.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the constant of an address: `offset:256`, or the last operand of a scalar load.
fn constant_offset(text: &str) -> u64 {
    let offset_text = text.split([' ', ',']).find_map(|word| word.strip_prefix("offset:"));
    if let Some(named) = offset_text {
        return number(named).unwrap_or(0);
    }
    if line_mnemonic(text).starts_with("s_buffer_load") {
        let operand = text.split(", ").nth(2).and_then(|operand| operand.split(' ').next());
        return operand.and_then(number).unwrap_or(0);
    }
    0
}
