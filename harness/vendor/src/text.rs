//! How the text of machine code reads: what a line is.
//!
//! The text is made for people and differs by driver.

use std::fmt;

/// How one printer of machine code writes.
pub struct Dialect {
    /// Its name.
    pub name: &'static str,
    /// The text of a line without indentation, encodings and comments, and what it is; `None` for a line that says nothing.
    pub read: fn(&str) -> Option<(&str, LineKind)>,
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
    read: |line| {
        let text = line.trim();
        (!text.is_empty()).then_some((text, LineKind::Other))
    },
    tells_memory: false,
    ..crate::amd::DIALECT
};

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
    Access(Access),
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
pub struct Access {
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
