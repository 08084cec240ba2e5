//! A kernel in the form that is executed: flat operations on numbered registers, and the memory operations apart.

use arithmetic::{Instruction, NumberShape};
use rspirv::spirv::{GlslStd450Op, Op as SpirvOp};

use crate::device::SUBGROUP_SIZE;
use crate::fault::Fault;

/// Lanes that execute one operation together.
pub(crate) const LANES: usize = 64;

/// One register of all lanes.
pub(crate) type Lanes = [u32; LANES];

/// Number of a register.
pub(crate) type Register = u32;

/// No register.
pub(crate) const NONE: Register = Register::MAX;

/// Levels of the cache tree, from an invocation's own cache to that of the device. Memory lies behind.
pub(crate) const LEVELS: usize = 5;

/// The level of an invocation's own cache.
pub(crate) const INVOCATION: u8 = 0;
/// The level of a subgroup's cache.
pub(crate) const SUBGROUP: u8 = 1;
/// The level of a workgroup's cache.
pub(crate) const WORKGROUP: u8 = 2;
/// The level of a queue family's cache.
pub(crate) const QUEUE_FAMILY: u8 = 3;
/// The level of the device's cache: the shader domain.
pub(crate) const DEVICE: u8 = 4;
/// Behind all caches: the device domain.
pub(crate) const MEMORY: u8 = 5;

/// The class of workgroup memory in semantics.
pub(crate) const WORKGROUP_MEMORY: u8 = 1;
/// The class of images in semantics.
pub(crate) const IMAGE: u8 = 2;

/// What the invocations of a program are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Those of a dispatch.
    #[default]
    Compute,
    /// Vertices.
    Vertex,
    /// Fragments.
    Fragment,
    /// Those of workgroups of a mesh shader.
    Mesh,
    /// Those of workgroups of a task shader.
    Task,
}

/// A kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// What its invocations are.
    pub stage: Stage,
    /// Of fragments: the vertex shader that puts their points to their places.
    pub positions: Option<Box<Program>>,
    /// The number of the program of the vertices of its draw, where those place its points and play too.
    pub beside: Option<usize>,
    /// What a vertex says of its point: the first register of its position, and its size.
    /// Last the word that it hands to its fragments.
    pub outputs: [Option<Register>; 3],
    /// All operations, block after block.
    pub ops: Vec<Op>,
    /// Where each block begins, and the end of the last one.
    pub blocks: Vec<u32>,
    /// Ways from one block to another.
    pub edges: Vec<Edge>,
    /// Copies of all edges.
    pub copies: Vec<(Register, Register)>,
    /// Instructions that are done number by number.
    pub applications: Vec<Application>,
    /// Targets of all switches.
    pub cases: Vec<(u32, u32)>,
    /// Number of registers.
    pub registers: usize,
    /// Registers that hold one value for ever.
    pub constants: Vec<(Register, u32)>,
    /// Selectors of switches that are known at the end of the first block, or, in graphics stages, before memory is touched:
    /// what an invocation plays.
    pub keys: Vec<Register>,
    /// Memory operations.
    pub memory: Vec<MemoryOp>,
    /// For each pair of an earlier and a later memory operation how the later waits.
    pub order: Vec<Wait>,
    /// References: each variable in memory.
    pub references: Vec<Reference>,
    /// Pointers through which loads read, with the load.
    pub reads: Vec<(Register, u16)>,
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// The same in x and y.
    pub local_size: [u32; 2],
    /// Workgroups of a dispatch in y and z.
    pub layers: [u32; 2],
    /// Words of workgroup memory.
    pub workgroup_words: u32,
    /// Words of push constants that are read.
    pub parameter_words: u32,
    /// Each invocation goes on by itself: what others wrote may wait in one for another, as at a barrier behind a loop that another
    /// repeats more often.
    pub alone: bool,
    /// Where fragments have interlocked sections, whether these keep the order of the primitives.
    pub sections: Option<bool>,
    /// Loops as their first and last blocks, those around others first.
    pub loops: Vec<(u32, u32)>,
    /// Blocks that stand in a selection, where that leaves open which lanes execute a subgroup operation together; else empty.
    pub nested: Vec<bool>,
}

