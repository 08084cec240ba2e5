//! Decoded instructions: each instruction of a function as an operation with named operands.
//!
//! [`SpirvOperation`] is closed. Executors match it without a catch-all, so that the compiler names each place that
//! a new instruction concerns. An instruction that is not listed here is [`SpirvOperation::Unknown`].

use arithmetic::Instruction;
use rspirv::spirv::{GlslStd450Op, GroupOperation, Op};

use crate::atomic::{AtomicAccess, AtomicKind};
use crate::operands::{MemoryOperands, TexelOperands};

/// An instruction with its operands, which are ids unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpirvOperation<'m> {
    /// An instruction without an effect or a result, such as debug information.
    Nop,
    Label,
    Phi {
        /// Pairs of a value and the predecessor that it comes from.
        sources: &'m [[u32; 2]],
    },
    SelectionMerge {
        merge: u32,
    },
    LoopMerge {
        merge: u32,
        continue_target: u32,
    },
    Branch {
        target: u32,
    },
    BranchConditional {
        condition: u32,
        yes: u32,
        no: u32,
    },
    Switch {
        selector: u32,
        default: u32,
        /// Literals and labels; see [`switch_cases`](crate::switch_cases).
        cases: &'m [u32],
    },
    Call {
        function: u32,
        arguments: &'m [u32],
    },
    Return {
        value: Option<u32>,
    },
    /// `OpKill`, `OpTerminateInvocation` and `OpDemoteToHelperInvocation`.
    Kill {
        demotes: bool,
    },
    Unreachable,
    EmitMeshTasks {
        groups: [u32; 3],
    },
    SetMeshOutputs {
        counts: [u32; 2],
    },
    Variable {
        initializer: Option<u32>,
    },
    Load {
        pointer: u32,
        memory: MemoryOperands,
    },
    Store {
        pointer: u32,
        value: u32,
        memory: MemoryOperands,
    },
    CopyMemory {
        target: u32,
        source: u32,
        /// The operands of the store and of the load.
        memory: [MemoryOperands; 2],
    },
    CopyMemorySized {
        target: u32,
        source: u32,
    },
    AccessChain {
        base: u32,
        /// The element of `OpPtrAccessChain`.
        element: Option<u32>,
        indices: &'m [u32],
    },
    ArrayLength {
        block: u32,
        /// A literal.
        member: u32,
    },
    ComparePointers {
        comparison: PointerComparison,
        left: u32,
        right: u32,
    },
    Atomic(AtomicAccess),
    MemoryBarrier {
        scope: u32,
        semantics: u32,
    },
    ControlBarrier {
        part: BarrierPart,
        execution: u32,
        scope: u32,
        semantics: u32,
    },
    BeginInterlock,
    EndInterlock,
    Image(ImageOperation),
    Subgroup(SubgroupInstruction),
    /// A query of an existing ballot, which each invocation executes independently.
    BallotQuery {
        query: BallotQuery,
        scope: u32,
        ballot: u32,
    },
    CooperativeMatrix(MatrixOperation),
    Undef,
    /// `OpCopyObject` and `OpCopyLogical`.
    Copy {
        value: u32,
    },
    Select {
        condition: u32,
        yes: u32,
        no: u32,
    },
    Composite(CompositeOperation<'m>),
    Bitcast {
        value: u32,
    },
    /// `OpConvertUToPtr` and `OpConvertPtrToU`.
    ConvertPointer {
        value: u32,
    },
    /// A computation on numbers, which `arithmetic` performs or refuses.
    Compute {
        instruction: Instruction,
        operands: &'m [u32],
    },
    /// `Modf` and `Frexp` of `GLSL.std.450`, which store one of their results.
    ComputeAndStore {
        instruction: GlslStd450Op,
        value: u32,
        pointer: u32,
    },
    Derivative {
        value: u32,
    },
    ReadClock {
        scope: u32,
    },
    IsHelperInvocation,
    RayQuery {
        /// A pointer to the query object.
        query: u32,
        function: RayQueryFunction,
    },
    UnknownExtended {
        /// The id of the instruction set.
        set: u32,
        number: u32,
    },
    Unknown {
        op: Op,
    },
}

