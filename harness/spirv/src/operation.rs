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
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
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
    ImageRead {
        image: u32,
        coordinate: u32,
        operands: TexelOperands,
    },
    ImageFetch {
        image: u32,
        coordinate: u32,
        operands: TexelOperands,
    },
    ImageWrite {
        image: u32,
        coordinate: u32,
        texel: u32,
        operands: TexelOperands,
    },
    ImageTexelPointer {
        image: u32,
        coordinate: u32,
    },
    ImageSample {
        sampling: ImageSampling,
        image: u32,
        coordinate: u32,
        operands: TexelOperands,
    },
    ImageQuery {
        query: ImageQuery,
        image: u32,
    },
    /// The image of a sampled image.
    Image {
        sampled: u32,
    },
    SampledImage {
        image: u32,
        sampler: u32,
    },
    Subgroup(SubgroupInstruction),
    /// A query of an existing ballot, which each invocation executes independently.
    BallotQuery {
        query: BallotQuery,
        scope: u32,
        ballot: u32,
    },
    CooperativeMatrixLoad(MatrixAccess),
    CooperativeMatrixStore {
        value: u32,
        access: MatrixAccess,
    },
    CooperativeMatrixMulAdd {
        operands: &'m [u32],
    },
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
    CompositeConstruct {
        parts: &'m [u32],
    },
    CompositeExtract {
        composite: u32,
        /// Literals.
        path: &'m [u32],
    },
    CompositeInsert {
        value: u32,
        composite: u32,
        /// Literals.
        path: &'m [u32],
    },
    VectorShuffle {
        first: u32,
        second: u32,
        /// Literals.
        components: &'m [u32],
    },
    VectorExtractDynamic {
        vector: u32,
        index: u32,
    },
    VectorInsertDynamic {
        vector: u32,
        component: u32,
        index: u32,
    },
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

/// The function of an instruction of a ray query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
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
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
pub enum PointerComparison {
    Equal,
    NotEqual,
    Difference,
}

/// A control barrier, or a half of a split one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
pub enum BarrierPart {
    Whole,
    Arrive,
    Wait,
}

/// A way to sample an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
pub enum ImageSampling {
    ExplicitLod,
    Gather {
        component: u32,
    },
    /// `OpImageQueryLod`, and samples with an implicit level, a projection or a depth reference.
    Other,
}

/// A query of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
pub enum ImageQuery {
    Size,
    SizeOfLevel { level: u32 },
    Levels,
    Samples,
}

/// A subgroup operation, for which the lanes have to meet.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
pub struct SubgroupInstruction {
    pub function: SubgroupFunction,
    /// `None` for `OpGroupNonUniformPartitionNV`.
    pub scope: Option<u32>,
    /// `None` for `OpGroupNonUniformElect`.
    pub value: Option<u32>,
    /// The lane, distance or direction, or the cluster size or partition of a reduction.
    pub argument: Option<u32>,
}

/// The function of a subgroup operation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
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

/// The query of a ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
pub enum BallotQuery {
    Inverse,
    BitExtract { index: u32 },
    BitCount { operation: GroupOperation },
    FindLsb,
    FindMsb,
}

/// The memory of a cooperative matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the SPIR-V specification")]
pub struct MatrixAccess {
    pub pointer: u32,
    pub layout: u32,
    pub stride: Option<u32>,
    pub memory: MemoryOperands,
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

    /// Returns true if an instruction may write memory, order it or call a function.
    pub fn may_change_memory(&self) -> bool {
        match self {
            Self::Store { .. }
            | Self::CopyMemory { .. }
            | Self::CopyMemorySized { .. }
            | Self::Atomic(_)
            | Self::ImageWrite { .. }
            | Self::MemoryBarrier { .. }
            | Self::ControlBarrier { .. }
            | Self::BeginInterlock
            | Self::EndInterlock
            | Self::CooperativeMatrixStore { .. }
            | Self::ComputeAndStore { .. }
            | Self::Call { .. }
            | Self::UnknownExtended { .. }
            | Self::Unknown { .. } => true,
            Self::Nop
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
            | Self::Load { .. }
            | Self::AccessChain { .. }
            | Self::ArrayLength { .. }
            | Self::ComparePointers { .. }
            | Self::ImageRead { .. }
            | Self::ImageFetch { .. }
            | Self::ImageTexelPointer { .. }
            | Self::ImageSample { .. }
            | Self::ImageQuery { .. }
            | Self::Image { .. }
            | Self::SampledImage { .. }
            | Self::Subgroup(_)
            | Self::BallotQuery { .. }
            | Self::CooperativeMatrixLoad(_)
            | Self::CooperativeMatrixMulAdd { .. }
            | Self::Undef
            | Self::Copy { .. }
            | Self::Select { .. }
            | Self::CompositeConstruct { .. }
            | Self::CompositeExtract { .. }
            | Self::CompositeInsert { .. }
            | Self::VectorShuffle { .. }
            | Self::VectorExtractDynamic { .. }
            | Self::VectorInsertDynamic { .. }
            | Self::Bitcast { .. }
            | Self::ConvertPointer { .. }
            | Self::Compute { .. }
            | Self::Derivative { .. }
            | Self::ReadClock { .. }
            | Self::IsHelperInvocation
            | Self::RayQuery { .. } => false,
        }
    }

    /// Returns the pointer of a load, a store or an atomic.
    pub fn pointer(&self) -> Option<u32> {
        match self {
            Self::Load { pointer, .. } | Self::Store { pointer, .. } => Some(*pointer),
            Self::Atomic(access) => Some(access.pointer),
            _ => None,
        }
    }

    /// Returns the ids of the memory semantics of an atomic or a barrier.
    pub fn semantics(&self) -> impl Iterator<Item = u32> + use<> {
        let [first, unequal] = match self {
            Self::MemoryBarrier { semantics, .. } | Self::ControlBarrier { semantics, .. } => {
                [Some(*semantics), None]
            }
            Self::Atomic(access) => match access.kind {
                AtomicKind::CompareExchange { unequal, .. } => [Some(access.semantics), Some(unequal)],
                _ => [Some(access.semantics), None],
            },
            _ => [None; 2],
        };
        first.into_iter().chain(unequal)
    }

    /// Returns the ids of the memory scopes of atomics, barriers, and availability and visibility operations.
    pub fn memory_scopes(&self) -> Vec<u32> {
        let scopes_of = |memory: &MemoryOperands| [memory.available, memory.visible];
        let scopes: Vec<Option<u32>> = match self {
            Self::MemoryBarrier { scope, .. } | Self::ControlBarrier { scope, .. } => vec![Some(*scope)],
            Self::Atomic(access) => vec![Some(access.scope)],
            Self::Load { memory, .. } | Self::Store { memory, .. } => scopes_of(memory).to_vec(),
            Self::CopyMemory { memory, .. } => memory.iter().flat_map(scopes_of).collect(),
            Self::ImageRead { operands, .. } | Self::ImageWrite { operands, .. } => {
                scopes_of(&operands.memory).to_vec()
            }
            _ => Vec::new(),
        };
        scopes.into_iter().flatten().collect()
    }
}

/// Returns the result of a subgroup reduction over no numbers, of `bits` bits; 1 bit for booleans.
pub fn reduction_identity(instruction: Instruction, bits: u32) -> u64 {
    let all = arithmetic::mask(bits);
    let float = |value| arithmetic::bits_of(value, bits);
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