/// A variable in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The name that the module gives it, or its binding: what tells the references to one location apart.
    pub name: String,
    /// Where it lies.
    pub place: ReferencePlace,
    /// Which bit of memory semantics covers it: 0 buffers, 1 workgroup memory, 2 images, 3 outputs.
    pub class: u8,
    /// The lowest cache level that an access may leave it in.
    pub lowest: u8,
    /// Only ever written, by plain private stores, and declared to have no alias: the stores go straight to memory.
    pub write_only: bool,
    /// No location of a test: its kernels say of these whether they alias.
    pub apart: bool,
    /// Another reference is used with the very same index: the two mean one location.
    pub aliased: bool,
    /// The one scope of all accesses, where all are atomic and of one word.
    pub calm: Option<u8>,
    /// Memory of a workgroup that is zero when the workgroup begins.
    pub zeroed: bool,
}

/// Where a variable lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferencePlace {
    /// The buffer of a binding.
    Binding(u32),
    /// The image of a binding.
    Image(u32),
    /// The buffer whose address the push constants hold from this word on.
    Address(u32),
    /// What one of these is in a plan: a number of memory, and the texels of a row.
    Fixed {
        /// Buffers first, then images.
        memory: u32,
        /// Texels of a row; 0 for what is no two-dimensional image.
        width: u32,
    },
    /// Workgroup memory, from this word on.
    Workgroup(u32, u32),
}

/// A way from one block to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// The block.
    pub to: u32,
    /// Range of [`Program::copies`]: what phis take on this way.
    pub copies: (u32, u32),
    /// Whether the copies must all be read before one is written.
    pub crossing: bool,
    /// Whether this ends a round: it goes back to the head of an outermost loop.
    pub ends_round: bool,
}

/// An operation on registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// `to` = `left` ∘ `right`.
    Binary { op: Binary, to: Register, left: Register, right: Register },
    /// `to` = `condition` ? `yes` : `no`.
    Select { to: Register, condition: Register, yes: Register, no: Register },
    /// `to` = `from`, in the lanes that are on.
    Assign { to: Register, from: Register },
    /// `to` = `from` in all lanes: a value of its own.
    Copy { to: Register, from: Register },
    /// `to` = a word of the push constants, from here so many bytes on as the register `index` says; that may be [`NONE`].
    Parameter { to: Register, word: u32, index: Register },
    /// `to` = something about the invocation.
    BuiltIn { to: Register, built_in: BuiltIn },
    /// One of [`Program::applications`].
    Apply { number: u32 },
    /// `to` = the register `from + offset + index`, of `words` from `from` on.
    Pick { to: Register, from: Register, offset: u32, index: Register, words: u32 },
    /// The register `to + offset + index` = `from`, in the lanes that are on, of `words` from `to` on.
    Put { to: Register, offset: u32, index: Register, from: Register, words: u32 },
    /// `to` = elements of `stride` bytes that a reference has room for from a byte on.
    Length { to: Register, reference: u16, offset: u32, stride: u32 },
    /// The texels of an image: in a row, and where it has rows, how many.
    Size { to: Register, reference: u16, rows: bool },
    /// `to` = what a lane reads from a ballot; `argument` may be [`NONE`].
    Ballot { kind: BallotKind, to: Register, ballot: Register, argument: Register },
    /// `to` = address in bytes of byte `offset + index × scale` of a reference, where `bytes` bytes have room.
    Address { to: Register, reference: u16, index: Register, scale: u32, offset: u32, bytes: u32 },
    /// `to` = the address `bytes` bytes behind another one; outside stays outside.
    Behind { to: Register, from: Register, bytes: u32 },
    /// `to` = address in bytes of a texel; `row` may be [`NONE`].
    Texel { to: Register, reference: u16, column: Register, row: Register },
    /// Waits until a load has filled the register.
    Await { register: Register },
    /// Hands a memory operation to the window.
    Memory(Access),
    /// A subgroup operation: the wave stands there until the machine has executed it.
    Group(Group),
    /// Ends a block.
    Jump { edge: u32 },
    /// Ends a block.
    Branch { condition: Register, yes: u32, no: u32 },
    /// Ends a block: range of [`Program::cases`], and the default edge.
    Switch { selector: Register, cases: (u32, u32), otherwise: u32 },
    /// Ends the invocation.
    Return,
}

/// A memory operation with its registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Index into [`Program::memory`].
    pub memory: u16,
    /// Address, or [`NONE`].
    pub address: Register,
    /// What is stored, or the operand of a read-modify-write, or [`NONE`]; of eight bytes the low half, as below.
    pub value: Register,
    /// Comparand, or [`NONE`].
    pub compare: Register,
    /// What is loaded, or [`NONE`].
    pub to: Register,
}

