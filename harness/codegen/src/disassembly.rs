//! The disassembly that a driver prints, line by line.
//!
//! The [`DisassemblerDialect`] of its vendor defines how a line is read.

use std::ops::Range;

pub use vendor::{CodeAccess, CodeOperation, CodePath, DisassemblerDialect, LineKind, PLAIN};

/// Machine code as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disassembly {
    /// The lines in order, without blank ones.
    pub lines: Vec<CodeLine>,
    pub dialect: &'static DisassemblerDialect,
}

/// A line of machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLine {
    /// The text without indentation, encodings and comments.
    pub text: String,
    pub kind: LineKind,
}

/// A text that is not the machine code of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMachineCode {
    #[error("the driver does not show machine code")]
    Empty,
    /// The text contains no memory access.
    #[error("not disassembled: `{0}`")]
    NoAccess(String),
}

impl Disassembly {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`NotMachineCode`] if it cannot be compiled code of a kernel.
    pub fn parse(text: &str, dialect: &'static DisassemblerDialect) -> Result<Disassembly, NotMachineCode> {
        let text = dialect.preprocess(text);
        let lines: Vec<CodeLine> = text.lines().filter_map(|line| parse_line(line, dialect)).collect();
        let Some(first) = lines.first() else { return Err(NotMachineCode::Empty) };
        let is_access = |line: &CodeLine| matches!(line.kind, LineKind::Access(_));
        if dialect.recognizes_memory() && !lines.iter().any(is_access) {
            return Err(NotMachineCode::NoAccess(first.text.clone()));
        }
        Ok(Disassembly { lines, dialect })
    }

    /// Returns the lines of each control barrier; arrival and wait are one.
    pub fn barriers(&self) -> Vec<Range<usize>> {
        let is_barrier = |line: &CodeLine| {
            self.dialect
                .barriers
                .iter()
                .any(|start| line.text.starts_with(start) || line.text.contains(&format!(" {start}")))
        };
        let mut found: Vec<Range<usize>> = Vec::new();
        for (at, line) in self.lines.iter().enumerate().filter(|(_, line)| is_barrier(line)) {
            match found.last_mut() {
                Some(last)
                    if line.text.contains("wait") && !self.lines[last.end - 1].text.contains("wait") =>
                {
                    last.end = at + 1;
                }
                _ => found.push(at..at + 1),
            }
        }
        found
    }

    /// Returns true if each path to the end of some lines that leaves their first one stays within them.
    ///
    /// Then what is missing from the lines is missing from each of these paths. It requires that only jumps
    /// within the lines lead to a label of theirs, and that the targets of all jumps are known.
    pub fn is_entered_at_start(&self, lines: Range<usize>) -> bool {
        let find = |kind: LineKind| self.lines.iter().enumerate().filter(move |(_, line)| line.kind == kind);
        let label_of = |line: &'_ CodeLine| line.text.strip_suffix(':').map(str::to_owned);
        let target_of = |line: &'_ CodeLine| line.text.rsplit([' ', '#']).next().map(str::to_owned);
        let inside: Vec<Option<String>> = find(LineKind::Label)
            .filter(|(at, _)| lines.contains(at))
            .map(|(_, line)| label_of(line))
            .collect();
        let is_plain = inside.is_empty() && !find(LineKind::Jump).any(|(at, _)| lines.contains(&at));
        let mut jumps = find(LineKind::Jump).map(|(at, line)| (at, target_of(line)));
        is_plain
            || inside.iter().all(Option::is_some)
                && jumps.all(|(at, target)| {
                    find(LineKind::Label).any(|(_, line)| label_of(line) == target)
                        && (lines.contains(&at) || !inside.contains(&target))
                })
    }

    pub fn instruction_count(&self) -> usize {
        self.lines.iter().filter(|line| line.kind != LineKind::Label).count()
    }
}

fn parse_line(line: &str, dialect: &DisassemblerDialect) -> Option<CodeLine> {
    let (text, kind) = dialect.read_line(line)?;
    Some(CodeLine { text: text.split_whitespace().collect::<Vec<_>>().join(" "), kind })
}

#[cfg(test)]
mod tests {

    use super::*;

    fn line_kind(text: &str) -> LineKind {
        Disassembly::parse(&format!("{text}\nbuffer_store_dword v0, off, s[0:3], 0"), &vendor::radv().dialect)
            .unwrap()
            .lines[0]
            .kind
    }

    fn access(operation: CodeOperation, path: CodePath, offset: u64) -> LineKind {
        LineKind::Access(CodeAccess { operation, path, offset })
    }

    #[test]
    fn lines_are_classified() {
        let cases = [
            ("BB3:", LineKind::Label),
            ("\ts_waitcnt vmcnt(0)    ; bf8c3f70", LineKind::Order),
            ("s_wait_loadcnt 0x0", LineKind::Order),
            ("s_barrier_signal -1", LineKind::Order),
            ("buffer_gl0_inv", LineKind::Order),
            ("s_cbranch_execz BB6", LineKind::Jump),
            ("s_load_dwordx4 s[4:7], s[2:3], 0x10", LineKind::Descriptor),
            ("v_mov_b32_e32 v0, 1", LineKind::Other),
            (
                "buffer_load_dword v2, v1, s[8:11], 0 offen offset:256 glc dlc ; e030d100",
                access(CodeOperation::Load, CodePath::Buffer, 256),
            ),
            (
                "s_buffer_load_dword s0, s[4:7], 0x100 glc dlc",
                access(CodeOperation::Load, CodePath::Buffer, 256),
            ),
            ("buffer_atomic_add v0, off, s[0:3], 0 glc", access(CodeOperation::Atomic, CodePath::Buffer, 0)),
            ("global_store_b32 v[0:1], v2, off", access(CodeOperation::Store, CodePath::Address, 0)),
            ("buffer_load_format_x v0, v1, s[0:3], 0 idxen", access(CodeOperation::Load, CodePath::Image, 0)),
            ("ds_store_b32 v0, v1 offset:4", access(CodeOperation::Store, CodePath::Workgroup, 4)),
            ("ds_add_rtn_u32 v0, v1, v2", access(CodeOperation::Atomic, CodePath::Workgroup, 0)),
            ("ds_swizzle_b32 v0, v1", LineKind::Other),
        ];
        for (text, expected) in cases {
            assert_eq!(line_kind(text), expected, "{text}");
        }
    }

    #[test]
    fn an_error_text_is_not_machine_code() {
        let apology = "Shader disassembly is not supported in the current configuration.";
        let error = Disassembly::parse(apology, &vendor::radv().dialect).unwrap_err();
        assert_eq!(error.to_string(), format!("not disassembled: `{apology}`"));
        assert_eq!(Disassembly::parse("\n  \n", &PLAIN).unwrap_err(), NotMachineCode::Empty);
    }
}
