//! Changes of a shader, which apply to a module and to a litmus test.

use litmus::{Scope, StorageClass};
use results::wire::{InsertionAnchor, InsertionSide};
use rspirv::spirv::{Op, StorageClass as Class};

use entry_point::accessed_variable::ChangeSite;
use entry_point::update::{ImageUpdate, PlainUpdate};
use spirv_reader::SourcePosition;
use symbolic::emit::AddedSemantics;

/// A change of a shader with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelChange {
    /// Index of the changed source line, for a declaration of an access; 0 if unknown.
    pub line: u32,
    /// The same as a module position.
    pub place: SourcePosition,
    pub kind: ChangeKind,
}

/// A change of a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// A workgroup or subgroup barrier before a word of the module.
    InsertBarrier {
        word: usize,
        side: InsertionSide,
        anchor: InsertionAnchor,
        scope: Scope,
        class: StorageClass,
    },
    /// Memory barriers before words of the module.
    InsertFences {
        words: Vec<usize>,
        side: InsertionSide,
        anchor: InsertionAnchor,
        classes: Vec<StorageClass>,
    },
    /// Makes a variable coherent; if others of its accesses are, only the one that was left out.
    MakeCoherent { root: u32, is_left_out: bool },
    /// Zeros as the initial value of a variable.
    ZeroInitialize(u32),
    /// Additional acquire or release semantics.
    StrengthenOrder { site: ChangeSite, anchor: InsertionAnchor, more: AddedSemantics },
    /// A wider scope of an atomic or barrier.
    WidenScope { site: ChangeSite, anchor: InsertionAnchor },
    /// Atomic instructions instead of plain accesses.
    MakeAtomic { sites: Vec<ChangeSite>, class: Class },
    /// Atomic instructions instead of plain read-modify-writes of a function.
    MakeUpdate { function: u32, updates: Vec<PlainUpdate>, class: Class, atomic: Op },
    /// The same for texels of images.
    MakeImageUpdate { function: u32, updates: Vec<ImageUpdate>, atomic: Op },
}

impl ChangeKind {
    /// Returns true if both change the module in the same way, whatever line names them.
    pub(super) fn is_same_edit(&self, other: &ChangeKind) -> bool {
        match (self, other) {
            (
                ChangeKind::InsertBarrier { word, scope, class, .. },
                ChangeKind::InsertBarrier { word: at, scope: wide, class: of, .. },
            ) => (word, scope, class) == (at, wide, of),
            (
                ChangeKind::InsertFences { words, classes, .. },
                ChangeKind::InsertFences { words: at, classes: of, .. },
            ) => (words, classes) == (at, of),
            _ => self == other,
        }
    }
}