/// What an invocation may ask about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    /// Number of the workgroup along an axis.
    Workgroup(u8),
    /// Workgroups along an axis.
    Workgroups(u8),
    /// Index within the workgroup, over all axes.
    LocalIndex,
    /// Number within the workgroup along an axis.
    Local(u8),
    /// Number of the subgroup within the workgroup.
    Subgroup,
    /// Index within the subgroup.
    Lane,
    /// Number within the dispatch along an axis.
    Global(u8),
    /// Number of the vertex.
    Vertex,
    /// Where the middle of the fragment lies along an axis.
    Fragment(u8),
    /// Whether the fragment is there for its neighbours' sake alone.
    Helper,
    /// What the vertex shader handed to the fragments of its point.
    Handed,
    /// Lanes of a subgroup.
    SubgroupSize,
    /// Subgroups of a workgroup.
    Subgroups,
    /// The size of the workgroup along an axis.
    Size(u8),
    /// The lanes that stand to the own number as this says.
    Mask(LaneMask),
    /// Zero: what has no such component, and the depth of a fragment.
    Zero,
    /// One as a floating-point number.
    One,
}

/// Lanes by how their numbers compare with an invocation's own.
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

/// An instruction that is done number by number: numbers of 64 bits are in two registers each, all others in one.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    /// What it computes.
    pub instruction: Instruction,
    /// The first register of its result.
    pub to: Register,
    /// What the result is.
    pub result: Vec<NumberShape>,
    /// The first registers of its operands, and what they are.
    pub operands: Vec<(Register, NumberShape)>,
}

impl Application {
    /// Registers of a shape.
    pub fn words(shape: &NumberShape) -> Register {
        shape.count() as Register * if shape.bits > 32 { 2 } else { 1 }
    }
}

/// What a lane reads from a ballot by itself.
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
    /// The bits of all lanes of a subgroup.
    pub const LANES: u32 = (1 << SUBGROUP_SIZE) - 1;
}

/// What a memory operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryOpKind {
    /// A load that is not atomic.
    PlainLoad,
    /// A store that is not atomic.
    PlainStore,
    /// An atomic load.
    AtomicLoad,
    /// An atomic store.
    AtomicStore,
    /// A read-modify-write.
    Rmw(Rmw),
    /// A memory barrier.
    Fence,
    /// The releasing half of an atomic store.
    ReleasePart,
    /// The acquiring half of an atomic load.
    AcquirePart,
    /// Arrival at a control barrier, with its releasing half.
    Arrive,
    /// Departure from a control barrier, with its acquiring half.
    Leave,
    /// Begin of an interlocked section, which acquires and makes nothing visible; whether sections keep the order of the primitives.
    SectionBegin { ordered: bool },
    /// End of an interlocked section, which releases and makes nothing available.
    SectionEnd,
}

/// Read-modify-write operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rmw {
    Exchange,
    CompareExchange,
    Add,
    Subtract,
    And,
    Or,
    Xor,
    SignedMin,
    Min,
    SignedMax,
    Max,
    FloatAdd,
    FloatMin,
    FloatMax,
}

/// A memory operation without its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryOp {
    /// What it does.
    pub kind: MemoryOpKind,
    /// Index into [`Program::references`]; 0 for operations without an address.
    pub reference: u16,
    /// The reference's class.
    pub class: u8,
    /// Bytes of an access: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Level of the scope: of the atomic, of the semantics, of the availability or visibility on the access.
    pub scope: u8,
    /// Level of the execution scope of a control barrier.
    pub execution: u8,
    /// Half of a split barrier: an arrival, or a departure which is its wait.
    pub split: bool,
    /// Half of a barrier that a branch may keep lanes of the subgroup from: those meet that have come to it together, by the number in
    /// the comparand.
    pub tangled: bool,
    /// Half of a split barrier of a kernel in which some location has several references.
    pub among_aliases: bool,
    /// Classes of the semantics, a bit each.
    pub mask: u8,
    /// Acquires.
    pub acquire: bool,
    /// Releases.
    pub release: bool,
    /// MakeAvailable in the semantics.
    pub make_available: bool,
    /// MakeVisible in the semantics.
    pub make_visible: bool,
    /// MakePointerAvailable on a plain store.
    pub available: bool,
    /// MakePointerVisible on a plain load.
    pub visible: bool,
    /// A plain access without NonPrivatePointer.
    pub private: bool,
    /// A plain load of what the kernel never writes.
    pub read_only: bool,
}

