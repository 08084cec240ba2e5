//! Findings: their kinds, and the invocations and positions involved.

use litmus::closed_enum;
use spirv_reader::Stage;

use crate::error::SourcePosition;

closed_enum! {
    /// The class of a finding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum FindingKind {
        /// Two unordered conflicting accesses.
        Race = "race",
        /// A race between lanes of one subgroup that only lockstep execution would order.
        Lockstep = "lockstep",
        /// A write happens before a read, but is not available or not visible to it.
        UnpublishedRead = "unpublished-read",
        /// Some invocations of the execution scope do not execute an instance of a control barrier.
        DivergentBarrier = "divergent-barrier",
        /// An access beyond the end of an array.
        OutOfBounds = "out-of-bounds",
        /// Something depends on an uninitialized value.
        UninitialisedRead = "uninitialised-read",
        /// An instruction without a defined result is executed.
        UndefinedBehaviour = "undefined-behaviour",
        /// An invocation never ends.
        Hang = "hang",
        /// A claim about the final contents does not hold.
        Assertion = "assertion",
    }
}

impl FindingKind {
    /// Returns true for races and for reads of unpublished writes.
    pub fn is_race(self) -> bool {
        matches!(self, FindingKind::Race | FindingKind::Lockstep | FindingKind::UnpublishedRead)
    }
}

/// The position of an invocation in the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvocationId {
    /// `WorkgroupId`.
    pub workgroup: [u32; 3],
    /// `LocalInvocationId`.
    pub local: [u32; 3],
    pub(crate) workgroup_index: u32,
    pub(crate) local_index: u32,
    pub(crate) stage: Stage,
}

/// A source position of a finding, with the invocation that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Index of the invocation.
    pub thread: u16,
    /// Index of the source line; 0 if unknown.
    pub line: u32,
    pub place: SourcePosition,
    /// For an access, true if it writes.
    pub writes: Option<bool>,
}

/// A defect that the lifter found without a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiftFinding {
    /// The class of the defect.
    pub kind: FindingKind,
    /// The description, as one sentence.
    pub message: String,
    pub at: Vec<Spot>,
}
