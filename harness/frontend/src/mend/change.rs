//! Changes of a module.

use litmus::StorageClass;
use rspirv::spirv::StorageClass as Class;

use crate::accessed::ChangeSite;
use crate::emit::Ordering;
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
    pub(super) make: ModuleChange,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModuleChange {
    /// A workgroup barrier before a word, for a class.
    Meet(usize, StorageClass),
    /// A subgroup barrier before a word.
    MeetSubgroup(usize),
    /// Memory barriers before words.
    Fences(Vec<usize>, Vec<StorageClass>),
    Coherent(u32),
    /// Zeros as the initial value of a variable.
    ZeroInitialized(u32),
    /// Additional acquire or release semantics.
    Ordered(ChangeSite, Ordering),
    Widened(ChangeSite),
    Atomic(Vec<ChangeSite>, Class),
    /// Atomic instructions instead of plain read-modify-writes of a function.
    Update(u32, Vec<PlainUpdate>, Class),
    /// The same for texels of images.
    ImageUpdate(u32, Vec<ImageUpdate>),
}