/// An instruction on an image or a texel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImageOperation {
    Read {
        image: u32,
        coordinate: u32,
        operands: TexelOperands,
    },
    Fetch {
        image: u32,
        coordinate: u32,
        operands: TexelOperands,
    },
    Write {
        image: u32,
        coordinate: u32,
        texel: u32,
        operands: TexelOperands,
    },
    TexelPointer {
        image: u32,
        coordinate: u32,
    },
    Sample {
        sampling: ImageSampling,
        image: u32,
        coordinate: u32,
        operands: TexelOperands,
    },
    Query {
        query: ImageQuery,
        image: u32,
    },
    /// The image of a sampled image (`OpImage`).
    ImageOf {
        sampled: u32,
    },
    /// An image with a sampler (`OpSampledImage`).
    Combine {
        image: u32,
        sampler: u32,
    },
}

/// An instruction that makes or takes apart a composite value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompositeOperation<'m> {
    Construct {
        parts: &'m [u32],
    },
    Extract {
        composite: u32,
        /// Literals.
        path: &'m [u32],
    },
    Insert {
        value: u32,
        composite: u32,
        /// Literals.
        path: &'m [u32],
    },
    Shuffle {
        first: u32,
        second: u32,
        /// Literals.
        components: &'m [u32],
    },
    ExtractDynamic {
        vector: u32,
        index: u32,
    },
    InsertDynamic {
        vector: u32,
        component: u32,
        index: u32,
    },
}

/// An instruction on cooperative matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixOperation {
    Load(MatrixAccess),
    Store { value: u32, access: MatrixAccess },
    MulAdd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RayQueryFunction {
    Initialize,
    Terminate,
    GenerateIntersection,
    ConfirmIntersection,
    Proceed,
    IntersectionType {
        /// 0 for the candidate, 1 for the committed intersection.
        intersection: u32,
    },
    /// Every other property of a ray or an intersection.
    Attribute,
}

/// A comparison of two pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerComparison {
    Equal,
    NotEqual,
    Difference,
}

/// A control barrier, or a half of a split one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierPart {
    Whole,
    Arrive,
    Wait,
}

/// A way to sample an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSampling {
    ExplicitLod,
    Gather {
        component: u32,
    },
    /// `OpImageQueryLod`, and samples with an implicit level, a projection or a depth reference.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageQuery {
    Size,
    SizeOfLevel { level: u32 },
    Levels,
    Samples,
}

/// A subgroup operation, which the lanes of a tangle execute together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubgroupInstruction {
    pub function: SubgroupFunction,
    /// `None` for `OpGroupNonUniformPartitionNV`.
    pub scope: Option<u32>,
    /// `None` for `OpGroupNonUniformElect`.
    pub value: Option<u32>,
    /// The lane, distance or direction, or the cluster size or partition of a reduction.
    pub argument: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SubgroupFunction {
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
        cluster: Option<u32>,
    },
    QuadBroadcast,
    QuadSwap,
    QuadAll,
    QuadAny,
    Partition,
    /// A reduction or scan by an associative instruction.
    Reduce {
        instruction: Instruction,
        operation: GroupOperation,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BallotQuery {
    Inverse,
    BitExtract { index: u32 },
    BitCount { operation: GroupOperation },
    FindLsb,
    FindMsb,
}

/// The memory of a cooperative matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatrixAccess {
    pub pointer: u32,
    pub layout: u32,
    pub stride: Option<u32>,
    pub memory: MemoryOperands,
}

/// An access through a pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointerAccess {
    pub pointer: u32,
    /// False for a read.
    pub writes: bool,
    pub memory: MemoryOperands,
}

/// The effect of an instruction on memory that invocations may share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryEffect {
    /// It neither accesses nor orders memory.
    None,
    /// It accesses memory through one or two pointers.
    Access([Option<PointerAccess>; 2]),
    /// It accesses a texel of a storage image.
    Texel {
        /// False for a read.
        writes: bool,
        memory: MemoryOperands,
    },
    Atomic(AtomicAccess),
    /// It orders accesses. Scope and semantics are ids.
    Barrier {
        scope: u32,
        semantics: u32,
    },
    /// It begins or ends an interlocked section.
    Interlock,
    /// Any effect: a call, or an instruction that is not decoded.
    Unknown,
}

