//! The executable form of a kernel: flat operations on numbered registers, and a table of memory operations.

use arithmetic::{Instruction, NumberShape};
use spirv_reader::{AtomicFunction, Stage, reduction_identity};
use vocabulary::{Scope, StorageClass, StorageClassSet};

use crate::fault::Fault;
use crate::limits::SUBGROUP_SIZE;

/// The number of lanes of a wave.
pub(crate) const LANES: usize = 64;

/// The values of a register in every lane.
pub(crate) type LaneValues = [u32; LANES];

/// The number of a register.
pub(crate) type Register = u32;

pub(crate) const NONE: Register = Register::MAX;

/// The number of levels in the cache tree, from the cache of an invocation to that of the device.
pub(crate) const LEVELS: usize = 5;

/// The level of the cache of an invocation.
pub(crate) const INVOCATION: u8 = 0;
/// The level of a subgroup's cache.
pub(crate) const SUBGROUP: u8 = 1;
/// The level of a workgroup's cache.
pub(crate) const WORKGROUP: u8 = 2;
/// The level of a queue family's cache.
pub(crate) const QUEUE_FAMILY: u8 = 3;
/// The level of the device's cache: the shader domain.
pub(crate) const DEVICE: u8 = 4;
/// The level above all caches: the device domain.
pub(crate) const MEMORY: u8 = 5;

/// Returns the level of the cache that all invocations of a scope share.
pub(crate) fn cache_level(scope: Scope) -> u8 {
    match scope {
        Scope::Invocation => INVOCATION,
        Scope::Subgroup => SUBGROUP,
        Scope::Workgroup => WORKGROUP,
        // Any invocations of a queue may call each other or overlap.
        Scope::ShaderCall | Scope::FragmentInterlock | Scope::QueueFamily => QUEUE_FAMILY,
        Scope::Device | Scope::CrossDevice => DEVICE,
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub stage: Stage,
    /// In a fragment program, the vertex shader that places its points.
    pub positions: Option<Box<Program>>,
    /// The program number of the draw's vertex shader, if the vertices also take part in the test.
    pub vertex_program: Option<usize>,
    /// The registers of a vertex's point position, its point size, and the word that it passes to its
    /// fragments.
    pub outputs: [Option<Register>; 3],
    /// All operations, block after block.
    pub ops: Vec<Op>,
    /// The first operation of each block, and the end of the last block.
    pub blocks: Vec<u32>,
    /// Control-flow edges between blocks.
    pub edges: Vec<Edge>,
    /// The phi copies of all edges.
    pub copies: Vec<(Register, Register)>,
    /// Instructions that execute once per number.
    pub number_instructions: Vec<NumberInstruction>,
    /// Literal and edge of the cases of all switches.
    pub cases: Vec<(u64, u32)>,
    pub registers: usize,
    /// Registers with a constant value.
    pub constants: Vec<(Register, u32)>,
    /// Selectors of switches that decide the role of an invocation. They are known at the end of the first
    /// block, or, in graphics stages, before the first memory access.
    pub role_selectors: Vec<Register>,
    pub memory: Vec<MemoryOp>,
    /// For each pair of operations, how the later one waits for the earlier one.
    pub wait_conditions: Vec<WaitCondition>,
    /// All variables in memory.
    pub references: Vec<Reference>,
    pub load_pointers: Vec<(Register, u16)>,
    /// The number of invocations in a workgroup.
    pub workgroup_size: u32,
    /// The workgroup size in x and y.
    pub local_size: [u32; 2],
    /// The number of workgroups of a dispatch in y and z.
    pub layers: [u32; 2],
    /// The size of workgroup memory in words.
    pub workgroup_words: u32,
    /// The size of the push constants in words.
    pub parameter_words: u32,
    /// True if each invocation is a separate wave, because one may wait for another. An example is a barrier
    /// after a loop with divergent iteration counts.
    pub independent_invocations: bool,
    /// True if interlocked sections are ordered by primitive; `None` if the program has none.
    pub interlock_is_ordered: Option<bool>,
    /// The first and last blocks of all loops, outer loops first.
    pub loops: Vec<(u32, u32)>,
    /// Marks the blocks inside selections if reconvergence is unspecified there; otherwise empty.
    pub nested_blocks: Vec<bool>,
}

/// A variable in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The name or binding in the module, which distinguishes references to one location.
    pub name: String,
    /// Where the variable is stored.
    pub place: ReferencePlace,
    /// The class of memory semantics that orders its accesses.
    pub class: StorageClass,
    /// The lowest cache level that an access may leave it in.
    pub lowest: u8,
    /// Only written, by non-atomic private stores, and declared not to alias: its stores go straight to
    /// memory.
    pub write_only: bool,
    /// Not a location of a test; the kernels declare whether it aliases.
    pub is_auxiliary: bool,
    /// Another reference is used with the same index, so both access one location.
    pub aliased: bool,
    /// The scope of all accesses if all are atomic, of one word and of one scope.
    pub uniform_atomic_scope: Option<u8>,
    /// Workgroup memory that is zero-initialized.
    pub is_zero_initialized: bool,
}

