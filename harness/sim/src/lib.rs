//! A simulated GPU: executes SPIR-V on an operational machine with weak memory, soundly, and on demand wrongly.
//!
//! [`SimDevice`] implements the device interface of the crate `plan`, as Vulkan devices do. It runs the very words that a
//! Vulkan driver would get. It needs no driver, is the same everywhere, and a seed decides all that it does: it is the
//! device where there is no other, a witness that shares no code with model or translation, and, with a [`Fault`], the
//! measure of what a suite of tests can find.
//!
//! # The machine
//! Invocations sit at the leaves of a tree of incoherent caches: their own, the subgroup's, the workgroup's, the queue
//! family's, the device's; memory lies behind. A cache line belongs to one *reference* (a variable of the module), so
//! that references to one location meet in memory alone. A program runs in order and hands its memory operations to a
//! window, from which they are performed out of order as far as the memory model allows (`order`). Availability flushes
//! lines upward, visibility drops clean ones, both as far as their scope reaches and for the storage classes that they
//! name; atomics are performed at the level of their scope. Caches prefetch, write back and evict of their own accord.
//!
//! | module | idea |
//! |---|---|
//! | `plain` | modules that others wrote, as lowering takes them |
//! | `module`, `lower`, `program` | a SPIR-V module as flat operations on registers, 64 invocations at once |
//! | `order` | which memory operation of an invocation waits for which |
//! | `memory` | caches, their lines, and what moves them |
//! | `buffer` | store buffers: atomic stores that some see before others |
//! | `ahead` | atomic loads that go ahead of branches and of narrow acquires |
//! | `wave` | 64 invocations in step, and what they have under way |
//! | `machine` | the scheduler: every choice from one seed |
//! | `device` | the device interface |
//! | `device::shade` | what a draw shades: vertices, points, fragments in quads |
//! | `host` | threads of the host, their caches and the host domain |
//! | `progress`, `machine::walk` | progress models as schedulers |
//! | `fault` | the rules that can be broken |
//!
//! A round of a kernel's outermost loop ends for all invocations before the next one begins for any: a device may
//! schedule so, and it makes the threads of a test meet. All lanes of a wave share some choices: what is independent is
//! a round, not an instance.

mod device;
mod fault;
mod host;
mod legalize;
mod lower;
mod machine;
mod memory;
mod module;
mod order;
mod program;
mod progress;
mod random;
mod read_ahead;
mod store_buffer;
mod wave;

use rspirv::spirv::Op;

pub use device::SimDevice;
pub use fault::{Expect, FAULTS, Fault, Row, UnknownFault};
pub use module::LoadError;
pub use progress::{ProgressGuarantee, ProgressModel, UnknownProgressModel};