impl SpirvOperation<'_> {
    /// Returns true if an instruction ends its block.
    pub fn is_terminator(&self) -> bool {
        self.is_branch()
            || matches!(self, Self::Return { .. } | Self::Kill { demotes: false } | Self::Unreachable)
            || matches!(self, Self::EmitMeshTasks { .. })
    }

    /// Returns true if an instruction branches within its function.
    pub fn is_branch(&self) -> bool {
        matches!(self, Self::Branch { .. } | Self::BranchConditional { .. } | Self::Switch { .. })
    }

    /// Returns the effect of an instruction on memory.
    pub fn memory_effect(&self) -> MemoryEffect {
        let load = |pointer, memory| PointerAccess { pointer, writes: false, memory };
        let store = |pointer, memory| PointerAccess { pointer, writes: true, memory };
        let no_operands = MemoryOperands::default();
        match *self {
            Self::Load { pointer, memory } => MemoryEffect::Access([Some(load(pointer, memory)), None]),
            Self::Store { pointer, memory, .. } => MemoryEffect::Access([Some(store(pointer, memory)), None]),
            Self::CopyMemory { target, source, memory: [of_store, of_load] } => {
                MemoryEffect::Access([Some(load(source, of_load)), Some(store(target, of_store))])
            }
            Self::CopyMemorySized { target, source } => {
                MemoryEffect::Access([Some(load(source, no_operands)), Some(store(target, no_operands))])
            }
            Self::ComputeAndStore { pointer, .. } => {
                MemoryEffect::Access([Some(store(pointer, no_operands)), None])
            }
            Self::CooperativeMatrix(MatrixOperation::Load(access)) => {
                MemoryEffect::Access([Some(load(access.pointer, access.memory)), None])
            }
            Self::CooperativeMatrix(MatrixOperation::Store { access, .. }) => {
                MemoryEffect::Access([Some(store(access.pointer, access.memory)), None])
            }
            Self::Atomic(access) => MemoryEffect::Atomic(access),
            Self::Image(ImageOperation::Read { operands, .. }) => {
                MemoryEffect::Texel { writes: false, memory: operands.memory }
            }
            Self::Image(ImageOperation::Write { operands, .. }) => {
                MemoryEffect::Texel { writes: true, memory: operands.memory }
            }
            Self::MemoryBarrier { scope, semantics } | Self::ControlBarrier { scope, semantics, .. } => {
                MemoryEffect::Barrier { scope, semantics }
            }
            Self::BeginInterlock | Self::EndInterlock => MemoryEffect::Interlock,
            Self::Call { .. } | Self::UnknownExtended { .. } | Self::Unknown { .. } => MemoryEffect::Unknown,
            // The memory of sampled images and ray queries is constant.
            Self::Image(
                ImageOperation::Fetch { .. }
                | ImageOperation::Sample { .. }
                | ImageOperation::TexelPointer { .. }
                | ImageOperation::Query { .. }
                | ImageOperation::ImageOf { .. }
                | ImageOperation::Combine { .. },
            )
            | Self::RayQuery { .. }
            | Self::Nop
            | Self::Label
            | Self::Phi { .. }
            | Self::SelectionMerge { .. }
            | Self::LoopMerge { .. }
            | Self::Branch { .. }
            | Self::BranchConditional { .. }
            | Self::Switch { .. }
            | Self::Return { .. }
            | Self::Kill { .. }
            | Self::Unreachable
            | Self::EmitMeshTasks { .. }
            | Self::SetMeshOutputs { .. }
            | Self::Variable { .. }
            | Self::AccessChain { .. }
            | Self::ArrayLength { .. }
            | Self::ComparePointers { .. }
            | Self::Subgroup(_)
            | Self::BallotQuery { .. }
            | Self::CooperativeMatrix(MatrixOperation::MulAdd)
            | Self::Undef
            | Self::Copy { .. }
            | Self::Select { .. }
            | Self::Composite(_)
            | Self::Bitcast { .. }
            | Self::ConvertPointer { .. }
            | Self::Compute { .. }
            | Self::Derivative { .. }
            | Self::ReadClock { .. }
            | Self::IsHelperInvocation => MemoryEffect::None,
        }
    }

    /// Returns true if an instruction may write memory, order it or call a function.
    pub fn may_change_memory(&self) -> bool {
        match self.memory_effect() {
            MemoryEffect::Access(accesses) => accesses.into_iter().flatten().any(|access| access.writes),
            MemoryEffect::Texel { writes, .. } => writes,
            MemoryEffect::Atomic(_)
            | MemoryEffect::Barrier { .. }
            | MemoryEffect::Interlock
            | MemoryEffect::Unknown => true,
            MemoryEffect::None => false,
        }
    }

    /// Returns the pointer of a load, a store or an atomic.
    pub fn accessed_pointer(&self) -> Option<u32> {
        match self {
            Self::Load { pointer, .. } | Self::Store { pointer, .. } => Some(*pointer),
            Self::Atomic(access) => Some(access.pointer),
            _ => None,
        }
    }

    /// Returns the ids of the memory semantics of an atomic or a barrier.
    pub fn semantics_ids(&self) -> impl Iterator<Item = u32> + use<> {
        let [first, unequal] = match self.memory_effect() {
            MemoryEffect::Barrier { semantics, .. } => [Some(semantics), None],
            MemoryEffect::Atomic(access) => match access.kind {
                AtomicKind::CompareExchange { unequal, .. } => [Some(access.semantics), Some(unequal)],
                AtomicKind::Load
                | AtomicKind::Store { .. }
                | AtomicKind::Exchange { .. }
                | AtomicKind::Update { .. } => [Some(access.semantics), None],
            },
            MemoryEffect::None
            | MemoryEffect::Access(_)
            | MemoryEffect::Texel { .. }
            | MemoryEffect::Interlock
            | MemoryEffect::Unknown => [None; 2],
        };
        first.into_iter().chain(unequal)
    }

    /// Returns the ids of the memory scopes of atomics, barriers, and availability and visibility operations.
    pub fn memory_scope_ids(&self) -> Vec<u32> {
        let scopes_of = |memory: MemoryOperands| [memory.available, memory.visible];
        let scopes: Vec<Option<u32>> = match self.memory_effect() {
            MemoryEffect::Barrier { scope, .. } => vec![Some(scope)],
            MemoryEffect::Atomic(access) => vec![Some(access.scope)],
            MemoryEffect::Access(accesses) => {
                accesses.into_iter().flatten().flat_map(|access| scopes_of(access.memory)).collect()
            }
            MemoryEffect::Texel { memory, .. } => scopes_of(memory).to_vec(),
            MemoryEffect::None | MemoryEffect::Interlock | MemoryEffect::Unknown => Vec::new(),
        };
        scopes.into_iter().flatten().collect()
    }
}

/// Returns the result of a subgroup reduction over no numbers, of `bits` bits; 1 bit for booleans.
pub fn reduction_identity(instruction: Instruction, bits: u32) -> u64 {
    let all = arithmetic::mask(bits);
    let float = |value| arithmetic::float_to_bits(value, bits);
    match instruction {
        Instruction::Core(Op::FMul) => float(1.0),
        Instruction::Core(Op::IMul | Op::LogicalAnd) => 1,
        Instruction::Core(Op::BitwiseAnd) | Instruction::Extended(GlslStd450Op::UMin) => all,
        Instruction::Extended(GlslStd450Op::SMin) => all >> 1,
        Instruction::Extended(GlslStd450Op::SMax) => all ^ all >> 1,
        Instruction::Extended(GlslStd450Op::FMin) => float(f64::INFINITY),
        Instruction::Extended(GlslStd450Op::FMax) => float(f64::NEG_INFINITY),
        _ => 0,
    }
}