impl Program {
    /// Marks loads of what the kernel never writes; takes away what a fault forgets where it writes nothing but results.
    pub fn find_what_is_read_only(&mut self, fault: Fault) {
        let writes: Vec<u16> = self.memory.iter().filter(|op| op.is_write()).map(|op| op.reference).collect();
        let stores = self.memory.iter().filter(|op| op.is_write() && !op.is_read()).map(|op| op.reference);
        let is_result =
            |number: u16| self.references.get(usize::from(number)).is_some_and(|reference| reference.apart);
        let forgets = fault == Fault::ReadOnlyKernel && { stores }.all(is_result);
        for op in &mut self.memory {
            op.read_only = op.kind == MemoryOpKind::PlainLoad && !writes.contains(&op.reference);
            if forgets {
                (op.acquire, op.make_visible) = (false, false);
            }
        }
    }
}

impl MemoryOp {
    /// Whether it has an address.
    pub fn is_access(&self) -> bool {
        self.is_read() || self.is_write()
    }

    /// Whether it reads.
    pub fn is_read(&self) -> bool {
        matches!(self.kind, MemoryOpKind::PlainLoad | MemoryOpKind::AtomicLoad | MemoryOpKind::Rmw(_))
    }

    /// Whether it writes.
    pub fn is_write(&self) -> bool {
        matches!(self.kind, MemoryOpKind::PlainStore | MemoryOpKind::AtomicStore | MemoryOpKind::Rmw(_))
    }

    /// Whether it is atomic.
    pub fn is_atomic(&self) -> bool {
        matches!(self.kind, MemoryOpKind::AtomicLoad | MemoryOpKind::AtomicStore | MemoryOpKind::Rmw(_))
    }

    /// Whether it is a barrier, or half of one.
    pub fn is_fence(&self) -> bool {
        matches!(self.kind, MemoryOpKind::Fence | MemoryOpKind::Arrive | MemoryOpKind::Leave)
    }

    /// Whether it is one half of a control barrier, a split one or not.
    pub fn is_control(&self) -> bool {
        matches!(self.kind, MemoryOpKind::Arrive | MemoryOpKind::Leave)
    }

    /// Whether it is one half of a control barrier that is one instruction.
    pub fn is_whole(&self) -> bool {
        self.is_control() && !self.split
    }
}

/// How a later memory operation of an invocation waits for an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    Never,
    /// Where both have the same address.
    SameAddress,
    /// Always.
    Always,
}

/// A subgroup operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// What it computes.
    pub kind: GroupKind,
    /// Where its result goes: four registers for a ballot.
    pub to: Register,
    /// What a lane brings, or [`NONE`].
    pub value: Register,
    /// The lane, distance or direction, or [`NONE`].
    pub argument: Register,
}

impl Group {
    /// Registers of the result.
    pub fn width(&self) -> usize {
        match self.kind {
            GroupKind::Ballot => 4,
            _ if self.is_wide() => 2,
            _ => 1,
        }
    }

    /// Whether it is about numbers of two registers.
    pub fn is_wide(&self) -> bool {
        matches!(self.kind, GroupKind::Scan(_, reduction) if reduction.shape.bits == 64)
    }
}

/// What a subgroup operation computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// Nothing: the lanes that come to a barrier together get the number of their meeting.
    Meet,
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
    Scan(GroupSpan, Reduction),
}

/// Over which lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupSpan {
    Reduce,
    Inclusive,
    Exclusive,
    /// Those of its cluster of so many.
    Clustered(u32),
}

/// What a scan is made of: an instruction on two numbers, and what these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    pub of: Instruction,
    pub shape: NumberShape,
}

impl Reduction {
    /// What changes nothing.
    pub fn neutral(self) -> u64 {
        let all = arithmetic::mask(self.shape.bits);
        let float = |value| arithmetic::bits_of(value, self.shape.bits);
        match self.of {
            // A sum of zeros keeps its sign.
            Instruction::Core(SpirvOp::FAdd) => float(-0.0),
            Instruction::Core(SpirvOp::FMul) => float(1.0),
            Instruction::Core(SpirvOp::IMul | SpirvOp::LogicalAnd) => 1,
            Instruction::Core(SpirvOp::BitwiseAnd) | Instruction::Extended(GlslStd450Op::UMin) => all,
            Instruction::Extended(GlslStd450Op::SMin) => all >> 1,
            Instruction::Extended(GlslStd450Op::SMax) => all ^ all >> 1,
            Instruction::Extended(GlslStd450Op::FMin) => float(f64::INFINITY),
            Instruction::Extended(GlslStd450Op::FMax) => float(f64::NEG_INFINITY),
            _ => 0,
        }
    }

    /// Of two values.
    pub fn apply(self, left: u64, right: u64) -> u64 {
        self.of.scalar(&[left, right], self.shape.kind, self.shape.bits, self.shape.bits).unwrap_or(0)
    }
}
