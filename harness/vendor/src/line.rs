//! The kinds of lines of machine text.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineKind {
    Label,
    /// Accesses memory that a test could observe.
    Access(CodeAccess),
    /// Reads descriptors: memory that only the driver writes.
    Descriptor,
    /// Waits for accesses or other subgroups, or changes the state of caches.
    Order,
    Jump,
    Other,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeAccess {
    pub operation: CodeOperation,
    /// The path to memory.
    pub path: CodePath,
    /// The constant part of its address in bytes, if the path has one.
    pub offset: u64,
}

/// The operation of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeOperation {
    Load,
    Store,
    /// Reads and writes atomically.
    Atomic,
}

/// The path of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodePath {
    /// A buffer by its descriptor.
    Buffer,
    /// Memory by its address.
    Address,
    /// An image, or a buffer with a format.
    Image,
    /// Memory of the workgroup.
    Workgroup,
}
