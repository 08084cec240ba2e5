//! A path of a thread: the executed instructions with their effects, and symbolic values.

use litmus::{
    AccessMask, ArithmeticOperation, Comparison, InterlockEnd, LocationId, ScalarType, Scope, Semantics,
    SplitHalf, StorageClass, SubgroupKind, ThreadId, Value,
};

/// A control-flow path of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadPath {
    pub steps: Vec<ExecutedInstruction>,
    pub nodes: Vec<ValueOrigin>,
    pub conditions: Vec<BranchCondition>,
    /// Final value of each register.
    pub registers: Vec<NodeId>,
    /// The storage and the type of each read.
    pub reads: Vec<(u16, ScalarType)>,
    /// The subgroup operations, in order. Their results follow the values of the reads.
    pub exchanges: Vec<SubgroupExchange>,
    /// The instructions that are executed, labels left out, with the branches that are taken.
    pub history: Vec<(usize, bool)>,
}

#[derive(Clone, Debug)]
pub struct ExecutedInstruction {
    /// Its index in the thread.
    pub instruction: u16,
    /// Its memory scope; [`Scope::Invocation`] by default.
    pub scope: Scope,
    pub semantics: Semantics,
    pub effect: InstructionEffect,
}

/// Effect of an executed instruction.
#[derive(Clone, Debug)]
pub enum InstructionEffect {
    /// A read; the path's reads are numbered in order.
    Read(Footprint),
    Write(Footprint, NodeId),
    ReadWrite(Footprint, NodeId),
    Fence,
    /// A control barrier, by its number in the order of their names, and how often this thread has executed it before.
    ControlBarrier {
        name: usize,
        execution_scope: Scope,
        memory_barrier: bool,
        round: u32,
    },
    /// An arrival at a split barrier or a wait, and how many of that half and execution scope this thread has executed before.
    Split {
        half: SplitHalf,
        execution_scope: Scope,
        memory_barrier: bool,
        ordinal: usize,
        id: String,
    },
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
    pub operation_scope: Option<Scope>,
}

impl Footprint {
    /// Returns true if it touches a cell.
    pub fn has_cell(&self, cell: usize) -> bool {
        (self.cells.0..self.cells.1).contains(&cell)
    }

    /// The cells that both touch (VK-LOC-02).
    pub fn shared_cells(&self, other: &Footprint) -> std::ops::Range<usize> {
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
    pub fn extract_part(&self, value: Value, start: u32) -> Value {
        let bits = 8 * (self.bytes.1 - self.bytes.0);
        Value((value.0 >> (8 * (self.bytes.0 - start))) & (u64::MAX >> (64 - bits)))
    }

    /// Shifts a part of a value to its place in the access value.
    pub fn place_part(&self, part: Value, start: u32) -> Value {
        Value(part.0 << (8 * (self.bytes.0 - start)))
    }
}

/// A value that a thread computes: an index into [`ThreadPath::nodes`].
pub type NodeId = usize;

#[derive(Clone, Copy, Debug)]
pub enum ValueOrigin {
    Constant(Value),
    /// Value of the read with this number on the path.
    Read(usize),
    Compute(ArithmeticOperation, NodeId, NodeId, ScalarType),
    /// The low bits of a value.
    Truncate(NodeId, ScalarType),
    /// Result of the subgroup operation with this number on the path.
    ExchangeResult(usize),
}

/// Condition of a branch, taken or not.
#[derive(Clone, Copy, Debug)]
pub struct BranchCondition {
    pub relation: Comparison,
    pub left: (NodeId, ScalarType),
    pub right: (NodeId, ScalarType),
    pub holds: bool,
}

/// A subgroup operation that a thread executes.
#[derive(Clone, Debug)]
pub struct SubgroupExchange {
    /// Name of the dynamic instance; equal names are one instance.
    pub name: String,
    pub kind: SubgroupKind,
    pub operand: Option<NodeId>,
}
