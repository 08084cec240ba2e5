//! Cells of shared and private memory: the parts of objects that accesses name.

/// The identity of a memory object as one invocation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The id of the variable, or of the first variable with the same binding.
    pub variable: u32,
    /// The element of a descriptor array, the workgroup's copy, or the activation of the function.
    pub instance: u64,
}

/// A location in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryCell {
    pub object: ObjectId,
    pub offset: u64,
    pub bytes: u32,
}

/// The offsets of cells whose position depends on read values: above those of buffers.
const VARIABLE_OFFSETS: u64 = 1 << 62;

impl MemoryCell {
    /// Returns the cell for all accesses of an object at variable positions.
    pub fn at_variable_offset(object: ObjectId, bytes: u32) -> MemoryCell {
        // Cells of different sizes do not overlap.
        MemoryCell { object, offset: VARIABLE_OFFSETS | u64::from(bytes) << 32, bytes }
    }

    /// Returns true if the position depends on read values.
    pub fn has_variable_offset(self) -> bool {
        self.offset >= VARIABLE_OFFSETS
    }
}
