//! A simulated GPU: executes SPIR-V on an operational machine with weak memory, soundly or with an injected
//! fault.
//!
//! [`SimDevice`] implements the device interface of the crate `plan`, as Vulkan devices do. It runs the same
//! SPIR-V words that a Vulkan driver gets. It needs no driver, behaves the same on every host, and derives
//! all choices from a seed. It serves as the device on hosts without a GPU and as an independent witness that
//! shares no code with model or translation. With a [`Fault`] it measures which bugs a test suite finds.
//!
//! # The machine
//! Invocations are the leaves of a tree of incoherent caches: invocation, subgroup, workgroup, queue family,
//! device; memory is the root. A cache line belongs to one *reference* (a variable of the module), so two
//! references to one location meet only in memory. A program runs in order and issues its memory operations
//! to a window. The window performs them out of order as far as the memory model allows (`order`).
//! Availability operations flush lines towards memory; visibility operations drop clean lines. Both act up to
//! the level of their scope and on the storage classes that they name. Atomics execute at the level of their
//! scope. Caches prefetch, write back and evict spontaneously.
//!
//! The machine is sound: every outcome that it produces is one that the Vulkan memory model (specification,
//! appendix "Memory Model") allows, unless a fault is injected. It is not complete: it need not produce every
//! allowed outcome.
//!
//! | module | idea |
//! |---|---|
//! | `legalize` | the entry point without calls, in the form that lowering takes |
//! | `module`, `lower`, `program` | a SPIR-V module as flat operations on registers, 64 invocations in lockstep |
//! | `order` | program order: which memory operation of an invocation waits for which |
//! | `memory` | cache lines and what moves them |
//! | `store_buffer` | atomic stores that become visible to some invocations first |
//! | `read_ahead` | atomic loads that execute before branches and narrow acquires |
//! | `wave` | 64 invocations in lockstep and their operations in flight |
//! | `machine` | the scheduler: every choice from one seed |
//! | `device` | the device interface |
//! | `device::rasterize` | what a draw shades: vertices, points, fragments in quads |
//! | `host` | host threads, their caches and the host domain |
//! | `progress`, `machine::progress_scheduler` | progress models as schedulers |
//! | `fault` | the rules that can be broken |
//!
//! An iteration (a *round*) of a kernel's outermost loop ends for all invocations before the next one begins
//! for any. A device may schedule so, and it makes the threads of a test overlap. All lanes of a wave share
//! some choices: the independent unit is a round, not an instance.

mod device;
mod fault;
mod host;
mod instruction;
mod legalize;
mod limits;
mod lower;
mod machine;
mod memory;
mod module;
mod order;
mod program;
mod progress;
mod random;
mod wave;

use rspirv::spirv::Op;

pub use device::SimDevice;
pub use fault::{Expect, FAULTS, Fault, Row, UnknownFault};
pub use instruction::LoadError;
pub use progress::{ProgressGuarantee, ProgressModel, UnknownProgressModel};

/// All instructions that the machine executes or ignores.
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
