//! What can be wrong with a module, by name.

use litmus::Scope;
use rspirv::spirv::{Capability, ExecutionModel, Op};

use crate::rules::SemanticsRule;

/// A rule that a module breaks, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{instruction:?} number {number}: {fault}")]
pub struct Violation {
    /// The instruction.
    pub instruction: Op,
    /// Its number among all instructions of the module, from 0.
    pub number: usize,
    /// What is wrong with it.
    pub fault: ModuleFault,
}

/// What is wrong with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleFault {
    /// Its memory semantics break a rule.
    #[error(transparent)]
    Semantics(#[from] SemanticsRule),
    /// A scope or semantics that is not a constant: with the Shader capability it must be one.
    #[error("scope or semantics that is not a constant")]
    NotConstant,
    /// A scope that no shader can name (VUID-StandaloneSpirv-None-04638), or no scope at all.
    #[error("scope {0}")]
    Scope(u32),
    /// Device scope without the capability VulkanMemoryModelDeviceScope (VUID-RuntimeSpirv-vulkanMemoryModel-06265).
    #[error("Device scope without its capability")]
    DeviceScope,
    /// QueueFamily scope without the Vulkan memory model (VUID-RuntimeSpirv-vulkanMemoryModel-06266).
    #[error("QueueFamily scope without the Vulkan memory model")]
    QueueFamilyScope,
    /// Subgroup scope without GroupNonUniform (VUID-RuntimeSpirv-SubgroupVoteKHR-07951).
    #[error("Subgroup scope without the capability GroupNonUniform")]
    SubgroupScope,
    /// An execution scope other than Workgroup and Subgroup (VUID-StandaloneSpirv-None-04636).
    #[error("execution scope {0:?}")]
    ExecutionScope(Scope),
    /// An atomic whose type is not a 32-bit integer or float, or a 64-bit one with its capability.
    #[error("atomic on this type")]
    AtomicType,
    /// A floating-point addition, minimum or maximum without its capability (VUID-RuntimeSpirv-None-06284).
    #[error("floating-point atomic without its capability")]
    FloatAtomic,
    /// An atomic on memory that atomics cannot reach (VUID-StandaloneSpirv-None-04686).
    #[error("atomic on this storage class")]
    AtomicStorageClass,
    /// Failure and success of a compare-exchange, one of them volatile (VUID-StandaloneSpirv-UnequalMemorySemantics-10879).
    #[error("one of two semantics is volatile")]
    UnequalVolatile,
    /// Volatile semantics on a barrier (VUID-StandaloneSpirv-MemorySemantics-13551).
    #[error("volatile barrier")]
    VolatileBarrier,
    /// Availability, visibility, Output memory or Volatile in semantics without the Vulkan memory model.
    #[error("semantics of the Vulkan memory model without it")]
    SemanticsWithoutModel,
    /// Memory or image operands of the Vulkan memory model without it.
    #[error("memory operands of the Vulkan memory model without it")]
    OperandsWithoutModel,
    /// A load that makes something available.
    #[error("availability on a load")]
    AvailabilityOnLoad,
    /// A store that makes something visible.
    #[error("visibility on a store")]
    VisibilityOnStore,
    /// Availability or visibility of an access that is private.
    #[error("availability or visibility of a private access")]
    PrivateAvailability,
    /// A non-private access to memory that is private by its nature.
    #[error("non-private access to this storage class")]
    NonPrivateStorageClass,
    /// An access by address without an alignment that its type divides (VUID-StandaloneSpirv-PhysicalStorageBuffer64-04708).
    #[error("access by address without its alignment")]
    Alignment,
    /// A storage image of unknown format, or one that is no 32-bit integer or float
    /// (VUID-StandaloneSpirv-OpImageTexelPointer-04658).
    #[error("format of an image")]
    ImageFormat,
    /// The Vulkan memory model without its capability.
    #[error("memory model without its capability")]
    ModelWithoutCapability,
    /// The capability of the Vulkan memory model under another one.
    #[error("capability of a memory model that is not declared")]
    CapabilityWithoutModel,
    /// A capability that SPIR-V of this version has from an extension only, without that extension.
    #[error("capability {0:?} without its extension")]
    MissingExtension(Capability),
    /// Something that needs a capability, without it.
    #[error("capability {0:?} is missing")]
    MissingCapability(Capability),
    /// An addressing model that Vulkan has not (VUID-StandaloneSpirv-None-04635).
    #[error("addressing model")]
    Addressing,
    /// The decorations Coherent and Volatile under the Vulkan memory model.
    #[error("decoration that the Vulkan memory model replaces")]
    DeprecatedDecoration,
    /// A global variable that the entry point does not list, or before SPIR-V 1.4 lists and must not.
    #[error("interface of the entry point")]
    Interface,
    /// A stage that kernels do not run in.
    #[error("execution model {0:?}")]
    ExecutionModel(ExecutionModel),
    /// A workgroup size outside of compute shaders, or an origin of coordinates that is missing in a fragment shader or stands elsewhere
    /// (VUID-StandaloneSpirv-OriginLowerLeft-04653).
    #[error("execution modes that {0:?} does not have")]
    StageModes(ExecutionModel),
    /// A workgroup without invocations.
    #[error("empty workgroup")]
    EmptyWorkgroup,
    /// A buffer that is no block (VUID-StandaloneSpirv-Uniform-06807).
    #[error("buffer without a block")]
    NoBlock,
    /// A resource without a descriptor set or a binding.
    #[error("resource without a binding")]
    NoBinding,
    /// A member of a block or an array in one without a place.
    #[error("explicit layout is missing")]
    NoLayout,
    /// A control barrier that some threads of the test do not reach.
    #[error("control barrier in divergent control flow")]
    DivergentBarrier,
    /// A wait without an arrival of its execution scope before it, a second of either without the other in between, or a last
    /// arrival that the next round of the kernel meets again (VUID-RuntimeSpirv-OpControlBarrierWaitEXT-13559 to 13561).
    #[error("arrivals and waits that do not take turns")]
    SplitTurns,
    /// An instruction that kernels do not hold ([`OPCODES`](crate::OPCODES)).
    #[error("instruction that no kernel holds")]
    Foreign,
}
