//! Dialects of machine text: the classification of lines.
//!
//! The text is made for people and differs by driver.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::line::{CodeAccess, CodeOperation, CodePath, LineKind};
use crate::order::{OrderRequirement, RequirementPart};

/// The data of a dialect, and the functions that read its lines.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisassemblerDialect {
    pub name: String,
    /// Rules for parts of lines: the first rule with a kind decides the kind; all of them contribute words.
    #[serde(default)]
    pub(crate) rules: Vec<LineRule>,
    /// True if accesses show the constant part of their address, and the kind of reference to buffers.
    ///
    /// Otherwise they are distinguished by their order only.
    #[serde(default)]
    pub has_constant_addresses: bool,
    #[serde(skip)]
    pub order_requirements: Vec<OrderRequirement>,
    /// The requirements of accesses of workgroup memory before a control barrier.
    #[serde(skip)]
    pub workgroup_requirements: Vec<OrderRequirement>,
    /// The parts of requirements, by name.
    #[serde(skip)]
    pub(crate) parts: BTreeMap<String, RequirementPart>,
    /// The mnemonics of control barriers, if their effect on accesses is known.
    #[serde(default)]
    pub barriers: Vec<String>,
    /// Prefixes of instructions that only pass time, or control timing.
    #[serde(default)]
    pub fillers: Vec<String>,
    /// Prefix letters of register numbers, which are normalized for comparison.
    pub register_prefixes: Vec<char>,
    /// Registers without a number.
    #[serde(default)]
    pub named_registers: Vec<String>,
    /// The prefix of block numbers.
    #[serde(default = "default_block_prefix")]
    pub block_prefix: String,
    #[serde(skip)]
    pub(crate) reader: Option<DialectReader>,
}

fn default_block_prefix() -> String {
    "BB".to_owned()
}

/// The functions of a dialect.
#[derive(Clone, Copy)]
pub(crate) struct DialectReader {
    /// Joins instructions that the driver prints on several lines.
    pub preprocess: fn(&DisassemblerDialect, &str) -> String,
    /// Returns the text of a line without indentation, encodings and comments, and its kind.
    pub read_line: for<'t> fn(&DisassemblerDialect, &'t str) -> Option<(&'t str, LineKind)>,
    /// Returns the resource number of each line, in binding order, to distinguish accesses of one kind.
    pub resource_numbers: fn(&DisassemblerDialect, &[&str]) -> Vec<Option<u64>>,
}

impl DialectReader {
    /// Creates a reader of lines that are complete and show no resource numbers.
    pub const fn of_lines(
        read_line: for<'t> fn(&DisassemblerDialect, &'t str) -> Option<(&'t str, LineKind)>,
    ) -> DialectReader {
        DialectReader {
            preprocess: |_, text| text.to_owned(),
            read_line,
            resource_numbers: |_, lines| vec![None; lines.len()],
        }
    }
}

/// The meaning of a part of a line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineRule {
    pattern: String,
    /// The kind of the line, if this part decides it.
    kind: Option<RuleKind>,
    /// The access of the line, if this part decides it.
    access: Option<(CodeOperation, CodePath)>,
    /// A description; empty if self-explanatory.
    #[serde(default)]
    description: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RuleKind {
    Label,
    Descriptor,
    Order,
    Jump,
}

impl LineRule {
    fn line_kind(&self) -> Option<LineKind> {
        match (self.kind, self.access) {
            (Some(RuleKind::Label), _) => Some(LineKind::Label),
            (Some(RuleKind::Descriptor), _) => Some(LineKind::Descriptor),
            (Some(RuleKind::Order), _) => Some(LineKind::Order),
            (Some(RuleKind::Jump), _) => Some(LineKind::Jump),
            (None, Some((operation, path))) => {
                Some(LineKind::Access(CodeAccess { operation, path, offset: 0 }))
            }
            (None, None) => None,
        }
    }
}

impl DisassemblerDialect {
    /// Joins instructions that the driver prints on several lines.
    pub fn preprocess(&self, text: &str) -> String {
        self.reader.map_or_else(|| text.to_owned(), |reader| (reader.preprocess)(self, text))
    }

    /// Returns the text of a line without indentation, encodings and comments, and its kind.
    ///
    /// `None` for a line without code, such as a heading or run-dependent statistics.
    pub fn read_line<'t>(&self, line: &'t str) -> Option<(&'t str, LineKind)> {
        match self.reader {
            Some(reader) => (reader.read_line)(self, line),
            None => Some((line.trim(), LineKind::Other)).filter(|(text, _)| !text.is_empty()),
        }
    }

    /// Returns the binding that each line accesses, if the text shows it.
    pub fn resource_numbers(&self, lines: &[&str]) -> Vec<Option<u64>> {
        self.reader.map_or_else(|| vec![None; lines.len()], |reader| (reader.resource_numbers)(self, lines))
    }

    /// Returns true if memory operations are recognizable.
    ///
    /// Then a text without an access is not machine code of a kernel, which at least writes its results.
    /// Drivers print a message instead if they have no disassembler.
    pub fn recognizes_memory(&self) -> bool {
        self.reader.is_some()
    }

    /// Returns the required instructions of a requirement, in order.
    pub fn parts_of(&self, requirement: &OrderRequirement) -> Vec<&RequirementPart> {
        requirement.steps.iter().filter_map(|name| self.parts.get(name)).collect()
    }

    /// Returns the kind of a line by the rules.
    pub(crate) fn classify_line(&self, text: &str) -> LineKind {
        let matching = self.rules.iter().filter(|rule| text.contains(&rule.pattern));
        matching.filter_map(LineRule::line_kind).next().unwrap_or(LineKind::Other)
    }

    /// Returns descriptions of the memory effects of a line: the accesses that it orders, and the path of an
    /// access.
    pub fn describe_line(&self, text: &str, kind: LineKind) -> Vec<&str> {
        if !matches!(kind, LineKind::Access(_) | LineKind::Order) {
            return Vec::new();
        }
        let mut decided = false;
        let mut words = Vec::new();
        for rule in self.rules.iter().filter(|rule| text.contains(&rule.pattern)) {
            // Only the first deciding rule counts.
            let counts = rule.line_kind().is_none() || !std::mem::replace(&mut decided, true);
            if counts && !rule.description.is_empty() && !words.contains(&rule.description.as_str()) {
                words.push(rule.description.as_str());
            }
        }
        words
    }
}

impl fmt::Debug for DisassemblerDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for DisassemblerDialect {
    fn eq(&self, other: &DisassemblerDialect) -> bool {
        self.name == other.name
    }
}

impl Eq for DisassemblerDialect {}
