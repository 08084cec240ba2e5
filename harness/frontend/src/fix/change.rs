//! Changes of a module.

use litmus::StorageClass;
use rspirv::spirv::StorageClass as Class;

use crate::accessed_variable::ChangeSite;
use crate::emit::AddedSemantics;
use crate::error::SourcePosition;
use crate::update::{ImageUpdate, PlainUpdate};

/// A change of a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelChange {
    /// Index of the changed source line, for a declaration of an access; 0 if unknown.
    pub line: u32,
    /// The same as a module position.
    pub place: SourcePosition,
    /// The change as source text.
    pub text: String,
    pub(super) change: ModuleChange,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModuleChange {
    /// A workgroup barrier before a word, for a class.
    InsertBarrier(usize, StorageClass),
    /// A subgroup barrier before a word.
    InsertSubgroupBarrier(usize),
    /// Memory barriers before words.
    InsertFences(Vec<usize>, Vec<StorageClass>),
    MakeCoherent(u32),
    /// Zeros as the initial value of a variable.
    ZeroInitialize(u32),
    /// Additional acquire or release semantics.
    StrengthenOrder(ChangeSite, AddedSemantics),
    WidenScope(ChangeSite),
    MakeAtomic(Vec<ChangeSite>, Class),
    /// Atomic instructions instead of plain read-modify-writes of a function.
    MakeUpdate(u32, Vec<PlainUpdate>, Class),
    /// The same for texels of images.
    MakeImageUpdate(u32, Vec<ImageUpdate>),
}
