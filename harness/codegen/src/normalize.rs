//! Normalization of machine code for comparison: names of registers and labels, and padding.

use std::collections::BTreeMap;

use crate::disassembly::{CodeLine, DisassemblerDialect, Disassembly, LineKind};

impl Disassembly {
    /// Returns normalized lines for comparison: registers and labels are renamed in order of first use, and
    /// padding is removed.
    pub fn normalized_lines(&self) -> Vec<String> {
        let mut names = NameMap::default();
        let code_lines = self.lines.iter().filter(|line| !is_filler(line, self.dialect));
        code_lines.map(|line| names.rename(&line.text, self.dialect)).collect()
    }

    /// Returns only the memory operations (accesses, waits, barriers and cache operations), without
    /// registers.
    pub fn memory_skeleton(&self) -> Vec<String> {
        let operation = |line: &CodeLine| match line.kind {
            LineKind::Access(_) => Some(strip_registers(&line.text, self.dialect)),
            LineKind::Order => Some(line.text.clone()),
            _ => None,
        };
        self.lines.iter().filter_map(operation).collect()
    }
}

fn is_filler(line: &CodeLine, dialect: &DisassemblerDialect) -> bool {
    dialect.fillers.iter().any(|filler| line.text.starts_with(filler))
}

/// Returns the mnemonic, the constants and the modifiers of an access, without registers.
fn strip_registers(text: &str, dialect: &DisassemblerDialect) -> String {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty() && !is_register(word, dialect));
    words.collect::<Vec<_>>().join(" ")
}

fn is_register(word: &str, dialect: &DisassemblerDialect) -> bool {
    dialect.named_registers.iter().any(|name| name == word)
        || parse_leading_register(word, dialect).is_some_and(|(_, rest)| rest.is_empty())
}

/// Parses a register at the start of a text: its kind and numbers, and the rest.
fn parse_leading_register<'t>(
    text: &'t str,
    dialect: &DisassemblerDialect,
) -> Option<((char, u32, u32), &'t str)> {
    let kind = text.chars().next().filter(|kind| dialect.register_prefixes.contains(kind))?;
    let rest = &text[kind.len_utf8()..];
    if let Some(range) = rest.strip_prefix('[') {
        let (numbers, rest) = range.split_once(']')?;
        let (first, last) = numbers.split_once(':').unwrap_or((numbers, numbers));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        return (first <= last && last - first < MAX_OPERAND_REGISTERS)
            .then_some(((kind, first, last), rest));
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    let rest = &rest[digits..];
    // `s3` is a register, `s3x` is not.
    let is_complete = rest.chars().next().is_none_or(|next| !next.is_ascii_alphanumeric() && next != '_');
    is_complete.then_some(((kind, number, number), rest))
}

/// The maximum number of registers of one operand.
const MAX_OPERAND_REGISTERS: u32 = 64;

/// New names for registers and labels.
#[derive(Default)]
struct NameMap {
    registers: BTreeMap<(char, u32), u32>,
    counts: BTreeMap<char, u32>,
    labels: BTreeMap<String, usize>,
}

impl NameMap {
    fn rename(&mut self, text: &str, dialect: &DisassemblerDialect) -> String {
        let mut renamed = String::with_capacity(text.len());
        let mut rest = text;
        let mut is_inside_word = false;
        while let Some(next) = rest.chars().next() {
            if !is_inside_word
                && let Some(((kind, first, last), remaining)) = parse_leading_register(rest, dialect)
            {
                renamed += &self.rename_registers(kind, first, last);
                rest = remaining;
                continue;
            }
            if !is_inside_word && let Some(label) = parse_leading_label(rest, dialect) {
                let count = self.labels.len();
                let number = *self.labels.entry(label.to_owned()).or_insert(count);
                renamed += &format!("L{number}");
                rest = &rest[label.len()..];
                continue;
            }
            is_inside_word = next.is_ascii_alphanumeric() || next == '_';
            renamed.push(next);
            rest = &rest[next.len_utf8()..];
        }
        renamed
    }

    fn rename_registers(&mut self, kind: char, first: u32, last: u32) -> String {
        let names: Vec<String> = (first..=last)
            .map(|number| {
                let count = self.counts.entry(kind).or_default();
                let name = *self.registers.entry((kind, number)).or_insert_with(|| {
                    *count += 1;
                    *count - 1
                });
                name.to_string()
            })
            .collect();
        format!("{kind}{{{}}}", names.join(","))
    }
}

/// Returns a block label at the start of a text.
fn parse_leading_label<'t>(text: &'t str, dialect: &DisassemblerDialect) -> Option<&'t str> {
    let digits = text.strip_prefix(&dialect.block_prefix)?.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &text[..dialect.block_prefix.len() + digits])
}

#[cfg(test)]
mod tests {
    use crate::disassembly::Disassembly;

    fn parse_disassembly(text: &str) -> Disassembly {
        Disassembly::parse(text, &vendor::radv().dialect).unwrap()
    }

    #[test]
    fn registers_and_labels_are_renamed_together() {
        let one = parse_disassembly(
            "BB2:\ns_cbranch_execz BB4\ns_nop 0\nv_mov_b32_e32 v7, s3\nbuffer_store_dword v7, off, s[4:7], 0 glc\nBB4:",
        );
        let two = parse_disassembly(
            "BB1:\ns_cbranch_execz BB9\nv_mov_b32_e32 v0, s12\nbuffer_store_dword v0, off, s[8:11], 0 glc\nBB9:",
        );
        assert_eq!(one.normalized_lines(), two.normalized_lines());
        assert_eq!(
            one.normalized_lines(),
            [
                "L0:",
                "s_cbranch_execz L1",
                "v_mov_b32_e32 v{0}, s{0}",
                "buffer_store_dword v{0}, off, s{1,2,3,4}, 0 glc",
                "L1:"
            ]
        );
        // A different stored register is a difference; different register numbers are not.
        let other = parse_disassembly(
            "v_mov_b32_e32 v0, s12\nv_mov_b32_e32 v1, s13\nbuffer_store_dword v0, off, s[8:11], 0 glc",
        );
        let swapped = parse_disassembly(
            "v_mov_b32_e32 v0, s12\nv_mov_b32_e32 v1, s13\nbuffer_store_dword v1, off, s[8:11], 0 glc",
        );
        assert_ne!(other.normalized_lines(), swapped.normalized_lines());
    }

    #[test]
    fn the_skeleton_has_the_memory_instructions() {
        let code = parse_disassembly(
            "s_load_dwordx4 s[4:7], s[2:3], 0x10\nv_mov_b32_e32 v0, 1\nbuffer_store_dword v0, v1, s[4:7], 0 offen offset:256 glc\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_barrier\ns_endpgm",
        );
        assert_eq!(
            code.memory_skeleton(),
            ["buffer_store_dword 0 offen offset:256 glc", "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_barrier"]
        );
    }
}