/// Every instruction that the machine executes, and those that say nothing to it.
pub const OPCODES: &[Op] = &[
    Op::Capability,
    Op::Extension,
    Op::MemoryModel,
    Op::EntryPoint,
    Op::ExecutionMode,
    Op::Name,
    Op::MemberName,
    Op::Decorate,
    Op::MemberDecorate,
    Op::TypeVoid,
    Op::TypeBool,
    Op::TypeInt,
    Op::TypeFloat,
    Op::TypeVector,
    Op::TypeMatrix,
    Op::TypeImage,
    Op::TypeArray,
    Op::TypeRuntimeArray,
    Op::TypeStruct,
    Op::TypePointer,
    Op::TypeFunction,
    Op::Constant,
    Op::ConstantTrue,
    Op::ConstantFalse,
    Op::ConstantNull,
    Op::Undef,
    Op::Variable,
    Op::Function,
    Op::FunctionEnd,
    Op::Label,
    Op::Phi,
    Op::LoopMerge,
    Op::SelectionMerge,
    Op::Branch,
    Op::BranchConditional,
    Op::Switch,
    Op::Return,
    Op::SetMeshOutputsEXT,
    Op::EmitMeshTasksEXT,
    Op::AccessChain,
    Op::ArrayLength,
    Op::CompositeConstruct,
    Op::CompositeExtract,
    Op::CompositeInsert,
    Op::VectorShuffle,
    Op::VectorExtractDynamic,
    Op::VectorInsertDynamic,
    Op::ExtInst,
    Op::CopyObject,
    Op::ImageTexelPointer,
    Op::ImageQuerySize,
    Op::ImageRead,
    Op::ImageWrite,
    Op::Load,
    Op::Store,
    Op::AtomicLoad,
    Op::AtomicStore,
    Op::AtomicExchange,
    Op::AtomicCompareExchange,
    Op::AtomicIAdd,
    Op::AtomicISub,
    Op::AtomicAnd,
    Op::AtomicOr,
    Op::AtomicXor,
    Op::AtomicSMin,
    Op::AtomicUMin,
    Op::AtomicSMax,
    Op::AtomicUMax,
    Op::AtomicFAddEXT,
    Op::AtomicFMinEXT,
    Op::AtomicFMaxEXT,
    Op::MemoryBarrier,
    Op::ControlBarrier,
    Op::ControlBarrierArriveINTEL,
    Op::ControlBarrierWaitINTEL,
    Op::BeginInvocationInterlockEXT,
    Op::EndInvocationInterlockEXT,
    Op::GroupNonUniformElect,
    Op::GroupNonUniformAll,
    Op::GroupNonUniformAny,
    Op::GroupNonUniformAllEqual,
    Op::GroupNonUniformBallot,
    Op::GroupNonUniformBroadcast,
    Op::GroupNonUniformBroadcastFirst,
    Op::GroupNonUniformShuffle,
    Op::GroupNonUniformShuffleXor,
    Op::GroupNonUniformShuffleUp,
    Op::GroupNonUniformShuffleDown,
    Op::GroupNonUniformRotateKHR,
    Op::GroupNonUniformQuadBroadcast,
    Op::GroupNonUniformQuadSwap,
    Op::GroupNonUniformInverseBallot,
    Op::GroupNonUniformBallotBitExtract,
    Op::GroupNonUniformBallotBitCount,
    Op::GroupNonUniformBallotFindLSB,
    Op::GroupNonUniformBallotFindMSB,
    Op::GroupNonUniformIAdd,
    Op::GroupNonUniformIMul,
    Op::GroupNonUniformSMin,
    Op::GroupNonUniformSMax,
    Op::GroupNonUniformFAdd,
    Op::GroupNonUniformFMul,
    Op::GroupNonUniformFMin,
    Op::GroupNonUniformFMax,
    Op::GroupNonUniformLogicalAnd,
    Op::GroupNonUniformLogicalOr,
    Op::GroupNonUniformLogicalXor,
    Op::GroupNonUniformUMin,
    Op::GroupNonUniformUMax,
    Op::GroupNonUniformBitwiseAnd,
    Op::GroupNonUniformBitwiseOr,
    Op::GroupNonUniformBitwiseXor,
    Op::IAdd,
    Op::ISub,
    Op::IMul,
    Op::UDiv,
    Op::UMod,
    Op::FAdd,
    Op::FMul,
    Op::SDiv,
    Op::SRem,
    Op::SMod,
    Op::SNegate,
    Op::FSub,
    Op::FDiv,
    Op::FRem,
    Op::FMod,
    Op::FNegate,
    Op::FConvert,
    Op::SConvert,
    Op::QuantizeToF16,
    Op::IsNan,
    Op::IsInf,
    Op::Any,
    Op::All,
    Op::Dot,
    Op::SDot,
    Op::UDot,
    Op::SUDot,
    Op::SDotAccSat,
    Op::UDotAccSat,
    Op::SUDotAccSat,
    Op::VectorTimesScalar,
    Op::MatrixTimesScalar,
    Op::VectorTimesMatrix,
    Op::MatrixTimesVector,
    Op::MatrixTimesMatrix,
    Op::OuterProduct,
    Op::Transpose,
    Op::IAddCarry,
    Op::ISubBorrow,
    Op::UMulExtended,
    Op::SMulExtended,
    Op::ShiftRightArithmetic,
    Op::BitCount,
    Op::BitReverse,
    Op::BitFieldInsert,
    Op::BitFieldSExtract,
    Op::BitFieldUExtract,
    Op::LogicalNot,
    Op::FOrdEqual,
    Op::FUnordEqual,
    Op::FOrdNotEqual,
    Op::FUnordNotEqual,
    Op::FOrdLessThan,
    Op::FUnordLessThan,
    Op::FOrdGreaterThan,
    Op::FUnordGreaterThan,
    Op::FOrdLessThanEqual,
    Op::FUnordLessThanEqual,
    Op::FOrdGreaterThanEqual,
    Op::FUnordGreaterThanEqual,
    Op::ShiftLeftLogical,
    Op::ShiftRightLogical,
    Op::BitwiseAnd,
    Op::BitwiseOr,
    Op::BitwiseXor,
    Op::Not,
    Op::Bitcast,
    Op::UConvert,
    Op::ConvertFToS,
    Op::ConvertSToF,
    Op::ConvertFToU,
    Op::ConvertUToF,
    Op::Select,
    Op::LogicalAnd,
    Op::LogicalOr,
    Op::LogicalEqual,
    Op::LogicalNotEqual,
    Op::IEqual,
    Op::INotEqual,
    Op::SGreaterThanEqual,
    Op::SLessThanEqual,
    Op::SGreaterThan,
    Op::SLessThan,
    Op::UGreaterThanEqual,
    Op::ULessThanEqual,
    Op::UGreaterThan,
    Op::ULessThan,
];