/// Where a variable is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferencePlace {
    Binding(u32),
    Image(u32),
    /// The buffer whose address is in the push constants at this word.
    Address(u32),
    /// The resolved storage in a plan: the memory number and the texels of a row.
    Fixed {
        /// Buffers first, then images.
        memory: u32,
        /// Texels of a row; 0 unless it is a two-dimensional image.
        width: u32,
    },
    /// Workgroup memory, from this word on.
    Workgroup(u32, u32),
}

/// A control-flow edge to a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub to: u32,
    /// The range in [`Program::copies`] of the phi copies on this edge.
    pub copies: (u32, u32),
    /// True if the copies must all be read before one is written.
    pub needs_temporaries: bool,
    /// True if this edge ends a round: it is the back edge of an outermost loop.
    pub ends_round: bool,
}

/// An operation on registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// `to` = `left` ∘ `right`.
    Binary { op: Binary, to: Register, left: Register, right: Register },
    /// `to` = `condition` ? `yes` : `no`.
    Select { to: Register, condition: Register, yes: Register, no: Register },
    /// `to` = `from`, in the active lanes.
    Assign { to: Register, from: Register },
    /// `to` = `from` in every lane.
    Copy { to: Register, from: Register },
    /// `to` = push constant `word` plus the byte offset in `index`, which may be [`NONE`].
    Parameter { to: Register, word: u32, index: Register },
    /// `to` = a built-in variable.
    BuiltIn { to: Register, built_in: BuiltIn },
    /// One of [`Program::number_instructions`].
    Apply { number: u32 },
    /// `to` = the register `from + offset + index`, of `words` from `from` on.
    ReadIndexed { to: Register, from: Register, offset: u32, index: Register, words: u32 },
    /// The register `to + offset + index` = `from`, in the active lanes, of `words` from `to` on.
    WriteIndexed { to: Register, offset: u32, index: Register, from: Register, words: u32 },
    /// `to` = the number of elements of `stride` bytes that fit in a reference after `offset`.
    ArrayLength { to: Register, reference: u16, offset: u32, stride: u32 },
    /// The size of an image: texels of a row, and the number of rows if it has rows.
    ImageSize { to: Register, reference: u16, rows: bool },
    /// `to` = the result of a ballot query; `argument` may be [`NONE`].
    Ballot { kind: BallotKind, to: Register, ballot: Register, argument: Register },
    /// `to` = address in bytes of byte `offset + index × scale` of a reference, if `bytes` bytes fit there.
    Address { to: Register, reference: u16, index: Register, scale: u32, offset: u32, bytes: u32 },
    /// `to` = the address plus `bytes`; out-of-bounds addresses stay so.
    AddressOffset { to: Register, from: Register, bytes: u32 },
    /// `to` = address in bytes of a texel; `row` may be [`NONE`].
    Texel { to: Register, reference: u16, column: Register, row: Register },
    /// Waits until a load has filled the register.
    Await { register: Register },
    /// Issues a memory operation to the window.
    Memory(Access),
    /// A subgroup operation: the wave waits here until the machine has executed it.
    Group(SubgroupOp),
    /// Ends a block.
    Jump { edge: u32 },
    /// Ends a block.
    Branch { condition: Register, yes: u32, no: u32 },
    /// Ends a block.
    Switch(Switch),
    /// Ends the invocation.
    Return,
}

