//! The device features of atomic instructions: by operation, width and the memory of the pointer.
//!
//! Vulkan, "Validation Rules within a Module": `VUID-RuntimeSpirv-None-06278` to `06288` and `06334` to `06340`. A capability allows an
//! operation in any memory, while each feature allows it in one kind, so the instruction decides, not the capability.

use litmus::{Scope, StorageClass};
use spirv_reader::{
    AtomicFunction, AtomicKind, SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation,
    SpirvType, memory_class, scope_from_word,
};
use vocabulary::Feature;

/// The operations with separate features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtomicOperation {
    /// Any operation on an integer of 64 bits.
    Integer64,
    /// Load, store or exchange of a float.
    FloatAccess(FloatWidth),
    FloatAdd(FloatWidth),
    FloatMinMax(FloatWidth),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FloatWidth {
    Half,
    Single,
    Double,
}

/// The requirement of an atomic instruction.
pub(crate) enum AtomicFeature {
    /// Every device has it.
    Core,
    Feature(Feature),
    /// No feature of Vulkan allows it.
    Missing,
}

/// Returns the feature that an instruction needs as an atomic operation; [`AtomicFeature::Core`] for other instructions.
pub(crate) fn atomic_feature(
    module: &SpirvModule,
    function: &SpirvFunction,
    instruction: &SpirvInstruction,
) -> AtomicFeature {
    let SpirvOperation::Atomic(access) = module.operation(instruction) else { return AtomicFeature::Core };
    let Some((class, value)) = pointee(module, function, access.pointer) else { return AtomicFeature::Core };
    let (Some(memory), Some(operation)) = (memory_class(class), operation_of(module, access.kind, value))
    else {
        return AtomicFeature::Core;
    };
    feature_of(operation, memory).map_or(AtomicFeature::Missing, AtomicFeature::Feature)
}

/// Returns the storage class and the type of the pointee.
fn pointee<'m>(
    module: &'m SpirvModule,
    function: &SpirvFunction,
    pointer: u32,
) -> Option<(rspirv::spirv::StorageClass, &'m SpirvType)> {
    let ty = function.types.get(&pointer).or_else(|| module.variable_types.get(&pointer))?;
    match module.types.get(ty)? {
        SpirvType::Pointer { class, pointee: to } => Some((*class, module.types.get(to)?)),
        _ => None,
    }
}

/// Returns the operation of an instruction on a value; `None` if no feature is needed.
fn operation_of(module: &SpirvModule, kind: AtomicKind, value: &SpirvType) -> Option<AtomicOperation> {
    let value = match value {
        // The format of packed halves.
        SpirvType::Vector { element, .. } => module.types.get(element)?,
        other => other,
    };
    let width = match value {
        SpirvType::Integer { bits: 64, .. } => return Some(AtomicOperation::Integer64),
        SpirvType::Float { bits: 16 } => FloatWidth::Half,
        SpirvType::Float { bits: 32 } => FloatWidth::Single,
        SpirvType::Float { bits: 64 } => FloatWidth::Double,
        _ => return None,
    };
    match kind {
        AtomicKind::Load | AtomicKind::Store { .. } | AtomicKind::Exchange { .. } => {
            Some(AtomicOperation::FloatAccess(width))
        }
        AtomicKind::CompareExchange { .. } => None,
        AtomicKind::Update { function, .. } => match function {
            AtomicFunction::FloatAdd => Some(AtomicOperation::FloatAdd(width)),
            AtomicFunction::FloatMin | AtomicFunction::FloatMax => Some(AtomicOperation::FloatMinMax(width)),
            AtomicFunction::Add
            | AtomicFunction::Subtract
            | AtomicFunction::And
            | AtomicFunction::Or
            | AtomicFunction::Xor
            | AtomicFunction::SignedMin
            | AtomicFunction::Min
            | AtomicFunction::SignedMax
            | AtomicFunction::Max => None,
        },
    }
}

/// Returns the feature of an operation in a memory; `None` if there is none.
fn feature_of(operation: AtomicOperation, memory: StorageClass) -> Option<Feature> {
    use AtomicOperation::{FloatAccess, FloatAdd, FloatMinMax, Integer64};
    use FloatWidth::{Double, Half, Single};
    use StorageClass::{Buffer, Image, Output, Workgroup};
    Some(match (operation, memory) {
        (Integer64, Buffer) => Feature::ShaderBufferInt64Atomics,
        (Integer64, Workgroup) => Feature::ShaderSharedInt64Atomics,
        (Integer64, Image) => Feature::ShaderImageInt64Atomics,
        (FloatAccess(Half), Buffer) => Feature::ShaderBufferFloat16Atomics,
        (FloatAccess(Half), Workgroup) => Feature::ShaderSharedFloat16Atomics,
        (FloatAccess(Single), Buffer) => Feature::ShaderBufferFloat32Atomics,
        (FloatAccess(Single), Workgroup) => Feature::ShaderSharedFloat32Atomics,
        (FloatAccess(Single), Image) => Feature::ShaderImageFloat32Atomics,
        (FloatAccess(Double), Buffer) => Feature::ShaderBufferFloat64Atomics,
        (FloatAccess(Double), Workgroup) => Feature::ShaderSharedFloat64Atomics,
        (FloatAdd(Half), Buffer) => Feature::ShaderBufferFloat16AtomicAdd,
        (FloatAdd(Half), Workgroup) => Feature::ShaderSharedFloat16AtomicAdd,
        (FloatAdd(Single), Buffer) => Feature::ShaderBufferFloat32AtomicAdd,
        (FloatAdd(Single), Workgroup) => Feature::ShaderSharedFloat32AtomicAdd,
        (FloatAdd(Single), Image) => Feature::ShaderImageFloat32AtomicAdd,
        (FloatAdd(Double), Buffer) => Feature::ShaderBufferFloat64AtomicAdd,
        (FloatAdd(Double), Workgroup) => Feature::ShaderSharedFloat64AtomicAdd,
        (FloatMinMax(Half), Buffer) => Feature::ShaderBufferFloat16AtomicMinMax,
        (FloatMinMax(Half), Workgroup) => Feature::ShaderSharedFloat16AtomicMinMax,
        (FloatMinMax(Single), Buffer) => Feature::ShaderBufferFloat32AtomicMinMax,
        (FloatMinMax(Single), Workgroup) => Feature::ShaderSharedFloat32AtomicMinMax,
        (FloatMinMax(Single), Image) => Feature::ShaderImageFloat32AtomicMinMax,
        (FloatMinMax(Double), Buffer) => Feature::ShaderBufferFloat64AtomicMinMax,
        (FloatMinMax(Double), Workgroup) => Feature::ShaderSharedFloat64AtomicMinMax,
        (FloatAccess(Half | Double) | FloatAdd(Half | Double) | FloatMinMax(Half | Double), Image)
        | (_, Output) => {
            return None;
        }
    })
}

/// Returns the feature of an `OpReadClockKHR` of a scope (`VUID-RuntimeSpirv-OpReadClockKHR-04652`).
pub(crate) fn clock_feature(module: &SpirvModule, scope: u32) -> Option<Feature> {
    match module.constants.get(&scope) {
        Some((_, SpirvConstant::Scalar(number))) => match scope_from_word(*number, true).ok()? {
            Scope::Subgroup => Some(Feature::ShaderSubgroupClock),
            Scope::Device => Some(Feature::ShaderDeviceClock),
            Scope::Invocation
            | Scope::Workgroup
            | Scope::ShaderCall
            | Scope::FragmentInterlock
            | Scope::QueueFamily
            | Scope::CrossDevice => None,
        },
        _ => None,
    }
}
