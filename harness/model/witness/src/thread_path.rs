//! A path of a thread: the executed instructions with their effects, and symbolic values.

use litmus::{
    AccessMask, ArithmeticOperation, BranchRelation, InterlockEnd, LocationId, ScalarType, Scope, Semantics,
    SplitHalf, StorageClass, SubgroupKind, ThreadId, Value,
};

/// One way through a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadPath {
    pub steps: Vec<ExecutedInstruction>,
    pub nodes: Vec<ValueOrigin>,
    pub demands: Vec<Demand>,
    /// Final value of each register.
    pub registers: Vec<NodeId>,
    /// The storage and the type of each read.
    pub reads: Vec<(u16, ScalarType)>,
    /// The subgroup operations, in order. Their results follow the values of the reads.
    pub exchanges: Vec<Exchange>,
    /// The instructions that are executed, labels left out, with the branches that are taken.
    pub history: Vec<(usize, bool)>,
}

/// An executed instruction.
#[derive(Clone, Debug)]
pub struct ExecutedInstruction {
    /// Its index in the thread.
    pub instruction: u16,
    /// Its memory scope; [`Scope::Invocation`] by default.
    pub scope: Scope,
    /// Its memory semantics.
    pub semantics: Semantics,
    /// Its effect.
    pub effect: Effect,
}

/// Effect of an executed instruction.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A read; the path's reads are numbered in order.
    Read(Footprint),
    /// A write of a value.
    Write(Footprint, NodeId),
    /// A read and a write.
    ReadWrite(Footprint, NodeId),
    /// A memory barrier.
    Fence,
    /// A control barrier, by its number in the order of their names, and how often this thread has executed it before.
    ControlBarrier { name: usize, execution_scope: Scope, memory_barrier: bool, round: u32 },
    /// An arrival at a split barrier or a wait, and how many of that half and execution scope this thread has executed before.
    Split { half: SplitHalf, execution_scope: Scope, memory_barrier: bool, ordinal: usize, id: String },
    /// The availability half of a memory dependency.
    DeviceAvailable(AccessMask),
    /// The visibility half of a memory dependency.
    DeviceVisible(AccessMask),
    /// `vkFlushMappedMemoryRanges` of these names, or of all names if empty.
    Flush(Vec<LocationId>),
    /// `vkInvalidateMappedMemoryRanges` of these names, or of all names if empty.
    Invalidate(Vec<LocationId>),
    /// `vkQueueSubmit`.
    Submit,
    /// The wait for a fence.
    Wait,
    /// A shader call.
    Call(Vec<ThreadId>),
    /// An end of an interlocked section.
    Interlock(InterlockEnd),
}

/// Memory footprint of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Footprint {
    /// The memory (VK-LOC-01): names of one storage have the same number.
    pub storage: u16,
    /// Its memory locations: first byte and end.
    pub bytes: (u32, u32),
    /// Its cells: first cell and end (VK-LOC-02). Each execution determines the cells.
    pub cells: (usize, usize),
    /// The reference (VK-REF-02 and following).
    pub reference: u16,
    /// The storage class (VK-SEM-13).
    pub class: StorageClass,
    /// Non-private (VK-PRIV-01, VK-PRIV-04).
    pub non_private: bool,
    /// True if it is atomic (VK-ATOM-01).
    pub atomic: bool,
    /// Scope of the availability or visibility operation that the access performs itself (VK-INST-01,
    /// VK-INST-03; for atomics VK-INF-06).
    pub own: Option<Scope>,
}

impl Footprint {
    /// Returns true if it touches a cell.
    pub fn has(&self, cell: usize) -> bool {
        (self.cells.0..self.cells.1).contains(&cell)
    }

    /// The cells that both touch (VK-LOC-02).
    pub fn shared(&self, other: &Footprint) -> std::ops::Range<usize> {
        self.cells.0.max(other.cells.0)..self.cells.1.min(other.cells.1)
    }
}

/// Memory locations of one storage that each access either contains completely or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationCell {
    pub storage: LocationId,
    /// First byte and end.
    pub bytes: (u32, u32),
}

impl LocationCell {
    /// Extracts the part of an access value in the cell; the access begins at byte `start`. Values are
    /// little-endian.
    pub fn part(&self, value: Value, start: u32) -> Value {
        let bits = 8 * (self.bytes.1 - self.bytes.0);
        Value((value.0 >> (8 * (self.bytes.0 - start))) & (u64::MAX >> (64 - bits)))
    }

    /// The same the other way.
    pub fn whole(&self, part: Value, start: u32) -> Value {
        Value(part.0 << (8 * (self.bytes.0 - start)))
    }
}

/// A value that a thread computes: an index into [`ThreadPath::nodes`].
pub type NodeId = usize;

/// Origin of a value.
#[derive(Clone, Copy, Debug)]
pub enum ValueOrigin {
    /// A number.
    Constant(Value),
    /// Value of the read with this number on the path.
    Read(usize),
    /// A computation.
    Compute(ArithmeticOperation, NodeId, NodeId, ScalarType),
    /// The low bits of a value.
    Cut(NodeId, ScalarType),
    /// Result of the subgroup operation with this number on the path.
    Given(usize),
}

/// Condition of a branch, taken or not.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    pub relation: BranchRelation,
    pub left: (NodeId, ScalarType),
    pub right: (NodeId, ScalarType),
    pub holds: bool,
}

/// A subgroup operation that a thread executes.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Name of the dynamic instance; equal names are one instance.
    pub name: String,
    /// The computation.
    pub kind: SubgroupKind,
    /// Operand of the thread.
    pub brought: Option<NodeId>,
}