/// A branch to one of many edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    pub selector: Register,
    /// True for a selector of 64 bits, whose high word is in the next register.
    pub is_wide: bool,
    /// A range of [`Program::cases`].
    pub cases: (u32, u32),
    pub otherwise: u32,
}

/// A memory operation with its registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The index into [`Program::memory`].
    pub memory: u16,
    /// The address, or [`NONE`].
    pub address: Register,
    /// The stored value, or the operand of a read-modify-write, or [`NONE`]; the low half of eight bytes.
    pub value: Register,
    /// The comparand, or [`NONE`].
    pub compare: Register,
    /// The destination of a load, or [`NONE`].
    pub to: Register,
}

/// A built-in variable of an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    /// The workgroup id along an axis.
    Workgroup(u8),
    /// The number of workgroups along an axis.
    Workgroups(u8),
    /// The local invocation index.
    LocalIndex,
    /// The local invocation id along an axis.
    Local(u8),
    /// The subgroup id within the workgroup.
    Subgroup,
    /// The lane within the subgroup.
    Lane,
    /// The global invocation id along an axis.
    Global(u8),
    Vertex,
    /// The fragment coordinate along an axis.
    Fragment(u8),
    /// True for a helper invocation.
    Helper,
    /// The word that the vertex shader passed to the fragments of its point.
    VertexWord,
    /// The number of lanes of a subgroup.
    SubgroupSize,
    /// The number of subgroups of a workgroup.
    Subgroups,
    /// The workgroup size along an axis.
    Size(u8),
    /// A mask of lanes by comparison with the lane number.
    Mask(LaneMask),
    /// Zero: a missing component, or the depth of a fragment.
    Zero,
    /// One as a floating-point number.
    One,
}

/// Lane masks by comparison with the lane number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneMask {
    Equal,
    GreaterOrEqual,
    Greater,
    LessOrEqual,
    Less,
}

/// Operations on two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    SignedLess,
    SignedLessEqual,
    Less,
    LessEqual,
    FloatAdd,
    FloatMultiply,
}

/// An instruction that executes once per number: 64-bit numbers take two registers each, all others one.
#[derive(Clone, Debug)]
pub(crate) struct NumberInstruction {
    pub instruction: Instruction,
    /// The first register of the result.
    pub to: Register,
    pub result: Vec<NumberShape>,
    /// The first register and the shape of each operand.
    pub operands: Vec<(Register, NumberShape)>,
}

impl NumberInstruction {
    pub fn register_count(shape: &NumberShape) -> Register {
        shape.count() as Register * if shape.bits > 32 { 2 } else { 1 }
    }
}

/// The query of a lane on a ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BallotKind {
    Inverse,
    Bit,
    Count,
    CountUpTo,
    CountBefore,
    Lowest,
    Highest,
}

impl BallotKind {
    /// The mask of all lanes of a subgroup.
    pub const SUBGROUP_MASK: u32 = (1 << SUBGROUP_SIZE) - 1;
}

/// The effect of a memory operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryOpKind {
    PlainLoad,
    PlainStore,
    AtomicLoad,
    AtomicStore,
    Rmw(Rmw),
    Fence,
    /// The releasing half of an atomic store.
    ReleasePart,
    /// The acquiring half of an atomic load.
    AcquirePart,
    /// Arrival at a control barrier, with its releasing half.
    Arrive,
    /// Departure from a control barrier, with its acquiring half.
    Leave,
    /// Begin of an interlocked section: acquires, but makes nothing visible. `ordered` sections follow the
    /// primitive order.
    SectionBegin {
        ordered: bool,
    },
    /// End of an interlocked section: releases, but makes nothing available.
    SectionEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rmw {
    Exchange,
    CompareExchange,
    Update(AtomicFunction),
}

