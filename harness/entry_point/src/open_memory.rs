//! The memory that others access while a kernel runs.

use std::collections::BTreeSet;

/// A scalar of a buffer, or a whole buffer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenPart {
    pub set: u32,
    pub binding: u32,
    /// Offset and size in bytes; `None` for the whole buffer.
    pub scalar: Option<(u64, u32)>,
}

impl OpenPart {
    /// Returns true if some bytes of a range belong to the part.
    fn overlaps(&self, binding: (u32, u32), offset: u64, bytes: u32) -> bool {
        let ends_after = |start: u64, bytes: u32, at: u64| start.saturating_add(u64::from(bytes)) > at;
        (self.set, self.binding) == binding
            && self.scalar.is_none_or(|(start, size)| {
                ends_after(start, size, offset) && ends_after(offset, bytes, start)
            })
    }
}

/// The parts of buffers that others may access; `None` for all shared memory.
pub type OpenParts = Option<BTreeSet<OpenPart>>;

/// The memory that others write while a kernel runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenMemory {
    /// The parts that they write.
    pub parts: OpenParts,
    /// The values that they write; `None` for every number.
    pub values: Option<Vec<u64>>,
    /// True if operations and positions that depend on read values become functions of them
    /// in symbolic execution.
    pub models_functions: bool,
}

impl OpenMemory {
    /// Returns true if others write to bytes of a descriptor, or to memory without one.
    pub fn contains(&self, binding: Option<(u32, u32)>, offset: u64, bytes: u32) -> bool {
        is_open(&self.parts, binding, offset, bytes)
    }
}

/// Returns true if others access some of the bytes of a descriptor, or of memory without one.
pub fn is_open(parts: &OpenParts, binding: Option<(u32, u32)>, offset: u64, bytes: u32) -> bool {
    parts.as_ref().is_none_or(|parts| {
        binding.is_some_and(|binding| parts.iter().any(|part| part.overlaps(binding, offset, bytes)))
    })
}
