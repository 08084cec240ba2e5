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
    feature_of(&operation, memory).map_or(AtomicFeature::Missing, AtomicFeature::Feature)
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

/// Returns the operation of an instruction on a value, as the names of features end; `None` if no feature is needed.
fn operation_of(module: &SpirvModule, kind: AtomicKind, value: &SpirvType) -> Option<String> {
    let value = match value {
        // The format of packed halves.
        SpirvType::Vector { element, .. } => module.types.get(element)?,
        other => other,
    };
    let width = match value {
        SpirvType::Integer { bits: 64, .. } => return Some("Int64Atomics".to_owned()),
        SpirvType::Float { bits: bits @ (16 | 32 | 64) } => bits,
        _ => return None,
    };
    let operation = match kind {
        AtomicKind::Load | AtomicKind::Store { .. } | AtomicKind::Exchange { .. } => "Atomics",
        AtomicKind::CompareExchange { .. } => return None,
        AtomicKind::Update { function, .. } => match function {
            AtomicFunction::FloatAdd => "AtomicAdd",
            AtomicFunction::FloatMin | AtomicFunction::FloatMax => "AtomicMinMax",
            AtomicFunction::Add
            | AtomicFunction::Subtract
            | AtomicFunction::And
            | AtomicFunction::Or
            | AtomicFunction::Xor
            | AtomicFunction::SignedMin
            | AtomicFunction::Min
            | AtomicFunction::SignedMax
            | AtomicFunction::Max => return None,
        },
    };
    Some(format!("Float{width}{operation}"))
}

/// Returns the feature of an operation in a memory; `None` if there is none.
fn feature_of(operation: &str, memory: StorageClass) -> Option<Feature> {
    let memory = match memory {
        StorageClass::Buffer => "Buffer",
        StorageClass::Workgroup => "Shared",
        StorageClass::Image => "Image",
        StorageClass::Output => return None,
    };
    Feature::from_name(&format!("shader{memory}{operation}"))
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
