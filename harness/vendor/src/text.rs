//! How the text of machine code reads: what a line is.
//!
//! The text is made for people and differs by driver.

use std::fmt;

use crate::order::{Need, Places, no_places};

/// How one printer of machine code writes.
pub struct Dialect {
    /// Its name.
    pub name: &'static str,
    /// The text with an instruction a line: what the driver puts in several is joined.
    pub prepare: fn(&str) -> String,
    /// The text of a line without indentation, encodings and comments, and what it is; `None` for a line that says nothing,
    /// such as a heading, or figures that differ by run.
    pub read: fn(&str) -> Option<(&str, LineKind)>,
    /// What parts of a line mean: the first that says what a line is decides, all of them put it in words.
    pub rules: &'static [LineRule],
    /// Accesses show the constant part of their address where it is known, and by which kind of reference they go to buffers.
    /// Otherwise they are told apart by their order alone.
    pub constant_addresses: bool,
    /// Which binding the accesses of lines go to, where that can be read off.
    pub places: Places,
    /// What orders need.
    pub needs: &'static [Need],
    /// Lines that have to do with memory are told from the others. Then a text without an access is no machine code of a
    /// kernel, which at least writes its results: drivers print an apology where they have no disassembler.
    pub tells_memory: bool,
    /// What instructions begin with that only fill time, or say something about time.
    pub fillers: &'static [&'static str],
    /// Letters before the numbers of registers, for which two texts may differ and say the same.
    pub registers: &'static [char],
    /// Registers without a number.
    pub named_registers: &'static [&'static str],
    /// What stands before the numbers of blocks.
    pub block: &'static str,
}

/// Of whatever has no dialect of its own: a line is a line. What looks like a register or a block of the best known one is
/// taken for such.
pub const PLAIN: Dialect = Dialect {
    name: "plain",
    rules: &[],
    needs: &[],
    read: |line| {
        let text = line.trim();
        (!text.is_empty()).then_some((text, LineKind::Other))
    },
    tells_memory: false,
    ..crate::amd::DIALECT
};

/// What a part of a line means.
#[derive(Clone, Copy, Debug)]
pub struct LineRule {
    /// The part.
    pub has: &'static str,
    /// What it makes of the line, where it decides that.
    pub kind: Option<LineKind>,
    /// In words; nothing for what speaks for itself.
    pub words: &'static str,
}

/// A part that makes a line one that orders accesses.
pub(crate) const fn order(has: &'static str, words: &'static str) -> LineRule {
    LineRule { has, kind: Some(LineKind::Order), words }
}

/// A part that makes a line an access.
pub(crate) const fn access(has: &'static str, operation: Operation, path: Path) -> LineRule {
    LineRule { has, kind: Some(LineKind::Access(CodeAccess { operation, path, offset: 0 })), words: "" }
}

/// A part that qualifies a line.
pub(crate) const fn note(has: &'static str, words: &'static str) -> LineRule {
    LineRule { has, kind: None, words }
}

/// What a line is by the rules of its dialect.
pub(crate) fn kind_by(rules: &[LineRule], text: &str) -> LineKind {
    let decides = |rule: &LineRule| rule.kind.filter(|_| text.contains(rule.has));
    rules.iter().find_map(decides).unwrap_or(LineKind::Other)
}

impl Dialect {
    /// A dialect whose lines tell memory from the rest, without rules.
    pub(crate) const fn new(name: &'static str, read: fn(&str) -> Option<(&str, LineKind)>) -> Dialect {
        Dialect {
            name,
            prepare: str::to_owned,
            read,
            rules: &[],
            constant_addresses: true,
            places: no_places,
            needs: &[],
            tells_memory: true,
            fillers: &[],
            registers: &[],
            named_registers: &[],
            block: "BB",
        }
    }

    /// What of a line has to do with memory, in words: what it orders, and how an access goes.
    pub fn words(&self, text: &str, kind: LineKind) -> Vec<&'static str> {
        if !matches!(kind, LineKind::Access(_) | LineKind::Order) {
            return Vec::new();
        }
        let mut decided = false;
        let mut words = Vec::new();
        for rule in self.rules.iter().filter(|rule| text.contains(rule.has)) {
            // Of those that decide only the first does.
            let counts = rule.kind.is_none() || !std::mem::replace(&mut decided, true);
            if counts && !rule.words.is_empty() && !words.contains(&rule.words) {
                words.push(rule.words);
            }
        }
        words
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Dialect) -> bool {
        self.name == other.name
    }
}

impl Eq for Dialect {}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineKind {
    /// A place to jump to.
    Label,
    /// Reads or writes memory that a test could see.
    Access(CodeAccess),
    /// Reads descriptors: memory that only the driver writes.
    Descriptor,
    /// Waits for accesses, waits for other subgroups, or changes what caches hold.
    Order,
    /// A jump.
    Jump,
    /// Anything else.
    Other,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeAccess {
    /// What it does.
    pub operation: Operation,
    /// Which memory it goes to.
    pub path: Path,
    /// The constant part of its address in bytes, where the path has one.
    pub offset: u64,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes as one.
    Atomic,
}

/// Which memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// A buffer by its descriptor.
    Buffer,
    /// Memory by its address.
    Address,
    /// An image, or a buffer with a format.
    Image,
    /// Memory of the workgroup.
    Workgroup,
}