/// A memory operation without its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryOp {
    pub kind: MemoryOpKind,
    /// Index into [`Program::references`]; 0 for operations without an address.
    pub reference: u16,
    /// The storage class of the reference.
    pub class: StorageClass,
    /// Bytes of an access: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Level of the scope: of the atomic, of the semantics, of the availability or visibility on the access.
    pub scope: u8,
    /// Level of the execution scope of a control barrier.
    pub execution: u8,
    /// Half of a split barrier: an arrival, or a departure, which waits for it.
    pub split: bool,
    /// Half of a barrier in divergent control flow: it joins the lanes that reached it together, identified
    /// by the number in the comparand.
    pub tangled: bool,
    /// Half of a split barrier of a kernel in which some location has several references.
    pub among_aliases: bool,
    /// Storage classes of the semantics.
    pub classes: StorageClassSet,
    pub acquire: bool,
    pub release: bool,
    /// MakeAvailable in the semantics.
    pub make_available: bool,
    /// MakeVisible in the semantics.
    pub make_visible: bool,
    /// MakePointerAvailable on a non-atomic store.
    pub available: bool,
    /// MakePointerVisible on a non-atomic load.
    pub visible: bool,
    /// A non-atomic access without NonPrivatePointer.
    pub private: bool,
    /// A non-atomic load of memory that the kernel never writes.
    pub read_only: bool,
    /// A load that an invocation performs once for each address, and then answers from a register; for a fault.
    pub reused: bool,
    /// A `Nontemporal` private load before everything that orders: it leaves no line in a cache. In a race-free
    /// program it reads a value from before the dispatch, so no other access depends on it.
    pub streaming: bool,
}

impl Program {
    /// Marks loads that a compiler with this fault performs once and then answers from a register.
    ///
    /// `non_writable` has a flag for each reference.
    pub fn mark_reused_loads(&mut self, fault: Fault, non_writable: &[bool]) {
        let is_non_writable = |number: u16| non_writable.get(usize::from(number)).copied().unwrap_or(false);
        let mut is_acquired = false;
        // From the end, to see the acquiring half before its load.
        for op in self.memory.iter_mut().rev() {
            op.reused = match fault {
                Fault::ReadOnlyLoadMerged => {
                    op.kind == MemoryOpKind::PlainLoad && is_non_writable(op.reference)
                }
                Fault::AtomicLoadHoistedFromLoop => {
                    op.kind == MemoryOpKind::AtomicLoad && !op.acquire && !is_acquired
                }
                _ => false,
            };
            // The acquiring half follows its load.
            is_acquired = op.kind == MemoryOpKind::AcquirePart;
        }
    }

    /// Removes the synchronization at workgroup scope if a workgroup is one subgroup, for a fault.
    pub fn demote_workgroup_of_one_subgroup(&mut self, fault: Fault) {
        if fault != Fault::OneSubgroupDemoted || self.workgroup_size > SUBGROUP_SIZE {
            return;
        }
        for op in self.memory.iter_mut().filter(|op| op.scope == WORKGROUP) {
            (op.acquire, op.release) = (false, false);
            (op.make_available, op.make_visible) = (false, false);
        }
    }

    /// Marks loads of memory that the kernel never writes, and applies the fault that depends on it.
    pub fn mark_read_only_loads(&mut self, fault: Fault) {
        let writes: Vec<u16> = self.memory.iter().filter(|op| op.is_write()).map(|op| op.reference).collect();
        let stores = self.memory.iter().filter(|op| op.is_write() && !op.is_read()).map(|op| op.reference);
        let is_result = |number: u16| {
            self.references.get(usize::from(number)).is_some_and(|reference| reference.is_auxiliary)
        };
        let drops_acquires = fault == Fault::ReadOnlyKernel && { stores }.all(is_result);
        for op in &mut self.memory {
            op.read_only =
                op.kind == MemoryOpKind::PlainLoad && !op.streaming && !writes.contains(&op.reference);
            if drops_acquires {
                (op.acquire, op.make_visible) = (false, false);
            }
        }
    }
}

