//! The faults of a module, by name.

use litmus::Scope;
use rspirv::spirv::{Capability, ExecutionModel, Op};

use shaders::rules::SemanticsRule;

/// A rule that a module breaks, with the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{instruction:?} number {number}: {fault}")]
pub struct Violation {
    pub instruction: Op,
    /// Its index among all instructions of the module.
    pub number: usize,
    pub fault: ModuleFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleFault {
    /// Its memory semantics break a rule.
    #[error(transparent)]
    Semantics(#[from] SemanticsRule),
    /// A scope or semantics that is not a constant, which the Shader capability requires.
    #[error("scope or semantics that is not a constant")]
    NotConstant,
    /// An invalid scope, or one that no shader can use (VUID-StandaloneSpirv-None-04638).
    #[error("scope {0}")]
    Scope(u32),
    /// Device scope without the capability VulkanMemoryModelDeviceScope
    /// (VUID-RuntimeSpirv-vulkanMemoryModel-06265).
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
    /// An atomic in a storage class without atomics (VUID-StandaloneSpirv-None-04686).
    #[error("atomic on this storage class")]
    AtomicStorageClass,
    /// A compare-exchange with one volatile semantics (VUID-StandaloneSpirv-UnequalMemorySemantics-10879).
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
    /// A load with an availability operation.
    #[error("availability on a load")]
    AvailabilityOnLoad,
    /// A store with a visibility operation.
    #[error("visibility on a store")]
    VisibilityOnStore,
    /// Availability or visibility of a private access.
    #[error("availability or visibility of a private access")]
    PrivateAvailability,
    /// A non-private access to a storage class that is always private.
    #[error("non-private access to this storage class")]
    NonPrivateStorageClass,
    /// An access by address without an alignment that is a multiple of its type's size
    /// (VUID-StandaloneSpirv-PhysicalStorageBuffer64-04708).
    #[error("access by address without its alignment")]
    Alignment,
    /// A storage image with unknown format, or with another type than a 32-bit integer or float
    /// (VUID-StandaloneSpirv-OpImageTexelPointer-04658).
    #[error("format of an image")]
    ImageFormat,
    /// The Vulkan memory model without its capability.
    #[error("memory model without its capability")]
    ModelWithoutCapability,
    /// The capability of the Vulkan memory model with another model.
    #[error("capability of an undeclared memory model")]
    CapabilityWithoutModel,
    /// A capability without the extension that this SPIR-V version requires for it.
    #[error("capability {0:?} without its extension")]
    MissingExtension(Capability),
    #[error("capability {0:?} is missing")]
    MissingCapability(Capability),
    /// An addressing model that Vulkan does not support (VUID-StandaloneSpirv-None-04635).
    #[error("addressing model")]
    AddressingModel,
    /// The decorations Coherent and Volatile with the Vulkan memory model.
    #[error("decoration that the Vulkan memory model replaces")]
    DeprecatedDecoration,
    /// A global variable that the entry point must list but does not, or that must not be listed before
    /// SPIR-V 1.4.
    #[error("interface of the entry point")]
    EntryPointInterface,
    /// A stage that kernels do not use.
    #[error("execution model {0:?}")]
    ExecutionModel(ExecutionModel),
    /// A workgroup size in a stage without workgroups, or a coordinate origin that is missing in a fragment
    /// shader or present in another stage (VUID-StandaloneSpirv-OriginLowerLeft-04653).
    #[error("execution modes that {0:?} does not have")]
    StageModes(ExecutionModel),
    /// A workgroup without invocations.
    #[error("empty workgroup")]
    EmptyWorkgroup,
    /// A buffer without a block (VUID-StandaloneSpirv-Uniform-06807).
    #[error("buffer without a block")]
    MissingBlock,
    /// A resource without a descriptor set or a binding.
    #[error("resource without a binding")]
    MissingBinding,
    /// A block member without offset, or an array without stride.
    #[error("explicit layout is missing")]
    MissingLayout,
    /// A control barrier that some threads of the test do not reach.
    #[error("control barrier in divergent control flow")]
    DivergentBarrier,
    /// A wait without an earlier arrival of its execution scope, two of either in sequence, or a last arrival
    /// without a wait in its round (VUID-RuntimeSpirv-OpControlBarrierWaitEXT-13559 to 13561).
    #[error("arrivals and waits that do not alternate")]
    SplitAlternation,
    /// An instruction that kernels do not use ([opcodes](shaders::COMPUTE_OPCODES)).
    #[error("instruction that kernels do not contain")]
    UnlistedInstruction,
}
