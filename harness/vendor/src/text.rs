//! Dialects of machine text: the classification of lines.
//!
//! The text is made for people and differs by driver.

use std::fmt;

use crate::line::{CodeAccess, CodeOperation, CodePath, LineKind};
use crate::order::{OrderRequirement, ResourceNumbers, no_resource_numbers};

pub struct DisassemblerDialect {
    pub name: &'static str,
    /// Joins instructions that the driver prints on several lines.
    pub preprocess: fn(&str) -> String,
    /// Returns the text of a line without indentation, encodings and comments, and its kind.
    ///
    /// `None` for a line without code, such as a heading or run-dependent statistics.
    pub read_line: fn(&str) -> Option<(&str, LineKind)>,
    /// Rules for parts of lines: the first rule with a kind decides the kind; all of them contribute words.
    pub rules: &'static [LineRule],
    /// True if accesses show the constant part of their address, and the kind of reference to buffers.
    ///
    /// Otherwise they are distinguished by their order only.
    pub has_constant_addresses: bool,
    /// Finds the binding that each line accesses, if the text shows it.
    pub resource_numbers: ResourceNumbers,
    pub order_requirements: &'static [OrderRequirement],
    /// The requirements of accesses of workgroup memory before a control barrier.
    pub workgroup_requirements: &'static [OrderRequirement],
    /// The mnemonics of control barriers, if their effect on accesses is known.
    pub barriers: &'static [&'static str],
    /// True if memory operations are recognizable.
    ///
    /// Then a text without an access is not machine code of a kernel, which at least writes its results.
    /// Drivers print a message instead if they have no disassembler.
    pub recognizes_memory: bool,
    /// Prefixes of instructions that only pass time, or control timing.
    pub fillers: &'static [&'static str],
    /// Prefix letters of register numbers, which are normalized for comparison.
    pub register_prefixes: &'static [char],
    /// Registers without a number.
    pub named_registers: &'static [&'static str],
    /// The prefix of block numbers.
    pub block_prefix: &'static str,
}

/// The meaning of a part of a line.
#[derive(Clone, Copy, Debug)]
pub struct LineRule {
    pub pattern: &'static str,
    /// The kind of the line, if this part decides it.
    pub kind: Option<LineKind>,
    /// A description; empty if self-explanatory.
    pub description: &'static str,
}

/// Creates a rule for a line that orders accesses.
pub(crate) const fn order_rule(pattern: &'static str, description: &'static str) -> LineRule {
    LineRule { pattern, kind: Some(LineKind::Order), description }
}

/// Creates a rule for an access.
pub(crate) const fn access_rule(pattern: &'static str, operation: CodeOperation, path: CodePath) -> LineRule {
    LineRule {
        pattern,
        kind: Some(LineKind::Access(CodeAccess { operation, path, offset: 0 })),
        description: "",
    }
}

/// Creates a rule that adds a description.
pub(crate) const fn note_rule(pattern: &'static str, description: &'static str) -> LineRule {
    LineRule { pattern, kind: None, description }
}

/// Returns the kind of a line by the rules of its dialect.
pub(crate) fn classify_line(rules: &[LineRule], text: &str) -> LineKind {
    let kind_of_match = |rule: &LineRule| rule.kind.filter(|_| text.contains(rule.pattern));
    rules.iter().find_map(kind_of_match).unwrap_or(LineKind::Other)
}

impl DisassemblerDialect {
    /// Creates a dialect with recognizable memory operations and without rules.
    pub(crate) const fn new(
        name: &'static str,
        read: fn(&str) -> Option<(&str, LineKind)>,
    ) -> DisassemblerDialect {
        DisassemblerDialect {
            name,
            preprocess: str::to_owned,
            read_line: read,
            rules: &[],
            has_constant_addresses: true,
            resource_numbers: no_resource_numbers,
            order_requirements: &[],
            workgroup_requirements: &[],
            barriers: &[],
            recognizes_memory: true,
            fillers: &[],
            register_prefixes: &[],
            named_registers: &[],
            block_prefix: "BB",
        }
    }

    /// Returns descriptions of the memory effects of a line: the accesses that it orders, and the path of an
    /// access.
    pub fn describe_line(&self, text: &str, kind: LineKind) -> Vec<&'static str> {
        if !matches!(kind, LineKind::Access(_) | LineKind::Order) {
            return Vec::new();
        }
        let mut decided = false;
        let mut words = Vec::new();
        for rule in self.rules.iter().filter(|rule| text.contains(rule.pattern)) {
            // Only the first deciding rule counts.
            let counts = rule.kind.is_none() || !std::mem::replace(&mut decided, true);
            if counts && !rule.description.is_empty() && !words.contains(&rule.description) {
                words.push(rule.description);
            }
        }
        words
    }
}

impl fmt::Debug for DisassemblerDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for DisassemblerDialect {
    fn eq(&self, other: &DisassemblerDialect) -> bool {
        self.name == other.name
    }
}

impl Eq for DisassemblerDialect {}