impl MemoryOp {
    /// Returns true if it has an address.
    pub fn is_access(&self) -> bool {
        self.is_read() || self.is_write()
    }

    pub fn is_read(&self) -> bool {
        matches!(self.kind, MemoryOpKind::PlainLoad | MemoryOpKind::AtomicLoad | MemoryOpKind::Rmw(_))
    }

    pub fn is_write(&self) -> bool {
        matches!(self.kind, MemoryOpKind::PlainStore | MemoryOpKind::AtomicStore | MemoryOpKind::Rmw(_))
    }

    pub fn is_atomic(&self) -> bool {
        matches!(self.kind, MemoryOpKind::AtomicLoad | MemoryOpKind::AtomicStore | MemoryOpKind::Rmw(_))
    }

    /// Returns true if it is a barrier, or half of one.
    pub fn is_fence(&self) -> bool {
        matches!(self.kind, MemoryOpKind::Fence | MemoryOpKind::Arrive | MemoryOpKind::Leave)
    }

    /// Returns true if it is half of a control barrier, split or not.
    pub fn is_control_barrier(&self) -> bool {
        matches!(self.kind, MemoryOpKind::Arrive | MemoryOpKind::Leave)
    }

    /// Returns true if it is half of a control barrier that is a single instruction.
    pub fn is_unsplit_barrier(&self) -> bool {
        self.is_control_barrier() && !self.split
    }
}

/// The condition under which a later memory operation of an invocation waits for an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitCondition {
    Never,
    /// Waits if both have the same address.
    SameAddress,
    Always,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SubgroupOp {
    pub kind: SubgroupOpKind,
    /// The destination register; the first of four for a ballot.
    pub to: Register,
    /// The operand of each lane, or [`NONE`].
    pub value: Register,
    /// The lane, distance or direction, or [`NONE`].
    pub argument: Register,
}

impl SubgroupOp {
    /// Returns the number of result registers.
    pub fn width(&self) -> usize {
        match self.kind {
            SubgroupOpKind::Ballot => 4,
            _ if self.is_wide() => 2,
            _ => 1,
        }
    }

    /// Returns true if its operands take two registers.
    pub fn is_wide(&self) -> bool {
        matches!(self.kind, SubgroupOpKind::Scan(_, reduction) if reduction.shape.bits == 64)
    }
}

/// The function of a subgroup operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubgroupOpKind {
    /// Returns an id for the lanes that reach a barrier together.
    Reconverge,
    Elect,
    All,
    Any,
    AllEqual,
    Ballot,
    Broadcast,
    BroadcastFirst,
    Shuffle,
    ShuffleXor,
    ShuffleUp,
    ShuffleDown,
    Rotate {
        cluster: u32,
    },
    QuadBroadcast,
    QuadSwap,
    Scan(ReductionSpan, Reduction),
}

/// The set of lanes that an operation combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReductionSpan {
    Reduce,
    Inclusive,
    Exclusive,
    /// The lanes of the cluster of this size.
    Clustered(u32),
}

/// The binary instruction of a scan or reduction, with the shape of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    pub instruction: Instruction,
    pub shape: NumberShape,
}

impl Reduction {
    /// Returns the neutral element.
    pub fn identity_element(self) -> u64 {
        reduction_identity(self.instruction, self.shape.bits)
    }

    pub fn apply(self, left: u64, right: u64) -> u64 {
        self.instruction
            .compute_component(&[left, right], self.shape.kind, self.shape.bits, self.shape.bits)
            .unwrap_or(0)
    }
}
